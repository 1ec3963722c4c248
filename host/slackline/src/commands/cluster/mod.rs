//! Commands that talk to a cluster: what they share, and one file each.

pub mod certs;
pub mod data;
pub mod job;
pub mod plugin;
pub mod predict;
pub mod status;
pub mod table;
mod words;

use crate::failure::{Exit, Failure};
use crate::serve::config::USERS;
use crate::serve::wire;
use clap::Args;
use slackline_wire::tonic::{Response, Status};
use slackline_wire::{Client, Endpoint, PlaintextRule, Secret};
use std::path::{Path, PathBuf};

/// Where a cluster that was started in this folder keeps its token.
const TOKEN: &str = ".slackline/cluster/token";

/// Which cluster, and how to reach it.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// Address of the coordinator
    #[arg(long, value_name = "ADDRESS", env = "SLACKLINE_CLUSTER", default_value = USERS, help_heading = "Cluster")]
    pub cluster: String,
    /// File with the users' token; .slackline/cluster/token here, when left out
    #[arg(long, value_name = "FILE", env = "SLACKLINE_TOKEN_FILE", help_heading = "Cluster")]
    pub token_file: Option<PathBuf>,
    /// Certificate of the authority that the coordinator's comes from; with it, the connection is encrypted
    #[arg(long, value_name = "FILE", env = "SLACKLINE_CA", help_heading = "Cluster")]
    pub ca: Option<PathBuf>,
    /// Send the token and data unencrypted, also to another machine
    #[arg(long, help_heading = "Cluster")]
    pub allow_plaintext: bool,
    /// Names this request: asked again with the same id, it is not done twice
    #[arg(long, value_name = "ID", help_heading = "Cluster")]
    pub request_id: Option<String>,
}

impl ClusterArgs {
    /// Connects and does `work`.
    pub fn with<T>(&self, work: impl AsyncFnOnce(Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Failure::new(Exit::Network, format!("no runtime: {e}")))?;
        runtime.block_on(async { work(self.connect().await?).await })
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Client, Failure> {
        let mut endpoint = Endpoint::new(self.cluster.clone());
        endpoint.plaintext = PlaintextRule::allow(self.allow_plaintext);
        endpoint.roots = self.ca.as_deref().map(read).transpose()?;
        let beside = Some(Path::new(TOKEN)).filter(|p| p.exists());
        endpoint.token = match self.token_file.as_deref().or(beside) {
            Some(path) => Some(Secret::from(read(path)?.trim())),
            None => None,
        };
        let local = self.cluster == USERS;
        Client::connect(endpoint).await.map_err(|e| match wire(e) {
            f if f.exit == Exit::Network && local => f
                .hint("`slackline serve` starts a cluster on this machine")
                .hint("--cluster ADDRESS (or SLACKLINE_CLUSTER) names another"),
            f => f,
        })
    }

    /// The id of a changing request: the one that was given, or a new one.
    pub fn id(&self) -> String {
        self.request_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
    }
}

/// The answer of a call.
fn answer<T>(client: &Client, called: Result<Response<T>, Status>) -> Result<T, Failure> {
    called.map(Response::into_inner).map_err(|status| refused(client, &status))
}

/// Why a call came to nothing.
fn refused(client: &Client, status: &Status) -> Failure {
    use slackline_wire::Kind;
    let error = client.error(status);
    let kind = error.kind();
    let failure = wire(error);
    let exit = match kind {
        Some(Kind::NotFound | Kind::Invalid | Kind::Conflict | Kind::TooBig | Kind::Unsupported) => Exit::Usage,
        _ => failure.exit,
    };
    Failure { exit, ..failure }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::new(Exit::Usage, format!("{}: {e}", path.display())))
}

/// Something that an answer must have.
fn whole<T>(part: Option<T>) -> Result<T, Failure> {
    part.ok_or_else(|| {
        Failure::new(Exit::Network, "the answer is not whole").hint("is the cluster of another release?")
    })
}

/// A file to be sent: size, digest, and the file itself at its beginning.
fn to_send(path: &Path) -> Result<(u64, String, tokio::fs::File), Failure> {
    let failed = |e: std::io::Error| Failure::new(Exit::Data, format!("{}: {e}", path.display()));
    let mut file = std::fs::File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Failure::new(Exit::Usage, format!("{} is a folder, not a file", path.display())));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut file).map_err(failed)?;
    std::io::Seek::rewind(&mut file).map_err(failed)?;
    Ok((hasher.count(), format!("blake3:{}", hasher.finalize().to_hex()), file.into()))
}
