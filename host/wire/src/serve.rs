//! The server: the six services behind one gate, with health and reflection beside them.

use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::pin;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tracing::warn;

use crate::auth::{Authenticate, Gate};
use crate::error::{Result, WireError};
use crate::incoming::Incoming;
use crate::limits::{MAX_HEADERS, MAX_MESSAGE, ServeLimits};
use crate::v1;
use crate::v1::{
    datasets_server::{Datasets, DatasetsServer},
    events_server::{Events, EventsServer},
    jobs_server::{Jobs, JobsServer},
    plugins_server::{Plugins, PluginsServer},
    processes_server::{Processes, ProcessesServer},
    tables_server::{Tables, TablesServer},
};

// Connections that have begun and wait to be taken by the server, which takes them at once.
const BEGUN: usize = 16;

// A health check or a reflection request is a name.
const SMALL_MESSAGE: usize = 64 * 1024;

// For tasks of connections that were cut to notice it.
const CUT: Duration = Duration::from_secs(1);

/// What a server serves: one value may stand for all six.
pub struct Services<P, D, J, T, R, E> {
    /// `slackline plugin …`.
    pub plugins: Arc<P>,
    /// `slackline dataset …`.
    pub datasets: Arc<D>,
    /// `slackline job …`.
    pub jobs: Arc<J>,
    /// Reading a job's tables.
    pub tables: Arc<T>,
    /// `slackline status`.
    pub processes: Arc<R>,
    /// What happens in the cluster.
    pub events: Arc<E>,
}

/// Says to health checks whether requests should come here. Not ready at first.
#[derive(Clone)]
pub struct Readiness(HealthReporter);

impl Readiness {
    /// Not ready.
    pub async fn new() -> Self {
        let readiness = Self(HealthReporter::new());
        readiness.set(false).await;
        readiness
    }

    /// Ready, or not any more.
    pub async fn set(&self, ready: bool) {
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        // The empty name is the server as a whole.
        for service in [
            "",
            v1::plugins_server::SERVICE_NAME,
            v1::datasets_server::SERVICE_NAME,
            v1::jobs_server::SERVICE_NAME,
            v1::tables_server::SERVICE_NAME,
            v1::processes_server::SERVICE_NAME,
            v1::events_server::SERVICE_NAME,
        ] {
            self.0.set_service_status(service, status).await;
        }
    }
}

/// Serves until `shutdown`; then accepts nothing more, is not ready, lets calls end for `limits.grace`, and cuts what is
/// left. Dropping the future cuts at once.
///
/// Every request of the six services goes through `auth` first. Health and reflection answer everyone: they tell
/// nothing of any tenant, and who checks a server's health has no token.
pub async fn serve<P, D, J, T, R, E>(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    limits: ServeLimits,
    services: Services<P, D, J, T, R, E>,
    auth: Arc<dyn Authenticate>,
    readiness: Readiness,
    shutdown: impl Future<Output = ()>,
) -> Result<()>
where
    P: Plugins,
    D: Datasets,
    J: Jobs,
    T: Tables,
    R: Processes,
    E: Events,
{
    let address = listener
        .local_addr()
        .map_err(|error| WireError::Unreachable { address: "the listener".into(), why: error.to_string() })?;
    if tls.is_none() {
        limits.plaintext.check(&address)?;
    }
    let (to, begun) = mpsc::channel(BEGUN);
    let stop = CancellationToken::new();
    let closed = CancellationToken::new();
    let _cut_on_drop = closed.clone().drop_guard();
    let incoming = Incoming {
        tls,
        handshake: limits.handshake,
        places: Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS))),
        stop: stop.clone(),
        closed: closed.clone(),
        to,
    };
    // A set, because it ends its tasks when it is dropped.
    let mut accepting = JoinSet::new();
    accepting.spawn(incoming.run(listener));

    let gate = Gate(auth);
    macro_rules! gated {
        ($server:ident, $service:expr) => {
            InterceptedService::new(
                $server::from_arc($service)
                    .max_decoding_message_size(MAX_MESSAGE)
                    .max_encoding_message_size(MAX_MESSAGE),
                gate.clone(),
            )
        };
    }
    let health = HealthServer::new(HealthService::from_health_reporter(readiness.0.clone()));
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|error| WireError::malformed(format!("the descriptors for reflection cannot be read: {error}")))?;
    let server = Server::builder()
        .max_concurrent_streams(limits.streams)
        .http2_max_header_list_size(MAX_HEADERS)
        .http2_keepalive_interval(Some(limits.keepalive_interval))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
        .add_service(health.max_decoding_message_size(SMALL_MESSAGE))
        .add_service(reflection.max_decoding_message_size(SMALL_MESSAGE))
        .add_service(gated!(PluginsServer, services.plugins))
        .add_service(gated!(DatasetsServer, services.datasets))
        .add_service(gated!(JobsServer, services.jobs))
        .add_service(gated!(TablesServer, services.tables))
        .add_service(gated!(ProcessesServer, services.processes))
        .add_service(gated!(EventsServer, services.events))
        .serve_with_incoming_shutdown(ReceiverStream::new(begun), stop.clone().cancelled_owned());
    pin!(server);
    let failed = |error: tonic::transport::Error| WireError::of_transport(&error, &address.to_string());

    tokio::select! {
        ended = &mut server => return ended.map_err(failed),
        () = shutdown => {}
    }
    readiness.set(false).await;
    stop.cancel();
    if let Ok(ended) = timeout(limits.grace, &mut server).await {
        return ended.map_err(failed);
    }
    warn!(grace = ?limits.grace, "calls did not end in time, cutting them");
    closed.cancel();
    match timeout(CUT, &mut server).await {
        Ok(ended) => ended.map_err(failed),
        Err(_) => Ok(()),
    }
}
