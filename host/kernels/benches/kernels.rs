//! Each kernel on one thread against the plain loop that a native program would have, and the large ones on two.
//!
//! `cargo bench -p slackline-kernels -- NAME` runs those whose name holds NAME. Throughput is in values (for
//! `gemm`, multiplications).

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Numbers, kernels};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use slackline_core::ports::Kernels;
use slackline_core::{ValuesMut, ValuesRef};
use std::hint::black_box;
use std::time::Duration;

/// In the second-level cache.
const N: usize = 50_000;
/// Beyond every cache.
const LARGE: usize = 16 << 20;

/// One comparison: the plain loop, the kernel on one thread and on two, each on its own copy of `out`.
fn compare(
    c: &mut Criterion,
    name: &str,
    work: usize,
    out: &[f32],
    plain: impl Fn(&mut [f32]),
    kernel: impl Fn(&dyn Kernels, &mut [f32]),
) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(work as u64));
    let mut own = out.to_vec();
    group.bench_function("plain", |b| b.iter(|| plain(black_box(&mut own))));
    for threads in [1, 2] {
        let k = kernels(threads);
        let mut own = out.to_vec();
        group.bench_function(BenchmarkId::new("kernel", threads), |b| b.iter(|| kernel(&k, black_box(&mut own))));
    }
}

fn vectors(c: &mut Criterion) {
    let mut r = Numbers(1);
    for (size, n) in [("small", 256), ("cached", N), ("large", LARGE)] {
        let (x, y) = (r.values::<f32>(n), r.values::<f32>(n));
        compare(
            c,
            &format!("axpy/{size}"),
            n,
            &y,
            |y| y.iter_mut().zip(&x).for_each(|(y, x)| *y += 1e-9 * x),
            |k, y| k.axpy(1e-9, ValuesRef::F32(&x), ValuesMut::F32(y)).unwrap(),
        );
        compare(
            c,
            &format!("dot/{size}"),
            n,
            &y,
            |y| {
                black_box(y.iter().zip(&x).map(|(y, x)| y * x).sum::<f32>());
            },
            |k, y| {
                black_box(k.dot(ValuesRef::F32(&x), ValuesRef::F32(y)).unwrap());
            },
        );
        compare(
            c,
            &format!("sum/{size}"),
            n,
            &y,
            |y| {
                black_box(y.iter().sum::<f32>());
            },
            |k, y| {
                black_box(k.reduce("sum", ValuesRef::F32(y)).unwrap());
            },
        );
        compare(
            c,
            &format!("max-abs/{size}"),
            n,
            &y,
            |y| {
                black_box(y.iter().fold(0f32, |m, y| m.max(y.abs())));
            },
            |k, y| {
                black_box(k.reduce("max-abs", ValuesRef::F32(y)).unwrap());
            },
        );
    }
}

fn map(c: &mut Criterion, op: &str, x: &[f32], plain: impl Fn(f32) -> f32) {
    let plain = |x: &mut [f32]| x.iter_mut().for_each(|x| *x = plain(*x));
    compare(c, op, N, x, plain, |k, x| k.map(op, ValuesMut::F32(x)).unwrap());
}

fn maps(c: &mut Criterion) {
    let x = Numbers(2).values::<f32>(N);
    // Maps that keep the values in range however often they are repeated.
    map(c, "sigmoid", &x, |x| 1.0 / (1.0 + (-x).exp()));
    map(c, "tanh", &x, f32::tanh);
    map(c, "relu", &x, |x| x.max(0.0));
    compare(
        c,
        "soft-threshold",
        N,
        &x,
        |x| x.iter_mut().for_each(|x| *x = x.signum() * (x.abs() - 1e-9).max(0.0)),
        |k, x| k.soft_threshold(ValuesMut::F32(x), 1e-9).unwrap(),
    );
    for width in [10, 1000] {
        let plain = |x: &mut [f32]| {
            for row in x.chunks_mut(width) {
                let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                row.iter_mut().for_each(|x| *x = (*x - max).exp());
                let sum: f32 = row.iter().sum();
                row.iter_mut().for_each(|x| *x /= sum);
            }
        };
        let kernel = |k: &dyn Kernels, x: &mut [f32]| k.softmax_rows(ValuesMut::F32(x), width as u32).unwrap();
        compare(c, &format!("softmax-rows/{width}"), N, &x, plain, kernel);
    }
}

