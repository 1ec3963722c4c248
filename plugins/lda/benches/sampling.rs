//! Tokens a second: the sampler alone, and whole clocks on the test host.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use slackline_guest::testing::{Dataset, TestHost};
use slackline_guest::{Plugin, Rng, plugin};
use slackline_lda::Lda;
use slackline_lda::sampler::{Sampler, stride};
use std::time::Duration;

const WORDS: u32 = 5_000;
const DOCUMENTS: usize = 500;
const DOCUMENT_TOKENS: usize = 150;

/// Documents from 40 topics of words with Zipf-like frequencies, as sorted (word, count) pairs.
fn corpus() -> Vec<Vec<(u32, u32)>> {
    let mut rng = Rng::from_seed(1);
    (0..DOCUMENTS)
        .map(|_| {
            let own = [rng.below(40), rng.below(40)];
            let mut words: Vec<u32> = (0..DOCUMENT_TOKENS)
                .map(|_| {
                    let topic = own[rng.below(2) as usize];
                    let rank = f64::from(WORDS).powf(rng.f64()) as u32 - 1;
                    (rank * 17 + topic * 1_301) % WORDS
                })
                .collect();
            words.sort_unstable();
            words.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
        })
        .collect()
}

/// The sampler on counts at hand, past its first sweeps.
fn sampler(c: &mut Criterion) {
    let corpus = corpus();
    let mut group = c.benchmark_group("sampler");
    group.throughput(Throughput::Elements((DOCUMENTS * DOCUMENT_TOKENS) as u64));
    for topics in [20usize, 50, 200] {
        let stride = stride(topics);
        let mut rng = Rng::from_seed(2);
        let mut rows = vec![0.0f32; WORDS as usize * stride];
        let mut totals = vec![0i64; topics];
        let mut assignments = vec![0u32; DOCUMENTS * DOCUMENT_TOKENS];
        let words = corpus.iter().flatten().flat_map(|&(w, n)| std::iter::repeat_n(w as usize, n as usize));
        for (assignment, word) in assignments.iter_mut().zip(words) {
            *assignment = rng.below(topics as u32);
            rows[word * stride + *assignment as usize] += 1.0;
            totals[*assignment as usize] += 1;
        }
        let mut sampler = Sampler::new(topics, u64::from(WORDS), 0.1, 0.1);
        sampler.set_totals(&totals);
        let mut moves = Vec::new();
        let mut sweep = || {
            moves.clear();
            for (document, own) in corpus.iter().zip(assignments.chunks_mut(DOCUMENT_TOKENS)) {
                sampler.sample(document, own, &mut rows, &mut rng, &mut moves);
            }
        };
        (0..20).for_each(|_| sweep());
        group.bench_function(format!("{topics} topics"), |b| b.iter(&mut sweep));
    }
    group.finish();
}

/// Whole clocks of steps: reading rows, sampling, sending what changed.
fn clocks(c: &mut Criterion) {
    let corpus = corpus();
    let column = |pick: fn(&(u32, u32)) -> u32| -> Vec<Vec<u32>> {
        corpus.iter().map(|d| d.iter().map(pick).collect()).collect()
    };
    let train = Dataset::new().list("word", &column(|e| e.0)).list("count", &column(|e| e.1));
    let mut group = c.benchmark_group("clock");
    group.throughput(Throughput::Elements((DOCUMENTS * DOCUMENT_TOKENS) as u64));
    for topics in [20, 50] {
        let params = json!({ "topics": topics });
        let host = TestHost::new().dataset("train", train.clone());
        host.run::<Lda>(params.clone(), 125, 20).expect("a run");
        let _scope = host.enter();
        let mut lda =
            Lda::create(plugin::params::<Lda>(&params.to_string()).expect("parameters")).expect("an instance");
        let batches: Vec<_> = (0..4).map(|i| host.batch("train", i * 125, 125).expect("a batch")).collect();
        group.bench_function(format!("{topics} topics"), |b| {
            b.iter_batched(
                || host.tick(),
                |()| {
                    batches.iter().for_each(|batch| lda.step(batch).expect("a step"));
                    lda.end_clock(0).expect("the end of a clock");
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    targets = sampler, clocks
}
criterion_main!(benches);
