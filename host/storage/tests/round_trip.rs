//! What goes into a cut comes out, whatever its shape and however it was cut in pieces (C11).

mod common;

use common::{dense, read_dense, read_sparse, sparse, worker};
use proptest::prelude::*;
use slackline_core::ports::SparseRows;
use slackline_core::{DType, TableId, Values, WorkerId};
use slackline_storage::{CutSpec, Mode, State};
use std::collections::BTreeMap;

fn values(dtype: DType, n: usize) -> BoxedStrategy<Values> {
    match dtype {
        DType::F32 => prop::collection::vec(any::<u32>(), n)
            .prop_map(|v| Values::F32(v.into_iter().map(f32::from_bits).collect()))
            .boxed(),
        DType::F64 => prop::collection::vec(any::<u64>(), n)
            .prop_map(|v| Values::F64(v.into_iter().map(f64::from_bits).collect()))
            .boxed(),
        DType::I32 => prop::collection::vec(any::<i32>(), n).prop_map(Values::I32).boxed(),
        _ => prop::collection::vec(any::<i64>(), n).prop_map(Values::I64).boxed(),
    }
}

fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(vec![DType::F32, DType::F64, DType::I32, DType::I64])
}

fn dense_table() -> impl Strategy<Value = (DType, u32, usize, Values)> {
    (dtype(), 1u32..9, 0usize..40)
        .prop_flat_map(|(d, width, rows)| values(d, width as usize * rows).prop_map(move |v| (d, width, rows, v)))
}

