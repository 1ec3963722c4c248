//! Snapshots: what a shard refuses to begin with, and how a cut moves to another number of shards.

use slackline_core::part::RowDeltas;
use slackline_core::{Consistency, DType, Init, Layout, ShardId, ShardMap, TableSpec, Values};
use slackline_server::{Shard, ShardConfig, TableSnapshot, resplit};

fn table(layout: Layout) -> TableSpec {
    TableSpec { name: "t".into(), dtype: DType::I64, layout, rows: 7, width: 3, init: Init::Zero }
}

fn config(table: TableSpec) -> ShardConfig {
    // Shard 0 of 2: rows 0..4.
    let consistency = Consistency::BSP;
    ShardConfig { id: ShardId(0), shards: 2, tables: vec![table], workers: 1, consistency, seed: 0, start: 5 }
}

fn dense(range: std::ops::Range<u64>, values: usize) -> TableSnapshot {
    TableSnapshot { range, rows: RowDeltas::Dense(Values::I64((0..values as i64).collect())) }
}

fn sparse(range: std::ops::Range<u64>, offsets: &[u32], columns: &[u32], values: usize) -> TableSnapshot {
    let values = Values::I64((1..=values as i64).collect());
    let rows = RowDeltas::Sparse { offsets: offsets.to_vec(), columns: columns.to_vec(), values };
    TableSnapshot { range, rows }
}

#[test]
fn a_shard_refuses_snapshots_that_do_not_fit() {
    let wrong_type = TableSnapshot { range: 0..4, rows: RowDeltas::Dense(Values::F64(vec![0.0; 12])) };
    for (what, layout, snapshots, fits) in [
        ("sound and dense", Layout::Dense, vec![dense(0..4, 12)], true),
        ("sound and sparse", Layout::Sparse, vec![sparse(0..4, &[0, 0, 2, 2, 3], &[0, 2, 1], 3)], true),
        ("no table", Layout::Dense, vec![], false),
        ("two tables", Layout::Dense, vec![dense(0..4, 12), dense(0..4, 12)], false),
        ("rows of another shard", Layout::Dense, vec![dense(4..7, 9)], false),
        ("rows of another split", Layout::Dense, vec![dense(0..3, 9)], false),
        ("too few values", Layout::Dense, vec![dense(0..4, 11)], false),
        ("wrong type", Layout::Dense, vec![wrong_type], false),
        ("wrong layout", Layout::Sparse, vec![dense(0..4, 12)], false),
        ("too few offsets", Layout::Sparse, vec![sparse(0..4, &[0, 0, 3], &[0, 2, 1], 3)], false),
        ("descending offsets", Layout::Sparse, vec![sparse(0..4, &[0, 2, 1, 2, 3], &[0, 2, 1], 3)], false),
        ("column beyond the width", Layout::Sparse, vec![sparse(0..4, &[0, 0, 2, 2, 3], &[0, 3, 1], 3)], false),
        ("columns without values", Layout::Sparse, vec![sparse(0..4, &[0, 0, 2, 2, 3], &[0, 2, 1], 2)], false),
    ] {
        let restored = Shard::restore(config(table(layout)), snapshots.clone());
        assert_eq!(restored.is_some(), fits, "{what}");
        if let Some(shard) = restored {
            assert_eq!((shard.snapshot(), shard.min_clock()), (snapshots, 5), "{what}");
        }
    }
}

#[test]
fn a_cut_moves_to_any_number_of_shards_and_back() {
    let whole_dense = dense(0..7, 21);
    let whole_sparse = sparse(0..7, &[0, 1, 1, 3, 3, 4, 4, 6], &[2, 0, 1, 2, 0, 2], 6);
    for whole in [whole_dense, whole_sparse] {
        let layout = if matches!(whole.rows, RowDeltas::Dense(_)) { Layout::Dense } else { Layout::Sparse };
        let spec = table(layout);
        for shards in 1..9 {
            let mut pieces = resplit(&spec, vec![whole.clone()], shards).unwrap();
            let ranges: Vec<_> = (0..shards).map(|s| ShardMap::new(&spec, shards).range(ShardId(s))).collect();
            assert_eq!(pieces.iter().map(|p| p.range.clone()).collect::<Vec<_>>(), ranges);
            pieces.reverse();
            assert_eq!(resplit(&spec, pieces, 1), Some(vec![whole.clone()]), "{shards} shards");
        }
    }
}

#[test]
fn a_cut_that_is_not_all_of_the_table_is_refused() {
    for (what, layout, pieces) in [
        ("nothing", Layout::Dense, vec![]),
        ("a gap", Layout::Dense, vec![dense(0..3, 9), dense(4..7, 9)]),
        ("an overlap", Layout::Dense, vec![dense(0..4, 12), dense(3..7, 12)]),
        ("too short", Layout::Dense, vec![dense(0..4, 12)]),
        ("too long", Layout::Dense, vec![dense(0..8, 24)]),
        ("too few values", Layout::Dense, vec![dense(0..7, 20)]),
        ("another layout", Layout::Sparse, vec![dense(0..7, 21)]),
        ("unsound offsets", Layout::Sparse, vec![sparse(0..7, &[0, 1, 0, 1, 1, 1, 1, 1], &[0], 1)]),
    ] {
        assert_eq!(resplit(&table(layout), pieces, 2), None, "{what}");
    }
}
