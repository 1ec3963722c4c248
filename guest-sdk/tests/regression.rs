//! A whole plugin in the test host: linear regression by SGD on sparse rows, with a count of visits in local state.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use slackline_guest::testing::{Dataset, TestHost};
use slackline_guest::{
    Batch, Buffer, ColumnWant, Error, Facts, LocalState, Manifest, MetricSpec, Plan, Plugin, Result, Rng, Table,
    TableSpec, output, run, telemetry,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Step size.
    learning_rate: f64,
}

struct Regression {
    params: Params,
    weights: Table<f64>,
    visits: Buffer<u32>,
}

slackline_guest::export!(Regression);

/// What training and evaluation both need of a batch.
struct Forward {
    /// The distinct columns, as rows of the table.
    rows: Vec<u64>,
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
    predictions: Vec<f64>,
}

impl Regression {
    fn forward(&self, batch: &Batch) -> Result<Forward> {
        let (offsets, columns) = batch.list::<u32>("indices")?;
        let values: Vec<f32> = batch.column("values")?;
        let mut rows: Vec<u64> = columns.iter().map(|c| u64::from(*c)).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut weights = Vec::new();
        self.weights.get(&rows, &mut weights)?;
        let weight = |c: u32| weights[rows.binary_search(&u64::from(c)).expect("a column of the batch")];
        let predict = |i: usize| {
            let row = offsets[i] as usize..offsets[i + 1] as usize;
            row.map(|e| weight(columns[e]) * f64::from(values[e])).sum()
        };
        let predictions = (0..batch.rows()).map(predict).collect();
        Ok(Forward { rows, offsets, columns, values, predictions })
    }
}

impl Plugin for Regression {
    type Params = Params;

    fn manifest() -> Manifest {
        slackline_guest::manifest!()
            .summary("linear regression by SGD")
            .column(ColumnWant::new::<f32>("label").target())
            .column(ColumnWant::list::<u32>("indices"))
            .column(ColumnWant::list::<f32>("values"))
            .metric(MetricSpec::new("train_rmse").sqrt())
            .predicts("prediction")
    }

    fn plan(_: &Params, facts: &Facts) -> Result<Plan> {
        Ok(Plan::new().table(TableSpec::dense::<f64>("weights", facts.train("indices")?.key_count(), 1)))
    }

    fn create(params: Params) -> Result<Self> {
        if params.learning_rate <= 0.0 {
            return Err(Error::invalid("learning_rate must be positive"));
        }
        let rows = slackline_guest::partition_rows("train") as usize;
        Ok(Self { params, weights: Table::open_with_width("weights", 1)?, visits: LocalState::open("visits", rows)? })
    }

