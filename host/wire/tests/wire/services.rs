//! The six services, as little of them as the tests ask for.

use std::pin::Pin;
use std::sync::Arc;

use slackline_wire::limits::{CHUNK, MAX_MESSAGE};
use slackline_wire::tonic::{self, Request, Response, Status, Streaming};
use slackline_wire::v1::{self, *};
use slackline_wire::{Authenticate, Caller, Kind, Peer, Refusal, refusal, same_token};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};

pub const TOKEN: &str = "correct-horse";

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Answer<T> = Result<Response<T>, Status>;

/// Knows one token.
pub struct OneToken;

impl Authenticate for OneToken {
    fn authenticate(&self, token: Option<&str>) -> Result<Caller, Refusal> {
        match token {
            Some(token) if same_token(token.as_bytes(), TOKEN.as_bytes()) => {
                Ok(Caller { tenant: "ours".into(), name: "alice".into() })
            }
            Some(_) => Err(Refusal::new(Kind::Unauthenticated, "this token is not known").hint("ask for a new one")),
            None => Err(Refusal::new(Kind::Unauthenticated, "no token").hint("give one with --token-file")),
        }
    }
}

/// Everything that is served.
#[derive(Clone)]
pub struct Served {
    /// A permit for each slow call that has begun.
    pub begun: Arc<Semaphore>,
    /// A permit lets one slow call end.
    pub end: Arc<Semaphore>,
}

impl Default for Served {
    fn default() -> Self {
        Self { begun: Arc::new(Semaphore::new(0)), end: Arc::new(Semaphore::new(0)) }
    }
}

fn not_here<T>() -> Answer<T> {
    Err(refusal(Kind::Unsupported, "not in this test", &[]))
}

#[tonic::async_trait]
impl v1::plugins_server::Plugins for Served {
    async fn push(&self, request: Request<Streaming<PushPart>>) -> Answer<PushReply> {
        let tenant = Caller::of(&request).expect("gate").tenant.clone();
        let mut parts = request.into_inner();
        let first = parts.message().await?.and_then(|part| part.part);
        let Some(push_part::Part::Header(header)) = first else {
            return Err(refusal(Kind::Invalid, "the header comes first", &[]));
        };
        let (mut bytes, mut hash) = (0, blake3::Hasher::new());
        while let Some(part) = parts.message().await? {
            let Some(push_part::Part::Chunk(chunk)) = part.part else {
                return Err(refusal(Kind::Invalid, "one header only", &[]));
            };
            assert!(chunk.len() <= CHUNK);
            bytes += chunk.len() as u64;
            hash.update(&chunk);
        }
        if bytes != header.bytes {
            return Err(refusal(Kind::Invalid, format!("{} bytes were told, {bytes} came", header.bytes), &[]));
        }
        let plugin = format!("{tenant}/{}", header.name);
        let digest = hash.finalize().to_string();
        Ok(Response::new(PushReply {
            revision: Some(Revision { plugin, bytes, digest, ..Default::default() }),
            ..Default::default()
        }))
    }

    async fn list(&self, _: Request<ListPluginsRequest>) -> Answer<ListPluginsReply> {
        Ok(Response::new(ListPluginsReply::default()))
    }

    async fn show(&self, request: Request<ShowPluginRequest>) -> Answer<ShowPluginReply> {
        let length = if request.get_ref().plugin == "big" { MAX_MESSAGE + 1 } else { 1 };
        Ok(Response::new(ShowPluginReply { inspection_json: "x".repeat(length), ..Default::default() }))
    }

    type PullStream = Answers<Chunk>;

    async fn pull(&self, _: Request<PullPluginRequest>) -> Answer<Self::PullStream> {
        let pieces = (0..4u8).map(|n| Ok(Chunk { data: vec![n; CHUNK].into() }));
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }

