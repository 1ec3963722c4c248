//! Components that behave: what they get and what they give.

#![allow(missing_docs)]

mod support;

use slackline_core::Values;
use slackline_core::ports::{Plugin, Program};
use support::{Bench, Guest, batch, epoch_engine, process_engine, run};

/// Adds row 3 of table `w` to itself after adding ones to it, and logs the table's name when all went well.
const READ_AND_ADD: &str = r#"
    (local.set $i (call $table))
    (i64.store (i32.const 128) (i64.const 3))
    (f32.store (i32.const 160) (f32.const 1)) (f32.store (i32.const 164) (f32.const 2))
    (f32.store (i32.const 168) (f32.const 3)) (f32.store (i32.const 172) (f32.const 4))
    (call $inc (local.get $i) (i32.const 128) (i32.const 1) (i32.const 160) (i32.const 4) (i32.const 96))
    (call $show)
    (call $get (local.get $i) (i32.const 128) (i32.const 1) (i32.const 96))
    (call $inc (local.get $i) (i32.const 128) (i32.const 1) (i32.load (i32.const 100)) (i32.load (i32.const 104)) (i32.const 96))
    (call $show)"#;

#[test]
fn a_component_reads_and_adds_rows_through_the_ports() {
    for engine in [process_engine(), epoch_engine()] {
        let bench = Bench::new(1000, 4);
        let (component, mut program) = run(&engine, &Guest::with_table(READ_AND_ADD), &bench);
        assert_eq!(component.manifest().name, "bad");
        program.step(&batch()).unwrap();
        assert_eq!(bench.lines(), ["w", "w"]);
        assert_eq!(bench.tables.lock().unwrap().values[12..16], [2.0, 4.0, 6.0, 8.0]);
        program.end_clock(0).unwrap();
        program.evaluate(&batch()).unwrap();
        assert!(program.save().unwrap().is_empty());
        assert!(program.memory_bytes() >= 4 * 65536);
    }
}

const BUFFERS: &str = r#"
  (import "slackline:plugin/buffers@0.1.0" "[static]buffer.alloc" (func $alloc (param i32 i64 i32)))
  (import "slackline:plugin/buffers@0.1.0" "[method]buffer.write-f32" (func $write (param i32 i64 i32 i32 i32)))
  (import "slackline:plugin/buffers@0.1.0" "[method]buffer.read-f32" (func $read (param i32 i64 i32 i32)))
  (import "slackline:plugin/buffers@0.1.0" "[method]buffer.slice" (func $slice (param i32 i64 i64 i32)))
  (import "slackline:plugin/buffers@0.1.0" "[method]buffer.copy-from" (func $copy (param i32 i32 i32)))
  (import "slackline:plugin/input@0.1.0" "[method]batch.column" (func $column (param i32 i32 i32 i32)))
  (import "slackline:plugin/local-state@0.1.0" "open" (func $local (param i32 i32 i32 i64 i32)))
  (import "slackline:plugin/output@0.1.0" "put" (func $put (param i32 i32 i32 i32)))
  (import "slackline:plugin/kernels@0.1.0" "scale" (func $scale (param f64 i32 i32)))
  (import "slackline:plugin/kernels@0.1.0" "dot" (func $dot (param i32 i32 i32)))
  (import "slackline:plugin/telemetry@0.1.0" "log" (func $log (param i32 i32 i32)))
  (import "slackline:plugin/telemetry@0.1.0" "metric" (func $metric (param i32 i32 f64 f64)))"#;

/// Names, and a check that a result at 96 is no error; its handle.
const NAMES: &str = r#"
  (data (i32.const 512) "xycountsloss")
  (func $handle (result i32)
    (if (i32.load8_u (i32.const 96)) (then unreachable))
    (i32.load (i32.const 100)))
  (func $show
    (if (i32.eqz (i32.load8_u (i32.const 96)))
      (then (call $log (i32.const 1) (i32.const 512) (i32.const 1)))
      (else (call $log (i32.const 1) (i32.load (i32.const 104)) (i32.load (i32.const 108))))))"#;

/// A guest with handles to column `x` of its batch and to three f32 of its own.
fn with_buffers(hole: &'static str, body: &str) -> Guest {
    let handles = r#"
      (call $column (local.get $batch) (i32.const 512) (i32.const 1) (i32.const 96))
      (global.set $x (call $handle))
      (call $alloc (i32.const 0) (i64.const 3) (i32.const 96))
      (global.set $own (call $handle))"#;
    Guest::new()
        .with("imports", BUFFERS)
        .with("functions", "(global $x (mut i32) (i32.const 0)) (global $own (mut i32) (i32.const 0))")
        .with("functions", NAMES)
        .with(hole, handles)
        .with(hole, body)
}

#[test]
fn predictions_come_back_by_column() {
    let guest = with_buffers(
        "predict",
        "(call $copy (global.get $own) (global.get $x) (i32.const 96)) (drop (call $handle))
         (call $scale (f64.const 10) (global.get $own) (i32.const 96)) (drop (call $handle))
         (call $put (i32.const 513) (i32.const 1) (global.get $own) (i32.const 96)) (drop (call $handle))
         (call $put (i32.const 513) (i32.const 1) (global.get $own) (i32.const 96)) (call $show)
         (call $put (i32.const 512) (i32.const 1) (global.get $own) (i32.const 96)) (call $show)",
    );
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&process_engine(), &guest, &bench);
    for _ in 0..2 {
        let columns = program.predict(&batch()).unwrap();
        assert_eq!(columns.len(), 1);
        assert_eq!(columns[0].0, "y");
        assert_eq!(columns[0].1.to_values(), Values::F32(vec![10.0, 20.0, 30.0]));
    }
    let told = ["column \"y\" was put already", "column \"x\", where the manifest promises y"];
    assert_eq!(bench.lines(), [told, told].concat());
}

