//! Guests that misbehave once they run: each gets a message that says what, where and what to do, and harms nothing.

#![allow(missing_docs)]

mod support;

use slackline_core::ports::Plugin;
use slackline_core::{PluginError, PluginErrorKind};
use slackline_sandbox::{Engine, EngineConfig, Interrupt};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use support::{Bench, Guest, batch, epoch_engine, process_engine, run};

/// The error of the guest's first step.
fn step(engine: &Engine, guest: &Guest, bench: &Bench) -> PluginError {
    let (_, mut program) = run(engine, guest, bench);
    program.step(&batch()).expect_err("the step fails")
}

#[track_caller]
fn check(guest: &Guest, kind: PluginErrorKind, parts: &[&str]) {
    let e = step(&epoch_engine(), guest, &Bench::new(1000, 4));
    assert_eq!(e.kind, kind, "{e}");
    for part in parts {
        assert!(e.message.contains(part), "{part:?} is not in: {e}");
    }
}

/// Runs a step that must go well, and checks what the guest was told.
#[track_caller]
fn check_told(guest: &Guest, told: &[&str]) {
    let bench = Bench::new(1000, 4);
    let (_, mut program) = run(&epoch_engine(), guest, &bench);
    program.step(&batch()).unwrap_or_else(|e| panic!("{e}"));
    let lines = bench.lines();
    assert_eq!(lines.len(), told.len(), "{lines:?}");
    for (line, told) in lines.iter().zip(told) {
        assert!(line.contains(told), "{told:?} is not in {line:?}");
    }
}

#[test]
fn a_trap_names_the_export_and_the_guests_functions() {
    let guest = Guest::new()
        .with("functions", "(func $divide (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))")
        .with("step", "(drop (call $divide (i32.const 0)))");
    check(
        &guest,
        PluginErrorKind::Trap,
        &["plugin bad trapped in step", "divide by zero", "\n  at divide", "\n  at step"],
    );
}

#[test]
fn a_panic_line_becomes_the_message_of_the_trap() {
    let line = "panic: panicked at src/lib.rs:42:13: index out of bounds";
    let guest = Guest::new()
        .with("imports", support::TABLE_IMPORTS)
        .with("data", &format!("(data (i32.const 600) \"{line}\")"))
        .with("step", &format!("(call $log (i32.const 3) (i32.const 600) (i32.const {})) unreachable", line.len()));
    check(
        &guest,
        PluginErrorKind::Trap,
        &["plugin bad trapped in step: panicked at src/lib.rs:42:13: index out of bounds\n  at step"],
    );
}

#[test]
fn a_failed_instance_refuses_further_calls() {
    let (_, mut program) = run(&epoch_engine(), &Guest::new().with("step", "unreachable"), &Bench::new(1, 1));
    program.step(&batch()).unwrap_err();
    let e = program.step(&batch()).unwrap_err();
    assert!(e.message.contains("failed before, and its instance is gone"), "{e}");
    assert!(program.save().is_err());
    assert_eq!(program.memory_bytes(), 0);
}

#[test]
fn an_endless_loop_is_interrupted_by_epoch_checks() {
    let mut config = EngineConfig::new(Interrupt::Epoch);
    config.limits.step_deadline = Duration::from_millis(100);
    let engine = Engine::new(config).unwrap();
    let began = Instant::now();
    let e = step(&engine, &Guest::new().with("step", "(loop $l (br $l))"), &Bench::new(1, 1));
    assert_eq!(e.kind, PluginErrorKind::Deadline, "{e}");
    assert!(e.message.contains("outlived its deadline in step on worker 0"), "{e}");
    assert!(e.message.contains("[limits] step_deadline"), "{e}");
    assert!(began.elapsed() >= Duration::from_millis(100));
}

#[test]
fn an_endless_loop_in_an_expendable_process_is_reported_to_its_owner() {
    let (tell, told) = channel();
    let tell: Mutex<mpsc::Sender<String>> = Mutex::new(tell);
    let on_overrun = Arc::new(move |o: &slackline_sandbox::Overrun| {
        tell.lock().unwrap().send(o.to_string()).unwrap();
    });
    let mut config = EngineConfig::new(Interrupt::Process(on_overrun));
    config.limits.step_deadline = Duration::from_millis(50);
    let engine = Engine::new(config).unwrap();
    // A loop that ends after a while: the callback here does not end the process, and the test must.
    let slow = "(loop $l (local.set $n (i64.add (local.get $n) (i64.const 1)))
        (i64.store (i32.const 256) (local.get $n))
        (br_if $l (i64.lt_u (local.get $n) (i64.const 2000000000))))";
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&engine, &Guest::new().with("step", slow), &bench);
    let stepping = std::thread::spawn(move || program.step(&batch()));
    let message = told.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(message.contains("plugin bad outlived its deadline in step"), "{message}");
    stepping.join().unwrap().unwrap();
}

