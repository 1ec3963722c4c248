//! Bytes that are no plugin, and components that ask for or offer what the contract does not have: refused before
//! anything runs, with exit code 4.

use slackline_blackbox::{lines, misfit_job, refused, said, say};
use std::path::Path;

/// That the bytes are refused by `run` and by `plugin inspect`, and that nothing of the state folder is hurt.
#[track_caller]
fn check(bytes: &[u8], words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("evil.wasm"), bytes).unwrap();
    check_file(dir.path(), words);
}

#[track_caller]
fn check_file(dir: &Path, words: &[&str]) {
    let job = misfit_job(dir, "honest", 0);
    said(dir, &format!("run {job} --json --state s --clocks 2"));
    let words = [&["evil.wasm"], words].concat();
    for command in [
        format!("run {job} --state new --set job.plugin=./evil.wasm"),
        format!("run {job} --state s --resume --set job.plugin=./evil.wasm"),
        "plugin inspect evil.wasm".to_owned(),
    ] {
        refused(&say(dir, &command), 4, &words);
    }
    let out = said(dir, &format!("run {job} --json --state s --resume --clocks 4"));
    assert_eq!(lines(&out).last().unwrap()["metrics"]["counted"], 160.0);
}

#[track_caller]
fn check_text(component: &str, words: &[&str]) {
    check(&wat::parse_str(component).unwrap_or_else(|e| panic!("{e}")), words);
}

#[test]
fn bytes_of_another_kind_are_named() {
    check(b"", &["not WebAssembly"]);
    check(b"#!/bin/sh\necho\n", &["not WebAssembly"]);
    check(b"\x7fELF\x02\x01\x01 and more", &["native code"]);
    check(b"\0asm\x0d\0\x01\0\xff\xff\xff\xff", &["does not validate"]);
    check(&wat::parse_str("(module)").unwrap(), &["core module", "slackline plugin build"]);
}

#[test]
fn half_a_component_is_refused() {
    let whole = std::fs::read(slackline_blackbox::misfit()).unwrap();
    check(&whole[..whole.len() / 2], &["does not validate"]);
}

#[test]
fn a_component_that_is_too_large_is_refused_with_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("evil.wasm")).unwrap();
    std::io::Write::write_all(&mut &file, b"\0asm\x0d\0\x01\0").unwrap();
    // Sparse: it takes no disk.
    file.set_len(1 << 30).unwrap();
    check_file(dir.path(), &["allowed"]);
}

#[test]
fn an_import_that_is_not_granted_is_named() {
    check_text(
        r#"(component (import "wasi:filesystem/types@0.2.0" (instance (export "open" (func)))))"#,
        &["imports wasi:filesystem/types@0.2.0", "does not grant"],
    );
    check_text(
        r#"(component (import "slackline:plugin/run@0.2.0" (instance (export "now" (func (result u32))))))"#,
        &["slackline:plugin/run@0.2.0", "slackline:plugin/run@0.1.0"],
    );
}

#[test]
fn an_import_of_another_type_is_shown_with_both() {
    check_text(
        r#"(component (import "slackline:plugin/run@0.1.0" (instance (export "now" (func (result u64))))))"#,
        &["now", "`func() -> u64`", "`func() -> u32`"],
    );
}

#[test]
fn an_export_that_is_missing_or_of_another_type_is_named() {
    check_text("(component)", &["does not export slackline:plugin/about@0.1.0"]);
    check_text(
        r#"(component
             (core module $m (func (export "d") (result i32) i32.const 0))
             (core instance $i (instantiate $m))
             (func $d (result u32) (canon lift (core func $i "d")))
             (instance $about (export "describe" (func $d)))
             (export "slackline:plugin/about@0.1.0" (instance $about)))"#,
        &["describe", "`func() -> u32`", "`func() -> string`"],
    );
}

#[test]
fn a_plugin_that_is_nowhere_is_named_with_those_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    for (plugin, words) in [
        ("no-such.wasm", &["no-such.wasm"][..]),
        ("lad", &["lad", "lda, mf, mlr"]),
        ("mlr@3", &["mlr@3"]),
        (&format!("blake3:{}", "0".repeat(64)), &["blake3:000"]),
    ] {
        refused(&say(dir.path(), &format!("run {job} --state s --set job.plugin={plugin}")), 4, words);
    }
}