fn matrices(c: &mut Criterion) {
    let mut r = Numbers(3);
    let (m, n) = (784, 500);
    let (a, x) = (r.values::<f32>(m * n), r.values::<f32>(m));
    compare(
        c,
        "gemv/plain",
        m * n,
        &vec![0.0; m],
        |y| {
            for (y, a) in y.iter_mut().zip(a.chunks(n)) {
                *y = a.iter().zip(&x).map(|(a, x)| a * x).sum();
            }
        },
        |k, y| {
            let (a, x) = (ValuesRef::F32(&a), ValuesRef::F32(&x[..n]));
            k.gemv(false, m as u32, n as u32, 1.0, a, x, 0.0, ValuesMut::F32(y)).unwrap();
        },
    );
    compare(
        c,
        "gemv/transposed",
        m * n,
        &vec![0.0; n],
        |y| {
            y.fill(0.0);
            for (x, a) in x.iter().zip(a.chunks(n)) {
                y.iter_mut().zip(a).for_each(|(y, a)| *y += x * a);
            }
        },
        |k, y| {
            let (a, x) = (ValuesRef::F32(&a), ValuesRef::F32(&x));
            k.gemv(true, m as u32, n as u32, 1.0, a, x, 0.0, ValuesMut::F32(y)).unwrap();
        },
    );
    for (m, n, depth) in [(8, 8, 8), (64, 10, 784), (700, 700, 300)] {
        let (a, b) = (r.values::<f32>(m * depth), r.values::<f32>(depth * n));
        compare(
            c,
            &format!("gemm/{m}x{n}x{depth}"),
            m * n * depth,
            &vec![0.0; m * n],
            |c| {
                c.fill(0.0);
                for (c, a) in c.chunks_mut(n).zip(a.chunks(depth)) {
                    for (a, b) in a.iter().zip(b.chunks(n)) {
                        c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
                    }
                }
            },
            |k, c| {
                let (m, n, depth) = (m as u32, n as u32, depth as u32);
                let (a, b) = (ValuesRef::F32(&a), ValuesRef::F32(&b));
                k.gemm(false, false, m, n, depth, 1.0, a, b, 0.0, ValuesMut::F32(c)).unwrap();
            },
        );
    }
}

fn rows(c: &mut Criterion) {
    let mut r = Numbers(4);
    let n = 16_384;
    for (width, table) in [(16, 1 << 20), (50, 1 << 18), (16, 2000)] {
        let (x, y) = (r.values::<f32>(table * width), r.values::<f32>(table * width));
        let (i, j, e) = (r.indices(n, table), r.indices(n, table), r.values::<f32>(n * width));
        let at = |name: &str| format!("{name}/{table}x{width}");
        let (ri, rj, w) = (ValuesRef::U32(&i), ValuesRef::U32(&j), width as u32);
        compare(
            c,
            &at("gather"),
            n * width,
            &e,
            |out| {
                for (out, i) in out.chunks_mut(width).zip(&i) {
                    out.copy_from_slice(&x[*i as usize * width..][..width]);
                }
            },
            |k, out| k.gather(ri, ValuesRef::F32(&x), w, ValuesMut::F32(out)).unwrap(),
        );
        compare(
            c,
            &at("scatter-add"),
            n * width,
            &y,
            |y| {
                for (e, i) in e.chunks(width).zip(&i) {
                    y[*i as usize * width..][..width].iter_mut().zip(e).for_each(|(y, e)| *y += e);
                }
            },
            |k, y| k.scatter_add(ri, ValuesRef::F32(&e), w, ValuesMut::F32(y)).unwrap(),
        );
        compare(
            c,
            &at("sddmm"),
            n * width,
            &e[..n],
            |out| {
                for ((out, i), j) in out.iter_mut().zip(&i).zip(&j) {
                    let (x, y) = (&x[*i as usize * width..][..width], &y[*j as usize * width..][..width]);
                    *out = x.iter().zip(y).map(|(x, y)| x * y).sum();
                }
            },
            |k, out| k.sddmm(ri, rj, ValuesRef::F32(&x), ValuesRef::F32(&y), w, ValuesMut::F32(out)).unwrap(),
        );
    }
    for width in [1, 10, 16] {
        let (rows, columns) = (2000, 5000);
        let offsets = r.offsets(rows, 100);
        let stored = offsets[rows] as usize;
        let (at, values) = (r.indices(stored, columns), r.values::<f32>(stored));
        for transpose in [false, true] {
            let (x_rows, y_rows) = if transpose { (rows, columns) } else { (columns, rows) };
            let x = r.values::<f32>(x_rows * width);
            let name = if transpose { "spmm-transposed" } else { "spmm" };
            compare(
                c,
                &format!("{name}/{width}"),
                stored * width,
                &vec![0.0; y_rows * width],
                |y| {
                    if !transpose {
                        y.fill(0.0);
                    }
                    for i in 0..rows {
                        for e in offsets[i] as usize..offsets[i + 1] as usize {
                            let (from, to) = if transpose { (i, at[e] as usize) } else { (at[e] as usize, i) };
                            let x = &x[from * width..][..width];
                            y[to * width..][..width].iter_mut().zip(x).for_each(|(y, x)| *y += values[e] * x);
                        }
                    }
                },
                |k, y| {
                    let (offsets, at, values) =
                        (ValuesRef::U32(&offsets), ValuesRef::U32(&at), ValuesRef::F32(&values));
                    k.spmm(transpose, offsets, at, values, ValuesRef::F32(&x), width as u32, ValuesMut::F32(y))
                        .unwrap();
                },
            );
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200));
    targets = vectors, maps, matrices, rows
}
criterion_main!(benches);
