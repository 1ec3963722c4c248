//! Oplogs, sparse rows and a shard's rows against plain maps, over random calls.

use slackline_core::oplog::new_oplog;
use slackline_core::part::RowDeltas;
use slackline_core::ports::ShardRows;
use slackline_core::sparse::SparseRow;
use slackline_core::{
    Consistency, DType, Init, Layout, ShardId, ShardMap, TableId, TableSpec, Values, ValuesMut, ValuesRef,
};
use slackline_server::{Shard, ShardConfig};
use slackline_testkit::Dice;
use std::collections::BTreeMap;

const CASES: u64 = 500;

fn table(dtype: DType, layout: Layout, rows: u64, width: u32) -> TableSpec {
    let init = Init::Normal { mean: 0.0, sd: 1.0 };
    TableSpec { name: "t".into(), dtype, layout, rows, width, init }
}

#[test]
fn dense_oplogs_coalesce_like_a_map_of_rows_bit_by_bit() {
    for seed in 0..CASES {
        let mut dice = Dice::new(seed, 1);
        let width = dice.within(1, 5) as usize;
        let range = 3..3 + dice.within(1, 40);
        let mut log = new_oplog(TableId(0), &table(DType::F32, Layout::Dense, 100, width as u32), range.clone());
        // Logs are recycled: the second round begins with the first one's memory.
        for _round in 0..3 {
            let mut map: BTreeMap<u64, Vec<f32>> = BTreeMap::new();
            for _call in 0..dice.within(0, 6) {
                let rows: Vec<u64> = (0..dice.within(0, 8)).map(|_| dice.within(0, 99)).collect();
                let deltas: Vec<f32> = (0..rows.len() * width).map(|_| dice.float()).collect();
                let here: Vec<u32> = (0u32..).zip(&rows).filter(|(_, r)| range.contains(r)).map(|(i, _)| i).collect();
                log.add_dense(&rows, Some(&here), ValuesRef::F32(&deltas));
                for &place in &here {
                    let delta = &deltas[place as usize * width..][..width];
                    map.entry(rows[place as usize])
                        .and_modify(|sum| sum.iter_mut().zip(delta).for_each(|(a, d)| *a += d))
                        .or_insert_with(|| delta.to_vec());
                }
            }
            let all: Vec<u64> = range.clone().collect();
            let base: Vec<f32> =
                all.iter().flat_map(|_| (0..width).map(|_| dice.float()).collect::<Vec<_>>()).collect();
            let want: Vec<f32> = all
                .iter()
                .zip(base.chunks(width))
                .flat_map(|(row, base)| {
                    let delta = map.get(row).cloned();
                    base.iter().enumerate().map(|(i, b)| delta.as_ref().map_or(*b, |d| b + d[i])).collect::<Vec<_>>()
                })
                .collect();
            let overlaid = |log: &dyn slackline_core::oplog::Oplog| {
                let mut out = base.clone();
                log.overlay_dense(&all, None, ValuesMut::F32(&mut out));
                out
            };
            assert_eq!(overlaid(&*log), want, "open, seed {seed}");
            assert_eq!(log.is_empty(), map.is_empty(), "seed {seed}");
            let block = log.freeze();
            assert_eq!(overlaid(&*log), want, "frozen, seed {seed}");
            let RowDeltas::Dense(Values::F32(deltas)) = &block.deltas else { panic!("another layout") };
            let got: BTreeMap<u64, Vec<f32>> =
                block.rows.iter().copied().zip(deltas.chunks(width).map(<[f32]>::to_vec)).collect();
            assert_eq!((got, block.rows.len()), (map.clone(), map.len()), "seed {seed}");
            drop(block);
            log.recycle();
            assert!(log.is_empty());
            assert_eq!(overlaid(&*log), base, "recycled, seed {seed}");
        }
    }
}

