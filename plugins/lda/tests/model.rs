//! Tables, local state, metrics and predictions hold together, for any number of workers.

mod common;

use common::{dataset, perplexity, phi, small, tokens};
use serde_json::json;
use slackline_guest::testing::TestHost;
use slackline_guest::{Plugin, plugin};
use slackline_lda::fold_in::FoldIn;
use slackline_lda::likelihood::ln_gamma;
use slackline_lda::{Lda, Params};

const TOPICS: usize = 5;

fn params() -> serde_json::Value {
    json!({ "topics": TOPICS, "alpha": 0.2 })
}

fn host(workers: usize) -> TestHost {
    TestHost::new()
        .seed(3)
        .workers(workers)
        .dataset("train", dataset(&small()))
        .dataset("test", dataset(&small()[3..9]))
}

/// Each document's topic counts, from local state.
fn document_topics(host: &TestHost, workers: usize) -> Vec<Vec<u32>> {
    let documents = small();
    let mut all = Vec::new();
    for w in 0..workers {
        let rows = w * documents.len() / workers..(w + 1) * documents.len() / workers;
        let places = host.local::<u64>(w, "places").unwrap();
        let assignments = host.local::<u32>(w, "assignments").unwrap();
        for (id, row) in rows.enumerate() {
            let (first, length) = (places[id] as usize - 1, tokens(&documents[row..=row]) as usize);
            let mut counts = vec![0; TOPICS];
            assignments[first..first + length].iter().for_each(|&k| counts[k as usize] += 1);
            all.push(counts);
        }
    }
    all
}

#[test]
fn counts_agree_with_assignments_after_any_run() {
    for workers in [1, 2, 3] {
        let host = host(workers).recreate_each_clock();
        host.run::<Lda>(params(), 4, 7).unwrap();
        let counts = host.values::<i32>("word_topics").unwrap();
        let totals = host.values::<i64>("topic_totals").unwrap();
        for k in 0..TOPICS {
            let column: i64 = counts.iter().skip(k).step_by(TOPICS).map(|&n| i64::from(n)).sum();
            let documents: u32 = document_topics(&host, workers).iter().map(|d| d[k]).sum();
            assert_eq!((totals[k], totals[k]), (column, i64::from(documents)), "topic {k} of {workers} workers");
        }
        assert_eq!(totals.iter().sum::<i64>() as u64, tokens(&small()));
        for w in 0..counts.len() / TOPICS {
            let row = &counts[w * TOPICS..(w + 1) * TOPICS];
            let occurs: u32 = small().iter().flatten().filter(|e| e.0 as usize == w).map(|e| e.1).sum();
            assert!(row.iter().all(|&n| n >= 0) && row.iter().sum::<i32>() as u32 == occurs, "word {w}: {row:?}");
        }
    }
}

#[test]
fn the_joint_log_likelihood_is_exact_for_any_number_of_workers() {
    for workers in [1, 2, 3] {
        let host = host(workers);
        let report = host.run::<Lda>(params(), 4, 7).unwrap();
        let (alpha, beta, k) = (0.2, 0.1, TOPICS as f64);
        let counts = host.values::<i32>("word_topics").unwrap();
        let totals = host.values::<i64>("topic_totals").unwrap();
        let words = (counts.len() / TOPICS) as f64;
        let mut want = k * (ln_gamma(words * beta) - words * ln_gamma(beta));
        want += counts.iter().map(|&n| ln_gamma(f64::from(n) + beta)).sum::<f64>();
        want -= totals.iter().map(|&n| ln_gamma(n as f64 + words * beta)).sum::<f64>();
        for document in document_topics(&host, workers) {
            let length = f64::from(document.iter().sum::<u32>());
            want += ln_gamma(k * alpha) - k * ln_gamma(alpha) - ln_gamma(length + k * alpha);
            want += document.iter().map(|&n| ln_gamma(f64::from(n) + alpha)).sum::<f64>();
        }
        want /= tokens(&small()) as f64;
        let got = report.metric("log_likelihood_per_token").unwrap();
        assert!((got - want).abs() < 1e-12, "{workers} workers: {got}, not {want}");
    }
}

#[test]
fn a_worker_without_tokens_leaves_no_gap_in_the_likelihood() {
    // The first of three workers has empty documents alone, and the second none at all.
    let documents = [vec![], vec![], vec![(0, 3), (1, 2)], vec![(1, 4), (2, 2)]];
    let whole = TestHost::new().seed(2).workers(1).dataset("train", dataset(&documents));
    let parts = TestHost::new().seed(2).workers(3).dataset("train", dataset(&documents));
    let spread = json!({ "topics": 1 });
    // With one topic there is but one state, so any number of workers has the same likelihood.
    let want = whole.run::<Lda>(spread.clone(), 1, 1).unwrap().metric("log_likelihood_per_token").unwrap();
    let got = parts.run::<Lda>(spread, 1, 1).unwrap().metric("log_likelihood_per_token").unwrap();
    assert!((got - want).abs() < 1e-12, "{got}, not {want}");
}

