//! A cache, fed by hand.

use slackline_client::{CacheConfig, Cached, Read, SparseRead};
use slackline_core::messages::{RowsAt, ToShard, ToWorker};
use slackline_core::part::RowDeltas;
use slackline_core::ports::SparseRows;
use slackline_core::{
    Clock, Consistency, DType, Init, Layout, Model, PartKey, ShardId, TableId, TableSpec, Values, ValuesRef, WorkerId,
};

const DENSE: TableId = TableId(0);
const SPARSE: TableId = TableId(1);
const SHARD: ShardId = ShardId(0);

fn cached(model: Model, staleness: u32, rows: usize) -> Cached {
    let table = |name: &str, layout| TableSpec {
        name: name.into(),
        dtype: DType::I64,
        layout,
        rows: 8,
        width: 1,
        init: Init::Zero,
    };
    let tables = [table("dense", Layout::Dense), table("sparse", Layout::Sparse)];
    let config = CacheConfig { rows, consistency: Consistency { model, staleness } };
    Cached::new(WorkerId(0), 0, &tables, 1, config)
}

fn rows_at(rows: &[u64], values: &[i64], min_clock: Clock, included: PartKey) -> RowsAt {
    let values = RowDeltas::Dense(Values::I64(values.to_vec()));
    RowsAt { table: DENSE, rows: rows.to_vec(), values, min_clock, included }
}

/// Reads dense rows; what comes of it, and what is sent, in short.
fn read(cache: &mut Cached, rows: &[u64]) -> (Option<(Vec<i64>, Clock)>, Vec<String>) {
    let mut out = Vec::new();
    let read = match cache.read(DENSE, rows, &mut out).unwrap() {
        Read::Ready(Values::I64(values), gap) => Some((values, gap)),
        Read::Ready(..) => panic!("another type"),
        Read::Blocked => None,
    };
    let short = |(_, m): (_, ToShard)| match m {
        ToShard::Read { rows, need, subscribe, .. } => format!("read {rows:?} {need} {subscribe}"),
        ToShard::Unsubscribe { rows, .. } => format!("drop {rows:?}"),
        ToShard::Part(_) => "part".into(),
    };
    (read, out.into_iter().map(short).collect())
}

fn said(messages: &[&str]) -> Vec<String> {
    messages.iter().map(|m| (*m).into()).collect()
}

#[test]
fn a_cold_miss_is_asked_for_once_and_a_pushed_row_never_again() {
    let mut cache = cached(Model::Essp, 0, 10);
    assert_eq!(read(&mut cache, &[3, 3, 5]), (None, said(&["read [3, 5] 0 true"])));
    assert_eq!(read(&mut cache, &[3, 5]), (None, vec![]));
    cache.receive(SHARD, ToWorker::Rows(rows_at(&[3, 5], &[30, 50], 0, PartKey::default())));
    assert_eq!(read(&mut cache, &[5, 3, 5]), (Some((vec![50, 30, 50], 0)), vec![]));
    cache.seal(true);
    assert_eq!(read(&mut cache, &[3]), (None, vec![]), "the push is on its way");
    // Row 5 changed, row 3 did not: the clock record makes both fresh.
    let changed = vec![rows_at(&[5], &[51], 1, PartKey::start_of(1))];
    cache.receive(SHARD, ToWorker::Push { min_clock: 1, changed });
    assert_eq!(read(&mut cache, &[3, 5]), (Some((vec![30, 51], 0)), vec![]));
}

#[test]
fn under_ssp_a_row_that_is_too_old_is_asked_for_again() {
    let mut cache = cached(Model::Ssp, 1, 10);
    read(&mut cache, &[0]);
    cache.receive(SHARD, ToWorker::Rows(rows_at(&[0], &[7], 0, PartKey::default())));
    cache.seal(true);
    assert_eq!(read(&mut cache, &[0]), (Some((vec![7], 1)), vec![]));
    cache.seal(true);
    assert_eq!(read(&mut cache, &[0]), (None, said(&["read [0] 1 false"])));
}

#[test]
fn own_updates_stay_visible_between_acknowledgement_and_push() {
    let mut cache = cached(Model::Essp, 3, 10);
    read(&mut cache, &[0]);
    cache.receive(SHARD, ToWorker::Rows(rows_at(&[0], &[100], 0, PartKey::default())));
    cache.inc(DENSE, &[0, 0], ValuesRef::I64(&[1, 2])).unwrap();
    cache.seal(false);
    cache.inc(DENSE, &[0], ValuesRef::I64(&[10])).unwrap();
    cache.seal(true);
    let sees = |cache: &mut Cached| read(cache, &[0]).0.unwrap().0[0];
    assert_eq!(sees(&mut cache), 113);
    cache.receive(SHARD, ToWorker::Ack { applied: PartKey { clock: 0, part: 1 } });
    assert_eq!(sees(&mut cache), 113);
    // An acknowledgement that comes again changes nothing.
    cache.receive(SHARD, ToWorker::Ack { applied: PartKey { clock: 0, part: 1 } });
    assert_eq!(sees(&mut cache), 113);
    cache.receive(SHARD, ToWorker::Ack { applied: PartKey::start_of(1) });
    let changed = vec![rows_at(&[0], &[1113], 1, PartKey::start_of(1))];
    cache.receive(SHARD, ToWorker::Push { min_clock: 1, changed });
    assert_eq!(sees(&mut cache), 1113);
}

