//! One shard, fed by hand.

use slackline_core::messages::{ToShard, ToWorker};
use slackline_core::part::{RowDeltas, TableDeltas};
use slackline_core::ports::ShardRows;
use slackline_core::{
    Clock, Consistency, DType, Init, Layout, Model, PartKey, SealedPart, ShardId, TableId, TableSpec, Values,
    ValuesMut, WorkerId,
};
use slackline_server::{Output, Received, Shard, ShardConfig};
use std::sync::Arc;

const DENSE: TableId = TableId(0);
const SPARSE: TableId = TableId(1);

fn config(consistency: Consistency) -> ShardConfig {
    let table = |name: &str, dtype, layout| TableSpec {
        name: name.into(),
        dtype,
        layout,
        rows: 10,
        width: 2,
        init: Init::Constant { value: 1.0 },
    };
    let tables = vec![table("dense", DType::F32, Layout::Dense), table("sparse", DType::I32, Layout::Sparse)];
    // Shard 1 of 2: rows 5..10.
    ShardConfig { id: ShardId(1), shards: 2, tables, workers: 2, consistency, seed: 0, start: 0 }
}

fn ssp(staleness: u32) -> Consistency {
    Consistency { model: Model::Ssp, staleness }
}

fn dense(rows: &[u64], deltas: &[f32]) -> TableDeltas {
    TableDeltas { table: DENSE, rows: rows.to_vec(), deltas: RowDeltas::Dense(Values::F32(deltas.to_vec())) }
}

fn sparse(rows: &[u64], offsets: &[u32], columns: &[u32], values: &[i32]) -> TableDeltas {
    let (offsets, columns) = (offsets.to_vec(), columns.to_vec());
    let deltas = RowDeltas::Sparse { offsets, columns, values: Values::I32(values.to_vec()) };
    TableDeltas { table: SPARSE, rows: rows.to_vec(), deltas }
}

fn part(worker: u32, clock: Clock, part: u32, last: bool, blocks: Vec<TableDeltas>) -> SealedPart {
    let tables = blocks.into_iter().map(Arc::new).collect();
    SealedPart { worker: WorkerId(worker), key: PartKey { clock, part }, last, tables }
}

/// Feeds a part; answers what became of it and the outputs in short.
fn feed(shard: &mut Shard, part: SealedPart) -> (Received, Vec<String>) {
    let mut out = Vec::new();
    let received = shard.receive_part(part, &mut out);
    (received, short(&out))
}

fn short(out: &[Output]) -> Vec<String> {
    out.iter()
        .map(|o| match o {
            Output::Send(w, ToWorker::Ack { applied }) => format!("ack {w} {}.{}", applied.clock, applied.part),
            Output::Send(w, ToWorker::Rows(at)) => format!("rows {w} {:?} at {}", at.rows, at.min_clock),
            Output::Send(w, ToWorker::Push { min_clock, changed }) => {
                let rows: Vec<_> = changed.iter().map(|at| (at.table.0, at.rows.clone())).collect();
                format!("push {w} {min_clock} {rows:?}")
            }
            Output::MinClock(min) => format!("min {min}"),
            Output::CutDue(at) => format!("cut {at}"),
        })
        .collect()
}

fn row(shard: &Shard, row: u64) -> [f32; 2] {
    let mut out = [0.0; 2];
    shard.read_dense(DENSE, &[row], None, ValuesMut::F32(&mut out));
    out
}

