//! Updates a second of the inner loop.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use slackline_guest::Rng;
use slackline_mf::sgd::{Rating, Rows, Rule, pass};
use std::time::Duration;

const USERS: u32 = 20_000;
const ITEMS: u32 = 5_000;
const RATINGS: usize = 100_000;

fn rows(n: u32, rank: usize, squares: bool, rng: &mut Rng) -> Rows {
    let mut rows = Rows::new(rank);
    rows.resize(n as usize, squares);
    for i in 0..n as usize {
        rows.row_mut(i)[..rank].iter_mut().for_each(|x| *x = 0.1 * rng.normal() as f32);
    }
    rows
}

fn updates(c: &mut Criterion) {
    let mut group = c.benchmark_group("updates");
    group.throughput(Throughput::Elements(RATINGS as u64)).sample_size(10);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let mut rng = Rng::from_seed(1);
    let mut draw = || Rating { user: rng.below(USERS), item: rng.below(ITEMS), value: 1.0 + 4.0 * rng.f32() };
    let ratings: Vec<Rating> = (0..RATINGS).map(|_| draw()).collect();
    for (optimizer, adagrad) in [("sgd", false), ("adagrad", true)] {
        for rank in [10, 20] {
            let (mut users, mut items) = (rows(USERS, rank, adagrad, &mut rng), rows(ITEMS, rank, adagrad, &mut rng));
            let rule = Rule { rate: 0.01, l2: 0.05, biases: Some(3.0), nonnegative: false, adagrad };
            group.bench_function(BenchmarkId::new(optimizer, rank), |b| {
                b.iter(|| pass(&rule, &ratings, &mut users, &mut items));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, updates);
criterion_main!(benches);