#[test]
fn perplexity_agrees_with_the_number_of_the_published_program() {
    // Counts of two topics over three words; the figure is that of the program that defines document completion.
    let counts = [4, 0, 1, 2, 0, 5];
    let documents = [vec![(0, 2), (1, 1), (2, 3)], vec![(1, 1)], vec![(0, 1), (2, 1)]];
    let mut fold_in = FoldIn::new(&[5, 7], 3, 0.3, 0.5);
    let (sum, scored) = documents.iter().fold((0.0, 0), |(sum, scored), d| {
        let (part, tokens) = fold_in.complete(d, &counts);
        (sum + part, scored + tokens)
    });
    let got = (-sum / scored as f64).exp();
    let want = 3.1919164672885625;
    let plain = perplexity(&phi(&counts, 2, 0.5), &documents, 0.3);
    assert_eq!(scored, 4);
    assert!((got - want).abs() < 1e-12 && (plain - want).abs() < 1e-12, "{got} {plain}");
}

#[test]
fn test_perplexity_agrees_with_the_plain_formula() {
    for workers in [1, 2] {
        let host = host(workers);
        let report = host.run::<Lda>(params(), 4, 7).unwrap();
        let counts = host.values::<i32>("word_topics").unwrap();
        let want = perplexity(&phi(&counts, TOPICS, 0.1), &small()[3..9], 0.2);
        let got = report.metric("test_perplexity").unwrap();
        assert!((got / want - 1.0).abs() < 1e-12, "{got}, not {want}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_whether_instances_live_on_or_not() {
    let run = |host: TestHost, clocks: &[u32]| {
        for &c in clocks {
            host.run::<Lda>(params(), 4, c).unwrap();
        }
        (host.local::<u32>(1, "assignments").unwrap(), host.values::<i32>("word_topics").unwrap())
    };
    let want = run(host(2), &[9]);
    assert_eq!(run(host(2).recreate_each_clock(), &[9]), want);
    assert_eq!(run(host(2), &[4, 5]), want);
    assert_ne!(run(host(2).seed(4), &[9]), want);
}

#[test]
fn topics_separate_words_that_never_meet() {
    // Even documents have words 0..10, odd ones words 10..20.
    let documents: Vec<_> = (0..40).map(|d| (0..10).map(|w| (d % 2 * 10 + w, 2)).collect()).collect();
    let host = TestHost::new().seed(3).workers(2).dataset("train", dataset(&documents));
    let host = host.dataset("new", dataset(&[vec![(2, 3), (4, 1)], vec![(11, 2)], vec![]]));
    host.run::<Lda>(json!({ "topics": 2 }), 4, 50).unwrap();
    let counts = host.values::<i32>("word_topics").unwrap();
    let of = |words: std::ops::Range<usize>| -> i32 { words.map(|w| counts[w * 2]).sum() };
    let (low, high) = (of(0..10), of(10..20));
    assert!(low.min(high) * 20 < low.max(high), "topic 0 has {low} and {high} tokens of the blocks");
    let predicted = host.predict::<Lda>(json!({ "topics": 2 }), "new", 2).unwrap();
    let theta = predicted.column::<f32>("theta").unwrap();
    let first = u32::from(low < high);
    assert_eq!(predicted.column::<u32>("topic").unwrap()[..2], [first, 1 - first], "{theta:?}");
    assert!(theta.chunks(2).all(|row| (row[0] + row[1] - 1.0).abs() < 1e-6), "{theta:?}");
    assert!((theta[first as usize] - 4.1 / 4.2).abs() < 0.01, "{theta:?}");
}

#[test]
fn prediction_leaves_out_words_beyond_the_vocabulary() {
    // The vocabulary comes from the data at hand when training starts.
    let train = TestHost::new().dataset("train", dataset(&small()));
    train.run::<Lda>(params(), 8, 3).unwrap();
    let known = train.clone().dataset("known", dataset(&[vec![(3, 2)], vec![]]));
    let known = known.predict::<Lda>(params(), "known", 2).unwrap().column::<f32>("theta").unwrap();
    let unknown = train.dataset("unknown", dataset(&[vec![(3, 2), (1000, 5)], vec![(99, 1)]]));
    let unknown = unknown.predict::<Lda>(params(), "unknown", 2).unwrap().column::<f32>("theta").unwrap();
    assert_eq!(known, unknown);
    assert!(known[TOPICS..].iter().all(|&p| (p - 0.2).abs() < 1e-6), "an empty document is uniform: {known:?}");
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let check = |json: serde_json::Value, word: &str| {
        let params: Params = plugin::params::<Lda>(&json.to_string()).unwrap();
        let error = Lda::plan(&params, &slackline_guest::Facts::default()).unwrap_err().to_string();
        assert!(error.contains(word), "{json}: {error}");
    };
    check(json!({ "topics": 0 }), "topics");
    check(json!({ "topics": 70000 }), "topics");
    check(json!({ "topics": 3, "alpha": 0.0 }), "alpha");
    check(json!({ "topics": 3, "beta": 1e9 }), "beta");
    check(json!({ "topics": 3 }), "train");
    assert!(plugin::params::<Lda>(r#"{"topics": 3, "gamma": 1}"#).is_err());
}
