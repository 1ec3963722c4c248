//! What of the final model is worth showing: for each column of a table, the rows that weigh most in it.

use crate::events::ViewResult;
use slackline_core::manifest::View;
use slackline_core::{Element, RowDeltas, TableSpec, each_dtype};
use slackline_server::TableSnapshot;

/// Columns shown at most; a table wider than this is no list of topics.
const MAX_LINES: u32 = 1000;

/// Fills in a view from all shards' rows. `label` names a row.
pub fn fill(view: &View, spec: &TableSpec, shards: &[&TableSnapshot], label: impl Fn(u64) -> String) -> ViewResult {
    let columns = spec.width.min(MAX_LINES);
    let mut best: Vec<Vec<(f64, u64)>> = vec![Vec::new(); columns as usize];
    let top = view.top.clamp(1, 1000) as usize;
    let mut offer = |column: u32, row: u64, value: f64| {
        let Some(list) = best.get_mut(column as usize) else { return };
        if value.is_nan() || value <= 0.0 || (list.len() == top && list.last().is_some_and(|l| l.0 >= value)) {
            return;
        }
        let at = list.partition_point(|l| l.0 >= value);
        list.insert(at, (value, row));
        list.truncate(top);
    };
    for shard in shards {
        match &shard.rows {
            RowDeltas::Dense(values) => each_dtype!(Values, values, v => {
                for (row, values) in shard.range.clone().zip(v.chunks_exact(spec.width as usize)) {
                    (0..columns).zip(values).for_each(|(c, x)| offer(c, row, x.to_f64()));
                }
            }),
            RowDeltas::Sparse { offsets, columns, values } => each_dtype!(Values, values, v => {
                for (row, w) in shard.range.clone().zip(offsets.windows(2)) {
                    for i in w[0] as usize..w[1] as usize {
                        offer(columns[i], row, v[i].to_f64());
                    }
                }
            }),
        }
    }
    let lines = best.into_iter().map(|l| l.into_iter().map(|(_, row)| label(row)).collect()).collect();
    ViewResult { title: view.title.clone(), lines }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_core::{DType, Init, Layout, Values};

    #[test]
    fn each_column_lists_its_heaviest_rows_over_all_shards() {
        let spec = TableSpec {
            name: "t".into(),
            dtype: DType::I32,
            layout: Layout::Dense,
            rows: 4,
            width: 2,
            init: Init::Zero,
        };
        let a = TableSnapshot { range: 0..2, rows: RowDeltas::Dense(Values::I32(vec![5, 0, 7, 1])) };
        let b = TableSnapshot { range: 2..4, rows: RowDeltas::Dense(Values::I32(vec![6, 9, 7, 0])) };
        let view = View { title: "topics".into(), table: "t".into(), labels: "word".into(), top: 3 };
        let got = fill(&view, &spec, &[&a, &b], |row| format!("w{row}"));
        assert_eq!(got.lines, [vec!["w1", "w3", "w2"], vec!["w2", "w1"]]);
    }
}
