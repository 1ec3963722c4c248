//! A server on a free port, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use slackline_wire::{
    Authority, Client, Endpoint, Identity, Readiness, Result, ServeLimits, Services, Usage, WireError, serve,
    server_config,
};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::services::{OneToken, Served, TOKEN};

/// Long enough that only a test that fails waits for it.
pub const SOON: Duration = Duration::from_secs(20);

pub struct Server {
    pub address: SocketAddr,
    pub served: Served,
    pub readiness: Readiness,
    shutdown: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<()>>,
}

impl Server {
    pub async fn plain() -> Self {
        Self::start(None, ServeLimits::default()).await
    }

    /// With a certificate for localhost, and mutual TLS if `clients` are given.
    pub async fn tls(authority: &Authority, clients: Option<&Authority>) -> Self {
        let identity = identity(authority, "coordinator", Usage::Server);
        let config = server_config(identity, clients.map(Authority::certificate_pem)).expect("config");
        Self::start(Some(config), ServeLimits::default()).await
    }

    pub async fn start(tls: Option<Arc<rustls::ServerConfig>>, limits: ServeLimits) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.expect("bind"), tls, limits).await
    }

    pub async fn start_on(listener: TcpListener, tls: Option<Arc<rustls::ServerConfig>>, limits: ServeLimits) -> Self {
        let address = listener.local_addr().expect("address");
        let served = Served::default();
        let all = Arc::new(served.clone());
        let services = Services {
            plugins: all.clone(),
            datasets: all.clone(),
            jobs: all.clone(),
            tables: all.clone(),
            processes: all.clone(),
            events: all,
        };
        let readiness = Readiness::new().await;
        let (shutdown, asked) = oneshot::channel();
        let ended = tokio::spawn(serve(
            listener,
            tls,
            limits,
            services,
            Arc::new(OneToken),
            readiness.clone(),
            // A dropped sender is no shutdown: the test's end ends the runtime.
            async move {
                if asked.await.is_err() {
                    std::future::pending::<()>().await;
                }
            },
        ));
        Self { address, served, readiness, shutdown: Some(shutdown), ended }
    }

    /// How clients of the right token come here in the clear.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { token: Some(TOKEN.into()), ..Endpoint::new(self.address.to_string()) }
    }

    /// The same with TLS.
    pub fn endpoint_trusting(&self, authority: &Authority) -> Endpoint {
        let roots = Some(authority.certificate_pem().to_owned());
        Endpoint { roots, address: format!("https://localhost:{}", self.address.port()), ..self.endpoint() }
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.endpoint()).await.expect("connect")
    }

    pub fn ask_to_stop(&mut self) {
        self.shutdown.take().expect("asked once").send(()).expect("still served");
    }

    /// Drops the future that serves, without shutdown.
    pub async fn dropped(self) {
        self.ended.abort();
        assert!(self.ended.await.expect_err("aborted").is_cancelled());
    }

    pub async fn ended(self) -> Result<()> {
        timeout(SOON, self.ended).await.expect("ends").expect("no panic")
    }
}

pub fn identity(authority: &Authority, name: &str, usage: Usage) -> Identity {
    let issued = authority.issue(name, &["localhost".into(), "127.0.0.1".into()], usage).expect("issue");
    Identity::from_pem(&issued.certificate_pem, &issued.key_pem).expect("identity")
}

/// Asks who we are: goes through the gate.
pub async fn whoami(client: &Client) -> Result<(String, String), WireError> {
    let status = client.processes().status(slackline_wire::v1::StatusRequest {}).await?.into_inner();
    let process = status.processes.into_iter().next().map(|process| process.name).unwrap_or_default();
    Ok((status.tenant, process))
}
