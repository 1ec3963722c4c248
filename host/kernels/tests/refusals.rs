//! Wrong shapes, types and indices are refused before anything is written; NaN and infinities do what the docs say.

mod common;

use common::{kernels, refusal};
use slackline_core::ports::Kernels;
use slackline_core::{HostError, ValuesMut, ValuesRef};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn f32s(x: &[f32]) -> ValuesRef<'_> {
    ValuesRef::F32(x)
}

fn u32s(x: &[u32]) -> ValuesRef<'_> {
    ValuesRef::U32(x)
}

/// That `call` on an output of `len` sevens is refused with words that hold `says`, and leaves the sevens.
#[track_caller]
fn check(len: usize, says: &str, call: impl Fn(&dyn Kernels, ValuesMut<'_>) -> Result<(), HostError>) {
    let mut out = vec![7.0f32; len];
    let why = refusal(call(&kernels(1), ValuesMut::F32(&mut out)));
    assert!(why.contains(says), "{why:?} does not say {says:?}");
    assert_eq!(out, vec![7.0; len], "refused, yet written");
}

#[test]
fn vector_lengths_must_agree() {
    check(3, "axpy: x has 2 values and needs 3", |k, y| k.axpy(1.0, f32s(&[1.0; 2]), y));
    assert!(refusal(kernels(1).dot(f32s(&[1.0; 2]), f32s(&[1.0; 3]))).contains("dot: y has 3 values and needs 2"));
}

#[test]
fn matrix_shapes_must_agree() {
    let (a, x) = ([1.0; 6], [1.0; 3]);
    check(2, "gemv: a has 6 values and needs 8", |k, y| k.gemv(false, 2, 4, 1.0, f32s(&a), f32s(&x), 0.0, y));
    check(2, "gemv: x has 3 values and needs 2", |k, y| k.gemv(true, 2, 3, 1.0, f32s(&a), f32s(&x), 0.0, y));
    check(3, "gemv: y has 3 values and needs 2", |k, y| k.gemv(false, 2, 3, 1.0, f32s(&a), f32s(&x), 0.0, y));
    check(4, "gemm: c has 4 values and needs 6", |k, c| {
        k.gemm(false, false, 2, 3, 1, 1.0, f32s(&[1.0; 2]), f32s(&x), 0.0, c)
    });
    check(4, "gemm: a has 6 values and needs 2", |k, c| {
        k.gemm(false, false, 2, 2, 1, 1.0, f32s(&a), f32s(&[1.0; 2]), 0.0, c)
    });
    check(1, "gemm: a has 6 values and needs 18446744065119617025", |k, c| {
        k.gemm(false, false, u32::MAX, 1, u32::MAX, 1.0, f32s(&a), f32s(&x), 0.0, c)
    });
}

#[test]
fn shapes_are_checked_even_when_a_factor_of_0_makes_the_operands_unread() {
    check(1, "gemv: a has 0 values", |k, y| k.gemv(false, 1, 1, 0.0, f32s(&[]), f32s(&[1.0]), 0.0, y));
    check(1, "gemm: b has 0 values", |k, c| k.gemm(false, false, 1, 1, 1, 0.0, f32s(&[1.0]), f32s(&[]), 0.0, c));
}

#[test]
fn indices_beyond_the_rows_are_refused() {
    let x = [1.0; 4];
    check(4, "gather: rows[1] is 2, but x has 2 rows", |k, out| k.gather(u32s(&[1, 2]), f32s(&x), 2, out));
    check(4, "scatter_add: rows[1] is 4294967295, but y has 2 rows", |k, y| {
        k.scatter_add(u32s(&[0, u32::MAX]), f32s(&x), 2, y)
    });
    check(2, "sddmm: j[0] is 2, but y has 2 rows", |k, out| {
        k.sddmm(u32s(&[0, 1]), u32s(&[2, 0]), f32s(&x), f32s(&x), 2, out)
    });
    check(2, "spmm: columns[1] is 9, but x has 4 rows", |k, y| {
        k.spmm(false, u32s(&[0, 1, 2]), u32s(&[0, 9]), f32s(&[1.0; 2]), f32s(&x), 1, y)
    });
    check(2, "spmm: columns[0] is 2, but y has 2 rows", |k, y| {
        k.spmm(true, u32s(&[0, 1]), u32s(&[2]), f32s(&[1.0]), f32s(&[1.0]), 1, y)
    });
    check(2, "gather: rows[0] is 0, but x has 0 rows", |k, out| k.gather(u32s(&[0]), f32s(&[]), 2, out));
}

#[test]
fn rows_and_widths_must_agree() {
    let x = [1.0; 5];
    check(2, "width is 0", |k, out| k.gather(u32s(&[0]), f32s(&x), 0, out));
    check(2, "width is 0", |k, x| k.softmax_rows(x, 0));
    check(5, "softmax_rows: x has 5 values, which is no whole number of rows of 2", |k, x| k.softmax_rows(x, 2));
    check(2, "gather: x has 5 values, which is no whole", |k, out| k.gather(u32s(&[0]), f32s(&x), 2, out));
    check(3, "gather: out has 3 values and needs 5", |k, out| k.gather(u32s(&[0]), f32s(&x), 5, out));
    check(4, "scatter_add: x has 5 values and needs 4", |k, y| k.scatter_add(u32s(&[0]), f32s(&x), 4, y));
    check(1, "sddmm: j has 2 values and needs 1", |k, out| {
        k.sddmm(u32s(&[0]), u32s(&[0, 0]), f32s(&x), f32s(&x), 5, out)
    });
    check(2, "sddmm: out has 2 values and needs 1", |k, out| {
        k.sddmm(u32s(&[0]), u32s(&[0]), f32s(&x), f32s(&x), 5, out)
    });
}

#[test]
fn offsets_must_ascend_within_the_columns() {
    let spmm = |offsets: &'static [u32], columns: &'static [u32], values: &'static [f32]| {
        move |k: &dyn Kernels, y: ValuesMut<'_>| {
            k.spmm(false, u32s(offsets), u32s(columns), f32s(values), f32s(&[1.0]), 1, y)
        }
    };
    check(0, "offsets is empty", spmm(&[], &[], &[]));
    check(2, "offsets[2] is smaller", spmm(&[0, 1, 0], &[0], &[1.0]));
    check(1, "offsets end at 2, but there are 1 columns", spmm(&[0, 2], &[0], &[1.0]));
    check(1, "values has 2 values and needs 1", spmm(&[0, 1], &[0], &[1.0; 2]));
    check(2, "y has 2 values and needs 1", spmm(&[0, 1], &[0], &[1.0]));
}

