//! Tables read in place, over a shard made of plain vectors.

use slackline_client::{InPlace, LocalShards};
use slackline_core::part::RowDeltas;
use slackline_core::ports::{ShardRows, SparseRows, Tables};
use slackline_core::{
    Clock, Consistency, DType, HostError, Init, Layout, Model, PartKey, SealedPart, ShardId, TableId, TableSpec,
    Values, ValuesMut, ValuesRef, WorkerId,
};
use std::sync::{Arc, Mutex};

const DENSE: TableId = TableId(0);
const SPARSE: TableId = TableId(1);

/// One shard whose rows the test writes: dense rows of two f32, and one sparse row for all.
#[derive(Default)]
struct Plain {
    min: Clock,
    applied: PartKey,
    dense: Vec<[f32; 2]>,
    columns: Vec<u32>,
    values: Vec<i32>,
    sent: Vec<SealedPart>,
    time: u64,
}

#[derive(Clone, Default)]
struct Port(Arc<Mutex<Plain>>);

impl ShardRows for Plain {
    fn min_clock(&self) -> Clock {
        self.min
    }
    fn applied(&self, _worker: WorkerId) -> PartKey {
        self.applied
    }
    fn read_dense(&self, _table: TableId, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>) {
        let ValuesMut::F32(out) = out else { return };
        assert_eq!(places, None, "there is one shard");
        rows.iter().enumerate().for_each(|(i, &r)| out[2 * i..2 * i + 2].copy_from_slice(&self.dense[r as usize]));
    }
    fn read_sparse(&self, _table: TableId, _row: u64) -> (&[u32], ValuesRef<'_>) {
        (&self.columns, ValuesRef::I32(&self.values))
    }
    fn prefetch(&self, _table: TableId, _rows: &[u64]) {}
}

impl LocalShards for Port {
    fn wait(&self, _shard: ShardId, need: Clock) -> Result<Clock, HostError> {
        let mut plain = self.0.lock().unwrap();
        plain.time += 7;
        if plain.min < need { Err(HostError::Cancelled) } else { Ok(plain.min) }
    }
    fn read(&self, _shard: ShardId, read: &mut dyn FnMut(&dyn ShardRows)) {
        let mut plain = self.0.lock().unwrap();
        plain.time += 5;
        read(&*plain);
    }
    fn send(&self, _shard: ShardId, part: SealedPart) {
        self.0.lock().unwrap().sent.push(part);
    }
    fn now(&self) -> u64 {
        self.0.lock().unwrap().time
    }
}

fn tables(consistency: Consistency) -> (InPlace, Port) {
    let table =
        |name: &str, dtype, layout| TableSpec { name: name.into(), dtype, layout, rows: 4, width: 2, init: Init::Zero };
    let specs = [table("weights", DType::F32, Layout::Dense), table("counts", DType::I32, Layout::Sparse)];
    let port = Port::default();
    port.0.lock().unwrap().dense = vec![[0.0; 2]; 4];
    (InPlace::new(WorkerId(0), 0, consistency, &specs, 1, Arc::new(port.clone())), port)
}

fn get(tables: &mut InPlace, row: u64) -> Result<[f32; 2], HostError> {
    let mut out = [0.0; 2];
    tables.get(DENSE, &[row], ValuesMut::F32(&mut out)).map(|()| out)
}

#[test]
fn bad_calls_say_what_is_wrong_and_change_nothing() {
    type Call = fn(&mut InPlace) -> Result<(), HostError>;
    let cases: [(Call, &str); 15] = [
        (|t| t.open("wieghts").map(drop), "not found: table \"wieghts\"; the plan declares weights, counts"),
        (|t| t.get(TableId(9), &[0], ValuesMut::F32(&mut [0.0; 2])), "not found: table 9"),
        (
            |t| t.get(DENSE, &[0, 4], ValuesMut::F32(&mut [0.0; 4])),
            "invalid: row 4 of table \"weights\", which has 4 rows",
        ),
        (
            |t| t.get(DENSE, &[0, 1], ValuesMut::F32(&mut [0.0; 3])),
            "invalid: 3 values for 2 rows of table \"weights\", whose rows have 2 values each",
        ),
        (|t| t.get(DENSE, &[0], ValuesMut::F64(&mut [0.0; 2])), "invalid: table \"weights\" holds f32, not f64"),
        (
            |t| t.inc(DENSE, &[u64::MAX], ValuesRef::F32(&[1.0; 2])),
            "invalid: row 18446744073709551615 of table \"weights\", which has 4 rows",
        ),
        (
            |t| t.inc(DENSE, &[1], ValuesRef::F32(&[1.0; 4])),
            "invalid: 4 values for 1 rows of table \"weights\", whose rows have 2 values each",
        ),
        (|t| t.inc(DENSE, &[1], ValuesRef::I32(&[1; 2])), "invalid: table \"weights\" holds f32, not i32"),
        (|t| t.get_sparse(DENSE, &[0]).map(drop), "invalid: table \"weights\" has dense rows: use get and inc"),
        (
            |t| t.get(SPARSE, &[0], ValuesMut::I32(&mut [0; 2])),
            "invalid: table \"counts\" has sparse rows: use get-sparse and inc-sparse",
        ),
        (
            |t| t.inc(SPARSE, &[0], ValuesRef::I32(&[1; 2])),
            "invalid: table \"counts\" has sparse rows: use get-sparse and inc-sparse",
        ),
        (
            |t| t.inc_sparse(DENSE, &[0], &[0, 1], &[0], ValuesRef::F32(&[1.0])),
            "invalid: table \"weights\" has dense rows: use get and inc",
        ),
        (
            |t| t.inc_sparse(SPARSE, &[0, 1], &[0, 1], &[0], ValuesRef::I32(&[1])),
            "invalid: 2 offsets, 1 columns and 1 values for 2 rows of table \"counts\": expected 3 offsets, and as many \
             columns as values",
        ),
        (
            |t| t.inc_sparse(SPARSE, &[0, 1], &[0, 2, 1], &[0], ValuesRef::I32(&[1])),
            "invalid: offsets for table \"counts\" do not ascend from 0 to the number of columns, 1",
        ),
        (
            |t| t.inc_sparse(SPARSE, &[0], &[0, 1], &[2], ValuesRef::I32(&[1])),
            "invalid: column 2 of table \"counts\", which has 2",
        ),
    ];
    for (call, message) in cases {
        let (mut tables, port) = tables(Consistency::BSP);
        assert_eq!(call(&mut tables).unwrap_err().to_string(), message);
        tables.tick();
        assert!(port.0.lock().unwrap().sent[0].tables.is_empty(), "{message}");
        assert_eq!(tables.stats().rows_read + tables.stats().rows_incremented, 0, "{message}");
    }
}