#[test]
fn parts_that_do_not_fit_are_refused_and_change_nothing() {
    let wrong_type = TableDeltas { deltas: RowDeltas::Dense(Values::F64(vec![1.0; 2])), ..dense(&[5], &[]) };
    let sound = || dense(&[5], &[1.0, 1.0]);
    for (what, bad) in [
        ("unknown worker", part(2, 0, 0, true, vec![sound()])),
        ("unknown table", part(0, 0, 0, true, vec![sound(), TableDeltas { table: TableId(2), ..sound() }])),
        ("row of another shard", part(0, 0, 0, true, vec![sound(), dense(&[4], &[1.0, 1.0])])),
        ("row beyond the table", part(0, 0, 0, true, vec![sound(), dense(&[u64::MAX], &[1.0, 1.0])])),
        ("too few values", part(0, 0, 0, true, vec![sound(), dense(&[5, 6], &[1.0, 1.0])])),
        ("wrong type", part(0, 0, 0, true, vec![sound(), wrong_type])),
        ("dense block for a sparse table", part(0, 0, 0, true, vec![TableDeltas { table: SPARSE, ..sound() }])),
        (
            "sparse block for a dense table",
            part(0, 0, 0, true, vec![TableDeltas { table: DENSE, ..sparse(&[5], &[0, 1], &[1], &[1]) }]),
        ),
        ("column beyond the width", part(0, 0, 0, true, vec![sound(), sparse(&[5], &[0, 1], &[2], &[1])])),
        ("descending offsets", part(0, 0, 0, true, vec![sound(), sparse(&[5, 6], &[0, 1, 0], &[], &[])])),
        ("offsets beyond the columns", part(0, 0, 0, true, vec![sound(), sparse(&[5], &[0, 9], &[1], &[1])])),
        ("too few offsets", part(0, 0, 0, true, vec![sound(), sparse(&[5, 6], &[0, 1], &[1], &[1])])),
    ] {
        let mut shard = Shard::new(config(ssp(1)));
        let before = shard.snapshot();
        assert_eq!(feed(&mut shard, bad), (Received::Refused, vec![]), "{what}");
        assert_eq!(shard.snapshot(), before, "{what}");
        assert_eq!((shard.applied_counts(), shard.min_clock()), ((0, 0), 0), "{what}");
        // Its place is still free for the sound part.
        assert_eq!(feed(&mut shard, part(0, 0, 0, true, vec![sound()])).0, Received::Taken, "{what}");
        assert_eq!(row(&shard, 5), [2.0, 2.0], "{what}");
    }
}

#[test]
fn messages_that_the_sender_may_not_send_are_refused() {
    let read = |table, rows: &[u64]| ToShard::Read { table, rows: rows.to_vec(), need: 0, subscribe: true };
    let drop_row = |rows: &[u64]| ToShard::Unsubscribe { table: DENSE, rows: rows.to_vec() };
    for (what, from, message) in [
        ("a part of somebody else", 0, ToShard::Part(part(1, 0, 0, true, vec![]))),
        ("a read by an unknown worker", 2, read(DENSE, &[5])),
        ("a read of an unknown table", 0, read(TableId(7), &[5])),
        ("a read of a row of another shard", 0, read(DENSE, &[5, 4])),
        ("an unsubscription of a row of another shard", 0, drop_row(&[4])),
        ("an unsubscription by an unknown worker", 2, drop_row(&[5])),
    ] {
        let (mut shard, mut out) = (Shard::new(config(ssp(1))), Vec::new());
        assert_eq!(shard.receive(WorkerId(from), message, &mut out), Received::Refused, "{what}");
        assert!(out.is_empty(), "{what}");
    }
}

#[test]
fn repeats_are_acknowledged_and_not_applied_again() {
    let mut shard = Shard::new(config(ssp(1)));
    let one = || part(0, 0, 0, true, vec![dense(&[5], &[1.0, 2.0])]);
    assert_eq!(feed(&mut shard, one()), (Received::Taken, vec!["ack 0 1.0".into()]));
    assert_eq!(feed(&mut shard, one()), (Received::Repeated, vec!["ack 0 1.0".into()]));
    let early = || part(0, 2, 0, true, vec![dense(&[5], &[1.0, 2.0])]);
    assert_eq!(feed(&mut shard, early()), (Received::Taken, vec![]));
    assert_eq!(feed(&mut shard, early()), (Received::Repeated, vec!["ack 0 1.0".into()]));
    assert_eq!(row(&shard, 5), [2.0, 3.0]);
}

#[test]
fn parts_of_a_worker_apply_in_order_however_they_arrive() {
    let mut shard = Shard::new(config(ssp(3)));
    for (clock, number, last) in [(1, 0, true), (0, 1, true)] {
        assert_eq!(feed(&mut shard, part(0, clock, number, last, vec![])).1, Vec::<String>::new());
    }
    assert_eq!(feed(&mut shard, part(0, 0, 0, false, vec![])).1, ["ack 0 0.1", "ack 0 1.0", "ack 0 2.0"]);
    assert_eq!(feed(&mut shard, part(1, 0, 0, true, vec![])).1, ["ack 1 1.0", "min 1"]);
}

#[test]
fn bsp_applies_a_clock_in_worker_order_when_all_of_it_is_here() {
    // 1 + 2^24 is lost in f32 unless it is added to its negative first: the order of additions shows.
    let big = 16_777_216.0;
    let run = |order: [usize; 3]| {
        let mut shard = Shard::new(config(Consistency::BSP));
        let parts = [
            part(0, 0, 0, false, vec![dense(&[5], &[big, 0.0])]),
            part(0, 0, 1, true, vec![dense(&[5], &[-big, 0.0])]),
            part(1, 0, 0, true, vec![dense(&[5], &[0.5, 0.0])]),
        ];
        for (n, &i) in order.iter().enumerate() {
            assert_eq!(row(&shard, 5), [1.0, 1.0]);
            let outputs = feed(&mut shard, parts[i].clone()).1;
            assert_eq!(outputs.is_empty(), n < 2);
        }
        row(&shard, 5)
    };
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        assert_eq!(run(order), [1.0 + big - big + 0.5, 1.0]);
    }
}

