//! `slackline table list, get, export --job`: what a job's newest cut holds, also while the job runs.

use super::jobs::find;
use super::transfer::{Answers, send};
use super::{Api, failure, io, storage, tenant};
use crate::commands::table;
use crate::serve::coordinator::Coordinator;
use crate::serve::launch;
use slackline_core::ports::SparseRows;
use slackline_core::{Element, Layout, TableId, TableSpec, Values, each_dtype};
use slackline_storage::{CutReader, Mode, State};
use slackline_wire::tonic::{Request, Response, Status};
use slackline_wire::v1::tables_server::Tables;
use slackline_wire::{Kind, Refusal, v1};

/// Values in one answer: at nine bytes each, well below what a message may have.
const MAX_VALUES: u64 = 200_000;

#[slackline_wire::tonic::async_trait]
impl Tables for Api {
    async fn list(&self, request: Request<v1::ListTablesRequest>) -> Result<Response<v1::ListTablesReply>, Status> {
        let tenant = tenant(&request)?;
        let id = find(&self.coordinator, &tenant, &request.get_ref().job)?.id;
        let reply = self.blocking(move |c| {
            let cut = newest(c, &tenant, &id)?;
            let tables = cut.tables().map(|t| v1::Table {
                name: t.name.clone(),
                dtype: t.dtype.to_string(),
                layout: if t.layout == Layout::Dense { "dense" } else { "sparse" }.to_owned(),
                rows: t.rows,
                width: t.width,
            });
            Ok(v1::ListTablesReply { tables: tables.collect(), clock: cut.clock() })
        });
        Ok(Response::new(reply.await?))
    }

    async fn get(&self, request: Request<v1::GetRowsRequest>) -> Result<Response<v1::GetRowsReply>, Status> {
        let tenant = tenant(&request)?;
        let v1::GetRowsRequest { job, table: name, rows } = request.into_inner();
        let id = find(&self.coordinator, &tenant, &job)?.id;
        let reply = self.blocking(move |c| {
            let cut = newest(c, &tenant, &id)?;
            let (at, spec) = table::find(&cut, &name).map_err(failure)?;
            let values = (rows.len() as u64).saturating_mul(u64::from(spec.width));
            if values > MAX_VALUES {
                let message = format!("{values} values are asked for, and an answer holds {MAX_VALUES}");
                let refusal = Refusal::new(Kind::TooBig, message);
                return Err(refusal.hint("ask for fewer rows, or export the table").into());
            }
            let read = |row: u64| self::row(&cut, at, spec, row);
            Ok(v1::GetRowsReply { clock: cut.clock(), rows: rows.into_iter().map(read).collect::<Result<_, _>>()? })
        });
        Ok(Response::new(reply.await?))
    }

    type ExportStream = Answers<v1::Chunk>;

    async fn export(&self, request: Request<v1::ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        let tenant = tenant(&request)?;
        let v1::ExportRequest { job, table: name, format } = request.into_inner();
        let id = find(&self.coordinator, &tenant, &job)?.id;
        slackline_control::check_name("format", &format)
            .map_err(|e| Status::from(Refusal::new(Kind::Invalid, e.message)))?;
        let exported = self.blocking(move |c| {
            let cut = newest(c, &tenant, &id)?;
            let dir = tempfile::Builder::new().prefix("export-").tempdir_in(&c.config.state);
            let dir = dir.map_err(|e| io("a folder for the export", &e))?;
            let to = dir.path().join(format!("table.{format}"));
            table::write(&cut, &name, &to).map_err(failure)?;
            Ok((to, dir))
        });
        let (file, dir) = exported.await?;
        Ok(Response::new(send(&file, |data| v1::Chunk { data }, dir)?))
    }
}

fn newest(c: &Coordinator, tenant: &slackline_core::TenantId, id: &str) -> Result<CutReader, Status> {
    let dir = c.job_dir(tenant, id).join(launch::STATE);
    let none = || {
        let refusal = Refusal::new(Kind::NotFound, format!("job {id} has no complete cut yet"));
        Status::from(refusal.hint("it writes one every `cuts.every` clocks and at its end"))
    };
    if !dir.exists() {
        return Err(none());
    }
    let state = State::open(&dir, Mode::ReadOnly).map_err(|_| none())?;
    state.newest_intact().map_err(storage)?.cut.ok_or_else(none)
}

fn row(cut: &CutReader, table: TableId, spec: &TableSpec, row: u64) -> Result<v1::Row, Status> {
    if row >= spec.rows {
        let message = format!("table {} has {} rows: there is no row {row}", spec.name, spec.rows);
        return Err(Refusal::new(Kind::Invalid, message).into());
    }
    let mut out = v1::Row { row, ..v1::Row::default() };
    match spec.layout {
        Layout::Dense => {
            for chunk in cut.dense_rows(table, row..row + 1).map_err(storage)? {
                out.values.extend(floats(&chunk.map_err(storage)?.values));
            }
        }
        Layout::Sparse => {
            for chunk in cut.sparse_rows(table, row..row + 1).map_err(storage)? {
                let SparseRows { columns, values, .. } = chunk.map_err(storage)?.rows;
                out.columns.extend(columns);
                out.values.extend(floats(&values));
            }
        }
    }
    Ok(out)
}

fn floats(values: &Values) -> Vec<f64> {
    each_dtype!(Values, values, v => v.iter().map(|x| x.to_f64()).collect())
}
