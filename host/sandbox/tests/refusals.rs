//! Bytes that are no plugin, and plugins that say something impossible: refused before anything runs, by name.

#![allow(missing_docs)]

mod support;

use slackline_core::ports::Plugin;
use slackline_core::{Facts, PluginErrorKind};
use slackline_sandbox::{Engine, EngineConfig, Interrupt};
use std::sync::Arc;
use std::time::Duration;
use support::{Bench, Guest, MANIFEST, epoch_engine, process_engine};

#[track_caller]
fn check_bytes(bytes: &[u8], parts: &[&str]) {
    let e = process_engine().load(bytes, "plugins/x.wasm").err().expect("it is refused");
    assert_eq!(e.kind, PluginErrorKind::Refused, "{e}");
    assert!(e.message.starts_with("plugins/x.wasm: "), "{e}");
    for part in parts {
        assert!(e.message.contains(part), "{part:?} is not in: {e}");
    }
}

#[track_caller]
fn check(guest: &Guest, parts: &[&str]) {
    check_bytes(&guest.build(), parts);
}

#[test]
fn bytes_of_another_kind_are_named() {
    check_bytes(b"", &["this is not WebAssembly"]);
    check_bytes(b"#!/bin/sh", &["this is not WebAssembly"]);
    check_bytes(&Guest::new().core_module(), &["this is a core module; build it with `slackline plugin build`"]);
    check_bytes(b"\x7fELF\x02\x01\x01", &["native code", "never taken from outside"]);
    check_bytes(b"\0asm\x0d\0\x01\0\xff\xff", &["does not validate"]);
    let mut torn = Guest::new().build();
    torn.truncate(torn.len() / 2);
    check_bytes(&torn, &["does not validate"]);
}

#[test]
fn precompiled_code_is_refused() {
    let wasm = Guest::new().build();
    let code = wasmtime::Engine::default().precompile_component(&wasm).unwrap();
    check_bytes(&code, &["native code", ".cwasm"]);
}

#[test]
fn a_component_beyond_the_size_limit_is_refused() {
    let mut config = EngineConfig::new(Interrupt::Epoch);
    config.component_bytes = 1024;
    let e = Engine::new(config).unwrap().load(&Guest::new().build(), "big.wasm").err().unwrap();
    assert!(e.message.starts_with("big.wasm: the component has "), "{e}");
    assert!(e.message.contains("where 1.0 KiB are allowed"), "{e}");
}

#[test]
fn an_import_that_is_not_granted_is_named() {
    let text = r#"(component (import "wasi:filesystem/types@0.2.0" (instance (export "open" (func)))))"#;
    check_bytes(
        &wat::parse_str(text).unwrap(),
        &["imports wasi:filesystem/types@0.2.0, which this host does not grant", "slackline:plugin/tables"],
    );
    let text = r#"(component (import "slackline:plugin/run@0.2.0" (instance (export "now" (func (result u32))))))"#;
    check_bytes(
        &wat::parse_str(text).unwrap(),
        &["imports slackline:plugin/run@0.2.0, where this host grants slackline:plugin/run@0.1.0"],
    );
}

#[test]
fn an_import_of_another_type_is_shown_with_both() {
    let text = r#"(component (import "slackline:plugin/run@0.1.0" (instance (export "now" (func (result u64))))))"#;
    check_bytes(
        &wat::parse_str(text).unwrap(),
        &["imports slackline:plugin/run@0.1.0 now as `func() -> u64`, where this host grants `func() -> u32`"],
    );
    let text = r#"(component (import "slackline:plugin/run@0.1.0" (instance (export "sleep" (func)))))"#;
    check_bytes(&wat::parse_str(text).unwrap(), &["run@0.1.0 sleep, which this host does not have"]);
}

#[test]
fn an_export_of_another_type_is_shown_with_both() {
    let guest = Guest::new()
        .against("step: func(data: borrow<batch>)", "step: func(data: borrow<batch>, n: u32)")
        .with("step-params", "(param $extra i32)");
    check(
        &guest,
        &[
            "export `program.step` of slackline:plugin/update@0.1.0 has type \
             `func(self: borrow<program>, data: borrow<batch>, n: u32) -> result<_, error>`",
            "expected `func(self: borrow<program>, data: borrow<batch>) -> result<_, error>`",
        ],
    );
}

#[test]
fn a_component_without_the_worlds_exports_is_refused() {
    check_bytes(
        &wat::parse_str("(component)").unwrap(),
        &["does not export slackline:plugin/about@0.1.0", "data-parallel"],
    );
}

#[test]
fn threads_and_wide_memories_do_not_validate() {
    for core in ["(memory 1 1 shared)", "(memory i64 1)"] {
        let text = format!("(component (core module {core}))");
        check_bytes(&wat::parse_str(&text).unwrap(), &["does not validate"]);
    }
}

