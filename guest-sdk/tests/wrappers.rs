//! Every wrapper of the SDK against the test host: what a plugin may rely on, and what it is refused.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use slackline_guest::kernels::{self, Csr, Map, Op, Reduce};
use slackline_guest::telemetry::{self, Level};
use slackline_guest::testing::{Dataset, TestHost};
use slackline_guest::{
    Batch, Buffer, ColumnWant, DType, Error, Facts, Init, Layout, LocalState, Manifest, Plan, Plugin, Result, Rng,
    SparseRows, Table, TableSpec, ensure, output, partition_rows, run,
};

fn invalid<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Invalid(_)))
}

#[test]
fn dense_rows_come_in_the_order_asked_with_ones_own_increments() {
    let init = Init::Uniform { low: 1.0, high: 2.0 };
    let host = TestHost::new().table(TableSpec::dense::<f32>("t", 5, 2).init(init)).unwrap();
    let _scope = host.enter();
    let table = Table::<f32>::open("t").unwrap();
    assert_eq!((table.width(), table.rows(), table.layout(), table.name()), (2, 5, Layout::Dense, "t"));
    let (mut before, mut after) = (Vec::new(), vec![9.0; 77]);
    table.get(&[3, 0, 3], &mut before).unwrap();
    assert!(before.iter().all(|v| (1.0..2.0).contains(v)) && before[..2] == before[4..]);
    table.inc(&[3, 3], &[1.0, 2.0, 10.0, 20.0]).unwrap();
    table.prefetch(&[1, 2]);
    table.get(&[3, 0, 3], &mut after).unwrap();
    let change: Vec<f32> = after.iter().zip(&before).map(|(a, b)| (a - b).round()).collect();
    assert_eq!(change, [11.0, 22.0, 0.0, 0.0, 11.0, 22.0]);
    assert!(invalid(table.get(&[5], &mut after)));
    assert!(invalid(table.inc(&[0], &[1.0])));
    assert!(invalid(table.get_sparse(&[0], &mut SparseRows::new())));
    assert!(invalid(Table::<f64>::open("t")));
    assert!(invalid(Table::<f32>::open_with_width("t", 3)));
    assert!(matches!(Table::<f32>::open("u"), Err(Error::NotFound(_))));
}

#[test]
fn other_workers_see_increments_when_the_clock_ends() {
    let host = TestHost::new().workers(2).table(TableSpec::dense::<i64>("t", 1, 1)).unwrap();
    let _scope = host.enter();
    let table = Table::<i64>::open("t").unwrap();
    let mut seen = Vec::new();
    table.inc(&[0], &[7]).unwrap();
    host.as_worker(1);
    assert_eq!((run::worker(), run::workers(), run::clock()), (1, 2, 0));
    table.get(&[0], &mut seen).unwrap();
    assert_eq!(seen, [0]);
    host.tick();
    table.get(&[0], &mut seen).unwrap();
    assert_eq!((seen[0], run::clock()), (7, 1));
}

#[test]
fn sparse_rows_add_and_lose_columns_that_become_zero() {
    let host = TestHost::new().table(TableSpec::sparse::<i32>("t", 4, 100)).unwrap();
    let _scope = host.enter();
    let table = Table::<i32>::open("t").unwrap();
    let mut rows = SparseRows::new();
    rows.push([(7, 1), (3, 2)]);
    rows.push([]);
    rows.push([(99, 5)]);
    table.inc_sparse(&[2, 0, 1], &rows).unwrap();
    table.get_sparse(&[2, 1, 0], &mut rows).unwrap();
    assert_eq!((rows.rows(), rows.row(0), rows.row(1)), (3, (&[3, 7][..], &[2, 1][..]), (&[99][..], &[5][..])));
    host.tick();
    rows.clear();
    rows.push([(3, -2)]);
    table.inc_sparse(&[2], &rows).unwrap();
    table.get_sparse(&[2], &mut rows).unwrap();
    assert_eq!(rows.row(0), (&[7][..], &[1][..]));
    let all = host.sparse_values::<i32>("t").unwrap();
    assert_eq!((all.rows(), all.values), (4, vec![5, 1]));
    let broken = SparseRows { offsets: vec![0, 2], columns: vec![1], values: vec![1] };
    assert!(invalid(table.inc_sparse(&[0], &broken)));
    let beyond = SparseRows { offsets: vec![0, 1], columns: vec![100], values: vec![1] };
    assert!(invalid(table.inc_sparse(&[0], &beyond)));
}

