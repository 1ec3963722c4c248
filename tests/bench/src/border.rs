//! The border of the sandbox: calls each way, and rows in bulk against the same work without a border.

use crate::Options;
use crate::measure::{Samples, turns};
use crate::report::Report;
use crate::worker::{Crossing, TABLE_ROWS, WIDTH, Worker, component, twin};
use anyhow::Result;
use slackline::job::Interrupt;
use slackline_core::ports::{Plugin, Tables};
use slackline_core::{TableId, ValuesMut, ValuesRef};
use std::hint::black_box;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Most that a row may cost on its way into the guest, and out of it: ns.
const READ_GATE: f64 = 60.0;
const INC_GATE: f64 = 100.0;

/// Rows a call.
const ROWS: usize = 1024;

/// The bench's guest in its three shapes.
fn shapes() -> Result<[(&'static str, Arc<dyn Plugin>); 3]> {
    Ok([("process", component(Interrupt::Process)?), ("epoch", component(Interrupt::Epoch)?), ("native twin", twin()?)])
}

/// Nanoseconds that `work` takes, by `n`.
fn ns(n: usize, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_nanos() as f64 / n as f64)
}

/// Host → guest and guest → host calls.
pub fn calls(options: &Options, report: &mut Report) -> Result<()> {
    const INTO: usize = 100_000;
    const BACK: usize = 1_000_000;
    let shapes = shapes()?;
    let mut workers = Vec::new();
    for (name, plugin) in &shapes[..2] {
        let idle = Worker::new(&**plugin, &Crossing { work: "nothing", calls: 0, rows: 1 })?;
        let asking = Worker::new(&**plugin, &Crossing { work: "ask", calls: BACK, rows: 1 })?;
        workers.push((*name, idle, asking));
    }
    let names: Vec<_> = workers.iter().map(|(name, ..)| *name).collect();
    let mut competitors: Vec<Box<dyn FnMut() -> Result<[f64; 3]> + '_>> = Vec::new();
    for (_, idle, asking) in &mut workers {
        competitors.push(Box::new(|| {
            Ok([
                ns(INTO, || (0..INTO).try_for_each(|_| idle.end_clock()))?,
                ns(INTO, || (0..INTO).try_for_each(|_| idle.step()))?,
                ns(BACK, || asking.step())?,
            ])
        }));
    }
    let measured = turns(options.rounds(9), &mut competitors)?;
    for (name, [into, batch, back]) in names.iter().zip(&measured) {
        report.add("calls", format!("host → guest, --interrupt {name}"), into, "ns");
        report.add("calls", format!("host → guest with a batch, --interrupt {name}"), batch, "ns");
        report.add("calls", format!("guest → host, --interrupt {name}"), back, "ns");
    }
    Ok(())
}

/// `get` and `inc` of 1,024 random rows of 16 f32 out of a table of a million, which no cache holds.
pub fn rows(options: &Options, report: &mut Report) -> Result<()> {
    let shapes = shapes()?;
    let calls = if options.quick { 128 } else { 256 };
    let n = calls * ROWS;
    let mut workers = Vec::new();
    for (name, plugin) in &shapes {
        let get = Worker::new(&**plugin, &Crossing { work: "get", calls, rows: ROWS })?;
        let inc = Worker::new(&**plugin, &Crossing { work: "inc", calls, rows: ROWS })?;
        workers.push((*name, get, inc));
    }
    let mut alone = Port::new(calls)?;
    let names: Vec<_> = workers.iter().map(|(name, ..)| *name).chain(["port alone"]).collect();
    let mut competitors: Vec<Box<dyn FnMut() -> Result<[f64; 3]> + '_>> = Vec::new();
    for (_, get, inc) in &mut workers {
        competitors.push(Box::new(|| {
            let read = ns(n, || get.step())?;
            let added = ns(n, || inc.step())?;
            let ticked = ns(n, || {
                inc.tick();
                Ok(())
            })?;
            Ok([read, added, ticked])
        }));
    }
    competitors.push(Box::new(|| alone.round()));
    let measured = turns(options.rounds(15), &mut competitors)?;
    for (name, [get, inc, _]) in names.iter().zip(&measured) {
        if *name == "process" {
            report.gate("rows", "get of 1,024 random rows × 16 f32 into the guest", get, "ns/row", READ_GATE);
            report.gate("rows", "inc of 1,024 random rows × 16 f32 out of the guest", inc, "ns/row", INC_GATE);
        } else {
            report.add("rows", format!("get, {name}"), get, "ns/row");
            report.add("rows", format!("inc, {name}"), inc, "ns/row");
        }
    }
    let [process, _, native, port] = &measured[..] else { return Ok(()) };
    report.add("rows", "get into the guest / native twin", &process[0].over(&native[0]), "×");
    report.add("rows", "inc out of the guest / native twin", &process[1].over(&native[1]), "×");
    let ticks: Samples = port[2].map(|ns| ns);
    report.add("rows", "tick: seal, send and apply, a row incremented", &ticks, "ns/row");
    Ok(())
}

/// The worker's tables, called without an instance.
struct Port {
    reads: Worker,
    adds: Worker,
    keys: Vec<u64>,
    at: usize,
    calls: usize,
    values: Vec<f32>,
}

impl Port {
    fn new(calls: usize) -> Result<Self> {
        let plugin = twin()?;
        let idle = Crossing { work: "nothing", calls: 0, rows: 1 };
        let mut random = slackline_core::RandomStream::new(7, 0);
        let mut keys = vec![0; TABLE_ROWS as usize];
        random.fill(&mut keys);
        keys.iter_mut().for_each(|key| *key %= TABLE_ROWS);
        Ok(Self {
            reads: Worker::new(&*plugin, &idle)?,
            adds: Worker::new(&*plugin, &idle)?,
            keys,
            at: 0,
            calls,
            values: vec![0.5; ROWS * WIDTH],
        })
    }

    fn round(&mut self) -> Result<[f64; 3]> {
        let Self { reads, adds, keys, at, calls, values } = self;
        let n = *calls * ROWS;
        if *at + n > keys.len() {
            *at = 0;
        }
        let keys = &keys[*at..*at + n];
        *at += n;
        let read = ns(n, || {
            let mut tables = reads.tables.lock().unwrap_or_else(PoisonError::into_inner);
            keys.chunks_exact(ROWS).try_for_each(|rows| {
                tables.get(TableId(0), rows, ValuesMut::F32(values))?;
                black_box(&values);
                Ok(())
            })
        })?;
        let added = ns(n, || {
            let mut tables = adds.tables.lock().unwrap_or_else(PoisonError::into_inner);
            keys.chunks_exact(ROWS).try_for_each(|rows| Ok(tables.inc(TableId(0), rows, ValuesRef::F32(values))?))
        })?;
        let ticked = ns(n, || {
            adds.tick();
            Ok(())
        })?;
        Ok([read, added, ticked])
    }
}