#[test]
fn waiting_at_the_gate_is_not_the_plugins_time() {
    let mut config = EngineConfig::new(Interrupt::Epoch);
    config.limits.step_deadline = Duration::from_millis(60);
    let engine = Engine::new(config).unwrap();
    let bench = Bench::new(1000, 4);
    bench.tables.lock().unwrap().delay = Duration::from_millis(200);
    let guest = Guest::with_table(
        "(call $get (call $table) (i32.const 128) (i32.const 1) (i32.const 96))
         (local.set $i (i32.const 0))
         (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))",
    );
    let (_, mut program) = run(&engine, &guest, &bench);
    program.step(&batch()).unwrap();
}

#[test]
fn a_cancelled_run_interrupts_a_loop_after_a_grace() {
    let mut config = EngineConfig::new(Interrupt::Epoch);
    config.limits.cancel_grace = Duration::from_millis(20);
    let engine = Engine::new(config).unwrap();
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&engine, &Guest::new().with("step", "(loop $l (br $l))"), &bench);
    bench.cancelled.store(true, Ordering::Relaxed);
    let e = program.step(&batch()).unwrap_err();
    assert_eq!(e.kind, PluginErrorKind::Cancelled, "{e}");
}

#[test]
fn memory_without_end_is_refused_with_the_limit_and_how_to_raise_it() {
    let grow = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 64)) (i32.const -1)))) unreachable";
    check(
        &Guest::new().with("step", grow),
        PluginErrorKind::Limit,
        &["hit its memory limit in step", "64.0 MiB are allowed", "`[limits] memory`"],
    );
}

#[test]
fn tables_of_references_count_as_memory() {
    let guest = Guest::new().with("functions", "(table $refs 1 funcref)").with(
        "step",
        "(loop $l (br_if $l (i32.ne (table.grow $refs (ref.null func) (i32.const 65536)) (i32.const -1)))) unreachable",
    );
    check(&guest, PluginErrorKind::Limit, &["hit its memory limit in step"]);
}

#[test]
fn endless_recursion_is_a_trap() {
    let guest = Guest::new()
        .with("functions", "(func $deep (param i32) (result i32) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (local.get 0)))")
        .with("step", "(drop (call $deep (i32.const 0)))");
    check(&guest, PluginErrorKind::Trap, &["call stack exhausted", "more frames"]);
}

#[test]
fn unequal_lists_are_an_error_for_the_guest() {
    check_told(
        &Guest::with_table(
            "(call $inc (call $table) (i32.const 128) (i32.const 2) (i32.const 160) (i32.const 7) (i32.const 96)) (call $show)",
        ),
        &["table \"w\" was given 7 deltas, where 8 belong to the rows"],
    );
}

#[test]
fn rows_beyond_the_table_are_an_error_for_the_guest() {
    check_told(
        &Guest::with_table(
            "(i64.store (i32.const 136) (i64.const 1000))
             (call $get (call $table) (i32.const 128) (i32.const 2) (i32.const 96)) (call $show)",
        ),
        &["row 1000 (place 1 of 2) of table \"w\", which has rows 0 to 999"],
    );
}

#[test]
fn lists_that_do_not_lie_in_memory_end_the_call() {
    check(
        &Guest::with_table("(call $get (call $table) (i32.const 128) (i32.const 0x7fffffff) (i32.const 96))"),
        PluginErrorKind::Trap,
        &["plugin bad broke the contract in step", "out of bounds"],
    );
}

#[test]
fn one_call_moves_a_bounded_number_of_bytes() {
    let mut config = EngineConfig::new(Interrupt::Epoch);
    config.limits.call_bytes = 1 << 20;
    let engine = Engine::new(config).unwrap();
    // 131,072 row ids of 8 bytes are the bound exactly, and the rows behind them are more.
    let guest = Guest::with_table(
        "(drop (memory.grow (i32.const 64)))
         (call $get (call $table) (i32.const 131072) (i32.const 131072) (i32.const 96)) (call $show)",
    );
    let bench = Bench::new(1000, 4);
    let (_, mut program) = run(&engine, &guest, &bench);
    program.step(&batch()).unwrap();
    assert!(bench.lines()[0].contains("524288 values of f32 in one call"), "{:?}", bench.lines());
    // One more does not even cross.
    let guest = Guest::with_table(
        "(drop (memory.grow (i32.const 64)))
         (call $get (call $table) (i32.const 131072) (i32.const 131073) (i32.const 96))",
    );
    let e = step(&engine, &guest, &bench);
    assert_eq!(e.kind, PluginErrorKind::Limit, "{e}");
}

