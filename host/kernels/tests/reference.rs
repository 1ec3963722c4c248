//! Every kernel against its formula in plain f64 loops, on random shapes with 0, 1 and odd tails among them.

mod common;

use common::{Numbers, assert_close, f64s, kernels, sum};
use proptest::prelude::*;
use slackline_core::ports::Kernels;
use slackline_core::{Element, ValuesRef};

/// Lengths around the borders of lanes, blocks and pieces.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), 2..300usize, 4000..8300usize, 65_500..65_600usize]
}

/// Sides of a matrix.
fn side() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), 2..20usize, 60..140usize]
}

fn width() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1), Just(2), Just(4), Just(8), Just(16), Just(32), 3..80usize]
}

fn scalar() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(-1.0), -3.0..3.0f64]
}

fn vectors<T: Element>(n: usize, a: f64, seed: u64) {
    let k = kernels(1);
    let mut r = Numbers(seed);
    let (x, y) = (r.values::<T>(n), r.values::<T>(n));
    let (xs, ys) = (f64s(&x), f64s(&y));
    let a = T::from_f64(a).to_f64();

    let mut out = y.clone();
    k.axpy(a, T::wrap_ref(&x), T::wrap_mut(&mut out)).unwrap();
    let want: Vec<f64> = xs.iter().zip(&ys).map(|(x, y)| a * x + y).collect();
    assert_close(&out, &want, &vec![10.0; n], 1.0);

    let mut out = x.clone();
    k.scale(a, T::wrap_mut(&mut out)).unwrap();
    let want: Vec<f64> = xs.iter().map(|x| a * x).collect();
    assert_close(&out, &want, &vec![10.0; n], 1.0);

    // Sums: rounding as of about a hundred terms, relative to the terms' magnitudes.
    let close = |got: f64, want: f64, magnitude: f64| {
        assert!((got - want).abs() <= 100.0 * common::epsilon::<T>() * magnitude, "{got} is not {want}");
    };
    let products: Vec<f64> = xs.iter().zip(&ys).map(|(x, y)| x * y).collect();
    let magnitude = sum(products.iter().map(|p| p.abs()));
    close(k.dot(T::wrap_ref(&x), T::wrap_ref(&y)).unwrap(), sum(products), magnitude);
    let reduce = |op: &str| k.reduce(op, T::wrap_ref(&x)).unwrap();
    let magnitude = sum(xs.iter().map(|x| x.abs()));
    close(reduce("sum"), sum(xs.iter().copied()), magnitude);
    close(reduce("sum-abs"), magnitude, magnitude);
    let squares = sum(xs.iter().map(|x| x * x));
    close(reduce("sum-squares"), squares, squares);
    assert_eq!(reduce("min"), xs.iter().copied().fold(f64::INFINITY, f64::min));
    assert_eq!(reduce("max"), xs.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    assert_eq!(reduce("max-abs"), xs.iter().fold(0.0f64, |m, x| m.max(x.abs())));
}

fn maps<T: Element>(n: usize, t: f64, seed: u64) {
    let k = kernels(1);
    let x = Numbers(seed).values::<T>(n);
    let xs = f64s(&x);
    type Plain = fn(f64) -> f64;
    let ops: [(&str, Plain); 10] = [
        ("exp", f64::exp),
        ("ln", f64::ln),
        ("sqrt", f64::sqrt),
        ("abs", f64::abs),
        ("neg", |x| -x),
        ("recip", |x| 1.0 / x),
        ("square", |x| x * x),
        ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
        ("tanh", f64::tanh),
        ("relu", |x| x.max(0.0)),
    ];
    for (op, plain) in ops {
        let positive = matches!(op, "ln" | "sqrt");
        let input: Vec<T> = if positive { xs.iter().map(|x| T::from_f64(x.abs())).collect() } else { x.clone() };
        let want: Vec<f64> = f64s(&input).into_iter().map(plain).collect();
        let mut out = input;
        k.map(op, T::wrap_mut(&mut out)).unwrap();
        let magnitude: Vec<f64> = want.iter().map(|w| w.abs()).collect();
        assert_close(&out, &want, &magnitude, 4.0);
    }
    let mut out = x.clone();
    k.soft_threshold(T::wrap_mut(&mut out), t).unwrap();
    let t = T::from_f64(t).to_f64();
    let want: Vec<f64> = xs.iter().map(|x| x.signum() * (x.abs() - t).max(0.0)).collect();
    assert_close(&out, &want, &vec![4.0; n], 1.0);
}

fn softmax<T: Element>(rows: usize, width: usize, seed: u64) {
    let x = Numbers(seed).values::<T>(rows * width);
    let mut out = x.clone();
    kernels(1).softmax_rows(T::wrap_mut(&mut out), width as u32).unwrap();
    let mut want = f64s(&x);
    for row in want.chunks_mut(width) {
        let total = sum(row.iter().map(|x| x.exp()));
        row.iter_mut().for_each(|x| *x = x.exp() / total);
    }
    assert_close(&out, &want, &want, 16.0);
}

/// op(A) as rows of f64, A being stored rows × columns.
fn op(transpose: bool, rows: usize, columns: usize, a: &[f64]) -> Vec<f64> {
    if !transpose {
        return a.to_vec();
    }
    // Stored columns × rows.
    (0..rows * columns).map(|at| a[(at % columns) * rows + at / columns]).collect()
}

struct Product {
    ta: bool,
    tb: bool,
    m: usize,
    n: usize,
    k: usize,
    alpha: f64,
    beta: f64,
    seed: u64,
}

fn gemm<T: Element>(p: &Product) {
    let &Product { ta, tb, m, n, k, alpha, beta, seed } = p;
    let (alpha, beta) = (T::from_f64(alpha).to_f64(), T::from_f64(beta).to_f64());
    let mut r = Numbers(seed);
    let (a, b, c) = (r.values::<T>(m * k), r.values::<T>(k * n), r.values::<T>(m * n));
    let (ar, br, cs) = (op(ta, m, k, &f64s(&a)), op(tb, k, n, &f64s(&b)), f64s(&c));
    let mut out = c.clone();
    let (mu, nu, ku) = (m as u32, n as u32, k as u32);
    kernels(1).gemm(ta, tb, mu, nu, ku, alpha, T::wrap_ref(&a), T::wrap_ref(&b), beta, T::wrap_mut(&mut out)).unwrap();
    let mut want = vec![0.0; m * n];
    let mut magnitude = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            let terms = (0..k).map(|l| ar[i * k + l] * br[l * n + j]);
            let (s, t) = terms.fold((0.0, 0.0), |(s, t), p| (s + p, t + f64::abs(p)));
            want[i * n + j] = alpha * s + beta * cs[i * n + j];
            magnitude[i * n + j] = f64::abs(alpha) * t + f64::abs(beta * cs[i * n + j]);
        }
    }
    assert_close(&out, &want, &magnitude, 4.0 + k as f64);
}

