//! Uploads: bytes in pieces, with a bound on their sum, and a header before them.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::{Result, WireError};
use crate::limits::CHUNK;

/// What `reader` gives, in pieces of [`CHUNK`] bytes (the last may be shorter), and an error once it gives more than
/// `most` bytes or cannot be read. Nothing follows an error.
pub fn chunks<R: AsyncRead + Unpin>(reader: R, most: u64) -> Chunks<R> {
    Chunks { reader: Some(reader), piece: BytesMut::new(), filled: 0, most, left: most }
}

/// As [`chunks`], for bytes that are in memory, without copying them.
pub fn chunks_of(bytes: Bytes, most: u64) -> impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static {
    let mut rest = Some(bytes);
    tokio_stream::iter(std::iter::from_fn(move || {
        let mut bytes = rest.take().filter(|bytes| !bytes.is_empty())?;
        if bytes.len() as u64 > most {
            return Some(Err(too_long(most)));
        }
        let piece = bytes.split_to(bytes.len().min(CHUNK));
        rest = Some(bytes);
        Some(Ok(piece))
    }))
}

/// The messages of an upload: `header`, then a message for each piece. gRPC has no way for a client's stream to end in an
/// error, so where the pieces end in one, the messages just end, and [`Upload::fault`] has it: ask there before
/// believing what the peer says about an upload that was too short.
pub fn upload<M, S>(header: M, pieces: S, piece: fn(Bytes) -> M) -> (impl Stream<Item = M> + Send + 'static, Upload)
where
    M: Send + Unpin + 'static,
    S: Stream<Item = Result<Bytes>> + Send + Unpin + 'static,
{
    let upload = Upload::default();
    (Messages { header: Some(header), pieces: Some(pieces), piece, fault: upload.clone() }, upload)
}

/// What became of an upload's source.
#[derive(Clone, Debug, Default)]
pub struct Upload(Arc<Mutex<Option<WireError>>>);

impl Upload {
    /// Why the upload ended early, if it did.
    pub fn fault(&self) -> Option<WireError> {
        // A panic while it was held cannot have left half an error.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// See [`chunks`].
#[derive(Debug)]
pub struct Chunks<R> {
    // Gone at its end, and after an error.
    reader: Option<R>,
    piece: BytesMut,
    filled: usize,
    most: u64,
    left: u64,
}

impl<R: AsyncRead + Unpin> Stream for Chunks<R> {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while let Some(reader) = &mut this.reader {
            if this.piece.is_empty() {
                this.piece = BytesMut::zeroed(CHUNK);
            }
            let mut into = ReadBuf::new(this.piece.get_mut(this.filled..).unwrap_or_default());
            let read = ready!(pin!(reader).poll_read(cx, &mut into)).map(|()| into.filled().len());
            let fault = match read {
                Ok(0) => {
                    this.reader = None;
                    break;
                }
                Ok(read) => {
                    this.filled += read;
                    match this.left.checked_sub(read as u64) {
                        Some(left) => {
                            this.left = left;
                            if this.filled < CHUNK {
                                continue;
                            }
                            break;
                        }
                        None => too_long(this.most),
                    }
                }
                Err(error) => WireError::Source { why: error.to_string() },
            };
            this.reader = None;
            this.filled = 0;
            return Poll::Ready(Some(Err(fault)));
        }
        if this.filled == 0 {
            return Poll::Ready(None);
        }
        let mut piece = std::mem::take(&mut this.piece);
        piece.truncate(std::mem::take(&mut this.filled));
        Poll::Ready(Some(Ok(piece.freeze())))
    }
}

struct Messages<M, S> {
    header: Option<M>,
    pieces: Option<S>,
    piece: fn(Bytes) -> M,
    fault: Upload,
}

impl<M: Unpin, S: Stream<Item = Result<Bytes>> + Unpin> Stream for Messages<M, S> {
    type Item = M;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<M>> {
        if let Some(header) = self.header.take() {
            return Poll::Ready(Some(header));
        }
        let Some(pieces) = &mut self.pieces else { return Poll::Ready(None) };
        match ready!(Pin::new(pieces).poll_next(cx)) {
            Some(Ok(bytes)) => Poll::Ready(Some((self.piece)(bytes))),
            ended => {
                self.pieces = None;
                if let Some(Err(error)) = ended {
                    *self.fault.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                Poll::Ready(None)
            }
        }
    }
}

fn too_long(most: u64) -> WireError {
    WireError::Limit { what: format!("what is to be sent may have at most {most} bytes") }
}
