//! The end of a server.

use std::time::Duration;

use slackline_wire::v1::{ShowJobRequest, WatchRequest};
use slackline_wire::{ServeLimits, WireError};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_stream::StreamExt;

use crate::cluster::{SOON, Server, whoami};

#[tokio::test]
async fn a_running_call_ends_before_the_server_does() {
    let mut server = Server::plain().await;
    server.readiness.set(true).await;
    let client = server.client().await;
    let slow = tokio::spawn(async move { client.jobs().show(ShowJobRequest::default()).await });
    server.served.begun.acquire().await.expect("begun").forget();
    server.ask_to_stop();

    // It accepts nobody new, while the call still runs.
    let refused = async { while TcpStream::connect(server.address).await.is_ok() {} };
    timeout(SOON, refused).await.expect("the listener is closed");
    assert!(!slow.is_finished());

    server.served.end.add_permits(1);
    let reply = timeout(SOON, slow).await.expect("in time").expect("no panic").expect("answered");
    assert_eq!(reply.into_inner().job_toml, "late");
    server.ended().await.expect("clean");
}

#[tokio::test]
async fn what_does_not_end_in_the_grace_is_cut() {
    let limits = ServeLimits { grace: Duration::from_millis(50), ..ServeLimits::default() };
    let mut server = Server::start(None, limits).await;
    let client = server.client().await;
    let mut events = client.jobs().watch(WatchRequest::default()).await.expect("watch").into_inner();
    assert_eq!(events.next().await.expect("one").expect("ok").number, 1);
    server.ask_to_stop();
    let address = server.address;
    server.ended().await.expect("clean");
    timeout(SOON, events.next()).await.expect("cut").expect("an error, not an end").expect_err("an error");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_server_without_connections_ends_at_once() {
    let mut server = Server::plain().await;
    server.ask_to_stop();
    server.ended().await.expect("clean");
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections() {
    let server = Server::plain().await;
    let client = server.client().await;
    let mut events = client.jobs().watch(WatchRequest::default()).await.expect("watch").into_inner();
    events.next().await.expect("one").expect("ok");
    server.dropped().await;
    timeout(SOON, events.next()).await.expect("cut").expect("an error, not an end").expect_err("an error");
}

#[tokio::test]
async fn a_client_finds_the_server_again_after_it_came_back() {
    let mut server = Server::plain().await;
    let address = server.address;
    let client = server.client().await;
    server.ask_to_stop();
    server.ended().await.expect("clean");
    let error = client.ready().await.expect_err("nobody there");
    assert!(matches!(&error, WireError::Unreachable { address: at, .. } if *at == address.to_string()), "{error:?}");

    let listener = TcpListener::bind(address).await.expect("free again");
    let _server = Server::start_on(listener, None, ServeLimits::default()).await;
    let again = async { while whoami(&client).await.is_err() {} };
    timeout(SOON, again).await.expect("the same client");
}
