//! Peers that send garbage, nothing, or open more connections than there is place for.

use std::time::Duration;

use slackline_wire::{Authority, Client, ServeLimits, Usage, WireError, server_config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::cluster::{SOON, Server, identity, whoami};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

async fn open(server: &Server) -> TcpStream {
    TcpStream::connect(server.address).await.expect("accepted by the system")
}

/// That the server closes the connection, whatever it says before.
async fn closed(mut stream: TcpStream) {
    let mut said = Vec::new();
    // A reset is an end, too.
    let _ = timeout(SOON, stream.read_to_end(&mut said)).await.expect("the server closes it");
}

#[tokio::test]
async fn garbage_ends_its_own_connection_alone() {
    let ours = Authority::new("ours").expect("authority");
    for tls in [false, true] {
        let server = if tls { Server::tls(&ours, None).await } else { Server::plain().await };
        let endpoint = if tls { server.endpoint_trusting(&ours) } else { server.endpoint() };
        let client = Client::connect(endpoint.clone()).await.expect("connect");
        let frame = [PREFACE, &[0xff; 64]].concat();
        let settings_then_junk = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0], &[0; 200]].concat();
        for bytes in [&[0u8; 64][..], b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", &[0x16; 300], &frame, &settings_then_junk] {
            let mut stream = open(&server).await;
            // It may close before it has read all.
            let _ = stream.write_all(bytes).await;
            closed(stream).await;
            whoami(&client).await.expect("the others go on");
        }
        whoami(&Client::connect(endpoint).await.expect("connect")).await.expect("new ones too");
    }
}

#[tokio::test]
async fn connections_that_never_begin_do_not_keep_others_out() {
    let ours = Authority::new("ours").expect("authority");
    let server = Server::tls(&ours, None).await;
    let mut idle = Vec::new();
    for n in 0..100 {
        let mut stream = open(&server).await;
        // Half of them say nothing, half begin a TLS record that they never end.
        if n % 2 == 0 {
            stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.expect("write");
        }
        idle.push(stream);
    }
    let client = timeout(SOON, Client::connect(server.endpoint_trusting(&ours))).await.expect("in time");
    whoami(&client.expect("connect")).await.expect("served among them");
    drop(idle);
}

#[tokio::test]
async fn a_connection_that_does_not_begin_in_time_is_closed() {
    let limits = || ServeLimits { handshake: Duration::from_millis(50), ..ServeLimits::default() };
    let ours = Authority::new("ours").expect("authority");
    let config = server_config(identity(&ours, "coordinator", Usage::Server), None).expect("config");
    for tls in [None, Some(config)] {
        let server = Server::start(tls, limits()).await;
        closed(open(&server).await).await;
        let mut half = open(&server).await;
        half.write_all(&PREFACE[..10]).await.expect("write");
        closed(half).await;
    }
}

#[tokio::test]
async fn a_peer_that_does_not_answer_pings_is_closed() {
    let short = Duration::from_millis(50);
    let limits = ServeLimits { keepalive_interval: short, keepalive_timeout: short, ..ServeLimits::default() };
    let server = Server::start(None, limits).await;
    let mut stream = open(&server).await;
    // A whole beginning, and silence after it.
    stream.write_all(&[PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat()).await.expect("write");
    closed(stream).await;
}

#[tokio::test]
async fn connections_over_the_bound_are_closed_and_the_rest_go_on() {
    let limits = ServeLimits { connections: 3, handshake: SOON * 2, ..ServeLimits::default() };
    let server = Server::start(None, limits).await;
    let client = server.client().await;
    let (second, third) = (open(&server).await, open(&server).await);
    closed(open(&server).await).await;
    let error = Client::connect(server.endpoint()).await.map(drop).expect_err("no place");
    assert!(matches!(error, WireError::Unreachable { .. }), "{error:?}");
    whoami(&client).await.expect("those inside go on");

    // A place that is left can be taken again, as soon as the server has noticed.
    drop((second, third));
    let again = async {
        loop {
            if let Ok(client) = Client::connect(server.endpoint()).await {
                return client;
            }
        }
    };
    whoami(&timeout(SOON, again).await.expect("a place is free")).await.expect("served");
}
