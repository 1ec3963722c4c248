//! The kernels as plain loops in double precision. The engine's own are faster and round in the buffers' type.

use super::array::Window;
use crate::element::DType;
use crate::error::{Error, Result};
use crate::native::Handle;

/// Inputs as f64, after checking that all are of one floating type and share nothing with the output.
fn inputs(output: Option<&Window>, handles: &[&Handle]) -> Result<Vec<Vec<f64>>> {
    let windows = handles.iter().map(|h| Window::of(h)).collect::<Result<Vec<_>>>()?;
    let dtype = output.or(windows.first().copied()).map(Window::dtype);
    for w in windows.iter().copied().chain(output) {
        if !matches!(w.dtype(), DType::F32 | DType::F64) || Some(w.dtype()) != dtype {
            return Err(Error::invalid("the floating arguments of a kernel are all f32 or all f64"));
        }
    }
    if let Some(output) = output {
        output.writable()?;
        if windows.iter().any(|w| w.shares_array(output)) {
            return Err(Error::invalid("the output of a kernel may not share its array with an input"));
        }
    }
    Ok(windows.iter().map(|w| w.to_f64()).collect())
}

fn indices(handle: &Handle, below: usize) -> Result<Vec<usize>> {
    let w = Window::of(handle)?;
    if w.dtype() != DType::U32 {
        return Err(Error::invalid("indices of a kernel are u32"));
    }
    let v: Vec<usize> = w.to_f64().iter().map(|x| *x as usize).collect();
    match v.iter().find(|i| **i >= below) {
        Some(i) => Err(Error::Invalid(format!("index {i} of {below}"))),
        None => Ok(v),
    }
}

fn expect(what: &str, got: usize, want: usize) -> Result<()> {
    if got == want { Ok(()) } else { Err(Error::Invalid(format!("{what} has {got} values, not {want}"))) }
}

fn in_place(x: &Handle, f: impl FnOnce(&mut [f64]) -> Result<()>) -> Result<()> {
    let x = Window::of(x)?;
    inputs(Some(x), &[])?;
    let mut v = x.to_f64();
    f(&mut v)?;
    x.set_f64(&v)
}

pub(super) fn axpy(a: f64, x: &Handle, y: &Handle) -> Result<()> {
    let y = Window::of(y)?;
    let x = &inputs(Some(y), &[x])?[0];
    let mut out = y.to_f64();
    expect("x", x.len(), out.len())?;
    out.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
    y.set_f64(&out)
}

pub(super) fn scale(a: f64, x: &Handle) -> Result<()> {
    in_place(x, |x| {
        x.iter_mut().for_each(|x| *x *= a);
        Ok(())
    })
}

pub(super) fn dot(x: &Handle, y: &Handle) -> Result<f64> {
    let v = inputs(None, &[x, y])?;
    expect("y", v[1].len(), v[0].len())?;
    Ok(v[0].iter().zip(&v[1]).map(|(x, y)| x * y).sum())
}

#[allow(clippy::too_many_arguments)]
pub(super) fn gemm(
    ta: bool,
    tb: bool,
    (m, n, k): (u32, u32, u32),
    alpha: f64,
    a: &Handle,
    b: &Handle,
    beta: f64,
    c: &Handle,
) -> Result<()> {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let c = Window::of(c)?;
    let v = inputs(Some(c), &[a, b])?;
    let mut out = c.to_f64();
    expect("A", v[0].len(), m * k)?;
    expect("B", v[1].len(), k * n)?;
    expect("C", out.len(), m * n)?;
    let a = |i: usize, p: usize| if ta { v[0][p * m + i] } else { v[0][i * k + p] };
    let b = |p: usize, j: usize| if tb { v[1][j * k + p] } else { v[1][p * n + j] };
    for i in 0..m {
        for j in 0..n {
            let sum: f64 = (0..k).map(|p| a(i, p) * b(p, j)).sum();
            let old = if beta == 0.0 { 0.0 } else { beta * out[i * n + j] };
            out[i * n + j] = alpha * sum + old;
        }
    }
    c.set_f64(&out)
}

/// op(A)·x is op(A) times a matrix of one column.
#[allow(clippy::too_many_arguments)]
pub(super) fn gemv(
    transpose: bool,
    m: u32,
    n: u32,
    alpha: f64,
    a: &Handle,
    x: &Handle,
    beta: f64,
    y: &Handle,
) -> Result<()> {
    let (rows, inner) = if transpose { (n, m) } else { (m, n) };
    gemm(transpose, false, (rows, 1, inner), alpha, a, x, beta, y)
}

