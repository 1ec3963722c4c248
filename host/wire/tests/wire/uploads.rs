//! Uploads and downloads in pieces.

use std::io::Cursor;
use std::pin::pin;

use bytes::Bytes;
use slackline_wire::limits::CHUNK;
use slackline_wire::v1::{
    PredictPart, PullPluginRequest, PushHeader, PushPart, predict_part, predict_reply, push_part,
};
use slackline_wire::{Kind, WireError, chunks, chunks_of, upload};
use tokio_stream::StreamExt;

use crate::cluster::Server;

fn some_bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

fn header(bytes: usize) -> PushPart {
    let header = PushHeader { name: "lda".into(), bytes: bytes as u64, ..Default::default() };
    PushPart { part: Some(push_part::Part::Header(header)) }
}

fn piece(bytes: Bytes) -> PushPart {
    PushPart { part: Some(push_part::Part::Chunk(bytes)) }
}

#[tokio::test]
async fn what_is_uploaded_arrives_from_memory_and_from_a_reader() {
    let server = Server::plain().await;
    let client = server.client().await.patient();
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7, 40 * CHUNK] {
        let bytes = some_bytes(length);
        let digest = blake3::hash(&bytes).to_string();
        let most = length as u64;
        let (memory, source) = upload(header(length), chunks_of(bytes.clone().into(), most), piece);
        let from_memory = client.plugins().push(memory).await.expect("push").into_inner().revision.expect("one");
        assert!(source.fault().is_none());
        let (reader, source) = upload(header(length), chunks(Cursor::new(bytes), most), piece);
        let from_reader = client.plugins().push(reader).await.expect("push").into_inner().revision.expect("one");
        assert!(source.fault().is_none());
        assert_eq!(from_memory, from_reader);
        assert_eq!((from_memory.plugin.as_str(), from_memory.bytes, from_memory.digest), ("ours/lda", most, digest));
    }
}

#[tokio::test]
async fn pieces_are_whole_however_the_reader_gives_them() {
    // Gives at most 1,000 bytes a time.
    let (mut to, from) = tokio::io::duplex(1000);
    let bytes = some_bytes(2 * CHUNK + 5);
    let sent = bytes.clone();
    tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut to, &sent).await });
    let pieces: Vec<Bytes> = chunks(from, u64::MAX).map(|piece| piece.expect("read")).collect().await;
    assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [CHUNK, CHUNK, 5]);
    assert_eq!(pieces.concat(), bytes);
}

#[tokio::test]
async fn more_than_the_bound_is_an_error_and_nothing_follows() {
    let bytes = some_bytes(CHUNK + 1);
    let mut from_reader = pin!(chunks(Cursor::new(bytes.clone()), CHUNK as u64));
    assert_eq!(from_reader.next().await.expect("one").expect("within").len(), CHUNK);
    let error = from_reader.next().await.expect("an error").expect_err("over");
    assert!(matches!(error, WireError::Limit { .. }), "{error:?}");
    assert!(from_reader.next().await.is_none());
    let mut from_memory = chunks_of(bytes.into(), CHUNK as u64);
    assert!(from_memory.next().await.expect("an error").is_err() && from_memory.next().await.is_none());
}

#[tokio::test]
async fn a_source_that_breaks_is_known_to_the_uploader() {
    let server = Server::plain().await;
    let client = server.client().await.patient();
    let broken = tokio_stream::iter([
        Ok(Bytes::from_static(b"abc")),
        Err(WireError::Source { why: "the disk is gone".into() }),
        Ok(Bytes::from_static(b"def")),
    ]);
    let (parts, source) = upload(header(6), broken, piece);
    let error = WireError::from(client.plugins().push(parts).await.expect_err("too short"));
    assert_eq!((error.kind(), error.to_string().as_str()), (Some(Kind::Invalid), "6 bytes were told, 3 came"));
    assert!(source.fault().expect("known").to_string().contains("the disk is gone"));
}

#[tokio::test]
async fn downloads_and_both_ways_at_once_stream() {
    let server = Server::plain().await;
    let client = server.client().await.patient();
    let mut pulled = client.plugins().pull(PullPluginRequest::default()).await.expect("pull").into_inner();
    let mut all = Vec::new();
    while let Some(chunk) = pulled.message().await.expect("chunk") {
        all.extend_from_slice(&chunk.data);
    }
    assert_eq!((all.len(), all.last()), (4 * CHUNK, Some(&3)));

    let bytes = some_bytes(12 * CHUNK + 3);
    let pieces = chunks_of(bytes.clone().into(), u64::MAX).map(|piece| piece.expect("within"));
    let parts = pieces.map(|piece| PredictPart { part: Some(predict_part::Part::Chunk(piece)) });
    let mut replies = client.jobs().predict(parts).await.expect("predict").into_inner();
    let mut back = Vec::new();
    while let Some(reply) = replies.message().await.expect("reply") {
        let Some(predict_reply::Part::Chunk(chunk)) = reply.part else { panic!("{reply:?}") };
        back.extend_from_slice(&chunk);
    }
    assert_eq!(back, bytes);
}