#[test]
fn offsets_may_be_a_window_and_columns_outside_it_are_not_looked_at() {
    let mut y = [0.0f32; 1];
    let (columns, values) = ([99, 1, 99], [5.0, 3.0, 5.0]);
    kernels(1)
        .spmm(false, u32s(&[1, 2]), u32s(&columns), f32s(&values), f32s(&[1.0, 2.0]), 1, ValuesMut::F32(&mut y))
        .unwrap();
    assert_eq!(y, [6.0]);
}

#[test]
fn types_must_be_those_of_the_kernel() {
    let doubles = [1.0f64; 2];
    check(2, "axpy: x holds f64, but the call's other values are f32", |k, y| k.axpy(1.0, ValuesRef::F64(&doubles), y));
    check(2, "gather: rows holds i32 and needs u32", |k, out| k.gather(ValuesRef::I32(&[0]), f32s(&[1.0; 2]), 2, out));
    check(2, "spmm: offsets holds u64 and needs u32", |k, y| {
        k.spmm(false, ValuesRef::U64(&[0]), u32s(&[]), f32s(&[]), f32s(&[]), 1, y)
    });
    let k = kernels(1);
    let mut whole = [1i32, 2];
    assert!(refusal(k.scale(2.0, ValuesMut::I32(&mut whole))).contains("scale: x holds i32 and needs f32 or f64"));
    assert_eq!(whole, [1, 2]);
    assert!(refusal(k.reduce("sum", ValuesRef::U8(&[1]))).contains("reduce: x holds u8"));
}

#[test]
fn unknown_operations_and_thresholds_are_refused() {
    check(1, "map: there is no operation \"cosh\"; use one of exp, ln", |k, x| k.map("cosh", x));
    check(1, "soft_threshold: t is -1", |k, x| k.soft_threshold(x, -1.0));
    check(1, "soft_threshold: t is NaN", |k, x| k.soft_threshold(x, f64::NAN));
    let why = refusal(kernels(1).reduce(&"x".repeat(1 << 20), f32s(&[])));
    assert!(why.len() < 200 && why.contains("max-abs"), "a guest's word is quoted short");
}

#[test]
fn reductions_of_nothing_are_neutral() {
    let k = kernels(1);
    let got = ["sum", "min", "max", "sum-squares", "sum-abs", "max-abs"].map(|op| k.reduce(op, f32s(&[])).unwrap());
    assert_eq!(got, [0.0, f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0, 0.0]);
}

