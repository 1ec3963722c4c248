//! C13 for kernels: the same bits on 1, 2, 3 and 8 threads, on calls large enough to be shared out.

mod common;

use common::{Numbers, kernels};
use slackline_core::ports::Kernels;
use slackline_core::{Element, ValuesRef};

/// Runs `call` on each thread count; what it returns must not differ in any bit.
fn check<T: Element>(name: &str, call: impl Fn(&dyn Kernels) -> Vec<T>) {
    let want = T::wrap(call(&kernels(1)));
    assert!(!want.is_empty());
    for threads in [2, 3, 8] {
        let got = T::wrap(call(&kernels(threads)));
        assert!(got.bytes() == want.bytes(), "{name} of {} differs on {threads} threads", T::DTYPE);
    }
}

fn all<T: Element>() {
    let mut r = Numbers(11);
    let n = 700_001;
    let (x, y) = (r.values::<T>(n), r.values::<T>(n));
    check("dot", |k| vec![k.dot(T::wrap_ref(&x), T::wrap_ref(&y)).unwrap()]);
    for op in ["sum", "min", "max", "sum-squares", "sum-abs", "max-abs"] {
        check(op, |k| vec![k.reduce(op, T::wrap_ref(&x)).unwrap()]);
    }
    let writes = |name: &str, call: &dyn Fn(&dyn Kernels, &mut [T])| {
        check(name, |k| {
            let mut out = y.clone();
            call(k, &mut out);
            out
        });
    };
    writes("axpy", &|k, y| k.axpy(0.3, T::wrap_ref(&x), T::wrap_mut(y)).unwrap());
    writes("scale", &|k, y| k.scale(0.3, T::wrap_mut(y)).unwrap());
    writes("soft_threshold", &|k, y| k.soft_threshold(T::wrap_mut(y), 0.3).unwrap());
    for op in ["exp", "tanh", "sigmoid", "square"] {
        writes(op, &|k, y| k.map(op, T::wrap_mut(y)).unwrap());
    }
    writes("softmax_rows", &|k, y| k.softmax_rows(T::wrap_mut(&mut y[..700_000]), 10).unwrap());

    for (transpose, m, n) in [(false, 1000, 700), (true, 1000, 700), (true, 100_000, 7), (false, 100_000, 7)] {
        let (inner, outer) = if transpose { (m, n) } else { (n, m) };
        check("gemv", |k| {
            let mut out = y[..outer].to_vec();
            let (a, x) = (T::wrap_ref(&x[..m * n]), T::wrap_ref(&x[..inner]));
            k.gemv(transpose, m as u32, n as u32, 0.7, a, x, 0.2, T::wrap_mut(&mut out)).unwrap();
            out
        });
    }
    for (ta, tb, m, n, depth) in
        [(false, true, 700, 900, 130), (true, false, 5, 2000, 340), (false, false, 1300, 5, 500)]
    {
        check("gemm", |k| {
            let mut out = y[..m * n].to_vec();
            let (a, b) = (T::wrap_ref(&x[..m * depth]), T::wrap_ref(&y[..depth * n]));
            k.gemm(ta, tb, m as u32, n as u32, depth as u32, 0.7, a, b, 0.2, T::wrap_mut(&mut out)).unwrap();
            out
        });
    }

    // Scattering kernels share out wide rows only.
    for width in [17, 65] {
        rows_at_places(&x, &y, width, &mut r);
    }
}

fn rows_at_places<T: Element>(x: &[T], y: &[T], width: usize, r: &mut Numbers) {
    let (rows, table, n) = (10_000, 5000, 680_000 / width);
    let offsets = r.offsets(rows, 20);
    let columns = r.indices(offsets[rows] as usize, table);
    let values = T::wrap_ref(&x[..columns.len()]);
    for transpose in [false, true] {
        let (x_rows, y_rows) = if transpose { (rows, table) } else { (table, rows) };
        check("spmm", |k| {
            let mut out = y[..y_rows * width].to_vec();
            let x = T::wrap_ref(&x[..x_rows * width]);
            let (offsets, columns) = (ValuesRef::U32(&offsets), ValuesRef::U32(&columns));
            k.spmm(transpose, offsets, columns, values, x, width as u32, T::wrap_mut(&mut out)).unwrap();
            out
        });
    }
    let (i, j) = (r.indices(n, table), r.indices(n, table));
    let (i, j) = (ValuesRef::U32(&i), ValuesRef::U32(&j));
    let (xt, yt) = (T::wrap_ref(&x[..table * width]), T::wrap_ref(&y[..table * width]));
    check("sddmm", |k| {
        let mut out = vec![T::default(); n];
        k.sddmm(i, j, xt, yt, width as u32, T::wrap_mut(&mut out)).unwrap();
        out
    });
    check("gather", |k| {
        let mut out = vec![T::default(); n * width];
        k.gather(i, xt, width as u32, T::wrap_mut(&mut out)).unwrap();
        out
    });
    check("scatter_add", |k| {
        let mut out = y[..table * width].to_vec();
        k.scatter_add(j, T::wrap_ref(&x[..n * width]), width as u32, T::wrap_mut(&mut out)).unwrap();
        out
    });
}

#[test]
fn f32_results_do_not_depend_on_the_thread_count() {
    all::<f32>();
}

#[test]
fn f64_results_do_not_depend_on_the_thread_count() {
    all::<f64>();
}

#[test]
fn no_thread_count_below_two_makes_a_pool() {
    assert_eq!([kernels(0).threads(), kernels(1).threads(), kernels(3).threads()], [1, 1, 3]);
}
