//! Reference answers: what the bundled plugins reach, against what others computed for the same data.

use slackline_blackbox::{digits_job, done, lines, output, reference, said, write_job};
use std::path::Path;

#[test]
fn mlr_reaches_the_optimum_of_the_digits() {
    // Minimum of (1/n) Σ −log softmax(W x)_y + (l2/2)‖W‖² at l2 = 0.001 on the 1,438 training rows, solved to 1e-17.
    const OPTIMUM: f64 = 0.263_117_567_825_310_5;
    let dir = tempfile::tempdir().unwrap();
    for workers in ["1", "2", "4"] {
        let job = digits_job(dir.path(), "[clock]\nmax = 3000\n[consistency]\nmodel = \"bsp\"\n");
        let said = lines(&output(dir.path(), &["run", &job, "--json", "--state", workers, "--workers", workers]));
        let got = said.last().unwrap()["metrics"]["train_objective"].as_f64().unwrap();
        assert!((-1e-6..1e-3).contains(&(got / OPTIMUM - 1.0)), "{workers} workers: {got}");
    }
}

/// Trains lda to the end of a clock and answers its perplexity on the test documents.
fn perplexity(dir: &Path, corpus: &Path, run: &str, clocks: u32) -> f64 {
    let file = |name: &str| corpus.join(name);
    let data =
        |part| format!("{{ path = {:?}, vocab = {:?} }}", file(&format!("docword.{part}.txt")), file("vocab.txt"));
    let job = format!(
        "[job]\nname = \"topics\"\nplugin = \"lda\"\nseed = 1\n[data]\ntrain = {}\ntest = {}\n[clock]\nmax = {clocks}\n\
         [params]\ntopics = 20\n",
        data("train"),
        data("test")
    );
    write_job(dir, &job);
    let end = done(&said(dir, &format!("run job.toml --json --fresh --state s {run}")));
    end["metrics"]["test_perplexity"].as_f64().unwrap()
}

/// Perplexity at K = 20 within mean + 3 sd (1 worker) or 5 sd of runs of tomotopy 0.14.0.
fn check_lda(set: &str, mean: f64, sd: f64, clocks: u32, runs: &[(u32, &str)]) {
    let Some(corpus) = reference(set) else { return };
    let dir = tempfile::tempdir().unwrap();
    for (workers, model) in runs {
        let got = perplexity(dir.path(), &corpus, &format!("--workers {workers} {model}"), clocks);
        let band = mean + if *workers == 1 { 3.0 } else { 5.0 } * sd;
        assert!(got > mean - 4.0 * sd && got <= band, "{set}, {workers} workers {model}: {got} over {band}");
    }
}

#[test]
fn lda_is_as_good_as_the_reference_on_reuters() {
    let (bsp, ssp) = ("--consistency bsp", "--consistency ssp --staleness 3");
    check_lda("reuters", 1479.37, 17.52, 500, &[(1, bsp), (2, bsp), (4, bsp), (1, ssp), (2, ssp), (4, ssp)]);
}

#[test]
fn lda_is_as_good_as_the_reference_on_ap() {
    let (bsp, ssp) = ("--consistency bsp", "--consistency ssp --staleness 3");
    check_lda("ap", 2754.76, 22.42, 300, &[(1, bsp), (2, ssp), (4, ssp)]);
}

#[test]
fn mf_is_as_good_as_the_reference_on_movielens() {
    // The worst of the reference's seeds with biases at rank 10.
    const WORST: f64 = 0.898_916;
    let Some(set) = reference("movielens-100k-2016") else { return };
    let dir = tempfile::tempdir().unwrap();
    write_job(
        dir.path(),
        &format!(
            "[job]\nname = \"ratings\"\nplugin = \"mf\"\nseed = 1\n[data]\ntrain = {{ path = {:?} }}\ntest = {{ path = {:?} }}\n\
             [clock]\nmax = 30\n[params]\nrank = 10\nbiases = true\nl2 = 0.05\n",
            set.join("train.csv"),
            set.join("test.csv")
        ),
    );
    for run in ["--workers 1", "--workers 2 --consistency ssp --staleness 1"] {
        let end = done(&said(dir.path(), &format!("run job.toml --json --fresh --state s {run}")));
        let got = end["metrics"]["test_rmse"].as_f64().unwrap();
        assert!(got <= WORST, "{run}: test RMSE {got}");
    }
}