#[test]
fn a_read_is_answered_when_its_gate_opens_and_changes_are_pushed_before_the_next_clock() {
    let (mut shard, mut out) = (Shard::new(config(Consistency { model: Model::Essp, staleness: 1 })), Vec::new());
    let read = ToShard::Read { table: DENSE, rows: vec![6, 7], need: 1, subscribe: true };
    assert_eq!(shard.receive(WorkerId(1), read, &mut out), Received::Taken);
    assert!(out.is_empty());
    feed(&mut shard, part(0, 0, 0, true, vec![dense(&[6], &[1.0, 1.0])]));
    let first = feed(&mut shard, part(1, 0, 0, true, vec![])).1;
    assert_eq!(first, ["ack 1 1.0", "min 1", "push 0 1 []", "push 1 1 []", "rows 1 [6, 7] at 1"]);
    feed(&mut shard, part(0, 1, 0, true, vec![dense(&[5, 6, 7], &[1.0; 6])]));
    shard.receive(WorkerId(1), ToShard::Unsubscribe { table: DENSE, rows: vec![6] }, &mut out);
    let second = feed(&mut shard, part(1, 1, 0, true, vec![sparse(&[7], &[0, 1], &[0], &[1])])).1;
    assert_eq!(second, ["ack 1 2.0", "min 2", "push 0 2 []", "push 1 2 [(0, [7])]"]);
}

#[test]
fn a_cut_holds_newer_parts_until_it_is_released() {
    let (mut shard, mut out) = (Shard::new(config(ssp(2))), Vec::new());
    assert!(shard.request_cut(1, &mut out));
    feed(&mut shard, part(0, 0, 0, true, vec![dense(&[5], &[1.0, 0.0])]));
    assert!(feed(&mut shard, part(0, 1, 0, true, vec![dense(&[5], &[10.0, 0.0])])).1.is_empty());
    assert_eq!(feed(&mut shard, part(1, 0, 0, true, vec![])).1, ["ack 1 1.0", "min 1", "cut 1"]);
    assert_eq!(row(&shard, 5), [2.0, 1.0]);
    assert!(!shard.request_cut(3, &mut out), "one is due");
    feed(&mut shard, part(1, 1, 0, true, vec![]));
    assert_eq!(row(&shard, 5), [2.0, 1.0]);
    shard.release_cut(Some(2), &mut out);
    assert_eq!(short(&out), ["ack 0 2.0", "ack 1 2.0", "min 2", "cut 2"]);
    assert_eq!(row(&shard, 5), [12.0, 1.0]);
}

#[test]
fn a_cut_that_gives_way_lets_go_of_what_it_held() {
    let (mut shard, mut out) = (Shard::new(config(ssp(2))), Vec::new());
    assert!(shard.request_cut(1, &mut out));
    feed(&mut shard, part(0, 0, 0, true, vec![]));
    feed(&mut shard, part(0, 1, 0, true, vec![]));
    assert!(shard.request_cut(3, &mut out));
    assert_eq!(short(&out), ["ack 0 2.0"]);
    out.clear();
    assert!(!shard.request_cut(1, &mut out), "a part stamped 1 is applied");
    feed(&mut shard, part(1, 0, 0, true, vec![]));
    assert!(shard.request_cut(2, &mut out));
    // A next cut that has passed counts as none: nothing waits for ever.
    assert_eq!(feed(&mut shard, part(1, 1, 0, true, vec![])).1, ["ack 1 2.0", "min 2", "cut 2"]);
    shard.release_cut(Some(2), &mut out);
    assert_eq!(feed(&mut shard, part(0, 2, 0, true, vec![])).1, ["ack 0 3.0"]);
}

#[test]
fn a_cut_at_the_start_is_due_at_once() {
    let (mut shard, mut out) = (Shard::new(config(Consistency::BSP)), Vec::new());
    assert!(shard.request_cut(0, &mut out));
    assert_eq!(short(&out), ["cut 0"]);
}

#[test]
fn a_job_without_workers_comes_to_rest() {
    let (mut shard, mut out) = (Shard::new(ShardConfig { workers: 0, ..config(Consistency::BSP) }), Vec::new());
    shard.release_cut(None, &mut out);
    assert!(out.is_empty());
}
