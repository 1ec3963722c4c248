//! Files over streams: uploads into the cluster's files or a temporary one, and files out in chunks.

use crate::serve::api::{io, missing, storage};
use crate::serve::coordinator::Coordinator;
use bytes::Bytes;
use slackline_wire::limits::CHUNK;
use slackline_wire::tonic::{Status, Streaming};
use slackline_wire::{Kind, Refusal};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// How long a client may be silent in the middle of an upload.
const SILENCE: Duration = Duration::from_secs(60);

/// Pieces between the network and the disk.
const AHEAD: usize = 4;

/// A stream of answers.
pub type Answers<T> = ReceiverStream<Result<T, Status>>;

/// The next message of an upload.
pub async fn next<T>(stream: &mut Streaming<T>) -> Result<Option<T>, Status> {
    match tokio::time::timeout(SILENCE, stream.message()).await {
        Ok(message) => message,
        Err(_) => Err(Refusal::new(Kind::Unavailable, "the upload stopped in the middle; send it again").into()),
    }
}

/// Refuses an upload that is announced larger than `limit`, before anything of it is kept.
pub fn fits(what: &str, bytes: u64, limit: u64) -> Result<(), Status> {
    match bytes {
        0 => Err(Refusal::new(Kind::Invalid, format!("the {what} is empty")).into()),
        bytes if bytes > limit => {
            let message = format!("the {what} has {bytes} bytes, and this cluster takes at most {limit}");
            Err(Refusal::new(Kind::TooBig, message).hint("`limits` in the host's config sets the bound").into())
        }
        _ => Ok(()),
    }
}

/// Receives a file whose pieces `piece` takes out of messages; its digest must be `digest`.
pub async fn receive<T>(
    coordinator: Arc<Coordinator>,
    stream: &mut Streaming<T>,
    piece: fn(T) -> Option<Bytes>,
    announced: (u64, String),
) -> Result<PathBuf, Status> {
    let (to, mut from) = mpsc::channel::<Bytes>(AHEAD);
    let (bytes, digest) = announced;
    let writer = tokio::task::spawn_blocking(move || {
        let mut upload = coordinator.blobs().upload(bytes).map_err(storage)?;
        while let Some(chunk) = from.blocking_recv() {
            upload.write(&chunk).map_err(storage)?;
        }
        upload.finish(&digest).map_err(storage)
    });
    pass(stream, piece, to).await?;
    writer.await.unwrap_or_else(|e| Err(Refusal::new(Kind::Internal, e.to_string()).into()))
}

/// Receives a file of exactly `bytes` bytes into `path`.
pub async fn receive_into<T>(
    path: PathBuf,
    stream: &mut Streaming<T>,
    piece: fn(T) -> Option<Bytes>,
    bytes: u64,
) -> Result<(), Status> {
    let (to, mut from) = mpsc::channel::<Bytes>(AHEAD);
    let writer = tokio::task::spawn_blocking(move || -> Result<(), Status> {
        let failed = |e: std::io::Error| io("the upload cannot be kept", &e);
        let mut file = File::create(&path).map_err(failed)?;
        let mut left = bytes;
        while let Some(chunk) = from.blocking_recv() {
            left = left.checked_sub(chunk.len() as u64).ok_or_else(|| longer(bytes))?;
            file.write_all(&chunk).map_err(failed)?;
        }
        if left > 0 {
            return Err(Refusal::new(Kind::Invalid, format!("only {} of {bytes} bytes came", bytes - left)).into());
        }
        Ok(())
    });
    pass(stream, piece, to).await?;
    writer.await.unwrap_or_else(|e| Err(Refusal::new(Kind::Internal, e.to_string()).into()))
}

async fn pass<T>(
    stream: &mut Streaming<T>,
    piece: fn(T) -> Option<Bytes>,
    to: mpsc::Sender<Bytes>,
) -> Result<(), Status> {
    while let Some(message) = next(stream).await? {
        let chunk = piece(message).ok_or_else(|| missing("a chunk: a header comes once, and first"))?;
        // A writer that has ended has said why; its answer comes.
        if to.send(chunk).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn longer(bytes: u64) -> Status {
    Refusal::new(Kind::Invalid, format!("more came than the {bytes} bytes that were announced")).into()
}

/// Sends a file in chunks. `keep` lives until the last is sent.
pub fn send<T: Send + 'static, K: Send + 'static>(
    path: &Path,
    wrap: fn(Bytes) -> T,
    keep: K,
) -> Result<Answers<T>, Status> {
    let mut file = File::open(path).map_err(|e| io("the file cannot be read", &e))?;
    let (to, from) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let _keep = keep;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            let answer = match (&mut file).take(CHUNK as u64).read_to_end(&mut chunk) {
                Ok(0) => return,
                Ok(_) => Ok(wrap(chunk.into())),
                Err(e) => Err(io("the file cannot be read", &e)),
            };
            let failed = answer.is_err();
            // A client that has gone away needs no more.
            if to.blocking_send(answer).is_err() || failed {
                return;
            }
        }
    });
    Ok(ReceiverStream::new(from))
}