    /// Refuses with the kind that the plugin is named after.
    async fn delete(&self, request: Request<DeletePluginRequest>) -> Answer<DeletePluginReply> {
        let kind = Kind::of_name(&request.get_ref().plugin).expect("a kind's name");
        Err(refusal(kind, "»größe«: 100 % voll\nπ", &["lösche etwas ✂".into(), "frag später".into()]))
    }
}

#[tonic::async_trait]
impl v1::datasets_server::Datasets for Served {
    async fn push(&self, _: Request<Streaming<PushDatasetPart>>) -> Answer<PushDatasetReply> {
        not_here()
    }

    async fn list(&self, _: Request<ListDatasetsRequest>) -> Answer<ListDatasetsReply> {
        Ok(Response::new(ListDatasetsReply::default()))
    }

    async fn delete(&self, _: Request<DeleteDatasetRequest>) -> Answer<DeleteDatasetReply> {
        not_here()
    }
}

#[tonic::async_trait]
impl v1::jobs_server::Jobs for Served {
    async fn submit(&self, _: Request<SubmitRequest>) -> Answer<SubmitReply> {
        not_here()
    }

    async fn list(&self, _: Request<ListJobsRequest>) -> Answer<ListJobsReply> {
        Ok(Response::new(ListJobsReply::default()))
    }

    /// A slow call.
    async fn show(&self, _: Request<ShowJobRequest>) -> Answer<ShowJobReply> {
        self.begun.add_permits(1);
        self.end.acquire().await.expect("open").forget();
        Ok(Response::new(ShowJobReply { job_toml: "late".into(), ..Default::default() }))
    }

    type WatchStream = Answers<JobEvent>;

    /// One event, and then none for ever.
    async fn watch(&self, _: Request<WatchRequest>) -> Answer<Self::WatchStream> {
        let first = tokio_stream::iter([Ok(JobEvent { number: 1, json: "{}".into() })]);
        Ok(Response::new(Box::pin(first.chain(tokio_stream::pending()))))
    }

    async fn control(&self, _: Request<ControlJobRequest>) -> Answer<ControlJobReply> {
        not_here()
    }

    async fn history(&self, _: Request<HistoryRequest>) -> Answer<HistoryReply> {
        not_here()
    }

    type PredictStream = Answers<PredictReply>;

    /// Sends back what comes, while it comes.
    async fn predict(&self, request: Request<Streaming<PredictPart>>) -> Answer<Self::PredictStream> {
        let mut parts = request.into_inner();
        let (to, answers) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok(Some(part)) = parts.message().await {
                if let Some(predict_part::Part::Chunk(chunk)) = part.part {
                    let reply = PredictReply { part: Some(predict_reply::Part::Chunk(chunk)) };
                    if to.send(Ok(reply)).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }
}

#[tonic::async_trait]
impl v1::tables_server::Tables for Served {
    async fn list(&self, _: Request<ListTablesRequest>) -> Answer<ListTablesReply> {
        Ok(Response::new(ListTablesReply::default()))
    }

    async fn get(&self, _: Request<GetRowsRequest>) -> Answer<GetRowsReply> {
        not_here()
    }

    type ExportStream = Answers<Chunk>;

    async fn export(&self, _: Request<ExportRequest>) -> Answer<Self::ExportStream> {
        not_here()
    }
}

#[tonic::async_trait]
impl v1::processes_server::Processes for Served {
    /// Tells the caller who it is.
    async fn status(&self, request: Request<StatusRequest>) -> Answer<StatusReply> {
        let tenant = Caller::of(&request).expect("gate").tenant.clone();
        let peer = Peer::of(&request).expect("peer");
        let name = peer.process.as_deref().unwrap_or_default().to_owned();
        Ok(Response::new(StatusReply {
            processes: vec![Process { name, ..Default::default() }],
            tenant,
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl v1::events_server::Events for Served {
    type WatchStream = Answers<ClusterEvent>;

    async fn watch(&self, _: Request<WatchClusterRequest>) -> Answer<Self::WatchStream> {
        Ok(Response::new(Box::pin(tokio_stream::iter([Ok(ClusterEvent { at: 1, json: "{}".into() })]))))
    }
}