#[test]
fn sparse_oplogs_coalesce_like_a_map_of_columns() {
    for seed in 0..CASES {
        let mut dice = Dice::new(seed, 2);
        let mut log = new_oplog(TableId(0), &table(DType::I32, Layout::Sparse, 20, 6), 0..20);
        for _round in 0..3 {
            let mut map: BTreeMap<u64, BTreeMap<u32, i32>> = BTreeMap::new();
            for _call in 0..dice.within(0, 10) {
                let row = dice.within(0, 19);
                let columns: Vec<u32> = (0..dice.within(0, 5)).map(|_| dice.within(0, 5) as u32).collect();
                let values: Vec<i32> = columns.iter().map(|_| dice.within(0, 4) as i32 - 2).collect();
                log.add_sparse(row, &columns, ValuesRef::I32(&values));
                let to = map.entry(row).or_default();
                columns.iter().zip(&values).for_each(|(c, v)| *to.entry(*c).or_default() += v);
                to.retain(|_, v| *v != 0);
            }
            let overlaid = |log: &dyn slackline_core::oplog::Oplog, row| {
                let mut seen = BTreeMap::new();
                log.overlay_sparse(row, &mut |columns, values| {
                    let ValuesRef::I32(values) = values else { panic!("another type") };
                    seen.extend(columns.iter().copied().zip(values.iter().copied()));
                });
                seen
            };
            let want = |row| map.get(&row).cloned().unwrap_or_default();
            (0..20).for_each(|row| assert_eq!(overlaid(&*log, row), want(row), "open, seed {seed}"));
            let block = log.freeze();
            (0..20).for_each(|row| assert_eq!(overlaid(&*log, row), want(row), "frozen, seed {seed}"));
            assert_eq!(block.rows.len(), map.len());
            log.recycle();
            (0..20).for_each(|row| assert!(overlaid(&*log, row).is_empty(), "recycled, seed {seed}"));
        }
    }
}

#[test]
fn a_sparse_row_is_a_sorted_map_without_zeros() {
    for seed in 0..CASES {
        let mut dice = Dice::new(seed, 3);
        let (mut row, mut map) = (SparseRow::<i64>::default(), BTreeMap::<u32, i64>::new());
        for _ in 0..dice.within(1, 20) {
            let columns: Vec<u32> = (0..dice.within(0, 4)).map(|_| dice.within(0, 7) as u32).collect();
            let values: Vec<i64> = columns.iter().map(|_| dice.within(0, 2) as i64 - 1).collect();
            row.add(&columns, &values);
            columns.iter().zip(&values).for_each(|(c, v)| *map.entry(*c).or_default() += v);
            map.retain(|_, v| *v != 0);
            let want: (Vec<u32>, Vec<i64>) = map.iter().map(|(c, v)| (*c, *v)).unzip();
            assert_eq!((row.columns(), row.values()), (&want.0[..], &want.1[..]), "seed {seed}");
        }
    }
}

#[test]
fn a_shard_reads_the_rows_that_its_table_begins_with_at_every_width_and_place() {
    for width in [1, 2, 7, 8, 15, 16, 17, 32, 33] {
        for shards in 1..4 {
            let spec = table(DType::F64, Layout::Dense, 50, width);
            let Values::F64(all) = spec.initial(3, 0, 50) else { panic!("another type") };
            let width = width as usize;
            for id in (0..shards).map(ShardId) {
                let range = ShardMap::new(&spec, shards).range(id);
                let tables = vec![spec.clone()];
                let consistency = Consistency::BSP;
                let config = ShardConfig { id, shards, tables, workers: 1, consistency, seed: 3, start: 0 };
                let (shard, mut dice) = (Shard::new(config), Dice::new(u64::from(shards), 4));
                let rows: Vec<u64> = (0..60).map(|_| dice.within(range.start, range.end - 1)).collect();
                let want: Vec<f64> = rows.iter().flat_map(|&r| all[r as usize * width..][..width].to_vec()).collect();
                let mut out = vec![0.0; want.len()];
                shard.read_dense(TableId(0), &rows, None, ValuesMut::F64(&mut out));
                assert_eq!(out, want, "width {width}");
                // The same rows at every other place, the rest left alone.
                let places: Vec<u32> = (0..rows.len() as u32).filter(|p| p % 2 == 1).collect();
                let mut out = vec![-9.0; want.len()];
                shard.read_dense(TableId(0), &rows, Some(&places), ValuesMut::F64(&mut out));
                for (place, (got, want)) in out.chunks(width).zip(want.chunks(width)).enumerate() {
                    assert_eq!(got, if place % 2 == 1 { want.to_vec() } else { vec![-9.0; width] });
                }
            }
        }
    }
}