fn gemv<T: Element>(p: &Product) {
    let &Product { ta, m, n, alpha, beta, seed, .. } = p;
    let (alpha, beta) = (T::from_f64(alpha).to_f64(), T::from_f64(beta).to_f64());
    let mut r = Numbers(seed);
    let (inner, outer) = if ta { (m, n) } else { (n, m) };
    let (a, x, y) = (r.values::<T>(m * n), r.values::<T>(inner), r.values::<T>(outer));
    let (ar, xs, ys) = (op(ta, outer, inner, &f64s(&a)), f64s(&x), f64s(&y));
    let mut out = y.clone();
    let (mu, nu) = (m as u32, n as u32);
    kernels(1).gemv(ta, mu, nu, alpha, T::wrap_ref(&a), T::wrap_ref(&x), beta, T::wrap_mut(&mut out)).unwrap();
    let row = |i: usize| (0..inner).map(move |j| (i, j));
    let want: Vec<f64> = (0..outer)
        .map(|i| alpha * row(i).map(|(i, j)| ar[i * inner + j] * xs[j]).sum::<f64>() + beta * ys[i])
        .collect();
    let magnitude: Vec<f64> = (0..outer)
        .map(|i| {
            (alpha * row(i).map(|(i, j)| (ar[i * inner + j] * xs[j]).abs()).sum::<f64>()).abs() + (beta * ys[i]).abs()
        })
        .collect();
    assert_close(&out, &want, &magnitude, 4.0 + inner as f64);
}

fn spmm<T: Element>(transpose: bool, rows: usize, columns: usize, width: usize, seed: u64) {
    let mut r = Numbers(seed);
    let offsets = r.offsets(rows, if columns == 0 { 0 } else { 9 });
    let stored = offsets[rows] as usize;
    let (at, values) = (r.indices(stored, columns), r.values::<T>(stored));
    let (x_rows, y_rows) = if transpose { (rows, columns) } else { (columns, rows) };
    let (x, y) = (r.values::<T>(x_rows * width), r.values::<T>(y_rows * width));
    let mut out = y.clone();
    kernels(1)
        .spmm(
            transpose,
            ValuesRef::U32(&offsets),
            ValuesRef::U32(&at),
            T::wrap_ref(&values),
            T::wrap_ref(&x),
            width as u32,
            T::wrap_mut(&mut out),
        )
        .unwrap();
    let mut want = if transpose { f64s(&y) } else { vec![0.0; y.len()] };
    let mut magnitude: Vec<f64> = want.iter().map(|w| w.abs()).collect();
    for i in 0..rows {
        for e in offsets[i] as usize..offsets[i + 1] as usize {
            let (from, to) = if transpose { (i, at[e] as usize) } else { (at[e] as usize, i) };
            for w in 0..width {
                let term = values[e].to_f64() * x[from * width + w].to_f64();
                want[to * width + w] += term;
                magnitude[to * width + w] += term.abs();
            }
        }
    }
    assert_close(&out, &want, &magnitude, 4.0 + stored as f64);
}