#[test]
fn predictions_fit_the_rows_of_the_batch() {
    let guest = with_buffers(
        "predict",
        "(call $alloc (i32.const 0) (i64.const 4) (i32.const 96)) (global.set $own (call $handle))
         (call $put (i32.const 513) (i32.const 1) (global.get $own) (i32.const 96)) (call $show)",
    );
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&process_engine(), &guest, &bench);
    assert!(program.predict(&batch()).unwrap().is_empty());
    assert_eq!(bench.lines(), ["column \"y\" has 4 values for 3 rows"]);
}

#[test]
fn output_belongs_to_predict() {
    let guest =
        with_buffers("step", "(call $put (i32.const 513) (i32.const 1) (global.get $own) (i32.const 96)) (call $show)");
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&process_engine(), &guest, &bench);
    program.step(&batch()).unwrap();
    assert_eq!(bench.lines(), ["output is for predict, and this is step"]);
}

#[test]
fn a_batchs_columns_cannot_be_written() {
    let guest = with_buffers(
        "step",
        "(call $write (global.get $x) (i64.const 0) (i32.const 128) (i32.const 1) (i32.const 96)) (call $show)
         (call $copy (global.get $x) (global.get $own) (i32.const 96)) (call $show)
         (call $scale (f64.const 2) (global.get $x) (i32.const 96)) (call $show)",
    );
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&process_engine(), &guest, &bench);
    let batch = batch();
    program.step(&batch).unwrap();
    assert_eq!(bench.lines(), ["a column of a batch is read-only: copy it into a buffer of your own"; 3]);
    assert_eq!(*batch.columns["x"].values, Values::F32(vec![1.0, 2.0, 3.0]));
}

#[test]
fn windows_of_buffers_are_bounded() {
    let guest = with_buffers(
        "step",
        "(call $read (global.get $x) (i64.const 1) (i32.const 3) (i32.const 96)) (call $show)
         (call $read (global.get $x) (i64.const -1) (i32.const 3) (i32.const 96)) (call $show)
         (call $read (global.get $x) (i64.const 0) (i32.const -1) (i32.const 96)) (call $show)
         (call $write (global.get $own) (i64.const 2) (i32.const 128) (i32.const 2) (i32.const 96)) (call $show)
         (call $slice (global.get $own) (i64.const 1) (i64.const -1) (i32.const 96)) (call $show)
         (call $slice (global.get $own) (i64.const 1) (i64.const 2) (i32.const 96)) (call $show)",
    );
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&process_engine(), &guest, &bench);
    program.step(&batch()).unwrap();
    let told = [
        "window 1+3 of a buffer of 3 values",
        "window 18446744073709551615+3 of a buffer of 3 values",
        "4294967295 values of f32 in one call",
        "window 2+2 of a buffer of 3 values",
        "slice 1+18446744073709551615 of a buffer of 3 values",
        "x",
    ];
    let lines = bench.lines();
    assert_eq!(lines.len(), told.len());
    for (line, told) in lines.iter().zip(told) {
        assert!(line.starts_with(told), "{told:?}: {line:?}");
    }
}

#[test]
fn windows_of_one_array_may_meet_in_one_call() {
    // dot(own, own) and own ← own take one lock once; scale's target is no input.
    let guest = with_buffers(
        "step",
        "(call $copy (global.get $own) (global.get $x) (i32.const 96)) (drop (call $handle))
         (call $copy (global.get $own) (global.get $own) (i32.const 96)) (drop (call $handle))
         (call $dot (global.get $own) (global.get $own) (i32.const 96))
         (if (i32.load8_u (i32.const 96)) (then unreachable))
         (call $metric (i32.const 520) (i32.const 4) (f64.load (i32.const 104)) (f64.const 1))",
    );
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&process_engine(), &guest, &bench);
    program.step(&batch()).unwrap();
    assert_eq!(bench.ear.lock().unwrap().metrics, [("loss".to_owned(), 14.0, 1.0)]);
}

#[test]
fn local_state_outlives_the_instance_and_keeps_its_type() {
    let guest = with_buffers(
        "step",
        "(call $local (i32.const 514) (i32.const 6) (i32.const 0) (i64.const 3) (i32.const 96))
         (call $copy (call $handle) (global.get $x) (i32.const 96)) (drop (call $handle))
         (call $local (i32.const 514) (i32.const 6) (i32.const 2) (i64.const 5) (i32.const 96)) (call $show)",
    );
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&process_engine(), &guest, &bench);
    program.step(&batch()).unwrap();
    drop(program);
    assert_eq!(bench.local.snapshot()["counts"], Values::F32(vec![1.0, 2.0, 3.0]));
    assert_eq!(bench.lines(), ["local state \"counts\" holds f32, not i32"]);
}

#[test]
fn host_calls_are_counted() {
    let bench = Bench::new(1000, 4);
    let component = process_engine().load(&Guest::with_table(READ_AND_ADD).build(), "x.wasm").unwrap();
    let mut instance = component.instantiate(bench.host(), "{}").unwrap();
    instance.step(&batch()).unwrap();
    let stats = instance.stats();
    assert_eq!((stats.calls, stats.bytes_read, stats.bytes_added), (3, 16, 32));
    assert!(stats.nanos > 0);
}
