//! TLS: what goes through, and that each way of not trusting says which it is.

use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use slackline_wire::{Authority, Client, Endpoint, Identity, ServeLimits, Usage, WireError, server_config};
use time::{Duration, OffsetDateTime};

use crate::cluster::{Server, identity, whoami};

fn authority(name: &str) -> Authority {
    Authority::new(name).expect("authority")
}

/// That connecting comes to an error of TLS in these words.
async fn check(endpoint: Endpoint, words: &str) {
    let error = Client::connect(endpoint).await.map(drop).expect_err("no trust");
    let WireError::Tls { why, .. } = &error else { panic!("{error:?}") };
    assert!(why.contains(words), "{words:?} in {error}");
}

#[tokio::test]
async fn calls_go_through_tls() {
    let ours = authority("ours");
    let server = Server::tls(&ours, None).await;
    let endpoint = server.endpoint_trusting(&ours);
    let client = Client::connect(endpoint.clone()).await.expect("connect");
    assert_eq!(whoami(&client).await.expect("call").0, "ours");
    // An address by number is a name that the certificate has, too.
    let by_number = Endpoint { address: server.address.to_string(), ..endpoint };
    whoami(&Client::connect(by_number).await.expect("connect")).await.expect("call");
}

#[tokio::test]
async fn another_authority_is_told_apart() {
    let server = Server::tls(&authority("ours"), None).await;
    check(server.endpoint_trusting(&authority("theirs")), "not from the authority").await;
    // Nor does the name help.
    check(server.endpoint_trusting(&authority("ours")), "not from the authority").await;
}

#[tokio::test]
async fn another_name_is_told_with_both() {
    let ours = authority("ours");
    let issued = ours.issue("coordinator", &["elsewhere.example".into()], Usage::Server).expect("issue");
    let shown = Identity::from_pem(&issued.certificate_pem, &issued.key_pem).expect("identity");
    let server = Server::start(Some(server_config(shown, None).expect("config")), ServeLimits::default()).await;
    check(server.endpoint_trusting(&ours), "for another name").await;
    check(server.endpoint_trusting(&ours), "elsewhere.example").await;
    check(server.endpoint_trusting(&ours), "localhost").await;
}

#[tokio::test]
async fn an_expired_certificate_is_told() {
    let ours = authority("ours");
    let signing = KeyPair::from_pem(&ours.key_pem()).expect("key");
    let issuer = Issuer::from_ca_cert_pem(ours.certificate_pem(), signing).expect("issuer");
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("params");
    params.distinguished_name.push(DnType::CommonName, "coordinator");
    params.not_before = OffsetDateTime::now_utc() - Duration::days(9);
    params.not_after = OffsetDateTime::now_utc() - Duration::days(1);
    let key = KeyPair::generate().expect("key");
    let certificate = params.signed_by(&key, &issuer).expect("sign");
    let shown = Identity::from_pem(&certificate.pem(), &key.serialize_pem()).expect("identity");
    let server = Server::start(Some(server_config(shown, None).expect("config")), ServeLimits::default()).await;
    check(server.endpoint_trusting(&ours), "has expired").await;
}

#[tokio::test]
async fn mutual_tls_knows_the_process_and_refuses_those_without_a_certificate() {
    let ours = authority("ours");
    let server = Server::tls(&ours, Some(&ours)).await;
    let known =
        Endpoint { identity: Some(identity(&ours, "worker-1", Usage::Client)), ..server.endpoint_trusting(&ours) };
    let client = Client::connect(known.clone()).await.expect("connect");
    assert_eq!(whoami(&client).await.expect("call"), ("ours".into(), "worker-1".into()));

    check(server.endpoint_trusting(&ours), "only clients that show a certificate").await;

    let stranger = identity(&authority("theirs"), "worker-1", Usage::Both);
    check(Endpoint { identity: Some(stranger), ..known.clone() }, "certificate that was shown to it").await;
    let server_only = identity(&ours, "worker-1", Usage::Server);
    check(Endpoint { identity: Some(server_only), ..known }, "").await;
    whoami(&client).await.expect("the first goes on");
}

#[tokio::test]
async fn tls_and_plaintext_do_not_meet() {
    let ours = authority("ours");
    let plain = Server::plain().await;
    check(plain.endpoint_trusting(&ours), "may not speak TLS").await;

    let server = Server::tls(&ours, None).await;
    let error = Client::connect(server.endpoint()).await.map(drop).expect_err("no plaintext there");
    assert!(matches!(error, WireError::Unreachable { .. }), "{error:?}");

    for (address, roots) in [("https://localhost:1", None), ("http://localhost:1", Some(ours.certificate_pem().into()))]
    {
        let error = Client::connect(Endpoint { roots, ..Endpoint::new(address) }).await.map(drop).expect_err("unclear");
        assert!(matches!(error, WireError::Malformed { .. }), "{error:?}");
    }
}