const ALLOC: &str =
    r#"(import "slackline:plugin/buffers@0.1.0" "[static]buffer.alloc" (func $alloc (param i32 i64 i32)))"#;

#[test]
fn handles_without_end_are_refused() {
    // Ends when `alloc` answers with an error, and traps unless it says `limit-exceeded(handles)`.
    let guest = Guest::new().with("imports", ALLOC).with(
        "step",
        "(loop $l (call $alloc (i32.const 6) (i64.const 1) (i32.const 96)) (br_if $l (i32.eqz (i32.load8_u (i32.const 96)))))
         (if (i32.ne (i32.load8_u (i32.const 100)) (i32.const 1)) (then unreachable))
         (if (i32.ne (i32.load8_u (i32.const 104)) (i32.const 1)) (then unreachable))",
    );
    let (_, mut program) = run(&epoch_engine(), &guest, &Bench::new(1, 1));
    program.step(&batch()).unwrap();
}

#[test]
fn handles_that_the_guest_makes_itself_are_bounded_too() {
    check(
        &Guest::new().with("step", "(loop $l (drop (call $new-program (i32.const 1))) (br $l))"),
        PluginErrorKind::Limit,
        &["broke the contract in step", "handle limit exceeded"],
    );
}

#[test]
fn a_handle_that_was_never_given_ends_the_call() {
    check(
        &Guest::with_table("(call $get (i32.const 99) (i32.const 128) (i32.const 1) (i32.const 96))"),
        PluginErrorKind::Trap,
        &["broke the contract in step: unknown handle index 99"],
    );
}

#[test]
fn buffers_count_as_memory_and_absurd_ones_are_refused() {
    for len in ["0xffffffffffffffff", "0x2000000000000001", "67000000"] {
        let guest = Guest::new().with("imports", ALLOC).with(
            "step",
            &format!(
                "(call $alloc (i32.const 1) (i64.const {len}) (i32.const 96))
                 (if (i32.ne (i32.load8_u (i32.const 100)) (i32.const 1)) (then unreachable))
                 (if (i32.ne (i32.load8_u (i32.const 104)) (i32.const 0)) (then unreachable))"
            ),
        );
        let (_, mut program) = run(&epoch_engine(), &guest, &Bench::new(1, 1));
        program.step(&batch()).unwrap_or_else(|e| panic!("{len}: {e}"));
    }
}

#[test]
fn a_buffer_that_is_dropped_gives_its_bytes_back() {
    let drop_import = r#"(import "slackline:plugin/buffers@0.1.0" "[resource-drop]buffer" (func $free (param i32)))"#;
    let guest = Guest::new().with("imports", ALLOC).with("imports", drop_import).with(
        "step",
        // 100 × 40 MB where 64 MiB are allowed.
        "(loop $l (call $alloc (i32.const 1) (i64.const 5000000) (i32.const 96))
           (if (i32.load8_u (i32.const 96)) (then unreachable))
           (call $free (i32.load (i32.const 100)))
           (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))",
    );
    let (_, mut program) = run(&epoch_engine(), &guest, &Bench::new(1, 1));
    program.step(&batch()).unwrap();
    assert!(program.memory_bytes() < 1 << 20);
}

#[test]
fn a_flooded_log_is_cut_with_one_notice_a_call() {
    let guest = Guest::with_table(
        "(loop $l (call $log (i32.const 1) (i32.const 512) (i32.const 1))
           (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))",
    );
    let bench = Bench::new(1000, 4);
    let (_, mut program) = run(&epoch_engine(), &guest, &bench);
    for _ in 0..2 {
        program.step(&batch()).unwrap();
    }
    let lines = bench.lines();
    assert_eq!(lines.len(), 2 * 257);
    assert_eq!(lines[256], "log limit reached, 744 lines dropped");
    assert_eq!(lines[513], lines[256]);
}

#[test]
fn a_long_line_is_cut() {
    let guest = Guest::with_table("(call $log (i32.const 1) (i32.const 65536) (i32.const 100000))")
        .with("data", "(data (i32.const 65536) \"\\c3\\a4\\c3\\a4\")");
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&epoch_engine(), &guest, &bench);
    program.step(&batch()).unwrap();
    assert!(bench.lines()[0].len() <= 4096 + '…'.len_utf8());
}

#[test]
fn text_that_is_no_utf8_ends_the_call() {
    let guest = Guest::with_table("(call $log (i32.const 1) (i32.const 600) (i32.const 2))")
        .with("data", "(data (i32.const 600) \"\\ff\\fe\")");
    check(&guest, PluginErrorKind::Trap, &["broke the contract in step", "utf-8"]);
}

const METRIC: &str = r#"(import "slackline:plugin/telemetry@0.1.0" "metric" (func $metric (param i32 i32 f64 f64)))"#;