#[test]
fn the_cache_is_bounded_by_rows_or_by_the_read_at_hand() {
    let mut cache = cached(Model::Essp, 9, 2);
    for row in 0..3 {
        read(&mut cache, &[row]);
        cache.receive(SHARD, ToWorker::Rows(rows_at(&[row], &[row as i64], 0, PartKey::default())));
    }
    assert_eq!(read(&mut cache, &[2]), (Some((vec![2], 0)), said(&["drop [0]"])));
    assert_eq!(cache.resident(), 2);
    // A push that was on its way when the row was let go does not bring it back.
    let changed = vec![rows_at(&[0], &[5], 1, PartKey::default())];
    cache.receive(SHARD, ToWorker::Push { min_clock: 1, changed });
    assert_eq!(cache.resident(), 2);
    read(&mut cache, &[4, 5, 6]);
    cache.receive(SHARD, ToWorker::Rows(rows_at(&[4, 5, 6], &[4, 5, 6], 0, PartKey::default())));
    assert_eq!(read(&mut cache, &[4, 5, 6]).1, said(&["drop [1]", "drop [2]"]));
    assert_eq!(cache.resident(), 3);
}

#[test]
fn async_reads_never_wait_for_a_clock_and_follow_pushes() {
    let mut cache = cached(Model::Async, 0, 10);
    assert_eq!(read(&mut cache, &[0]).1, said(&["read [0] 0 true"]));
    cache.receive(SHARD, ToWorker::Rows(rows_at(&[0], &[1], 0, PartKey::default())));
    for _ in 0..5 {
        cache.seal(true);
    }
    assert_eq!(read(&mut cache, &[0]), (Some((vec![1], 5)), vec![]));
    let changed = vec![rows_at(&[0], &[2], 1, PartKey::default())];
    cache.receive(SHARD, ToWorker::Push { min_clock: 1, changed });
    assert_eq!(read(&mut cache, &[0]), (Some((vec![2], 4)), vec![]));
}

#[test]
fn messages_that_are_not_sound_are_passed_over() {
    let mut cache = cached(Model::Essp, 9, 10);
    read(&mut cache, &[0, 1]);
    let unasked = rows_at(&[7], &[1], 0, PartKey::default());
    let no_table = RowsAt { table: TableId(9), ..rows_at(&[0], &[1], 0, PartKey::default()) };
    for at in [unasked, no_table] {
        cache.receive(SHARD, ToWorker::Rows(at));
    }
    cache.receive(ShardId(7), ToWorker::Ack { applied: PartKey::start_of(1) });
    assert_eq!(cache.resident(), 0);
    // Two rows are promised, and one is there.
    cache.receive(SHARD, ToWorker::Rows(rows_at(&[0, 1], &[1], 0, PartKey::default())));
    assert_eq!(cache.resident(), 1);
}

#[test]
fn sparse_rows_lay_own_updates_over_and_fold_them_in() {
    let mut cache = cached(Model::Essp, 9, 10);
    let mut out = Vec::new();
    assert_eq!(cache.read_sparse(SPARSE, &[2, 3], &mut out), Ok(SparseRead::Blocked));
    let values = RowDeltas::Sparse { offsets: vec![0, 1, 1], columns: vec![0], values: Values::I64(vec![5]) };
    let at = RowsAt { table: SPARSE, rows: vec![2, 3], values, min_clock: 0, included: PartKey::default() };
    cache.receive(SHARD, ToWorker::Rows(at));
    cache.inc_sparse(SPARSE, &[2], &[0, 2], &[0, 0], ValuesRef::I64(&[1, 1])).unwrap();
    cache.seal(true);
    let read = |offsets: &[u32], columns: &[u32], values: &[i64]| {
        let (offsets, columns) = (offsets.to_vec(), columns.to_vec());
        Ok(SparseRead::Ready(SparseRows { offsets, columns, values: Values::I64(values.to_vec()) }, 1))
    };
    let want = read(&[0, 0, 1, 2], &[0, 0], &[7, 7]);
    assert_eq!(cache.read_sparse(SPARSE, &[3, 2, 2], &mut out), want);
    cache.receive(SHARD, ToWorker::Ack { applied: PartKey::start_of(1) });
    assert_eq!(cache.read_sparse(SPARSE, &[3, 2, 2], &mut out), want);
    cache.inc_sparse(SPARSE, &[2], &[0, 1], &[0], ValuesRef::I64(&[-7])).unwrap();
    assert_eq!(cache.read_sparse(SPARSE, &[2], &mut out), read(&[0, 0], &[], &[]));
}