fn sparse_table() -> impl Strategy<Value = (DType, Vec<Vec<u32>>, SparseRows)> {
    let rows = prop::collection::vec(prop::collection::btree_set(0u32..50, 0..8), 0..30);
    (dtype(), rows).prop_flat_map(|(d, rows)| {
        let cells = rows.iter().map(|r| r.len()).sum();
        values(d, cells).prop_map(move |values| {
            let mut offsets = vec![0u32];
            let rows: Vec<Vec<u32>> = rows.iter().map(|r| r.iter().copied().collect()).collect();
            offsets.extend(rows.iter().scan(0, |end, r| {
                *end += r.len() as u32;
                Some(*end)
            }));
            (d, rows.clone(), SparseRows { offsets, columns: rows.concat(), values })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn rows_and_records_come_back_bit_for_bit(
        (d, width, rows, given) in dense_table(),
        (sd, srows, sgiven) in sparse_table(),
        piece in 1usize..20,
        random in any::<u128>(),
        metric in any::<f64>().prop_filter("JSON has no such number", |m| m.is_finite()),
        saved in prop::collection::vec(any::<u8>(), 0..64),
        local in prop::collection::btree_map("[a-z]{1,4}", dtype().prop_flat_map(|d| values(d, 7)), 0..4),
        part in any::<prop::sample::Index>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(dir.path(), Mode::Create).unwrap();
        let tables = vec![dense("d", d, rows as u64, width), sparse("s", sd, srows.len() as u64, 50)];
        let cut = state.begin_cut(CutSpec { clock: 7, workers: 1, tables }).unwrap();
        // Pieces in reverse, since shards come in any order.
        let starts: Vec<usize> = (0..rows).step_by(piece).collect();
        for first in starts.into_iter().rev() {
            let n = piece.min(rows - first);
            let window = given.as_ref().window(first * width as usize, n * width as usize).unwrap();
            cut.dense_rows(TableId(0), first as u64, window).unwrap();
        }
        cut.sparse_rows(TableId(1), 0, &sgiven).unwrap();
        let mut record = worker(3);
        record.random = random;
        record.saved = saved;
        record.local = local;
        record.metrics = serde_json::json!({"loss": metric});
        cut.worker(WorkerId(0), &record).unwrap();
        let note = serde_json::json!({"best": metric});
        cut.commit(note.clone()).unwrap();

        drop(state);
        let state = State::open(dir.path(), Mode::Existing).unwrap();
        let cut = state.newest_intact().unwrap().cut.unwrap();
        prop_assert_eq!(cut.clock(), 7);
        prop_assert_eq!(cut.note(), &note);
        let back = cut.worker(WorkerId(0)).unwrap();
        let bytes = |local: &BTreeMap<String, Values>| -> Vec<(String, DType, Vec<u8>)> {
            local.iter().map(|(k, v)| (k.clone(), v.dtype(), v.bytes().to_vec())).collect()
        };
        prop_assert_eq!(bytes(&back.local), bytes(&record.local));
        // Bits of NaNs have been compared as bytes.
        prop_assert_eq!(back.metrics["loss"].as_f64().unwrap().to_bits(), metric.to_bits());
        prop_assert_eq!((back.random, back.saved, back.cursor), (record.random, record.saved, record.cursor));

        let from = part.index(rows + 1);
        let all = read_dense(&cut, TableId(0), 0..rows as u64);
        prop_assert_eq!(&all, given.bytes());
        let row_bytes = width as usize * d.size();
        let tail = read_dense(&cut, TableId(0), from as u64..rows as u64);
        prop_assert_eq!(&tail[..], &given.bytes()[from * row_bytes..]);

        let (columns, cells) = read_sparse(&cut, TableId(1), 0..srows.len() as u64);
        prop_assert_eq!(&columns, &srows);
        prop_assert_eq!(&cells[..], sgiven.values.bytes());
        let sfrom = part.index(srows.len() + 1);
        let (columns, cells) = read_sparse(&cut, TableId(1), sfrom as u64..srows.len() as u64);
        prop_assert_eq!(&columns[..], &srows[sfrom..]);
        let skip = srows[..sfrom].iter().map(Vec::len).sum::<usize>() * sd.size();
        prop_assert_eq!(&cells[..], &sgiven.values.bytes()[skip..]);
    }
}

#[test]
fn tables_of_many_chunks_are_read_by_range_and_written_by_several_threads() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    let (rows, width) = (200_000u64, 16u32);
    let spec = dense("d", DType::F32, rows, width);
    let Values::F32(given) = spec.initial(5, 0, rows as usize) else { panic!() };
    let wide = SparseRows {
        offsets: (0..=1000).map(|i| i * 400).collect(),
        columns: (0..1000).flat_map(|_| 0..400).collect(),
        values: Values::I32((0..400_000).collect()),
    };
    let tables = vec![spec, sparse("s", DType::I32, 1000, 400)];
    let cut = state.begin_cut(CutSpec { clock: 1, workers: 2, tables }).unwrap();
    std::thread::scope(|s| {
        for half in 0..2usize {
            let (cut, given) = (&cut, &given);
            s.spawn(move || {
                let n = given.len() / 2;
                let values = slackline_core::ValuesRef::F32(&given[half * n..][..n]);
                cut.dense_rows(TableId(0), half as u64 * rows / 2, values).unwrap();
                let mut record = worker(half as u64);
                // More than one chunk of local state.
                record.local.insert("topics".into(), Values::U32(vec![half as u32; 700_000]));
                cut.worker(WorkerId(half as u32), &record).unwrap();
            });
        }
        s.spawn(|| cut.sparse_rows(TableId(1), 0, &wide).unwrap());
    });
    let info = cut.commit(serde_json::Value::Null).unwrap();
    assert!(info.bytes > given.len() as u64 * 4 + 400_000 * 8);

    let cut = state.open_cut(1).unwrap();
    let pieces = cut.dense_rows(TableId(0), 0..rows).unwrap().count();
    assert!(pieces >= 12, "{pieces} chunks");
    let range = 33_333..77_777u64;
    let bytes: &[u8] = bytemuck::cast_slice(&given[range.start as usize * 16..range.end as usize * 16]);
    assert!(read_dense(&cut, TableId(0), range) == bytes);
    assert!(read_dense(&cut, TableId(0), 5..5).is_empty());
    assert!(cut.sparse_rows(TableId(1), 0..1000).unwrap().count() >= 3);
    let (columns, cells) = read_sparse(&cut, TableId(1), 123..987);
    assert!(columns.iter().all(|c| c.len() == 400));
    assert!(cells == wide.values.bytes()[123 * 1600..987 * 1600]);
    assert_eq!(cut.worker(WorkerId(1)).unwrap().local["topics"], Values::U32(vec![1; 700_000]));
}
