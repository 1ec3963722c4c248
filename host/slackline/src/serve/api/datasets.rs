//! `slackline data push, list, delete`.

use super::plugins::odd;
use super::transfer::{fits, next, receive};
use super::{Api, missing, seconds, tenant, trouble};
use slackline_control::{Answer, Dataset, Request as Ask, check_name, valid_digest};
use slackline_wire::tonic::{Request, Response, Status, Streaming};
use slackline_wire::v1::datasets_server::Datasets;
use slackline_wire::v1::push_dataset_part::Part;
use slackline_wire::{Kind, Refusal, v1};

#[slackline_wire::tonic::async_trait]
impl Datasets for Api {
    async fn push(
        &self,
        request: Request<Streaming<v1::PushDatasetPart>>,
    ) -> Result<Response<v1::PushDatasetReply>, Status> {
        let tenant = tenant(&request)?;
        let mut stream = request.into_inner();
        let Some(v1::PushDatasetPart { part: Some(Part::Header(header)) }) = next(&mut stream).await? else {
            return Err(missing("its header"));
        };
        let checked = check_name("dataset", &header.name).and_then(|()| check_name("data file", &header.file_name));
        checked.map_err(|e| trouble(e.into()))?;
        if !valid_digest(&header.digest) {
            return Err(missing("a digest of its bytes"));
        }
        fits("dataset", header.bytes, self.coordinator.config.limits.dataset_bytes)?;
        let _upload = self.uploads.acquire().await.map_err(|e| Refusal::new(Kind::Internal, e.to_string()))?;
        let coordinator = self.coordinator.clone();
        let hold = coordinator.hold(&header.digest);
        let announced = (header.bytes, header.digest.clone());
        let piece = |m: v1::PushDatasetPart| match m.part {
            Some(Part::Chunk(bytes)) => Some(bytes),
            _ => None,
        };
        receive(self.coordinator.clone(), &mut stream, piece, announced).await?;
        let dataset = Dataset {
            name: header.name,
            file_name: header.file_name,
            digest: header.digest,
            bytes: header.bytes,
            at: crate::serve::coordinator::now(),
        };
        let (id, replace) = (header.request_id, header.replace);
        let asked =
            self.blocking(move |c| c.ask(&tenant, &id, &Ask::PushDataset { dataset, replace }).map_err(trouble));
        let asked = asked.await;
        drop(hold);
        if asked.is_err() {
            self.blocking(|c| c.sweep().map_err(trouble)).await?;
        }
        let answer = asked?;
        let Answer::Kept { dataset, known } = answer else { return Err(odd(&answer)) };
        Ok(Response::new(v1::PushDatasetReply { dataset: Some(to_dataset(dataset)), known }))
    }

    async fn list(&self, request: Request<v1::ListDatasetsRequest>) -> Result<Response<v1::ListDatasetsReply>, Status> {
        let tenant = tenant(&request)?;
        let datasets = self.coordinator.with(|c| c.datasets(&tenant).cloned().map(to_dataset).collect());
        Ok(Response::new(v1::ListDatasetsReply { datasets }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteDatasetRequest>,
    ) -> Result<Response<v1::DeleteDatasetReply>, Status> {
        let tenant = tenant(&request)?;
        let v1::DeleteDatasetRequest { request_id, name } = request.into_inner();
        let ask = Ask::DeleteDataset { name };
        self.blocking(move |c| c.ask(&tenant, &request_id, &ask).map_err(trouble)).await?;
        Ok(Response::new(v1::DeleteDatasetReply {}))
    }
}

fn to_dataset(d: Dataset) -> v1::Dataset {
    v1::Dataset { name: d.name, digest: d.digest, bytes: d.bytes, pushed_at: seconds(d.at), file_name: d.file_name }
}
