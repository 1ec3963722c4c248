//! Real corpora, against bands of a reference implementation: ten runs of tomotopy 0.14.0's collapsed Gibbs sampler at
//! K = 20, α = β = 0.1, 1,000 iterations on reuters and ap, every tenth document held out.

mod common;

use common::{corpus, dataset};
use serde_json::json;
use slackline_guest::testing::TestHost;
use slackline_lda::Lda;

/// Mean and standard deviation over the reference's seeds.
struct Band {
    mean: f64,
    sd: f64,
}

fn check(name: &str, workers: usize, clocks: u32, sds: f64, perplexity: Band, likelihood: Band) {
    let (Some(train), Some(test)) = (corpus(name, "train"), corpus(name, "test")) else { return };
    let host = TestHost::new().seed(1).workers(workers);
    let host = host.dataset("train", dataset(&train)).dataset("test", dataset(&test));
    let report = host.run::<Lda>(json!({ "topics": 20 }), 256, clocks).unwrap();
    let got = report.metric("test_perplexity").unwrap();
    let joint = report.metric("log_likelihood_per_token").unwrap();
    eprintln!("{name}, {workers} workers: perplexity {got:.1}, joint log-likelihood per token {joint:.4}");
    let (low, high) = (perplexity.mean - 4.0 * perplexity.sd, perplexity.mean + sds * perplexity.sd);
    assert!((low..=high).contains(&got), "{name}: perplexity {got:.1} outside {low:.1} to {high:.1}");
    let off = (joint - likelihood.mean).abs() / likelihood.sd;
    assert!(off < 6.0, "{name}: joint log-likelihood {joint:.4} is {off:.1} sd from {}", likelihood.mean);
}

const REUTERS: (Band, Band) = (Band { mean: 1479.37, sd: 17.52 }, Band { mean: -7.89767, sd: 0.01456 });

#[test]
fn reuters_lands_in_the_reference_band() {
    check("reuters", 1, 500, 3.0, REUTERS.0, REUTERS.1);
}

#[test]
fn reuters_lands_in_the_reference_band_with_two_workers() {
    check("reuters", 2, 500, 5.0, REUTERS.0, REUTERS.1);
}

#[test]
fn ap_lands_in_the_reference_band() {
    check("ap", 1, 300, 3.0, Band { mean: 2754.76, sd: 22.42 }, Band { mean: -8.57639, sd: 0.00973 });
}