#[allow(clippy::too_many_arguments)]
pub(super) fn spmm(
    transpose: bool,
    offsets: &Handle,
    columns: &Handle,
    values: &Handle,
    x: &Handle,
    width: u32,
    y: &Handle,
) -> Result<()> {
    let y = Window::of(y)?;
    let v = inputs(Some(y), &[values, x])?;
    let (values, x) = (&v[0], &v[1]);
    let width = (width as usize).max(1);
    let offsets = indices(offsets, values.len() + 1)?;
    let rows = offsets.len().saturating_sub(1);
    let mut out = y.to_f64();
    let columns = indices(columns, if transpose { out.len() } else { x.len() } / width)?;
    expect("columns", columns.len(), values.len())?;
    if !offsets.is_sorted() || offsets.last() != Some(&values.len()) {
        return Err(Error::invalid("offsets do not ascend to the number of values"));
    }
    if transpose {
        expect("X", x.len(), rows * width)?;
    } else {
        expect("Y", out.len(), rows * width)?;
        out.fill(0.0);
    }
    for i in 0..rows {
        for e in offsets[i]..offsets[i + 1] {
            let (to, from) = if transpose { (columns[e], i) } else { (i, columns[e]) };
            for w in 0..width {
                out[to * width + w] += values[e] * x[from * width + w];
            }
        }
    }
    y.set_f64(&out)
}

pub(super) fn sddmm(i: &Handle, j: &Handle, x: &Handle, y: &Handle, width: u32, out: &Handle) -> Result<()> {
    let out = Window::of(out)?;
    let v = inputs(Some(out), &[x, y])?;
    let width = (width as usize).max(1);
    let (i, j) = (indices(i, v[0].len() / width)?, indices(j, v[1].len() / width)?);
    expect("j", j.len(), i.len())?;
    expect("out", out.len(), i.len())?;
    let row = |m: &[f64], r: usize| m[r * width..(r + 1) * width].to_vec();
    let dots: Vec<f64> =
        i.iter().zip(&j).map(|(i, j)| row(&v[0], *i).iter().zip(row(&v[1], *j)).map(|(a, b)| a * b).sum()).collect();
    out.set_f64(&dots)
}

pub(super) fn gather(rows: &Handle, x: &Handle, width: u32, out: &Handle) -> Result<()> {
    let out = Window::of(out)?;
    let x = &inputs(Some(out), &[x])?[0];
    let width = (width as usize).max(1);
    let rows = indices(rows, x.len() / width)?;
    expect("out", out.len(), rows.len() * width)?;
    let picked: Vec<f64> = rows.iter().flat_map(|r| x[r * width..(r + 1) * width].iter().copied()).collect();
    out.set_f64(&picked)
}

pub(super) fn scatter_add(rows: &Handle, x: &Handle, width: u32, y: &Handle) -> Result<()> {
    let y = Window::of(y)?;
    let x = &inputs(Some(y), &[x])?[0];
    let width = (width as usize).max(1);
    let mut out = y.to_f64();
    let rows = indices(rows, out.len() / width)?;
    expect("X", x.len(), rows.len() * width)?;
    for (r, x) in rows.iter().zip(x.chunks_exact(width)) {
        out[r * width..(r + 1) * width].iter_mut().zip(x).for_each(|(y, x)| *y += x);
    }
    y.set_f64(&out)
}

pub(super) fn softmax_rows(x: &Handle, width: u32) -> Result<()> {
    let width = (width as usize).max(1);
    in_place(x, |x| {
        expect("x", x.len() % width, 0)?;
        for row in x.chunks_exact_mut(width) {
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|v| *v = (*v - max).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|v| *v /= sum);
        }
        Ok(())
    })
}

pub(super) fn soft_threshold(x: &Handle, t: f64) -> Result<()> {
    in_place(x, |x| {
        x.iter_mut().for_each(|v| *v = v.signum() * (v.abs() - t).max(0.0));
        Ok(())
    })
}

pub(super) fn map(op: &str, x: &Handle) -> Result<()> {
    let f: fn(f64) -> f64 = match op {
        "exp" => f64::exp,
        "ln" => f64::ln,
        "sqrt" => f64::sqrt,
        "abs" => f64::abs,
        "neg" => |v| -v,
        "recip" => f64::recip,
        "square" => |v| v * v,
        "sigmoid" => |v| 1.0 / (1.0 + (-v).exp()),
        "tanh" => f64::tanh,
        "relu" => |v| v.max(0.0),
        other => return Err(Error::Invalid(format!("no element-wise function {other:?}"))),
    };
    in_place(x, |x| {
        x.iter_mut().for_each(|v| *v = f(*v));
        Ok(())
    })
}

pub(super) fn reduce(op: &str, x: &Handle) -> Result<f64> {
    let x = &inputs(None, &[x])?[0];
    Ok(match op {
        "sum" => x.iter().sum(),
        "min" => x.iter().copied().fold(f64::INFINITY, f64::min),
        "max" => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "sum-squares" => x.iter().map(|v| v * v).sum(),
        "sum-abs" => x.iter().map(|v| v.abs()).sum(),
        "max-abs" => x.iter().map(|v| v.abs()).fold(0.0, f64::max),
        other => return Err(Error::Invalid(format!("no reduction {other:?}"))),
    })
}