#[test]
fn rows_go_between_tables_and_buffers() {
    let host = TestHost::new().table(TableSpec::dense::<f64>("t", 3, 2)).unwrap();
    let _scope = host.enter();
    let table = Table::<f64>::open("t").unwrap();
    let rows = Buffer::from_slice(&[2u64, 1]).unwrap();
    table.inc_from(&rows, &Buffer::from_slice(&[1.0, 2.0, 3.0, 4.0]).unwrap()).unwrap();
    let into = Buffer::<f64>::zeros(4).unwrap();
    table.get_into(&rows, &into).unwrap();
    assert_eq!(into.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert!(invalid(table.get_into(&rows, &Buffer::zeros(3).unwrap())));
}

#[test]
fn buffers_share_their_slices_and_refuse_what_lies_beyond() {
    let host = TestHost::new();
    let _scope = host.enter();
    let b = Buffer::<u8>::zeros(6).unwrap();
    let middle = b.slice(2, 3).unwrap();
    middle.fill(7).unwrap();
    middle.write(1, &[9]).unwrap();
    assert_eq!(b.to_vec().unwrap(), [0, 0, 7, 9, 7, 0]);
    let copy = Buffer::zeros(3).unwrap();
    copy.copy_from(&middle).unwrap();
    assert_eq!((copy.to_vec().unwrap(), copy.len(), copy.is_empty()), (vec![7, 9, 7], 3, false));
    let mut out = Vec::new();
    assert!(invalid(middle.read(2, 2, &mut out)));
    assert!(invalid(middle.write(usize::MAX, &[1])));
    assert!(invalid(middle.slice(1, 3)));
    assert!(invalid(copy.copy_from(&b)));
    assert!(matches!(Buffer::<f64>::zeros(1 << 40), Err(Error::Limit(_))));
}

#[test]
fn local_state_outlives_its_handles_and_grows_with_zeros() {
    let host = TestHost::new();
    let _scope = host.enter();
    LocalState::open::<u32>("z", 2).unwrap().write(0, &[1, 2]).unwrap();
    assert_eq!(LocalState::open::<u32>("z", 3).unwrap().to_vec().unwrap(), [1, 2, 0]);
    assert_eq!(LocalState::open::<u32>("z", 1).unwrap().len(), 3);
    assert!(invalid(LocalState::open::<f32>("z", 3)));
    assert_eq!(host.local::<u32>(0, "z"), Some(vec![1, 2, 0]));
}

#[test]
fn batches_show_values_lists_and_places_read_only() {
    let data = Dataset::new().column("y", &[1f32, 2.0, 3.0]).list("w", &[vec![1u32], vec![], vec![4, 5]]);
    let host = TestHost::new().dataset("train", data);
    let _scope = host.enter();
    let batch = host.batch("train", 1, 2).unwrap();
    assert_eq!((batch.rows(), batch.dataset().as_str(), batch.ids()), (2, "train", vec![1, 2]));
    assert!(batch.has("y") && !batch.has("x"));
    assert_eq!(batch.list::<u32>("w").unwrap(), (vec![0, 0, 2], vec![4, 5]));
    let mut y = vec![0f32; 10];
    batch.read_column("y", &mut y).unwrap();
    assert_eq!(y, [2.0, 3.0]);
    assert!(invalid(batch.column::<f64>("y")));
    assert!(invalid(batch.offsets("y")));
    assert!(matches!(batch.column::<f32>("x"), Err(Error::NotFound(_))));
    assert!(invalid(batch.column_buffer::<f32>("y").unwrap().fill(0.0)));
    assert!(host.batch("train", 2, 2).is_err());
}

fn floats(values: &[f64]) -> Buffer<f64> {
    Buffer::from_slice(values).unwrap()
}

fn indices(values: &[u32]) -> Buffer<u32> {
    Buffer::from_slice(values).unwrap()
}

#[test]
fn kernels_compute_their_definitions() {
    let host = TestHost::new();
    let _scope = host.enter();
    let check = |buffer: &Buffer<f64>, want: &[f64]| {
        let got = buffer.to_vec().unwrap();
        assert!(
            got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-12) && got.len() == want.len(),
            "{got:?} {want:?}"
        );
    };
    let (x, y) = (floats(&[1.0, -2.0]), floats(&[10.0, 20.0]));
    kernels::axpy(2.0, &x, &y).unwrap();
    check(&y, &[12.0, 16.0]);
    kernels::scale(0.5, &y).unwrap();
    check(&y, &[6.0, 8.0]);
    assert_eq!(kernels::dot(&x, &y).unwrap(), -10.0);
    let a = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let out = floats(&[1.0, 1.0, 1.0]);
    kernels::gemv(Op::Transposed, (2, 3), 1.0, &a, &x, 1.0, &out).unwrap();
    check(&out, &[-6.0, -7.0, -8.0]);
    let c = Buffer::zeros(4).unwrap();
    kernels::gemm((Op::Plain, Op::Transposed), (2, 2, 3), 1.0, &a, &a.slice(0, 6).unwrap(), 0.0, &c).unwrap();
    check(&c, &[14.0, 32.0, 32.0, 77.0]);
    let (offsets, columns, values) = (indices(&[0, 1, 3]), indices(&[2, 0, 1]), floats(&[1.0, 2.0, 3.0]));
    let csr = Csr { offsets: &offsets, columns: &columns, values: &values };
    kernels::spmm(Op::Plain, &csr, &a, 2, &c).unwrap();
    check(&c, &[5.0, 6.0, 11.0, 16.0]);
    let back = Buffer::zeros(6).unwrap();
    kernels::spmm(Op::Transposed, &csr, &c, 2, &back).unwrap();
    check(&back, &[22.0, 32.0, 33.0, 48.0, 5.0, 6.0]);
    let dots = Buffer::zeros(2).unwrap();
    kernels::sddmm(&indices(&[0, 2]), &indices(&[1, 1]), &a, &c, 2, &dots).unwrap();
    check(&dots, &[43.0, 151.0]);
    kernels::gather(&indices(&[2, 0]), &a, 2, &c).unwrap();
    check(&c, &[5.0, 6.0, 1.0, 2.0]);
    kernels::scatter_add(&indices(&[1, 1]), &c, 2, &a).unwrap();
    check(&a, &[1.0, 2.0, 9.0, 12.0, 5.0, 6.0]);
    let logits = floats(&[0.0, 0.0, 1000.0, 0.0]);
    kernels::softmax_rows(&logits, 2).unwrap();
    check(&logits, &[0.5, 0.5, 1.0, 0.0]);
    let z = floats(&[-3.0, 0.5, 2.0]);
    kernels::soft_threshold(&z, 1.0).unwrap();
    check(&z, &[-2.0, 0.0, 1.0]);
    kernels::map(Map::Square, &z).unwrap();
    check(&z, &[4.0, 0.0, 1.0]);
    let reduced = [Reduce::Sum, Reduce::Min, Reduce::Max, Reduce::SumSquares, Reduce::SumAbs, Reduce::MaxAbs];
    assert_eq!(reduced.map(|r| kernels::reduce(r, &z).unwrap()), [5.0, 0.0, 4.0, 17.0, 5.0, 4.0]);
}

