//! What black-box tests share: the real binary, a folder of its own for each test, and jobs on small data.
//!
//! It knows nothing of Slackline's crates. A test relies on what a user may rely on: the command line, the job file, exit
//! codes, JSON lines, messages and files.

mod watched;

pub use watched::Watched;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The folder that `cargo` and `make test` build into.
fn release() -> PathBuf {
    let exe = std::env::current_exe().expect("a test has a path");
    exe.ancestors().nth(2).expect("tests lie in release/deps").to_owned()
}

/// A file that `make test` builds.
fn built(name: &str) -> PathBuf {
    let path = release().join(name);
    assert!(path.exists(), "{} is missing: run `make test`, which builds it", path.display());
    path
}

/// The component that misbehaves on demand.
pub fn misfit() -> PathBuf {
    built("test-guests/misfit.wasm")
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/blackbox lies two below the root").to_owned()
}

/// The binary, in a folder.
pub fn slackline(dir: &Path, args: &[&str]) -> Command {
    built("plugins/mlr.wasm");
    let mut command = Command::new(built("slackline"));
    command.current_dir(dir).args(args);
    command
}

/// Runs it to its end.
pub fn output(dir: &Path, args: &[&str]) -> Output {
    slackline(dir, args).output().expect("the binary starts")
}

/// The binary with words split at spaces, run to its end.
pub fn say(dir: &Path, words: &str) -> Output {
    slackline(dir, &words.split_whitespace().collect::<Vec<_>>())
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

/// The same, which must end well.
#[track_caller]
pub fn said(dir: &Path, words: &str) -> Output {
    let out = say(dir, words);
    assert!(out.status.success(), "{words}: {:?}: {}", out.status, String::from_utf8_lossy(&out.stderr));
    out
}

/// The last line of a run with `--json`, which must have ended well.
#[track_caller]
pub fn done(out: &Output) -> Value {
    let last = lines(out).pop().expect("a run prints lines");
    assert_eq!(last["event"], "done");
    last
}

/// The JSON lines of a run that must have ended well.
#[track_caller]
pub fn lines(out: &Output) -> Vec<Value> {
    assert!(out.status.success(), "{:?}: {}", out.status, String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("not JSON ({e}): {l}"))).collect()
}

/// The metrics of the last line, as they were printed: equal text means equal bits.
#[track_caller]
pub fn metrics(out: &Output) -> String {
    done(out);
    let text = String::from_utf8_lossy(&out.stdout);
    let last = text.trim_end().lines().last().unwrap_or_default();
    let from = last.find("\"metrics\":{").expect("the last line has metrics");
    let to = last[from..].find('}').expect("an object ends");
    last[from..=from + to].to_owned()
}

/// That a command fails with `exit`, that its message has `words`, and that it is a message and no crash of the host.
#[track_caller]
pub fn refused(out: &Output, exit: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(exit), "{said}");
    for word in words {
        assert!(said.contains(word), "the message lacks {word:?}: {said}");
    }
    assert!(!said.contains("RUST_BACKTRACE") && !said.contains("fault of slackline"), "{said}");
}

/// A job of the misfit on forty rows, with a cut every clock.
pub fn misfit_job(dir: &Path, mode: &str, from: u32) -> String {
    let rows: String = (0..40).map(|i| format!("{i}\n")).collect();
    std::fs::write(dir.join("x.csv"), format!("x\n{rows}")).expect("the folder can be written");
    let text = format!(
        "[job]\nname = \"misfit\"\nplugin = {:?}\nworkers = 2\n[data]\ntrain = {{ path = \"x.csv\" }}\nbatch = 5\n\
         [consistency]\nmodel = \"bsp\"\n[clock]\nmax = 6\n[cuts]\nevery = 1\n[params]\nmode = \"{mode}\"\nfrom = {from}\n",
        misfit()
    );
    write_job(dir, &text)
}

/// A job of logistic regression on the digits that ship with the repository.
pub fn digits_job(dir: &Path, more: &str) -> String {
    let data = root().join("examples/digits/data");
    let file = |part| data.join(format!("digits.{part}.scaled.libsvm"));
    write_job(
        dir,
        &format!(
            "[job]\nname = \"digits\"\nplugin = \"mlr\"\nworkers = 2\nseed = 1\n[data]\ntrain = {{ path = {:?} }}\n\
             test = {{ path = {:?} }}\n[params]\nl2 = 0.001\nintercept = false\n{more}",
            file("train"),
            file("test")
        ),
    )
}

/// Writes `job.toml`; answers its name.
pub fn write_job(dir: &Path, text: &str) -> String {
    std::fs::write(dir.join("job.toml"), text).expect("the folder can be written");
    "job.toml".to_owned()
}

/// A job of lda on generated documents, which are made in the folder.
pub fn topics_job(dir: &Path, more: &str) -> String {
    said(dir, "data generate topics --to corpus --documents 120 --vocabulary 80 --topics 4 --length 30 --seed 5");
    let data = |part: &str| format!("{{ path = \"corpus/docword.{part}.txt\", vocab = \"corpus/vocab.txt\" }}");
    write_job(
        dir,
        &format!(
            "[job]\nname = \"topics\"\nplugin = \"lda\"\nworkers = 2\nseed = 1\n[data]\ntrain = {}\ntest = {}\nbatch = 16\n\
             [params]\ntopics = 4\nalpha = 0.5\nbeta = 0.1\n{more}",
            data("train"),
            data("test")
        ),
    )
}

/// A job of mf on generated ratings, which are made in the folder.
pub fn ratings_job(dir: &Path, more: &str) -> String {
    said(dir, "data generate ratings --to ratings --users 60 --items 40 --ratings 600 --seed 5");
    write_job(
        dir,
        &format!(
            "[job]\nname = \"ratings\"\nplugin = \"mf\"\nworkers = 2\nseed = 1\n[data]\n\
             train = {{ path = \"ratings/train.csv\" }}\ntest = {{ path = \"ratings/test.csv\" }}\nbatch = 64\n\
             [params]\nrank = 4\nl2 = 0.05\nbiases = true\n{more}"
        ),
    )
}

/// A fixed seed's next number below `bound`: tests that choose print the seed, and choose the same when run again.
pub fn dice(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % bound
}

/// Reference data that may not be copied into the repository, where this machine has them (`$SHARED`, or `../shared`
/// beside the repository); otherwise says that the test skips.
pub fn reference(set: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("SHARED").unwrap_or_else(|| "../shared".into());
    let folder = root().join(shared).join("data/sets").join(set);
    if !folder.exists() {
        println!("skipped: {} is not here", folder.display());
        return None;
    }
    Some(folder)
}