    fn step(&mut self, batch: &Batch) -> Result<()> {
        let labels: Vec<f32> = batch.column("label")?;
        let Forward { rows, offsets, columns, values, predictions } = self.forward(batch)?;
        let rate = self.params.learning_rate / f64::from(run::workers());
        let mut deltas = vec![0.0; rows.len()];
        for i in 0..batch.rows() {
            let error = predictions[i] - f64::from(labels[i]);
            for e in offsets[i] as usize..offsets[i + 1] as usize {
                let at = rows.binary_search(&u64::from(columns[e])).expect("a column of the batch");
                deltas[at] -= rate * error * f64::from(values[e]);
            }
        }
        self.weights.inc(&rows, &deltas)?;
        let mut seen = Vec::new();
        for id in batch.ids() {
            self.visits.read(id as usize, 1, &mut seen)?;
            self.visits.write(id as usize, &[seen[0] + 1])?;
        }
        slackline_guest::info!("worker {} of {} clock {}", run::worker(), run::workers(), run::clock());
        Ok(())
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<()> {
        let labels: Vec<f32> = batch.column("label")?;
        let predictions = self.forward(batch)?.predictions;
        let squares: f64 = predictions.iter().zip(&labels).map(|(p, l)| (p - f64::from(*l)).powi(2)).sum();
        let rows = batch.rows() as f64;
        telemetry::metric("train_rmse", squares / rows, rows);
        Ok(())
    }

    fn predict(&mut self, batch: &Batch) -> Result<()> {
        let predictions = self.forward(batch)?.predictions;
        output::put("prediction", &predictions)
    }
}

/// Rows of four of ten features whose label follows known weights.
fn data(rows: usize) -> (Dataset, Vec<f64>) {
    let truth: Vec<f64> = (0..10).map(|c| f64::from(c) - 4.5).collect();
    let mut rng = Rng::from_seed(5);
    let (mut labels, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let columns: Vec<u32> = (0..4).map(|_| rng.below(10)).collect();
        let row: Vec<f32> = columns.iter().map(|_| rng.normal() as f32).collect();
        labels.push(columns.iter().zip(&row).map(|(c, v)| truth[*c as usize] * f64::from(*v)).sum::<f64>() as f32);
        indices.push(columns);
        values.push(row);
    }
    let data = Dataset::new().column("label", &labels).list("indices", &indices).list("values", &values);
    (data, truth)
}

#[test]
fn training_finds_the_weights_whatever_the_number_of_workers() {
    for workers in [1, 3] {
        let (train, truth) = data(600);
        let host = TestHost::new().seed(1).workers(workers).recreate_each_clock().dataset("train", train);
        let report = host.run::<Regression>(json!({"learning_rate": 0.02}), 20, 60).unwrap();
        assert!(report.metric("train_rmse").unwrap() < 1e-3, "{report:?}");
        let weights = host.values::<f64>("weights").unwrap();
        assert!(weights.iter().zip(&truth).all(|(w, t)| (w - t).abs() < 1e-2), "{weights:?}");
        let visits: Vec<u32> = (0..workers).flat_map(|w| host.local(w, "visits").unwrap()).collect();
        assert_eq!(visits, vec![60; 600]);
        assert!(host.logs().iter().any(|(_, l)| l == &format!("worker {} of {workers} clock 59", workers - 1)));
    }
}

#[test]
fn predictions_need_no_label() {
    let (train, truth) = data(600);
    let unseen =
        Dataset::new().list("indices", &[vec![3u32, 7], vec![0]]).list("values", &[vec![1f32, 2.0], vec![-1.0]]);
    let host = TestHost::new().dataset("train", train);
    host.run::<Regression>(json!({"learning_rate": 0.02}), 20, 60).unwrap();
    let host = host.dataset("new", unseen);
    let got = host.predict::<Regression>(json!({"learning_rate": 0.02}), "new", 1).unwrap();
    let got = got.column::<f64>("prediction").unwrap();
    assert!((got[0] - truth[3] - 2.0 * truth[7]).abs() < 0.05 && (got[1] + truth[0]).abs() < 0.05, "{got:?}");
}

#[test]
fn wrong_parameters_are_refused_with_their_name() {
    let (train, _) = data(10);
    let host = TestHost::new().dataset("train", train);
    let refused = |params| host.run::<Regression>(params, 5, 1).unwrap_err().to_string();
    assert!(refused(json!({"learning_rate": "fast"})).contains("params"));
    assert!(refused(json!({"learning_rate": 0.1, "speed": 1})).contains("speed"));
    assert_eq!(refused(json!({"learning_rate": -1})), "invalid: learning_rate must be positive");
}

#[test]
fn the_manifest_carries_the_schema_of_the_parameters() {
    let manifest = slackline_guest::plugin::describe::<Regression>();
    assert_eq!(manifest.name, "slackline-guest");
    assert_eq!(manifest.params["properties"]["learning_rate"]["type"], "number");
    assert_eq!(manifest.params["properties"]["learning_rate"]["description"], "Step size.");
    assert_eq!(manifest.params["required"], json!(["learning_rate"]));
}
