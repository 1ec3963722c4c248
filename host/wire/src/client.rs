//! The client: one connection to a coordinator, with the caller's token on every call.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tonic::codegen::http::Uri;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tower::service_fn;

use crate::address::Address;
use crate::auth::{bearer, with_token};
use crate::dial::Dial;
use crate::error::{Result, WireError};
use crate::limits::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADERS, MAX_MESSAGE};
use crate::plaintext::PlaintextRule;
use crate::sending::Sending;
use crate::tls::{Identity, client_config};
use crate::v1::{
    datasets_client::DatasetsClient, events_client::EventsClient, jobs_client::JobsClient,
    plugins_client::PluginsClient, processes_client::ProcessesClient, tables_client::TablesClient,
};

/// Whom to connect to, and how.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `host:port`, `http://host:port` or `https://host:port`. Without a scheme: TLS if there are `roots`.
    pub address: String,
    /// PEM of the authority that issued the peer's certificate.
    pub roots: Option<String>,
    /// What to show where the peer asks for a certificate.
    pub identity: Option<Identity>,
    /// Goes along with every call.
    pub token: Option<Secret>,
    /// For reaching the peer, TLS included.
    pub connect_timeout: Duration,
    /// For a call's answer to begin. [`Client::patient`] does without.
    pub request_timeout: Duration,
    /// Who may be talked to without TLS.
    pub plaintext: PlaintextRule,
}

impl Endpoint {
    /// The address, with neither TLS nor a token, 10 s to connect and 30 s for an answer.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            roots: None,
            identity: None,
            token: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            plaintext: PlaintextRule::default(),
        }
    }
}

/// A token, which `Debug` does not show.
#[derive(Clone)]
pub struct Secret(String);

impl From<String> for Secret {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl From<&str> for Secret {
    fn from(token: &str) -> Self {
        Self(token.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What the generated clients send through.
pub type Authorized = InterceptedService<Sending, Bearer>;

/// Puts token and timeout on a call.
#[derive(Clone)]
pub struct Bearer {
    token: Option<MetadataValue<Ascii>>,
    timeout: Option<Duration>,
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token {
            with_token(&mut request, token);
        }
        // What the caller set for this call goes before.
        if let (Some(timeout), None) = (self.timeout, request.metadata().get("grpc-timeout")) {
            request.set_timeout(timeout);
        }
        Ok(request)
    }
}

/// A connection to a coordinator. Clones share it; when it breaks, the next call makes a new one.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    bearer: Bearer,
    address: Arc<str>,
}

macro_rules! clients {
    ($($(#[$doc:meta])* $name:ident: $client:ident,)*) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> $client<Authorized> {
            $client::with_interceptor(Sending(self.channel.clone()), self.bearer.clone())
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE)
        }
    )*};
}

impl Client {
    /// Connects, and asks the peer for its health: so that what stands in the way (no one there, a certificate that one
    /// of the two does not accept, another protocol) is said here and not by whatever call comes first.
    pub async fn connect(endpoint: Endpoint) -> Result<Self> {
        let address = Address::parse(&endpoint.address)?;
        let tls = match (&endpoint.roots, address.tls) {
            (Some(_), Some(false)) => {
                return Err(WireError::malformed(format!(
                    "{} asks for plaintext, but an authority was given to trust; write https://",
                    endpoint.address
                )));
            }
            (None, Some(true)) => {
                return Err(WireError::malformed(format!(
                    "{} asks for tls: give the certificate of the authority that is to be trusted",
                    endpoint.address
                )));
            }
            (None, _) => None,
            (Some(roots), _) => Some((client_config(roots, endpoint.identity)?, address.server_name()?)),
        };
        let bearer = Bearer {
            token: endpoint.token.as_ref().map(|token| bearer(&token.0)).transpose()?,
            timeout: Some(endpoint.request_timeout),
        };
        let shown: Arc<str> = address.shown.as_str().into();
        let uri = |scheme: &str| {
            format!("{scheme}://{shown}")
                .parse::<Uri>()
                .map_err(|error| WireError::malformed(format!("{shown:?} is not an address: {error}")))
        };
        let origin = uri(if tls.is_some() { "https" } else { "http" })?;
        // Our dial does the TLS, so that what goes wrong in it can be told; tonic need not know.
        let channel = Channel::builder(uri("http")?)
            .origin(origin)
            .user_agent(concat!("slackline/", env!("CARGO_PKG_VERSION")))
            .map_err(|error| WireError::of_transport(&error, &shown))?
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .http2_max_header_list_size(MAX_HEADERS);
        let dial = Arc::new(Dial { address, tls, plaintext: endpoint.plaintext, most: endpoint.connect_timeout });
        let connector = service_fn(move |_: Uri| {
            let dial = dial.clone();
            async move { dial.dial().await.map(TokioIo::new) }
        });
        let channel =
            channel.connect_with_connector(connector).await.map_err(|error| WireError::of_transport(&error, &shown))?;
        let client = Self { channel, bearer, address: shown };
        client.health(endpoint.connect_timeout).await?;
        Ok(client)
    }

    /// The same connection, for calls that may take as long as they take: uploads, and what follows a job.
    pub fn patient(&self) -> Self {
        Self { bearer: Bearer { timeout: None, ..self.bearer.clone() }, ..self.clone() }
    }

    /// The peer, as it was typed.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the peer says that requests should come to it.
    pub async fn ready(&self) -> Result<bool> {
        let health = self.health(self.bearer.timeout.unwrap_or(KEEPALIVE_TIMEOUT)).await?;
        Ok(health.status() == ServingStatus::Serving)
    }

    /// What a call's status comes to, with this peer's address in it.
    pub fn error(&self, status: &Status) -> WireError {
        match WireError::of(status) {
            WireError::Unreachable { why, .. } => WireError::Unreachable { address: self.address().into(), why },
            other => other,
        }
    }

    clients! {
        /// The tenant's plugins.
        plugins: PluginsClient,
        /// The tenant's datasets.
        datasets: DatasetsClient,
        /// The tenant's jobs.
        jobs: JobsClient,
        /// The tables of the tenant's jobs.
        tables: TablesClient,
        /// The cluster's host processes.
        processes: ProcessesClient,
        /// What happens in the cluster.
        events: EventsClient,
    }

    async fn health(&self, timeout: Duration) -> Result<HealthCheckResponse> {
        let mut request = Request::new(HealthCheckRequest { service: String::new() });
        request.set_timeout(timeout);
        match HealthClient::new(self.channel.clone()).check(request).await {
            Ok(answer) => Ok(answer.into_inner()),
            // It speaks gRPC, and has no opinion on its health.
            Err(status) if matches!(status.code(), Code::Unimplemented | Code::NotFound) => {
                Ok(HealthCheckResponse::default())
            }
            Err(status) => Err(self.error(&status)),
        }
    }
}
