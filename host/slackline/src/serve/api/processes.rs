//! `slackline status`, and what happens in the cluster.

use super::transfer::Answers;
use super::{Api, seconds, tenant, to_job};
use crate::serve::coordinator::now;
use slackline_wire::tonic::{Request, Response, Status};
use slackline_wire::v1;
use slackline_wire::v1::events_server::Events;
use slackline_wire::v1::processes_server::Processes;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

#[slackline_wire::tonic::async_trait]
impl Processes for Api {
    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusReply>, Status> {
        let tenant = tenant(&request)?;
        let (processes, jobs) = self.coordinator.with(|control| {
            let processes = control.processes().map(|p| v1::Process {
                name: p.name.clone(),
                roles: p.roles.clone(),
                slots: p.slots,
                slots_used: control.used(&p.name),
                uptime: seconds(now().saturating_sub(p.joined)),
                version: p.version.clone(),
            });
            let jobs = control.jobs_of(&tenant).into_iter().filter(|j| !j.state.is_over());
            let jobs: Vec<_> = jobs.map(|j| (j.clone(), control.waits_for(j))).collect();
            (processes.collect(), jobs)
        });
        let jobs = jobs.into_iter().map(|(j, waits)| to_job(&self.coordinator, &tenant, j, waits)).collect();
        Ok(Response::new(v1::StatusReply { processes, jobs, tenant: tenant.to_string() }))
    }
}

#[slackline_wire::tonic::async_trait]
impl Events for Api {
    type WatchStream = Answers<v1::ClusterEvent>;

    async fn watch(&self, request: Request<v1::WatchClusterRequest>) -> Result<Response<Self::WatchStream>, Status> {
        tenant(&request)?;
        let mut events = self.coordinator.events();
        let (to, from) = mpsc::channel(16);
        tokio::spawn(async move {
            loop {
                let event = tokio::select! {
                    event = events.recv() => event,
                    () = to.closed() => return,
                };
                let event = match event {
                    Ok((at, json)) => v1::ClusterEvent { at: seconds(at), json },
                    Err(RecvError::Lagged(missed)) => {
                        let json = serde_json::json!({"event": "missed", "count": missed}).to_string();
                        v1::ClusterEvent { at: seconds(now()), json }
                    }
                    Err(RecvError::Closed) => return,
                };
                if to.send(Ok(event)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(from)))
    }
}
