//! Sharing rows out, shuffling them and coming back to a position, over random sizes.

mod common;

use common::*;
use proptest::prelude::*;
use slackline_core::values::{DType, Values};
use slackline_core::{Batch, Column};
use slackline_data::{Data, DataError, DataSpec, Dictionaries, Partitioning, Source, Split, load_for_predict};
use std::collections::BTreeMap;

/// `rows` rows of (row, user); users repeat.
fn data(rows: u64, users: u64, partition: Partitioning, batch: usize, shuffle: bool) -> Data {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("row,user\n");
    for row in 0..rows {
        text.push_str(&format!("{row},{}\n", row * 7919 % users));
    }
    let path = write(folder.path(), "t.csv", text);
    let spec = DataSpec { partition, batch, shuffle, ..spec(&path) };
    read(&spec, &[want("row", DType::U64), want_coded("user")]).unwrap()
}

fn rows_of(batch: &Batch) -> Vec<u64> {
    match &*batch.columns["row"].values {
        Values::U64(v) => v.clone(),
        other => panic!("{other:?}"),
    }
}

fn rule() -> impl Strategy<Value = Partitioning> {
    prop_oneof![Just(Partitioning::Rows), Just(Partitioning::RoundRobin), Just(Partitioning::Hash("user".into()))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn partitions_are_disjoint_and_complete(rows in 1u64..300, users in 1u64..50, workers in 1u32..9, rule in rule()) {
        let hash = matches!(rule, Partitioning::Hash(_));
        let data = data(rows, users, rule, 16, false);
        let mut seen = Vec::new();
        let mut worker_of_user = BTreeMap::new();
        let mut idle = false;
        for worker in 0..workers {
            let partition = match data.partition("train", worker, workers) {
                Ok(p) => p,
                Err(DataError::IdleWorker { .. }) => { idle = true; continue }
                Err(e) => panic!("{e}"),
            };
            let mut places = partition.places();
            for batch in partition.in_order() {
                let Values::U32(users) = &*batch.columns["user"].values else { panic!() };
                for (row, user) in rows_of(&batch).into_iter().zip(users) {
                    prop_assert_eq!(places.next(), Some(row));
                    seen.push(row);
                    if hash {
                        prop_assert_eq!(*worker_of_user.entry(*user).or_insert(worker), worker);
                    }
                }
            }
        }
        // A rule that looks at rows alone leaves a worker idle only when there are too few.
        prop_assert!(hash || idle == (rows < u64::from(workers)));
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..rows).collect::<Vec<_>>());
    }

    #[test]
    fn an_epoch_is_a_permutation_and_epochs_differ(rows in 1u64..300, batch in 1usize..40, seed: u64, rule in rule()) {
        let data = data(rows, 10, rule, batch, true);
        let partition = data.partition("train", 0, 1).unwrap();
        let mut cursor = partition.cursor(seed);
        let mut orders = Vec::new();
        for epoch in 0..2 {
            prop_assert_eq!(cursor.epoch(), epoch);
            let mut order = Vec::new();
            while let Some(b) = cursor.next() {
                let Values::U64(ids) = &*b.ids else { panic!() };
                prop_assert_eq!(&rows_of(&b), ids);
                prop_assert!(b.rows() == batch || cursor.position() == rows);
                order.extend(rows_of(&b));
            }
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..rows).collect::<Vec<_>>());
            orders.push(order);
        }
        // Twenty rows fall into the same order twice once in 10¹⁸ times.
        prop_assert!(rows < 20 || orders[0] != orders[1]);
        prop_assert!(rows < 20 || orders[0] != (0..rows).collect::<Vec<_>>());
    }

    #[test]
    fn a_cursor_that_seeks_goes_on_as_the_one_that_was_there(
        rows in 1u64..200, batch in 1usize..40, seed: u64, steps in 0usize..30, shuffle: bool,
    ) {
        let data = data(rows, 10, Partitioning::Rows, batch, shuffle);
        let partition = data.partition("train", 0, 1).unwrap();
        let mut there = partition.cursor(seed);
        for _ in 0..steps {
            there.next();
        }
        let mut back = partition.cursor(seed);
        back.seek(there.epoch(), there.position());
        for _ in 0..20 {
            prop_assert_eq!((back.epoch(), back.position()), (there.epoch(), there.position()));
            prop_assert_eq!(back.next().map(|b| rows_of(&b)), there.next().map(|b| rows_of(&b)));
        }
    }

    #[test]
    fn lists_are_gathered_with_their_rows(lengths in prop::collection::vec(0usize..6, 1..80), batch in 1usize..9, seed: u64) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::new();
        for (row, len) in lengths.iter().enumerate() {
            text.push_str(&row.to_string());
            (0..*len).for_each(|i| text.push_str(&format!(" {}:{row}", i + 1)));
            text.push('\n');
        }
        let path = write(folder.path(), "t.libsvm", text);
        let spec = DataSpec { batch, shuffle: true, ..spec(&path) };
        let data = read(&spec, &libsvm_wants()).unwrap();
        let mut cursor = data.partition("train", 0, 1).unwrap().cursor(seed);
        while let Some(b) = cursor.next() {
            let (Values::U64(ids), Values::F32(value)) = (&*b.ids, values(&b, "value")) else { panic!() };
            let ends = offsets(&b, "value");
            prop_assert_eq!(ends.len(), ids.len() + 1);
            prop_assert_eq!(*ends.last().unwrap() as usize, value.len());
            for (id, w) in ids.iter().zip(ends.windows(2)) {
                let row = &value[w[0] as usize..w[1] as usize];
                prop_assert_eq!(row, vec![*id as f32; lengths[*id as usize]]);
            }
        }
    }
}

