//! A plugin from nothing to a trained model, as its author goes: new, test, build, inspect, run; in an empty folder far
//! from the repository.

use slackline_blackbox::{done, root, slackline};
use std::path::Path;
use std::process::{Command, Output};

/// The binary in `dir`, with cargo kept from the network: what a plugin needs is what this workspace has fetched.
fn go(dir: &Path, target: &Path, words: &str) -> Output {
    let mut command = slackline(dir, &words.split_whitespace().collect::<Vec<_>>());
    command.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", target);
    let out = command.output().expect("the binary starts");
    assert!(out.status.success(), "{words}: {}", String::from_utf8_lossy(&out.stderr));
    out
}

#[test]
fn a_new_plugin_tests_builds_and_trains_as_it_is() {
    let toolchain = root().join("scripts/guest-toolchain.sh");
    if !Command::new(toolchain).arg("--no-install").output().is_ok_and(|out| out.status.success()) {
        println!("skipped: no guest toolchain is here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // What is compiled stays beside the other tests, so that it is compiled once.
    let exe = std::env::current_exe().unwrap();
    let target = exe.ancestors().nth(3).unwrap().join("new-plugin");
    go(dir.path(), &target, "plugin new my-model");
    let project = dir.path().join("my-model");
    go(&project, &target, "plugin test");
    go(&project, &target, "plugin build --release --quiet");
    let shown = go(&project, &target, "plugin inspect target/component/my_model.wasm");
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("learning_rate") && shown.contains("train_rmse") && !shown.contains("wasi:"), "{shown}");
    let rows: String = (0..500)
        .map(|i| {
            let (a, b) = (f64::from(i % 23) / 11.0 - 1.0, f64::from(i % 17) / 8.0 - 1.0);
            format!("{a},{b},{}\n", 2.0 * a - b + 0.5)
        })
        .collect();
    std::fs::write(project.join("train.csv"), format!("x0,x1,y\n{rows}")).unwrap();
    let end = done(&go(&project, &target, "run job.toml --json --clocks 80"));
    let rmse = end["metrics"]["train_rmse"].as_f64().unwrap();
    assert!(rmse < 0.01, "{end}");
}
