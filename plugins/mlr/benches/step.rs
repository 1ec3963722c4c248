//! Samples per second of a training step, natively in the test host: 784 features, 10 classes, batches of 64.

#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use slackline_guest::testing::{Dataset, TestHost};
use slackline_guest::{Plugin, Rng, plugin};
use slackline_mlr::Mlr;

const ROWS: usize = 64;
const FEATURES: u32 = 784;

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("step");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (form, share) in [("dense", 1.0), ("sparse, a fifth", 0.2)] {
        for optimizer in ["saga", "sgd", "adagrad"] {
            let host = TestHost::new().dataset("train", data(share));
            let params = serde_json::json!({"optimizer": optimizer});
            host.run::<Mlr>(params.clone(), ROWS, 1).expect("a first clock makes the tables");
            let _scope = host.enter();
            let batch = host.batch("train", 0, ROWS).expect("the rows are there");
            let typed = plugin::params::<Mlr>(&params.to_string()).expect("the parameters are right");
            let mut mlr = Mlr::create(typed).expect("the tables are there");
            group.bench_function(format!("{form}, {optimizer}"), |b| b.iter(|| mlr.step(&batch)));
        }
    }
    group.finish();
}

fn data(share: f64) -> Dataset {
    let mut rng = Rng::from_seed(3);
    let labels: Vec<u32> = (0..ROWS as u32).map(|i| i % 10).collect();
    let index: Vec<Vec<u32>> = (0..ROWS).map(|_| (0..FEATURES).filter(|_| rng.f64() < share).collect()).collect();
    let value: Vec<Vec<f32>> = index.iter().map(|row| row.iter().map(|_| rng.f32()).collect()).collect();
    let data = Dataset::new().column("label", &labels);
    if share == 1.0 { data.list("x", &value) } else { data.list("index", &index).list("value", &value) }
}

criterion_group!(benches, steps);
criterion_main!(benches);
