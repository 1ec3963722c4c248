//! Guests written as text, so that the tests need no guest toolchain, and a worker to run them on.

#![allow(dead_code, missing_docs)]

use slackline_core::ports::{Kernels, Level, Program, RunInfo, SparseRows, Tables, Telemetry, WorkerHost};
use slackline_core::{
    Batch, Column, DType, HostError, Init, Layout, LocalState, RandomStream, TableId, TableSpec, Values, ValuesMut,
    ValuesRef,
};
use slackline_sandbox::{Component, Engine, EngineConfig, Interrupt};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap};

const TEMPLATE: &str = include_str!("guest.wat");
const WIT: &str = include_str!("../../../../wit/v0.1/plugin.wit");

pub const MANIFEST: &str = r#"{"name":"bad","version":"0.1.0","params":{"type":"object","properties":
{"rank":{"type":"integer","minimum":1,"default":16}}},
"columns":[{"name":"x","dtype":"f32"}],"metrics":[{"name":"loss"}],"predicts":["y"]}"#;
pub const PLAN: &str = r#"{"tables":[{"name":"w","dtype":"f32","rows":1000,"width":4}]}"#;

/// Imports that many guests need.
pub const TABLE_IMPORTS: &str = r#"
  (import "slackline:plugin/tables@0.1.0" "open" (func $open (param i32 i32 i32)))
  (import "slackline:plugin/tables@0.1.0" "[method]table.get-f32" (func $get (param i32 i32 i32 i32)))
  (import "slackline:plugin/tables@0.1.0" "[method]table.inc-f32" (func $inc (param i32 i32 i32 i32 i32 i32)))
  (import "slackline:plugin/telemetry@0.1.0" "log" (func $log (param i32 i32 i32)))"#;

/// Opens table `w`, whose name is at 512, and leaves its handle in `$i`; then shows the error of the result at 96, if it
/// is one, as a log line.
pub const TABLE_FUNCTIONS: &str = r#"
  (data (i32.const 512) "w")
  (func $table (result i32)
    (call $open (i32.const 512) (i32.const 1) (i32.const 96))
    (if (i32.load8_u (i32.const 96)) (then unreachable))
    (i32.load (i32.const 100)))
  ;; Logs the text of an error result at 96; its payload is at 100 (case), 104 (text).
  (func $show
    (if (i32.eqz (i32.load8_u (i32.const 96)))
      (then (call $log (i32.const 1) (i32.const 512) (i32.const 1)))
      (else (call $log (i32.const 1) (i32.load (i32.const 104)) (i32.load (i32.const 108))))))"#;

/// A guest: the template's holes and what fills them.
#[derive(Clone, Default)]
pub struct Guest {
    holes: BTreeMap<&'static str, String>,
    edits: Vec<(&'static str, &'static str)>,
}

impl Guest {
    pub fn new() -> Self {
        Self::default().with("manifest", MANIFEST).with("plan", PLAN)
    }

    pub fn with(mut self, hole: &'static str, text: &str) -> Self {
        let hole_text = self.holes.entry(hole).or_default();
        if matches!(hole, "manifest" | "plan") {
            hole_text.clear();
        }
        hole_text.push_str(text);
        self
    }

    /// A guest that works on table `w`.
    pub fn with_table(step: &str) -> Self {
        Self::new().with("imports", TABLE_IMPORTS).with("functions", TABLE_FUNCTIONS).with("step", step)
    }

    /// Builds it against an edited contract.
    pub fn against(mut self, from: &'static str, to: &'static str) -> Self {
        self.edits.push((from, to));
        self
    }

