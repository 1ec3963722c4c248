//! The digits that the example ships, as datasets of the test host.

use slackline_guest::testing::Dataset;
use std::path::Path;

/// Rows of libsvm text.
#[derive(Clone, Default)]
pub struct Rows {
    pub labels: Vec<u32>,
    pub indices: Vec<Vec<u32>>,
    pub values: Vec<Vec<f32>>,
}

impl Rows {
    pub fn dataset(&self) -> Dataset {
        Dataset::new().column("label", &self.labels).list("index", &self.indices).list("value", &self.values)
    }
}

/// `train` or `test`.
pub fn load(part: &str) -> Rows {
    let file = format!("../../examples/digits/data/digits.{part}.scaled.libsvm");
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut rows = Rows::default();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        rows.labels.push(fields.next().unwrap().parse().unwrap());
        let entries = fields.map(|f| f.split_once(':').unwrap());
        let entries = entries.map(|(i, v)| (i.parse::<u32>().unwrap() - 1, v.parse::<f32>().unwrap()));
        let (indices, values) = entries.unzip();
        rows.indices.push(indices);
        rows.values.push(values);
    }
    rows
}
