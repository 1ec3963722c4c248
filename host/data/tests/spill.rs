//! Datasets larger than the memory they are given.

mod common;

use common::*;
use slackline_core::values::Values;
use slackline_data::{DataError, DataSpec, Partitioning, load};

fn text(rows: usize) -> String {
    (0..rows).map(|r| format!("{} {}:{} {}:1\n", r % 3, r % 50 + 1, r, r % 50 + 60)).collect()
}

#[test]
fn a_dataset_on_disk_gives_the_same_batches_as_one_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "t.libsvm", text(20_000));
    let spill = folder.path().join("spill");
    let mut wants = libsvm_wants();
    wants[0] = want_coded("label");
    let of = |memory_bytes| {
        let spec =
            DataSpec { memory_bytes, shuffle: true, partition: Partitioning::Hash("label".into()), ..spec(&path) };
        load(&spec, &wants, Some(&spill), None, &mut |_| {}).unwrap()
    };
    let (disk, memory) = (of(50_000), of(1 << 30));
    assert!(disk.spilled("train") && !memory.spilled("train"));
    assert_eq!(disk.facts(1), memory.facts(1));
    let [a, b] = [&disk, &memory].map(|d| whole(d, "train"));
    for c in ["label", "index", "value"] {
        assert_eq!(values(&a, c), values(&b, c));
    }
    let [mut a, mut b] = [&disk, &memory].map(|d| d.partition("train", 0, 1).unwrap().cursor(9));
    while let Some(x) = a.next() {
        let y = b.next().unwrap();
        assert_eq!(
            (&*x.ids, values(&x, "value"), offsets(&x, "index")),
            (&*y.ids, values(&y, "value"), offsets(&y, "index"))
        );
    }
    // The file lives on as a mapping only, so that nothing is left however the process ends.
    assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 0);
}

#[test]
fn without_a_folder_to_spill_to_the_limit_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let spec = DataSpec { memory_bytes: 50_000, ..spec(&write(folder.path(), "t.libsvm", text(20_000))) };
    let e = read(&spec, &libsvm_wants()).unwrap_err();
    assert!(matches!(e, DataError::Memory { limit: 50_000, .. }), "{e}");
}

#[test]
fn a_failure_half_way_leaves_no_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "t.libsvm", text(20_000) + "oops\n");
    let spill = folder.path().join("spill");
    let spec = DataSpec { memory_bytes: 50_000, ..spec(&path) };
    let e = load(&spec, &libsvm_wants(), Some(&spill), None, &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("t.libsvm:20001"), "{e}");
    assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 0);
}

#[test]
fn a_sorted_matrix_may_be_larger_than_its_memory_and_an_unsorted_one_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..9000).map(|i| format!("{} {} {i}\n", i / 3 + 1, i % 3 + 1)).collect();
    let head = "%%MatrixMarket matrix coordinate real general\n3000 3 9000\n";
    let wants = &libsvm_wants()[1..];
    let tight = |name: &str, lines: &[String]| {
        let path = write(folder.path(), name, format!("{head}{}", lines.concat()));
        let spec = DataSpec { memory_bytes: 20_000, ..spec(&path) };
        load(&spec, wants, Some(folder.path()), None, &mut |_| {})
    };
    let sorted = whole(&tight("sorted.mtx", &lines).unwrap(), "train");
    assert_eq!(values(&sorted, "value"), Values::F32((0..9000).map(|i| i as f32).collect()));
    let backwards: Vec<String> = lines.iter().rev().cloned().collect();
    let e = tight("unsorted.mtx", &backwards).unwrap_err().to_string();
    assert!(e.contains("order of rows"), "{e}");
}

#[test]
fn progress_reaches_the_end_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "t.libsvm", text(1000));
    let mut last = None;
    load(&spec(&path), &libsvm_wants(), None, None, &mut |p| last = Some(p)).unwrap();
    let last = last.unwrap();
    assert_eq!((last.dataset.as_str(), last.rows, last.bytes), ("train", 1000, last.total));
    assert_eq!(last.total, path.metadata().unwrap().len());
}