#[test]
fn kernels_refuse_shapes_indices_and_shared_outputs() {
    let host = TestHost::new();
    let _scope = host.enter();
    let x = floats(&[1.0, 2.0]);
    assert!(invalid(kernels::axpy(1.0, &x, &floats(&[1.0]))));
    assert!(invalid(kernels::axpy(1.0, &x, &x.slice(0, 2).unwrap())));
    assert!(invalid(kernels::gather(&indices(&[2]), &x, 1, &floats(&[0.0]))));
    assert!(invalid(kernels::gemm((Op::Plain, Op::Plain), (2, 2, 1), 1.0, &x, &x, 0.0, &floats(&[0.0]))));
    assert!(invalid(kernels::softmax_rows(&x, 3)));
}

#[derive(Deserialize, JsonSchema)]
struct NoParams {}

/// Checks what the host promises of coded columns, partitions and `prepare`; misbehaves on wish.
struct Probe {
    prepared: Buffer<u32>,
}

slackline_guest::export!(Probe);

impl Plugin for Probe {
    type Params = NoParams;

    fn manifest() -> Manifest {
        slackline_guest::manifest!()
            .column(ColumnWant::dictionary("user"))
            .column(ColumnWant::new::<f32>("weight").optional())
            .prepare()
            .partition("hash:user")
            .predicts("code")
            .view("weights", "t", "user", 3)
    }