#[test]
fn the_order_of_an_epoch_is_fixed_for_all_time() {
    let data = data(12, 3, Partitioning::Rows, 12, true);
    let mut cursor = data.partition("train", 1, 2).unwrap().cursor(42);
    // Cuts of earlier versions hold positions in this order: a change here is a change of their format.
    let Values::U64(first) = &*cursor.next().unwrap().ids else { panic!() };
    assert_eq!(first, FIRST);
}

/// What seed 42 gave worker 1 when this was written.
const FIRST: &[u64] = &[4, 2, 0, 1, 3, 5];

#[test]
fn a_user_finds_the_same_worker_in_training_testing_and_prediction_also_when_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let train: String = (0..200).map(|u| format!("{u},1\n")).collect();
    let test: String = (100..300).map(|u| format!("{u}.0,1\n")).collect();
    let train = write(folder.path(), "train.csv", format!("user,rating\n{train}"));
    let test = write(folder.path(), "test.csv", format!("user,rating\n{test}"));
    let mut spec = DataSpec { partition: Partitioning::Hash("user".into()), ..spec(&train) };
    spec.datasets.insert("test".into(), Source::new(&test));
    let mut wants = vec![want_coded("user"), want("rating", DType::F32)];
    let data = read(&spec, &wants).unwrap();
    let places = |data: &Data, set: &str, w| data.partition(set, w, 4).unwrap().places().collect::<Vec<_>>();
    for worker in 0..4 {
        let trained: Vec<u64> = places(&data, "train", worker).into_iter().filter(|u| *u >= 100).collect();
        let tested: Vec<u64> = places(&data, "test", worker).into_iter().map(|p| p + 100).collect();
        assert_eq!(trained, tested.iter().copied().filter(|u| *u < 200).collect::<Vec<_>>());
        assert!(tested.iter().any(|u| *u >= 200));
    }
    wants[1].target = true;
    let input = write(folder.path(), "input.csv", "user\n150\n250\n");
    spec.datasets = [("input".to_owned(), Source::new(&input))].into();
    let saved = serde_json::to_string(data.dictionaries()).unwrap();
    let saved: Dictionaries = serde_json::from_str(&saved).unwrap();
    let predicted = load_for_predict(&spec, &wants, None, saved, &mut |_| {}).unwrap();
    assert_eq!(values(&whole(&predicted, "input"), "user"), Values::U32(vec![150, u32::MAX]));
    let worker_of = |data: &Data, set: &str, place| (0..4).find(|w| places(data, set, *w).contains(&place));
    assert_eq!(worker_of(&predicted, "input", 0), worker_of(&data, "train", 150));
    assert_eq!(worker_of(&predicted, "input", 1), worker_of(&data, "test", 150));
}

#[test]
fn more_workers_than_rows_is_an_error_that_says_so() {
    let data = data(3, 3, Partitioning::Rows, 1, false);
    let e = (0..4).find_map(|w| data.partition("train", w, 4).err()).unwrap().to_string();
    assert!(e.contains("4 workers for 3 rows") && e.contains("fewer workers"), "{e}");
    let e = data.partition("tset", 0, 1).unwrap_err().to_string();
    assert!(e.contains("tset") && e.contains("train"), "{e}");
}

#[test]
fn a_split_divides_rows_and_codes_by_the_training_part_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..10).map(|i| format!("{},{i}\n", if i % 5 == 4 { "only-in-test" } else { "seen" })).collect();
    let path = write(folder.path(), "t.csv", format!("name,row\n{text}"));
    let wants = [want_coded("name"), want("row", DType::U32)];
    let every = DataSpec { split: Some(Split::Every { every: 5, at: 4 }), ..spec(&path) };
    let data = read(&every, &wants).unwrap();
    assert_eq!(values(&whole(&data, "test"), "row"), Values::U32(vec![4, 9]));
    assert_eq!(values(&whole(&data, "test"), "name"), Values::U32(vec![u32::MAX; 2]));
    assert_eq!(data.labels("name").unwrap(), ["seen"]);
    let fraction = DataSpec { split: Some(Split::Fraction { of: 0.5, seed: 3 }), ..spec(&path) };
    let data = read(&fraction, &wants).unwrap();
    assert_eq!(data.rows("train") + data.rows("test"), 10);
}

#[test]
fn a_batch_is_what_the_contract_says() {
    let data = data(5, 2, Partitioning::RoundRobin, 2, false);
    let batch = data.partition("train", 1, 2).unwrap().in_order().next().unwrap();
    assert_eq!((&*batch.dataset, rows_of(&batch)), ("train", vec![1, 3]));
    assert_eq!(*batch.ids, Values::U64(vec![0, 1]));
    assert!(matches!(batch.columns["user"], Column { offsets: None, .. }));
}
