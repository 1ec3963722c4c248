//! Calls in the clear: tokens, refusals, limits, health and reflection.

use slackline_wire::limits::MAX_MESSAGE;
use slackline_wire::tonic::transport::Channel;
use slackline_wire::v1::plugins_client::PluginsClient;
use slackline_wire::v1::{
    DeletePluginRequest, ListDatasetsRequest, ListJobsRequest, ListPluginsRequest, ListTablesRequest, PredictPart,
    ShowJobRequest, ShowPluginRequest, WatchClusterRequest, predict_part,
};
use slackline_wire::{Client, Endpoint, Kind, PlaintextRule, ServeLimits, WireError, tonic};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::cluster::{Server, whoami};
use crate::services::TOKEN;

#[tokio::test]
async fn all_six_services_answer_in_plaintext_on_loopback() {
    let server = Server::plain().await;
    let client = server.client().await;
    assert_eq!(whoami(&client).await.expect("call"), ("ours".into(), String::new()));
    client.plugins().list(ListPluginsRequest {}).await.expect("plugins");
    client.datasets().list(ListDatasetsRequest {}).await.expect("datasets");
    client.jobs().list(ListJobsRequest::default()).await.expect("jobs");
    client.tables().list(ListTablesRequest::default()).await.expect("tables");
    let mut events = client.events().watch(WatchClusterRequest {}).await.expect("events").into_inner();
    assert_eq!(events.next().await.expect("one").expect("ok").at, 1);
}

#[tokio::test]
async fn a_wrong_token_and_none_are_refused_with_a_hint() {
    let server = Server::plain().await;
    for (token, message, hint) in [
        (Some("wrong"), "this token is not known", "ask for a new one"),
        (None, "no token", "give one with --token-file"),
    ] {
        let endpoint = Endpoint { token: token.map(Into::into), ..server.endpoint() };
        // Connecting asks for health alone, which needs no token.
        let client = Client::connect(endpoint).await.expect("connect");
        let error = whoami(&client).await.expect_err("refused");
        assert!(matches!(error, WireError::Unauthenticated { .. }), "{error:?}");
        assert_eq!((error.to_string().as_str(), error.hints()), (message, &[hint.to_owned()][..]));
        // Every one of the six, streams too.
        let codes = [
            client.plugins().list(ListPluginsRequest {}).await.expect_err("plugins").code(),
            client.datasets().list(ListDatasetsRequest {}).await.expect_err("datasets").code(),
            client.jobs().list(ListJobsRequest::default()).await.expect_err("jobs").code(),
            client.tables().list(ListTablesRequest::default()).await.expect_err("tables").code(),
            client.events().watch(WatchClusterRequest {}).await.expect_err("events").code(),
        ];
        assert_eq!(codes, [tonic::Code::Unauthenticated; 5]);
    }
}