#[test]
fn impossible_manifests_are_refused() {
    check(&Guest::new().with("manifest", "{}"), &["the manifest: missing field `name`"]);
    check(&Guest::new().with("manifest", "{"), &["the manifest is no JSON"]);
    let typo = MANIFEST.replace("\"predicts\"", "\"predict\"");
    check(&Guest::new().with("manifest", &typo), &["has a key `predict` that this host does not know"]);
    let schema = MANIFEST.replace("\"minimum\":1", "\"minimum\":\"1\"");
    check(
        &Guest::new().with("manifest", &schema),
        &["the manifest's params: #/properties/rank/minimum cannot be \"1\""],
    );
}

#[test]
fn describe_has_limits_of_its_own() {
    let e = epoch_engine().load(&Guest::new().with("describe", "unreachable").build(), "x.wasm").err().unwrap();
    assert!(e.message.contains("plugin x.wasm trapped in describe"), "{e}");
    let mut config = EngineConfig::new(Interrupt::Epoch);
    config.limits.step_deadline = Duration::from_millis(50);
    let endless = Guest::new().with("describe", "(loop $l (br $l))").build();
    let e = Engine::new(config).unwrap().load(&endless, "x.wasm").err().unwrap();
    assert_eq!(e.kind, PluginErrorKind::Deadline, "{e}");
}

#[test]
fn describe_reaches_nothing() {
    let guest = Guest::with_table("").with("describe", "(drop (call $table))");
    let e = process_engine().load(&guest.build(), "x.wasm").err().unwrap();
    assert!(e.message.contains("trapped in describe"), "{e}");
}

#[test]
fn impossible_plans_are_refused() {
    let guest = Guest::new().with("plan", r#"{"tables":[{"name":"w","dtype":"u8","rows":1,"width":1}]}"#);
    let component = process_engine().load(&guest.build(), "x.wasm").unwrap();
    let e = component.plan("{}", &Facts::default()).unwrap_err();
    assert_eq!(e.kind, PluginErrorKind::Refused);
    assert!(e.message.contains("the plan of plugin bad: table \"w\" holds u8"), "{e}");
}

#[test]
fn plans_come_back_as_tables() {
    let component = process_engine().load(&Guest::new().build(), "x.wasm").unwrap();
    let plan = component.plan("{}", &Facts::default()).unwrap();
    assert_eq!((plan.tables[0].name.as_str(), plan.tables[0].rows), ("w", 1000));
}

#[test]
fn parameters_are_checked_before_the_plugin_sees_them() {
    let component = process_engine().load(&Guest::new().build(), "x.wasm").unwrap();
    for (params, part) in [
        (r#"{"rnak": 3}"#, "parameters of plugin bad: `rnak` is not known: there are rank; did you mean `rank`?"),
        (r#"{"rank": 0}"#, "`rank` must be at least 1, and is 0"),
        ("[]", "expected an object"),
    ] {
        let e = component.create(Bench::new(1, 1).host(), params).err().unwrap();
        assert!(e.message.contains(part), "{e}");
    }
    assert_eq!(component.effective_params("{}").unwrap().to_string(), r#"{"rank":16}"#);
}

#[test]
fn inspection_shows_what_it_is() {
    let bytes = Guest::with_table("(drop (call $table))").build();
    let component = process_engine().load(&bytes, "x.wasm").unwrap();
    let seen = component.inspect();
    assert_eq!(seen.digest, format!("blake3:{}", blake3::hash(&bytes)));
    assert_eq!(seen.size, bytes.len());
    assert!(seen.imports.contains(&"slackline:plugin/tables@0.1.0".to_owned()), "{:?}", seen.imports);
    assert!(!seen.imports.contains(&"slackline:plugin/kernels@0.1.0".to_owned()), "{:?}", seen.imports);
    assert!(seen.exports.contains(&"slackline:plugin/update@0.1.0".to_owned()), "{:?}", seen.exports);
    assert_eq!(seen.manifest.name, "bad");
}

#[test]
fn compiled_code_is_kept_by_interrupt_and_compiled_again_when_torn() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = Guest::new().build();
    let load = |interrupt: Interrupt| {
        let mut config = EngineConfig::new(interrupt);
        config.cache_dir = Some(dir.path().into());
        Engine::new(config).unwrap().load(&bytes, "x.wasm").unwrap().digest()
    };
    let entries = || {
        let mut paths: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "aot"));
        paths
    };
    let digest = load(Interrupt::Epoch);
    let [epoch] = &entries()[..] else { panic!("one entry") };
    let code = std::fs::read(epoch).unwrap();
    assert_eq!(load(Interrupt::Epoch), digest);
    load(Interrupt::Process(Arc::new(|_| ())));
    assert_eq!(entries().len(), 2, "code with checks and code without are kept apart");
    std::fs::write(epoch, &code[..code.len() - 1]).unwrap();
    assert_eq!(load(Interrupt::Epoch), digest);
    assert_eq!(std::fs::read(epoch).unwrap().len(), code.len(), "the torn entry is written anew");
}