#[test]
fn metrics_must_be_declared_and_nan_is_for_the_driver_to_judge() {
    let data = "(data (i32.const 600) \"lossy\")";
    let report = |len: u32| {
        Guest::new()
            .with("imports", METRIC)
            .with("data", data)
            .with("step", &format!("(call $metric (i32.const 600) (i32.const {len}) (f64.const nan) (f64.const 2))"))
    };
    check(&report(5), PluginErrorKind::Failed, &["reported metric \"lossy\", where its manifest declares loss"]);
    let bench = Bench::new(1, 1);
    let (_, mut program) = run(&epoch_engine(), &report(4), &bench);
    program.step(&batch()).unwrap();
    let metrics = &bench.ear.lock().unwrap().metrics;
    assert!(metrics[0].0 == "loss" && metrics[0].1.is_nan() && metrics[0].2 == 2.0, "{metrics:?}");
}

#[test]
fn random_words_are_asked_for_in_bounds() {
    let import = r#"(import "slackline:plugin/run@0.1.0" "random-u64" (func $random (param i32 i32)))"#;
    let guest = Guest::new().with("imports", import).with("step", "(call $random (i32.const 65537) (i32.const 96))");
    check(&guest, PluginErrorKind::Limit, &["65537 random words", "65536 is the most"]);
}

#[test]
fn evaluation_must_not_change_the_model() {
    let add = "(call $inc (call $table) (i32.const 128) (i32.const 1) (i32.const 160) (i32.const 4) (i32.const 96)) (call $show)";
    let bench = Bench::new(1000, 4);
    let (_, mut program) = run(&epoch_engine(), &Guest::with_table("").with("evaluate", add), &bench);
    program.evaluate(&batch()).unwrap();
    assert_eq!(bench.lines(), ["evaluate must not change the model, and adds to table \"w\""]);
}

#[test]
fn what_save_gives_is_bounded() {
    let save = |len: u32| {
        let body = format!(
            "(drop (memory.grow (i32.const 400))) (i32.store (i32.const 68) (i32.const 0)) (i32.store (i32.const 72) (i32.const {len}))"
        );
        let (_, mut program) = run(&epoch_engine(), &Guest::new().with("save", &body), &Bench::new(1, 1));
        program.save()
    };
    assert_eq!(save(100).unwrap().len(), 100);
    let e = save((16 << 20) + 1).unwrap_err();
    assert_eq!(e.kind, PluginErrorKind::Limit);
    assert!(e.message.contains("saved 16777217 bytes, where 16777216 are allowed"), "{e}");
    let e = save(u32::MAX).unwrap_err();
    assert!(e.message.contains("broke the contract in save"), "{e}");
}

/// Answers with `invalid` and the `len` bytes of text at 600.
fn refuse(len: usize) -> String {
    format!(
        "(drop (call $ok)) (i32.store8 (i32.const 64) (i32.const 1)) (i32.store8 (i32.const 68) (i32.const 3))
         (i32.store (i32.const 72) (i32.const 600)) (i32.store (i32.const 76) (i32.const {len})) (return (i32.const 64))"
    )
}

#[test]
fn a_refused_restore_says_who_wrote_the_state() {
    let guest = Guest::new().with("data", "(data (i32.const 600) \"rank changed\")").with("restore", &refuse(12));
    let component = epoch_engine().load(&guest.build(), "guest.wasm").unwrap();
    let e = component.restore(Bench::new(1, 1).host(), "blake3:abc", &[1, 2], "{}").err().unwrap();
    assert_eq!(e.kind, PluginErrorKind::Failed);
    assert_eq!(
        e.message,
        "plugin bad answered restore with an error: invalid: rank changed; the state was written by blake3:abc, and stays as it is"
    );
}

#[test]
fn an_error_of_the_plugins_own_is_passed_on() {
    let guest = Guest::new().with("data", "(data (i32.const 600) \"no labels\")").with("create", &refuse(9));
    let component = epoch_engine().load(&guest.build(), "guest.wasm").unwrap();
    let e = component.create(Bench::new(1, 1).host(), "{}").err().unwrap();
    assert_eq!(e.message, "plugin bad answered create with an error: invalid: no labels");
}

#[test]
fn one_instances_trap_leaves_another_alone() {
    let engine = process_engine();
    let bench = Bench::new(1000, 4);
    let guest = Guest::new()
        .with("step", "(if (i32.eqz (local.get $self)) (then unreachable))")
        .with("end-clock", "unreachable");
    let component = engine.load(&guest.build(), "guest.wasm").unwrap();
    let mut one = component.create(bench.host(), "{}").unwrap();
    let mut two = component.create(bench.host(), "{}").unwrap();
    assert!(one.end_clock(0).is_err());
    two.step(&batch()).unwrap();
}