    fn plan(_: &NoParams, facts: &Facts) -> Result<Plan> {
        let user = facts.train("user")?;
        ensure!(user.dtype == DType::U32 && user.keys == Some(3) && facts.workers == 2, "facts {facts:?}");
        Ok(Plan::new().table(TableSpec::dense::<f32>("t", user.key_count(), 1)))
    }

    fn create(_: NoParams) -> Result<Self> {
        Ok(Self { prepared: LocalState::open("prepared", 1)? })
    }

    fn prepare(&mut self, batch: &Batch) -> Result<()> {
        let mut n = self.prepared.to_vec()?;
        n[0] += batch.rows() as u32;
        self.prepared.write(0, &n)
    }

    fn step(&mut self, batch: &Batch) -> Result<()> {
        ensure!(u64::from(self.prepared.to_vec()?[0]) == partition_rows("train"), "a step before all was prepared");
        let mut owners = LocalState::open::<u32>("owned", 3)?.to_vec()?;
        for user in batch.column::<u32>("user")? {
            owners[user as usize] += 1;
        }
        LocalState::open::<u32>("owned", 3)?.write(0, &owners)
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<()> {
        if batch.has("weight") {
            Table::<f32>::open("t")?.inc(&[0], &[1.0])?;
        }
        telemetry::metric("undeclared", 1.0, 1.0);
        Ok(())
    }

    fn predict(&mut self, batch: &Batch) -> Result<()> {
        output::put("code", &batch.column::<u32>("user")?)
    }
}

#[test]
fn coded_columns_partitions_and_misbehaviour_are_as_promised() {
    let users = [30i64, 10, 20, 10, 30, 30];
    let host = TestHost::new().workers(2).dataset("train", Dataset::new().column("user", &users));
    let undeclared = host.run::<Probe>(json!({}), 2, 1).unwrap_err().to_string();
    assert!(undeclared.contains("undeclared"), "{undeclared}");
    // Rows of one user are one worker's.
    let owned: Vec<Vec<u32>> = (0..2).map(|w| host.local(w, "owned").unwrap_or(vec![0; 3])).collect();
    for user in 0..3 {
        assert!(owned[0][user] == 0 || owned[1][user] == 0, "{owned:?}");
    }
    assert_eq!((0..3).map(|u| owned[0][u] + owned[1][u]).collect::<Vec<_>>(), [2, 1, 3]);
    let host = host.dataset("new", Dataset::new().column("user", &[20i64, 99]));
    let codes = host.predict::<Probe>(json!({}), "new", 10).unwrap().column::<u32>("code").unwrap();
    assert_eq!(codes, [1, u32::MAX]);
    let host =
        TestHost::new().workers(2).dataset("train", Dataset::new().column("user", &users).column("weight", &[1f32; 6]));
    assert!(matches!(host.run::<Probe>(json!({}), 2, 0), Err(Error::Denied(_))));
}

#[test]
fn random_streams_depend_on_seed_and_worker_and_move_on() {
    let draw = |seed: u64, worker: usize| {
        let host = TestHost::new().seed(seed).workers(2);
        let _scope = host.enter();
        host.as_worker(worker);
        (Rng::from_host().next_u64(), Rng::from_host().next_u64())
    };
    assert_eq!(draw(1, 0), draw(1, 0));
    let (first, second) = draw(1, 0);
    assert!(first != second && draw(1, 1).0 != first && draw(2, 0).0 != first);
}

#[test]
fn words_numbers_and_the_cancel_flag_get_through() {
    let host = TestHost::new();
    let _scope = host.enter();
    slackline_guest::debug!("a");
    slackline_guest::warn!("b {}", 1);
    slackline_guest::error!("c");
    telemetry::metric("m", 1.0, 3.0);
    telemetry::metric("m", 5.0, 1.0);
    assert_eq!(host.reported()["m"], 2.0);
    let lines = [(Level::Debug, "a"), (Level::Warn, "b 1"), (Level::Error, "c")].map(|(l, s)| (l, s.to_owned()));
    assert_eq!(host.logs(), lines);
    assert!(!run::cancelled());
    host.cancel();
    assert!(run::cancelled());
}