#[test]
fn own_updates_are_read_while_open_in_flight_and_applied() {
    let (mut tables, port) = tables(Consistency { model: Model::Ssp, staleness: 9 });
    let add = |t: &mut InPlace, by: f32| t.inc(DENSE, &[1, 1], ValuesRef::F32(&[by, 0.0, by, 0.0])).unwrap();
    add(&mut tables, 1.0);
    assert_eq!(get(&mut tables, 1), Ok([2.0, 0.0]));
    tables.flush();
    add(&mut tables, 10.0);
    assert_eq!(get(&mut tables, 1), Ok([22.0, 0.0]));
    assert_eq!(tables.tick(), 1);
    assert_eq!(get(&mut tables, 1), Ok([22.0, 0.0]));
    // The shard applies the early part: its row has it, and the log lays only the rest over.
    {
        let mut plain = port.0.lock().unwrap();
        let keys: Vec<_> = plain.sent.iter().map(|p| (p.key.clock, p.key.part, p.last)).collect();
        assert_eq!(keys, [(0, 0, false), (0, 1, true)]);
        (plain.dense[1], plain.applied) = ([2.0, 5.0], PartKey { clock: 0, part: 1 });
    }
    assert_eq!(get(&mut tables, 1), Ok([22.0, 5.0]));
    {
        let mut plain = port.0.lock().unwrap();
        (plain.dense[1], plain.applied) = ([22.0, 5.0], PartKey::start_of(1));
    }
    assert_eq!(get(&mut tables, 1), Ok([22.0, 5.0]));
}

#[test]
fn sparse_rows_are_summed_in_the_order_asked_and_zeros_disappear() {
    let (mut tables, port) = tables(Consistency::BSP);
    {
        let mut plain = port.0.lock().unwrap();
        (plain.columns, plain.values) = (vec![0, 1], vec![3, 4]);
    }
    tables.inc_sparse(SPARSE, &[2, 0], &[0, 2, 3], &[1, 1, 0], ValuesRef::I32(&[1, 1, -3])).unwrap();
    let read = tables.get_sparse(SPARSE, &[0, 2, 2]).unwrap();
    let (offsets, columns) = (vec![0, 1, 3, 5], vec![1, 0, 1, 0, 1]);
    assert_eq!(read, SparseRows { offsets, columns, values: Values::I32(vec![4, 3, 6, 3, 6]) });
    tables.tick();
    let block = port.0.lock().unwrap().sent[0].tables[0].clone();
    let want = RowDeltas::Sparse { offsets: vec![0, 1, 2], columns: vec![1, 0], values: Values::I32(vec![2, -3]) };
    assert_eq!((&block.rows[..], &block.deltas), (&[2u64, 0][..], &want));
}

#[test]
fn waiting_for_a_clock_asks_for_no_less_than_the_gate_does() {
    let (mut tables, port) = tables(Consistency { model: Model::Ssp, staleness: 1 });
    for _ in 0..3 {
        tables.tick();
    }
    port.0.lock().unwrap().min = 1;
    assert_eq!(tables.wait_for(1), Err(HostError::Cancelled), "clock 3 needs min clock 2");
    assert_eq!(get(&mut tables, 0), Err(HostError::Cancelled));
    port.0.lock().unwrap().min = 2;
    assert_eq!(tables.wait_for(3), Err(HostError::Cancelled), "more than the gate asks for");
    assert_eq!(tables.wait_for(2), Ok(()));
}

#[test]
fn the_gate_is_asked_once_a_clock_and_its_time_is_booked_apart() {
    let (mut tables, port) = tables(Consistency { model: Model::Ssp, staleness: 1 });
    for _ in 0..3 {
        get(&mut tables, 0).unwrap();
    }
    assert_eq!((tables.stats().gate_ns, tables.stats().table_ns), (7, 15));
    tables.tick();
    tables.tick();
    assert_eq!(get(&mut tables, 0), Err(HostError::Cancelled), "clock 2 needs min clock 1");
    port.0.lock().unwrap().min = 1;
    get(&mut tables, 0).unwrap();
    assert_eq!(tables.stats().staleness.iter().collect::<Vec<_>>(), [(&0, &3), (&1, &1)]);
}