#[test]
fn extremes_are_nan_wherever_one_stands() {
    let k = kernels(2);
    for n in [1, 7, 64, 65, 200, 400_000] {
        for at in [0, n / 2, n - 1] {
            let mut x = vec![1.0f32; n];
            x[at] = NAN;
            for op in ["min", "max", "max-abs", "sum"] {
                assert!(k.reduce(op, f32s(&x)).unwrap().is_nan(), "{op} of {n} with NaN at {at}");
            }
        }
    }
}

#[test]
fn beta_0_overwrites_without_reading() {
    let k = kernels(1);
    let mut y = [NAN; 2];
    k.gemv(false, 2, 1, 1.0, f32s(&[1.0, 2.0]), f32s(&[3.0]), 0.0, ValuesMut::F32(&mut y)).unwrap();
    assert_eq!(y, [3.0, 6.0]);
    let mut y = [NAN; 2];
    k.gemv(true, 1, 2, 1.0, f32s(&[1.0, 2.0]), f32s(&[3.0]), 0.0, ValuesMut::F32(&mut y)).unwrap();
    assert_eq!(y, [3.0, 6.0]);
    let mut c = [NAN; 2];
    k.gemm(false, false, 2, 1, 1, 1.0, f32s(&[1.0, 2.0]), f32s(&[3.0]), 0.0, ValuesMut::F32(&mut c)).unwrap();
    assert_eq!(c, [3.0, 6.0]);
    let mut c = [NAN; 2];
    k.gemm(false, false, 2, 1, 0, 1.0, f32s(&[]), f32s(&[]), 0.0, ValuesMut::F32(&mut c)).unwrap();
    assert_eq!(c, [0.0; 2]);
}

#[test]
fn alpha_0_does_not_read_the_operands() {
    let k = kernels(1);
    let mut y = [1.0f32; 1];
    k.gemv(false, 1, 1, 0.0, f32s(&[NAN]), f32s(&[INF]), 2.0, ValuesMut::F32(&mut y)).unwrap();
    k.gemm(false, false, 1, 1, 1, 0.0, f32s(&[NAN]), f32s(&[INF]), 2.0, ValuesMut::F32(&mut y)).unwrap();
    assert_eq!(y, [4.0]);
}

#[test]
fn elsewhere_a_factor_of_0_hides_no_infinity() {
    let k = kernels(1);
    let mut y = [1.0f32; 1];
    k.axpy(0.0, f32s(&[INF]), ValuesMut::F32(&mut y)).unwrap();
    assert!(y[0].is_nan());
    let mut y = [1.0f32; 1];
    k.spmm(false, u32s(&[0, 1]), u32s(&[0]), f32s(&[0.0]), f32s(&[INF]), 1, ValuesMut::F32(&mut y)).unwrap();
    assert!(y[0].is_nan());
    assert!(k.dot(f32s(&[0.0]), f32s(&[INF])).unwrap().is_nan());
    assert_eq!(k.dot(f32s(&[1e30]), f32s(&[1e30])).unwrap(), f64::INFINITY, "a product that overflows f32");
}

#[test]
fn maps_and_softmax_pass_nan_and_take_infinities_to_their_limits() {
    let k = kernels(1);
    let map = |op: &str, x: f32| {
        let mut x = [x];
        k.map(op, ValuesMut::F32(&mut x)).unwrap();
        x[0]
    };
    for op in ["exp", "ln", "sqrt", "abs", "neg", "recip", "square", "sigmoid", "tanh", "relu"] {
        assert!(map(op, NAN).is_nan(), "{op} of NaN");
    }
    let limits = [map("exp", -INF), map("exp", INF), map("ln", 0.0), map("sigmoid", INF), map("sigmoid", -INF)];
    assert_eq!(limits, [0.0, INF, -INF, 1.0, 0.0]);
    assert_eq!([map("tanh", -INF), map("recip", 0.0), map("relu", -INF), map("relu", INF)], [-1.0, INF, 0.0, INF]);
    assert!(map("ln", -1.0).is_nan() && map("sqrt", -1.0).is_nan());

    let mut x = [NAN, INF, -INF, 0.5];
    k.soft_threshold(ValuesMut::F32(&mut x), 1.0).unwrap();
    assert!(x[0].is_nan());
    assert_eq!(x[1..], [INF, -INF, 0.0]);

    let mut x = [0.0, -INF, 1000.0, 1000.0, 1.0, NAN, 1.0, INF, -INF, -INF];
    k.softmax_rows(ValuesMut::F32(&mut x), 2).unwrap();
    assert_eq!(x[..4], [1.0, 0.0, 0.5, 0.5]);
    assert!(x[4..].iter().all(|x| x.is_nan()));
}