fn rows_at_places<T: Element>(table: usize, n: usize, width: usize, seed: u64) {
    let k = kernels(1);
    let mut r = Numbers(seed);
    let n = if table == 0 { 0 } else { n };
    let (i, j) = (r.indices(n, table), r.indices(n, table));
    let (x, y) = (r.values::<T>(table * width), r.values::<T>(table * width));
    let w = width as u32;

    let mut out = vec![T::from_f64(9.0); n * width];
    k.gather(ValuesRef::U32(&i), T::wrap_ref(&x), w, T::wrap_mut(&mut out)).unwrap();
    let want: Vec<T> = i.iter().flat_map(|i| x[*i as usize * width..][..width].iter().copied()).collect();
    assert_eq!(out, want);

    let deltas = r.values::<T>(n * width);
    let mut out = y.clone();
    k.scatter_add(ValuesRef::U32(&j), T::wrap_ref(&deltas), w, T::wrap_mut(&mut out)).unwrap();
    let mut want = y.clone();
    for (e, j) in j.iter().enumerate() {
        for l in 0..width {
            let at = *j as usize * width + l;
            want[at] = want[at].plus(deltas[e * width + l]);
        }
    }
    assert_eq!(out, want, "in the order of the entries, exactly");

    let mut out = vec![T::from_f64(9.0); n];
    k.sddmm(ValuesRef::U32(&i), ValuesRef::U32(&j), T::wrap_ref(&x), T::wrap_ref(&y), w, T::wrap_mut(&mut out))
        .unwrap();
    let term = |e: usize, l: usize| x[i[e] as usize * width + l].to_f64() * y[j[e] as usize * width + l].to_f64();
    let want: Vec<f64> = (0..n).map(|e| (0..width).map(|l| term(e, l)).sum()).collect();
    let magnitude: Vec<f64> = (0..n).map(|e| (0..width).map(|l| term(e, l).abs()).sum()).collect();
    assert_close(&out, &want, &magnitude, 4.0 + width as f64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn vectors_agree_with_plain_loops(n in length(), a in scalar(), seed: u64) {
        vectors::<f32>(n, a, seed);
        vectors::<f64>(n, a, seed);
    }

    #[test]
    fn maps_agree_with_the_standard_library(n in length(), t in 0.0..2.0f64, seed: u64) {
        maps::<f32>(n, t, seed);
        maps::<f64>(n, t, seed);
    }

    #[test]
    fn softmax_agrees_with_its_formula(rows in side(), width in width(), seed: u64) {
        softmax::<f32>(rows, width, seed);
        softmax::<f64>(rows, width, seed);
    }

    #[test]
    fn matrix_products_agree_with_plain_loops(
        (ta, tb) in any::<(bool, bool)>(),
        (m, n, k) in (side(), side(), side()),
        (alpha, beta) in (scalar(), scalar()),
        seed: u64,
    ) {
        let p = Product { ta, tb, m, n, k, alpha, beta, seed };
        gemm::<f32>(&p);
        gemm::<f64>(&p);
        gemv::<f32>(&p);
        gemv::<f64>(&p);
    }

    #[test]
    fn sparse_products_agree_with_plain_loops(
        transpose: bool,
        (rows, columns) in (side(), side()),
        width in width(),
        seed: u64,
    ) {
        spmm::<f32>(transpose, rows, columns, width, seed);
        spmm::<f64>(transpose, rows, columns, width, seed);
    }

    #[test]
    fn rows_at_places_agree_with_plain_loops(
        (table, n) in (side(), side()),
        width in width(),
        seed: u64,
    ) {
        rows_at_places::<f32>(table, n, width, seed);
        rows_at_places::<f64>(table, n, width, seed);
    }
}

#[test]
fn products_of_several_tiles_agree_with_plain_loops() {
    for (ta, tb, m, n, k) in [(false, false, 600, 530, 40), (true, true, 5, 1500, 700), (true, false, 1100, 3, 2000)] {
        let p = Product { ta, tb, m, n, k, alpha: 1.5, beta: -0.5, seed: 7 };
        gemm::<f32>(&p);
        gemm::<f64>(&p);
    }
}

#[test]
fn a_transposed_gemv_of_many_groups_agrees_with_plain_loops() {
    for (m, n) in [(70_000, 3), (1000, 130)] {
        let p = Product { ta: true, tb: false, m, n, k: 0, alpha: 0.5, beta: 2.0, seed: 3 };
        gemv::<f32>(&p);
        gemv::<f64>(&p);
    }
}