    pub fn core_module(&self) -> Vec<u8> {
        let mut text = TEMPLATE.to_owned();
        for (hole, filling) in &self.holes {
            let filling = match *hole {
                "manifest" | "plan" => {
                    text = text.replace(&format!("{{{{{hole}-len}}}}"), &filling.len().to_string());
                    filling.bytes().map(|b| format!("\\{b:02x}")).collect()
                }
                _ => filling.clone(),
            };
            text = text.replace(&format!("{{{{{hole}}}}}"), &filling);
        }
        while let Some(at) = text.find("{{") {
            let end = text[at..].find("}}").expect("a hole ends") + at + 2;
            text.replace_range(at..end, "");
        }
        wat::parse_str(&text).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn build(&self) -> Vec<u8> {
        let mut module = self.core_module();
        let mut wit = WIT.to_owned();
        for (from, to) in &self.edits {
            assert!(wit.contains(from), "{from:?} is not in the contract");
            wit = wit.replace(from, to);
        }
        let mut sources = SourceMap::default();
        sources.push_str("plugin.wit", wit);
        let group = sources.parse().map_err(|(_, e)| e).expect("the contract parses");
        let mut resolve = Resolve::default();
        let package = resolve.push_group(group).expect("the contract resolves");
        let world = resolve.select_world(&[package], Some("data-parallel")).expect("the world exists");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata embeds");
        ComponentEncoder::default().module(&module).expect("a module").validate(true).encode().expect("it encodes")
    }
}

/// Rows of one dense table in memory.
pub struct OneTable {
    pub spec: TableSpec,
    pub values: Vec<f32>,
    /// How long a read takes.
    pub delay: Duration,
}

impl OneTable {
    pub fn new(rows: u64, width: u32) -> Self {
        let spec =
            TableSpec { name: "w".into(), dtype: DType::F32, layout: Layout::Dense, rows, width, init: Init::Zero };
        Self { spec, values: vec![0.0; rows as usize * width as usize], delay: Duration::ZERO }
    }
}

impl Tables for OneTable {
    fn open(&mut self, name: &str) -> Result<(TableId, TableSpec), HostError> {
        match name == self.spec.name {
            true => Ok((TableId(0), self.spec.clone())),
            false => Err(HostError::NotFound(format!("table {name:?}"))),
        }
    }

    fn get(&mut self, _: TableId, rows: &[u64], out: ValuesMut<'_>) -> Result<(), HostError> {
        std::thread::sleep(self.delay);
        let ValuesMut::F32(out) = out else { return Err(HostError::Invalid("type".into())) };
        let width = self.spec.width as usize;
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
            let at = *row as usize * width;
            out.copy_from_slice(&self.values[at..at + width]);
        }
        Ok(())
    }

    fn inc(&mut self, _: TableId, rows: &[u64], deltas: ValuesRef<'_>) -> Result<(), HostError> {
        let ValuesRef::F32(deltas) = deltas else { return Err(HostError::Invalid("type".into())) };
        let width = self.spec.width as usize;
        for (row, delta) in rows.iter().zip(deltas.chunks_exact(width)) {
            let at = *row as usize * width;
            self.values[at..at + width].iter_mut().zip(delta).for_each(|(v, d)| *v += d);
        }
        Ok(())
    }

    fn get_sparse(&mut self, _: TableId, _: &[u64]) -> Result<SparseRows, HostError> {
        Err(HostError::Invalid("dense".into()))
    }

    fn inc_sparse(&mut self, _: TableId, _: &[u64], _: &[u32], _: &[u32], _: ValuesRef<'_>) -> Result<(), HostError> {
        Err(HostError::Invalid("dense".into()))
    }

    fn prefetch(&mut self, _: TableId, _: &[u64]) {}
}

/// Lines and metrics as they arrive.
#[derive(Default)]
pub struct Ear {
    pub lines: Vec<(Level, String)>,
    pub metrics: Vec<(String, f64, f64)>,
}

impl Telemetry for Ear {
    fn log(&mut self, level: Level, line: &str) {
        self.lines.push((level, line.into()));
    }

    fn metric(&mut self, name: &str, value: f64, weight: f64) -> Result<(), HostError> {
        self.metrics.push((name.into(), value, weight));
        Ok(())
    }
}

/// `scale` and `dot`, to see that kernels are reached.
pub struct FewKernels;

fn missing<T>() -> Result<T, HostError> {
    Err(HostError::Unavailable("this kernel is not part of the test".into()))
}