#[tokio::test]
async fn a_refusal_keeps_kind_message_and_hints_on_the_wire() {
    let server = Server::plain().await;
    let client = server.client().await;
    for kind in Kind::ALL {
        let request = DeletePluginRequest { plugin: kind.name().into(), ..Default::default() };
        let status = client.plugins().delete(request).await.expect_err("refused");
        assert_eq!(status.code(), kind.code());
        let error = client.error(&status);
        assert_eq!(error.kind(), Some(kind));
        assert_eq!(error.to_string(), "»größe«: 100 % voll\nπ");
        assert_eq!(error.hints(), ["lösche etwas ✂", "frag später"]);
    }
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_on_both_sides_and_the_connection_goes_on() {
    let server = Server::plain().await;
    let client = server.client().await;
    let limit = |error: WireError| match error {
        WireError::Limit { what } => assert!(what.contains("4194304"), "{what}"),
        other => panic!("{other:?}"),
    };
    let too_big = ShowPluginRequest { plugin: "x".repeat(MAX_MESSAGE + 1) };

    // Ours does not send it.
    limit(client.plugins().show(too_big.clone()).await.expect_err("refused here").into());
    whoami(&client).await.expect("still there");

    // Nor in the middle of a stream, to which the server has begun to answer.
    let piece = |length| PredictPart { part: Some(predict_part::Part::Chunk(vec![0; length].into())) };
    let (to, parts) = tokio::sync::mpsc::channel(1);
    to.send(piece(1)).await.expect("sent");
    let mut replies = client.jobs().predict(ReceiverStream::new(parts)).await.expect("begun").into_inner();
    replies.message().await.expect("reply").expect("one");
    to.send(piece(MAX_MESSAGE + 1)).await.expect("sent");
    let error = replies.message().await.expect_err("refused here");
    limit(error.into());
    whoami(&client).await.expect("still there");

    // The server does not send it.
    let big = ShowPluginRequest { plugin: "big".into() };
    limit(client.plugins().show(big).await.expect_err("refused there").into());
    whoami(&client).await.expect("still there");

    // The server does not take it from a client that has no such limit.
    let channel = Channel::from_shared(format!("http://{}", server.address)).expect("uri").connect().await.expect("on");
    let with_token = |mut request: tonic::Request<()>| {
        request.metadata_mut().insert("authorization", format!("Bearer {TOKEN}").parse().expect("ascii"));
        Ok(request)
    };
    let mut raw = PluginsClient::with_interceptor(channel, with_token);
    limit(raw.show(too_big).await.expect_err("refused there").into());
    raw.list(ListPluginsRequest {}).await.expect("still there");

    // The largest that fits goes through: two bytes of tag and length, and their varint.
    let fits = ShowPluginRequest { plugin: "x".repeat(MAX_MESSAGE - 5) };
    client.plugins().show(fits).await.expect("fits");
}

#[tokio::test]
async fn health_follows_readiness_and_asks_for_no_token() {
    let server = Server::plain().await;
    let client = Client::connect(Endpoint { token: None, ..server.endpoint() }).await.expect("connect");
    assert!(!client.ready().await.expect("health"));
    server.readiness.set(true).await;
    assert!(client.ready().await.expect("health"));
    server.readiness.set(false).await;
    assert!(!client.ready().await.expect("health"));
}

#[tokio::test]
async fn reflection_names_the_six_services() {
    let server = Server::plain().await;
    let channel = Channel::from_shared(format!("http://{}", server.address)).expect("uri").connect().await.expect("on");
    let ask = |request| ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let asked = tokio_stream::iter([
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("slackline.control.v1.Jobs".into())),
    ]);
    let mut answers =
        ServerReflectionClient::new(channel).server_reflection_info(asked).await.expect("call").into_inner();
    let first = answers.next().await.expect("one").expect("ok").message_response;
    let Some(MessageResponse::ListServicesResponse(listed)) = first else { panic!("{first:?}") };
    let names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
    for service in ["Plugins", "Datasets", "Jobs", "Tables", "Processes", "Events"] {
        assert!(names.contains(&format!("slackline.control.v1.{service}")), "{service} in {names:?}");
    }
    let second = answers.next().await.expect("two").expect("ok").message_response;
    assert!(matches!(second, Some(MessageResponse::FileDescriptorResponse(_))), "{second:?}");
}

#[tokio::test]
async fn a_call_that_takes_too_long_times_out_and_a_patient_one_does_not() {
    let server = Server::plain().await;
    let endpoint = Endpoint { request_timeout: std::time::Duration::from_millis(50), ..server.endpoint() };
    let client = Client::connect(endpoint).await.expect("connect");
    let status = client.jobs().show(ShowJobRequest::default()).await.expect_err("too slow");
    let error = WireError::from(status);
    assert!(matches!(error, WireError::TimedOut { .. }), "{error:?}");
    server.served.end.add_permits(2);
    let reply = client.patient().jobs().show(ShowJobRequest::default()).await;
    assert_eq!(reply.expect("in its time").into_inner().job_toml, "late");
}

#[tokio::test]
async fn plaintext_to_another_machine_is_refused_before_connecting() {
    // A documentation address (RFC 5737): connecting would hang until the timeout, and time out.
    let endpoint = Endpoint { token: Some(TOKEN.into()), ..Endpoint::new("192.0.2.1:7070") };
    let error = Client::connect(endpoint.clone()).await.map(drop).expect_err("refused");
    assert!(matches!(error, WireError::Plaintext { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("192.0.2.1:7070") && text.contains("--allow-plaintext"), "{text}");

    let connect_timeout = std::time::Duration::from_millis(50);
    let allowed = Endpoint { plaintext: PlaintextRule::Anywhere, connect_timeout, ..endpoint };
    let error = Client::connect(allowed).await.map(drop).expect_err("nobody there");
    assert!(matches!(error, WireError::TimedOut { .. } | WireError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_in_plaintext_listens_to_other_machines_only_when_told() {
    use std::sync::Arc;
    let rule = |plaintext| async move {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("bind");
        let all = Arc::new(crate::services::Served::default());
        let services = slackline_wire::Services {
            plugins: all.clone(),
            datasets: all.clone(),
            jobs: all.clone(),
            tables: all.clone(),
            processes: all.clone(),
            events: all,
        };
        let limits = ServeLimits { plaintext, ..ServeLimits::default() };
        let readiness = slackline_wire::Readiness::new().await;
        let auth = Arc::new(crate::services::OneToken);
        slackline_wire::serve(listener, None, limits, services, auth, readiness, std::future::ready(())).await
    };
    let error = rule(PlaintextRule::LoopbackOnly).await.expect_err("refused");
    assert!(matches!(error, WireError::Plaintext { .. }), "{error:?}");
    rule(PlaintextRule::Anywhere).await.expect("told");
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address").to_string();
    drop(listener);
    let error = Client::connect(Endpoint::new(&address)).await.map(drop).expect_err("nobody");
    assert!(matches!(&error, WireError::Unreachable { address: at, .. } if *at == address), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}
