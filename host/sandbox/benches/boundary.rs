//! What the border costs: calls each way, rows in and out in bulk, and making an instance.

#![allow(missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use slackline_core::ports::{Plugin, Program};
use slackline_sandbox::{Allocation, Engine, EngineConfig, Interrupt};
use std::sync::Arc;
use std::time::Duration;
use support::{Bench, Guest, batch, epoch_engine, process_engine, run};

const ROWS: usize = 1024;
const WIDTH: u32 = 16;
const CALLS: u64 = 1000;

/// Keys of 1,024 rows at 131072, scattered over the table; deltas are whatever lies behind them.
const KEYS: &str = r#"
  (import "slackline:plugin/tables@0.1.0" "[method]table.width" (func $width (param i32) (result i32)))"#;
const PREPARE: &str = r#"
  (data (i32.const 520) "\00")
  (global $table-handle (mut i32) (i32.const 0))
  (func $keys (local $i i32)
    (drop (memory.grow (i32.const 16)))
    (loop $l
      (i64.store (i32.add (i32.const 131072) (i32.mul (local.get $i) (i32.const 8)))
        (i64.extend_i32_u (i32.rem_u (i32.mul (local.get $i) (i32.const 7919)) (i32.const 100000))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1024)))))"#;

fn guest(step: &str) -> Guest {
    Guest::with_table(&format!("(global.set $heap (i32.const 262144)) {step}"))
        .with("imports", KEYS)
        .with("functions", PREPARE)
        .with("create", "(call $keys) (global.set $table-handle (call $table))")
}

/// Ends a step that was told an error, so that no failure is measured.
const CHECK: &str = "(if (i32.load8_u (i32.const 96)) (then unreachable))";

fn program(engine: &Engine, step: &str) -> Box<dyn Program> {
    run(engine, &guest(step), &Bench::new(100_000, WIDTH)).1
}

fn calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("call");
    for (name, engine) in [("process", process_engine()), ("epoch", epoch_engine())] {
        let mut empty = program(&engine, "");
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("host to guest, {name}"), |b| b.iter(|| empty.end_clock(0)));
        let batch = batch();
        group.bench_function(format!("host to guest with a batch, {name}"), |b| b.iter(|| empty.step(&batch)));
        let back = format!(
            "(loop $l (drop (call $width (global.get $table-handle)))
               (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {CALLS}))))"
        );
        let mut back = program(&engine, &back);
        group.throughput(Throughput::Elements(CALLS));
        group.bench_function(format!("guest to host ({CALLS}), {name}"), |b| b.iter(|| back.step(&batch)));
    }
    group.finish();
}

fn rows(c: &mut Criterion) {
    let mut group = c.benchmark_group("1024 rows of 16 f32");
    group.throughput(Throughput::Elements(ROWS as u64));
    let engine = process_engine();
    let batch = batch();
    let mut get = program(
        &engine,
        &format!("(call $get (global.get $table-handle) (i32.const 131072) (i32.const 1024) (i32.const 96)) {CHECK}"),
    );
    group.bench_function("get", |b| b.iter(|| get.step(&batch)));
    let mut inc = program(
        &engine,
        &format!(
            "(call $inc (global.get $table-handle) (i32.const 131072) (i32.const 1024) (i32.const 262144) (i32.const 16384)
               (i32.const 96)) {CHECK}"
        ),
    );
    group.bench_function("inc", |b| b.iter(|| inc.step(&batch)));

    // The same port without a border.
    let bench = Bench::new(100_000, WIDTH);
    let tables = bench.host().tables;
    let keys: Vec<u64> = (0..ROWS as u64).map(|i| i * 7919 % 100_000).collect();
    let mut out = vec![0f32; ROWS * WIDTH as usize];
    group.bench_function("get, port alone", |b| {
        b.iter(|| {
            tables.lock().unwrap().get(slackline_core::TableId(0), &keys, slackline_core::ValuesMut::F32(&mut out))
        })
    });
    group.bench_function("inc, port alone", |b| {
        b.iter(|| tables.lock().unwrap().inc(slackline_core::TableId(0), &keys, slackline_core::ValuesRef::F32(&out)))
    });
    group.finish();
}

fn instances(c: &mut Criterion) {
    let mut group = c.benchmark_group("instance");
    for allocation in [Allocation::OnDemand, Allocation::Pooling(8)] {
        let mut config = EngineConfig::new(Interrupt::Process(Arc::new(|_| ())));
        config.allocation = allocation;
        let engine = Engine::new(config).unwrap();
        let component = engine.load(&guest("").build(), "guest.wasm").unwrap();
        let bench = Bench::new(1000, WIDTH);
        group.bench_function(format!("create, {allocation:?}"), |b| {
            b.iter(|| component.create(bench.host(), "{}").unwrap().memory_bytes())
        });
    }
    group.finish();
}

criterion_group! {
    name = boundary;
    config = Criterion::default().measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300)).without_plots();
    targets = calls, rows, instances
}
criterion_main!(boundary);
