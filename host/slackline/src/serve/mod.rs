//! `slackline serve`: host processes of a cluster. With no config, a whole cluster in one process.

mod api;
pub mod config;
mod coordinator;
mod http;
mod job_file;
mod journal;
mod launch;
pub mod validate;

use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::serve::api::{Api, Users};
use crate::serve::coordinator::{Coordinator, Trouble};
use crate::serve::http::Ready;
use clap::Args;
use serde_json::json;
use slackline_wire::{
    Identity, PlaintextRule, Readiness, ServeLimits, Services, WireError, server_config, write_private,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

pub use job_file::DATASET;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline serve                                a cluster in one process, state in .slackline/cluster
  slackline serve --config host.toml             as the file says
  slackline serve --json | head -1               where it listens, for scripts

host.toml, with the defaults:
  [process]   name = \"local\"  state = \".slackline/cluster\"  slots = (cores)
  [listen]    users = \"127.0.0.1:7070\"  http = \"127.0.0.1:7071\" (or \"off\")  plaintext = false
  [tls]       certificate = \"…\"  key = \"…\"       see `slackline certs new`
  [users]     token_file = \"STATE/token\"         made when it is not there
  [limits]    plugin = \"16 MiB\"  dataset = \"4 GiB\"  connections = 1024
              compile_memory = \"2 GiB\"  compile_time = 60 (seconds)

Ctrl-C ends all jobs with a cut; they go on when it is started again.";

/// Flags of `slackline serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// What this host process is to do
    #[arg(long, value_name = "HOST.toml")]
    pub config: Option<PathBuf>,
    /// Folder of everything that the cluster must remember (process.state)
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Workers that run here at once (process.slots)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: Option<u32>,
    /// Where users are served (listen.users); port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where health and metrics are served (listen.http); port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// Print one JSON object a line on standard output: where it listens, then its end
    #[arg(long)]
    pub json: bool,
}

/// Serves until a signal.
pub fn serve(args: &ServeArgs) -> Result<Exit, Failure> {
    let mut config = config::read(args.config.as_deref())?;
    config.state = args.state.clone().unwrap_or(config.state);
    config.slots = args.slots.unwrap_or(config.slots);
    config.users = args.listen.unwrap_or(config.users);
    config.http = args.http.or(config.http);
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).with_ansi(false).init();
    let asked = interrupt::flag_on_signal()?;
    let coordinator = Coordinator::open(config).map_err(|e| match e {
        Trouble::State(e) => e.into(),
        e => Failure::new(Exit::State, e.to_string()),
    })?;
    let (token_file, token) = token(&coordinator.config)?;
    let placing = {
        let coordinator = coordinator.clone();
        std::thread::spawn(move || coordinator.place_until_closed())
    };
    let runtime =
        tokio::runtime::Runtime::new().map_err(|e| Failure::new(Exit::Network, format!("no runtime: {e}")))?;
    let served = runtime.block_on(listen(&coordinator, token, &token_file, asked, args.json));
    // After the last call, so that none finds a coordinator that ends.
    coordinator.close();
    let _ = placing.join();
    runtime.shutdown_timeout(Duration::from_secs(5));
    served?;
    if args.json {
        println!("{}", json!({"event": "ended"}));
    } else {
        eprintln!("ended; jobs that ran go on when the cluster is started again");
    }
    Ok(Exit::Done)
}

async fn listen(
    coordinator: &Arc<Coordinator>,
    token: String,
    token_file: &Path,
    asked: Arc<AtomicBool>,
    json: bool,
) -> Result<(), Failure> {
    let config = &coordinator.config;
    let tls = match &config.tls {
        Some((certificate, key)) => {
            let identity = Identity::read(certificate, key).map_err(wire)?;
            Some(server_config(identity, None).map_err(wire)?)
        }
        None => None,
    };
    let users = bind(config.users, "listen.users").await?;
    let http = match config.http {
        Some(at) => Some(bind(at, "listen.http").await?),
        None => None,
    };
    let at = |listener: &TcpListener| listener.local_addr().map(|a| a.to_string()).unwrap_or_default();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let (users_at, http_at) = (at(&users), http.as_ref().map(at));
    let ready = Ready::default();
    let readiness = Readiness::new().await;
    readiness.set(true).await;
    ready.store(true, Ordering::SeqCst);
    if json {
        println!(
            "{}",
            json!({"event": "ready", "users": format!("{scheme}://{users_at}"), "http": http_at, "token_file": token_file,
                   "state": config.state, "slots": config.slots, "process": config.name})
        );
    } else {
        eprintln!("serving users at {scheme}://{users_at}, token in {}", token_file.display());
        if let Some(at) = &http_at {
            eprintln!("health and metrics at http://{at}");
        }
        eprintln!("{} worker slots, state in {}", config.slots, config.state.display());
    }
    let serving_http = http.map(|listener| {
        let (coordinator, ready, asked) = (coordinator.clone(), ready.clone(), asked.clone());
        tokio::spawn(async move {
            if let Err(e) = http::serve(listener, coordinator, ready, until(asked)).await {
                tracing::error!(error = %e, "health and metrics are not served any more");
            }
        })
    });
    let api = Arc::new(Api::new(coordinator.clone()));
    let services = Services {
        plugins: api.clone(),
        datasets: api.clone(),
        jobs: api.clone(),
        tables: api.clone(),
        processes: api.clone(),
        events: api,
    };
    let limits = ServeLimits {
        connections: config.limits.connections as usize,
        plaintext: PlaintextRule::allow(config.plaintext),
        ..ServeLimits::default()
    };
    let auth = Arc::new(Users { token });
    let told = asked.clone();
    let shutdown = async move {
        until(told).await;
        tracing::info!("ending: jobs write their cuts");
    };
    let served = slackline_wire::serve(users, tls, limits, services, auth, readiness, shutdown).await;
    ready.store(false, Ordering::SeqCst);
    asked.store(true, Ordering::SeqCst);
    if let Some(serving) = serving_http {
        let _ = tokio::time::timeout(Duration::from_secs(2), serving).await;
    }
    served.map_err(wire)
}

async fn bind(at: SocketAddr, key: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(at).await.map_err(|e| {
        Failure::new(Exit::Network, format!("{key}: cannot listen at {at}: {e}"))
            .hint("another process may be there; `--listen 127.0.0.1:0` takes a free port")
    })
}

/// Ends once a signal has come.
async fn until(asked: Arc<AtomicBool>) {
    while !asked.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The users' token and its file; made at the first start.
fn token(config: &config::HostConfig) -> Result<(PathBuf, String), Failure> {
    let path = config.token_file.clone().unwrap_or_else(|| config.state.join("token"));
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= 16 => Ok((path, text.trim().to_owned())),
        Ok(_) => Err(Failure::new(Exit::Usage, format!("{}: a token has at least 16 characters", path.display()))
            .hint("remove the file, and one is made")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
            write_private(&path, &format!("{token}\n")).map_err(wire)?;
            Ok((path, token))
        }
        Err(e) => Err(Failure::new(Exit::Usage, format!("{}: {e}", path.display()))),
    }
}

/// What the wire says, as a failure of a command.
pub fn wire(e: WireError) -> Failure {
    let exit = match &e {
        WireError::File { .. } | WireError::Malformed { .. } | WireError::Plaintext { .. } => Exit::Usage,
        _ => Exit::Network,
    };
    e.hints().iter().fold(Failure::new(exit, e.to_string()), |f, hint| f.hint(hint.clone()))
}
