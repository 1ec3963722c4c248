//! `slackline predict --job`: a cluster's model on new rows.

use super::{ClusterArgs, answer, refused};
use crate::atomic::AtomicFile;
use crate::commands::output::print;
use crate::failure::{Exit, Failure};
use crate::serve::wire;
use serde_json::Value;
use slackline_wire::v1::predict_part::Part as Sent;
use slackline_wire::v1::predict_reply::Part as Got;
use slackline_wire::{chunks, upload, v1};
use std::io::Write as _;
use std::path::Path;

/// Sends `input`, writes what the model of `job` says to `output`.
pub fn predict(cluster: &ClusterArgs, job: &str, input: &Path, output: &Path, json: bool) -> Result<Exit, Failure> {
    let unwritten = |e: std::io::Error| Failure::unwritten(output, &e);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let summary = cluster.with(async |client| {
        let (bytes, _, file) = super::to_send(input)?;
        let header =
            v1::PredictHeader { job: job.to_owned(), input_name: name(input), output_name: name(output), bytes };
        let header = v1::PredictPart { part: Some(Sent::Header(header)) };
        let (parts, sent) = upload(header, chunks(file, bytes), |c| v1::PredictPart { part: Some(Sent::Chunk(c)) });
        let called = client.patient().jobs().predict(parts).await;
        if let Some(fault) = sent.fault() {
            return Err(wire(fault));
        }
        let mut reply = answer(&client, called)?;
        let mut file = AtomicFile::create(output).map_err(unwritten)?;
        let mut summary = Value::Null;
        while let Some(part) = reply.message().await.map_err(|s| refused(&client, &s))? {
            match part.part {
                Some(Got::SummaryJson(text)) => summary = serde_json::from_str(&text).unwrap_or_default(),
                Some(Got::Chunk(bytes)) => file.write_all(&bytes).map_err(unwritten)?,
                None => {}
            }
        }
        file.commit().map_err(unwritten)?;
        Ok(summary)
    })?;
    let mut summary = match summary {
        Value::Object(summary) => summary,
        _ => return Err(Failure::new(Exit::Network, "the answer is not whole")),
    };
    summary.insert("to".to_owned(), output.to_string_lossy().into());
    if json {
        return print(&format!("{}\n", Value::Object(summary)));
    }
    let (rows, clock) = (&summary["rows"], &summary["clock"]);
    print(&format!("{}: {rows} rows, by the model of job {job} as of clock {clock}\n", output.display()))
}