#[rustfmt::skip]
impl Kernels for FewKernels {
    fn scale(&self, a: f64, x: ValuesMut<'_>) -> Result<(), HostError> {
        let ValuesMut::F32(x) = x else { return missing() };
        x.iter_mut().for_each(|x| *x *= a as f32);
        Ok(())
    }
    fn dot(&self, x: ValuesRef<'_>, y: ValuesRef<'_>) -> Result<f64, HostError> {
        let (ValuesRef::F32(x), ValuesRef::F32(y)) = (x, y) else { return missing() };
        Ok(x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum())
    }
    fn axpy(&self, _: f64, _: ValuesRef<'_>, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn gemv(&self, _: bool, _: u32, _: u32, _: f64, _: ValuesRef<'_>, _: ValuesRef<'_>, _: f64, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn gemm(&self, _: bool, _: bool, _: u32, _: u32, _: u32, _: f64, _: ValuesRef<'_>, _: ValuesRef<'_>, _: f64, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn spmm(&self, _: bool, _: ValuesRef<'_>, _: ValuesRef<'_>, _: ValuesRef<'_>, _: ValuesRef<'_>, _: u32, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn sddmm(&self, _: ValuesRef<'_>, _: ValuesRef<'_>, _: ValuesRef<'_>, _: ValuesRef<'_>, _: u32, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn gather(&self, _: ValuesRef<'_>, _: ValuesRef<'_>, _: u32, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn scatter_add(&self, _: ValuesRef<'_>, _: ValuesRef<'_>, _: u32, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn softmax_rows(&self, _: ValuesMut<'_>, _: u32) -> Result<(), HostError> { missing() }
    fn soft_threshold(&self, _: ValuesMut<'_>, _: f64) -> Result<(), HostError> { missing() }
    fn map(&self, _: &str, _: ValuesMut<'_>) -> Result<(), HostError> { missing() }
    fn reduce(&self, _: &str, _: ValuesRef<'_>) -> Result<f64, HostError> { missing() }
}

/// A worker whose parts a test can look into.
pub struct Bench {
    pub tables: Arc<Mutex<OneTable>>,
    pub ear: Arc<Mutex<Ear>>,
    pub local: LocalState,
    pub cancelled: Arc<AtomicBool>,
}

impl Bench {
    pub fn new(rows: u64, width: u32) -> Self {
        Self {
            tables: Arc::new(Mutex::new(OneTable::new(rows, width))),
            ear: Arc::default(),
            local: LocalState::default(),
            cancelled: Arc::default(),
        }
    }

    pub fn host(&self) -> WorkerHost {
        WorkerHost {
            tables: self.tables.clone(),
            kernels: Arc::new(FewKernels),
            telemetry: self.ear.clone(),
            local: self.local.clone(),
            random: Arc::new(Mutex::new(RandomStream::new(1, 0))),
            run: RunInfo {
                worker: 0,
                workers: 2,
                clock: Arc::default(),
                cancelled: self.cancelled.clone(),
                partition_rows: Arc::new([("train".into(), 3u64)].into()),
            },
        }
    }

    pub fn lines(&self) -> Vec<String> {
        self.ear.lock().unwrap().lines.iter().map(|(_, line)| line.clone()).collect()
    }
}

pub fn batch() -> Batch {
    let column = Column::flat(Values::F32(vec![1.0, 2.0, 3.0]));
    Batch::new("train", vec![0, 1, 2], [("x".into(), column)].into())
}

/// An engine without a cache whose guests may run for a second.
pub fn epoch_engine() -> Engine {
    let mut config = EngineConfig::new(Interrupt::Epoch);
    config.limits.step_deadline = Duration::from_secs(5);
    config.limits.memory = 64 << 20;
    Engine::new(config).expect("an engine")
}

/// An engine without epoch checks whose guests are trusted to end.
pub fn process_engine() -> Engine {
    Engine::new(EngineConfig::new(Interrupt::Process(Arc::new(|o| panic!("{o}"))))).expect("an engine")
}

/// Loads a guest and makes an instance on `bench`.
pub fn run(engine: &Engine, guest: &Guest, bench: &Bench) -> (Component, Box<dyn Program>) {
    use slackline_core::ports::Plugin;
    let component = engine.load(&guest.build(), "guest.wasm").unwrap_or_else(|e| panic!("{e}"));
    let program = component.create(bench.host(), "{}").unwrap_or_else(|e| panic!("{e}"));
    (component, program)
}
