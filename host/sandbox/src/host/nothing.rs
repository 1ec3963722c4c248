//! A worker that grants nothing: what a throwaway instance gets while it describes itself and plans.

use slackline_core::ports::{Kernels, Level, RunInfo, SparseRows, Tables, Telemetry, WorkerHost};
use slackline_core::{HostError, LocalState, RandomStream, TableId, TableSpec, ValuesMut, ValuesRef};
use std::sync::{Arc, Mutex};

struct Nothing;

fn denied<T>() -> Result<T, HostError> {
    Err(HostError::Denied("nothing but answers is asked of describe and plan".into()))
}

/// The worker of a throwaway instance.
pub(crate) fn throwaway_worker() -> WorkerHost {
    WorkerHost {
        tables: Arc::new(Mutex::new(Nothing)),
        kernels: Arc::new(Nothing),
        telemetry: Arc::new(Mutex::new(Nothing)),
        local: LocalState::default(),
        random: Arc::new(Mutex::new(RandomStream::new(0, 0))),
        run: RunInfo {
            worker: 0,
            workers: 1,
            clock: Arc::default(),
            cancelled: Arc::default(),
            partition_rows: Arc::default(),
        },
    }
}

impl Tables for Nothing {
    fn open(&mut self, _: &str) -> Result<(TableId, TableSpec), HostError> {
        denied()
    }

    fn get(&mut self, _: TableId, _: &[u64], _: ValuesMut<'_>) -> Result<(), HostError> {
        denied()
    }

    fn inc(&mut self, _: TableId, _: &[u64], _: ValuesRef<'_>) -> Result<(), HostError> {
        denied()
    }

    fn get_sparse(&mut self, _: TableId, _: &[u64]) -> Result<SparseRows, HostError> {
        denied()
    }

    fn inc_sparse(&mut self, _: TableId, _: &[u64], _: &[u32], _: &[u32], _: ValuesRef<'_>) -> Result<(), HostError> {
        denied()
    }

    fn prefetch(&mut self, _: TableId, _: &[u64]) {}
}

impl Telemetry for Nothing {
    fn log(&mut self, level: Level, line: &str) {
        tracing::debug!(?level, line, "a plugin that describes itself logs");
    }

    fn metric(&mut self, _: &str, _: f64, _: f64) -> Result<(), HostError> {
        denied()
    }
}

type Done = Result<(), HostError>;
type In<'a> = ValuesRef<'a>;
type Out<'a> = ValuesMut<'a>;

impl Kernels for Nothing {
    fn axpy(&self, _: f64, _: In<'_>, _: Out<'_>) -> Done {
        denied()
    }

    fn scale(&self, _: f64, _: Out<'_>) -> Done {
        denied()
    }

    fn dot(&self, _: In<'_>, _: In<'_>) -> Result<f64, HostError> {
        denied()
    }

    fn gemv(&self, _: bool, _: u32, _: u32, _: f64, _: In<'_>, _: In<'_>, _: f64, _: Out<'_>) -> Done {
        denied()
    }

    fn gemm(&self, _: bool, _: bool, _: u32, _: u32, _: u32, _: f64, _: In<'_>, _: In<'_>, _: f64, _: Out<'_>) -> Done {
        denied()
    }

    fn spmm(&self, _: bool, _: In<'_>, _: In<'_>, _: In<'_>, _: In<'_>, _: u32, _: Out<'_>) -> Done {
        denied()
    }

    fn sddmm(&self, _: In<'_>, _: In<'_>, _: In<'_>, _: In<'_>, _: u32, _: Out<'_>) -> Done {
        denied()
    }

    fn gather(&self, _: In<'_>, _: In<'_>, _: u32, _: Out<'_>) -> Done {
        denied()
    }

    fn scatter_add(&self, _: In<'_>, _: In<'_>, _: u32, _: Out<'_>) -> Done {
        denied()
    }

    fn softmax_rows(&self, _: Out<'_>, _: u32) -> Done {
        denied()
    }

    fn soft_threshold(&self, _: Out<'_>, _: f64) -> Done {
        denied()
    }

    fn map(&self, _: &str, _: Out<'_>) -> Done {
        denied()
    }

    fn reduce(&self, _: &str, _: In<'_>) -> Result<f64, HostError> {
        denied()
    }
}
