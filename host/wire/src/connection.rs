//! One accepted connection, from the first byte that is believed to the last one that is sent.
//!
//! A connection is handed to HTTP/2 only after the peer has shown that it speaks it: its TLS handshake and the 24 bytes
//! with which every HTTP/2 connection begins, both under one timeout. So garbage, scanners and half-open peers never
//! reach the server proper.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Request;
use tonic::transport::server::Connected;

use crate::certs::common_name;
use crate::tls;

/// RFC 9113, 3.4.
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

type Io = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The other end of a connection. Services find it in a request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it connects from.
    pub address: SocketAddr,
    /// The common name of its certificate, under mutual TLS: which process it is.
    pub process: Option<Arc<str>>,
}

impl Peer {
    /// The peer of a request that came through [`crate::serve()`].
    pub fn of<T>(request: &Request<T>) -> Option<&Self> {
        request.extensions().get()
    }
}

pub(crate) struct Connection {
    io: Io,
    peer: Peer,
    // How much of the preface HTTP/2 has been given: it was read already, to see that it is there.
    replayed: usize,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    closed: CancellationToken,
    // Its place among the connections, free again when this is dropped.
    _place: OwnedSemaphorePermit,
}

impl Connection {
    /// Comes to the point where HTTP/2 begins. The caller bounds the time.
    pub(crate) async fn begin(
        stream: TcpStream,
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        place: OwnedSemaphorePermit,
        closed: CancellationToken,
    ) -> io::Result<Self> {
        // Answers are small and waited for.
        stream.set_nodelay(true)?;
        let mut process = None;
        let mut io = match tls {
            None => Either::Left(stream),
            Some(config) => {
                let accepted = TlsAcceptor::from(config).accept(stream).await;
                let stream = accepted.map_err(|error| tls::explained(error, &address.to_string()))?;
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                process = shown.and_then(common_name).map(Arc::from);
                Either::Right(Box::new(stream))
            }
        };
        let mut preface = [0; PREFACE.len()];
        io.read_exact(&mut preface).await?;
        if preface != PREFACE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer does not speak http/2"));
        }
        let closing = Box::pin(closed.clone().cancelled_owned());
        Ok(Self { io, peer: Peer { address, process }, replayed: 0, closing, closed, _place: place })
    }

    fn check(&self) -> io::Result<()> {
        if self.closed.is_cancelled() { Err(shut()) } else { Ok(()) }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(shut()));
        }
        let rest = PREFACE.get(self.replayed..).unwrap_or_default();
        if !rest.is_empty() {
            let (now, _) = rest.split_at(rest.len().min(into.remaining()));
            into.put_slice(now);
            self.replayed += now.len();
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

fn shut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the server has shut down")
}
