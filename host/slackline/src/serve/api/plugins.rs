//! `slackline plugin push, list, show, pull, delete`.

use super::transfer::{Answers, fits, next, receive, send};
use super::{Api, missing, seconds, tenant, trouble};
use crate::serve::coordinator::Coordinator;
use crate::serve::validate::validate;
use slackline_control::{
    Answer, PluginName, Refusal as Denial, Request as Ask, Revision, check_name, check_tag, valid_digest,
};
use slackline_core::TenantId;
use slackline_wire::tonic::{Request, Response, Status, Streaming};
use slackline_wire::v1::plugins_server::Plugins;
use slackline_wire::v1::push_part::Part;
use slackline_wire::{Kind, Refusal, v1};

#[slackline_wire::tonic::async_trait]
impl Plugins for Api {
    async fn push(&self, request: Request<Streaming<v1::PushPart>>) -> Result<Response<v1::PushReply>, Status> {
        let tenant = tenant(&request)?;
        let mut stream = request.into_inner();
        let Some(v1::PushPart { part: Some(Part::Header(header)) }) = next(&mut stream).await? else {
            return Err(missing("its header"));
        };
        // What can be refused is refused before the bytes are taken.
        let checked = check_name("plugin", &header.name).and_then(|()| header.tag.as_deref().map_or(Ok(()), check_tag));
        checked.map_err(|e| trouble(e.into()))?;
        if !valid_digest(&header.digest) {
            return Err(missing("a digest of its bytes"));
        }
        fits("component", header.bytes, self.coordinator.config.limits.plugin_bytes)?;
        let _upload = self.uploads.acquire().await.map_err(|e| Refusal::new(Kind::Internal, e.to_string()))?;
        let coordinator = self.coordinator.clone();
        let hold = coordinator.hold(&header.digest);
        let announced = (header.bytes, header.digest.clone());
        let piece = |m: v1::PushPart| match m.part {
            Some(Part::Chunk(bytes)) => Some(bytes),
            _ => None,
        };
        let path = receive(self.coordinator.clone(), &mut stream, piece, announced).await?;
        let heavy = self.heavy.acquire().await.map_err(|e| Refusal::new(Kind::Internal, e.to_string()))?;
        let checked = self.blocking(move |c| Ok(validate(&path, &c.config.limits))).await?;
        drop(heavy);
        if let Err((message, hints)) = checked {
            drop(hold);
            self.blocking(|c| c.sweep().map_err(trouble)).await?;
            return Err(Refusal { kind: Kind::Invalid, message, hints }.into());
        }
        let ask = Ask::PushPlugin {
            name: header.name,
            tag: header.tag.clone(),
            move_tag: header.move_tag,
            digest: header.digest,
            bytes: header.bytes,
        };
        let (id, asker) = (header.request_id, tenant.clone());
        let answer = self.blocking(move |c| c.ask(&asker, &id, &ask).map_err(trouble)).await?;
        let Answer::Pushed(pushed) = answer else { return Err(odd(&answer)) };
        let revision = Some(to_revision(&self.coordinator, &tenant, &pushed.revision));
        Ok(Response::new(v1::PushReply { revision, known: pushed.known, tag_moved: pushed.tag_moved }))
    }

    async fn list(&self, request: Request<v1::ListPluginsRequest>) -> Result<Response<v1::ListPluginsReply>, Status> {
        let tenant = tenant(&request)?;
        let all: Vec<Revision> =
            self.coordinator.with(|c| c.registry(&tenant).into_iter().flat_map(|r| r.revisions().cloned()).collect());
        let revisions = all.iter().map(|r| to_revision(&self.coordinator, &tenant, r)).collect();
        Ok(Response::new(v1::ListPluginsReply { revisions }))
    }

    async fn show(&self, request: Request<v1::ShowPluginRequest>) -> Result<Response<v1::ShowPluginReply>, Status> {
        let tenant = tenant(&request)?;
        let found = find(&self.coordinator, &tenant, &request.get_ref().plugin)?;
        let digest = found.digest.clone();
        let _heavy = self.heavy.acquire().await.map_err(|e| Refusal::new(Kind::Internal, e.to_string()))?;
        let inspection = self.blocking(move |c| {
            let path = path_of(c, &digest)?;
            validate(&path, &c.config.limits)
                .map_err(|(message, hints)| Refusal { kind: Kind::Invalid, message, hints }.into())
        });
        let inspection_json = inspection.await?;
        let jobs = self.coordinator.with(|c| {
            let users =
                c.jobs_of(&tenant).into_iter().filter(|j| !j.state.is_over() && j.submission.digest == found.digest);
            users.map(|j| j.id.clone()).collect()
        });
        let revision = Some(to_revision(&self.coordinator, &tenant, &found));
        Ok(Response::new(v1::ShowPluginReply { revision, inspection_json, jobs }))
    }

    type PullStream = Answers<v1::Chunk>;

    async fn pull(&self, request: Request<v1::PullPluginRequest>) -> Result<Response<Self::PullStream>, Status> {
        let tenant = tenant(&request)?;
        let found = find(&self.coordinator, &tenant, &request.get_ref().plugin)?;
        let path = path_of(&self.coordinator, &found.digest)?;
        Ok(Response::new(send(&path, |data| v1::Chunk { data }, ())?))
    }

    async fn delete(
        &self,
        request: Request<v1::DeletePluginRequest>,
    ) -> Result<Response<v1::DeletePluginReply>, Status> {
        let tenant = tenant(&request)?;
        let v1::DeletePluginRequest { request_id, plugin } = request.into_inner();
        let asker = tenant.clone();
        let ask = Ask::DeletePlugin { plugin };
        let answer = self.blocking(move |c| c.ask(&asker, &request_id, &ask).map_err(trouble)).await?;
        let Answer::Removed(gone) = answer else { return Err(odd(&answer)) };
        let removed = gone.iter().map(|r| to_revision(&self.coordinator, &tenant, r)).collect();
        Ok(Response::new(v1::DeletePluginReply { removed }))
    }
}

fn find(coordinator: &Coordinator, tenant: &TenantId, plugin: &str) -> Result<Revision, Status> {
    let name: PluginName = plugin.parse().map_err(|e: Denial| trouble(e.into()))?;
    coordinator.with(|c| c.plugin(tenant, &name).cloned()).map_err(|e| trouble(e.into()))
}

fn path_of(coordinator: &Coordinator, digest: &str) -> Result<std::path::PathBuf, Status> {
    let path = coordinator.blobs().path(digest).map_err(super::storage)?;
    path.ok_or_else(|| Refusal::new(Kind::Internal, format!("the bytes of {digest} are not here any more")).into())
}

fn to_revision(coordinator: &Coordinator, tenant: &TenantId, revision: &Revision) -> v1::Revision {
    v1::Revision {
        plugin: revision.plugin.clone(),
        number: revision.number,
        digest: revision.digest.clone(),
        bytes: revision.bytes,
        tags: coordinator.with(|c| c.registry(tenant).map(|r| r.tags_of(revision)).unwrap_or_default()),
        pushed_at: seconds(revision.at),
    }
}

/// An answer of another kind than the request: the request id was used for something else by a client that guesses.
pub(super) fn odd(answer: &Answer) -> Status {
    Refusal::new(Kind::Conflict, format!("this request id was used for another kind of request: {answer:?}")).into()
}
