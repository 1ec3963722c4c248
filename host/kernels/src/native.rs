//! The port: types are sorted out here, once, and the kernels behind see slices of one type.

use crate::NativeKernels;
use crate::real::Real;
use crate::sparse::{Csr, Pairs};
use crate::{blas1, blas2, blas3, maps, reduce, rows, shape, sparse};
use slackline_core::ports::Kernels;
use slackline_core::{HostError, ValuesMut, ValuesRef};

/// Runs `$body` with `$v` as the typed slice inside `$value`, whose type then is the call's.
macro_rules! typed {
    ($kernel:literal, $name:literal, $enum:ident, $value:expr, $v:ident => $body:expr) => {
        match $value {
            $enum::F32($v) => $body,
            $enum::F64($v) => $body,
            other => {
                Err(shape::invalid($kernel, format_args!("{} holds {} and needs f32 or f64", $name, other.dtype())))
            }
        }
    };
}

/// Another argument of a call, of the type of `like`.
fn same<'a, T: Real>(kernel: &str, name: &str, values: ValuesRef<'a>, _like: &[T]) -> Result<&'a [T], HostError> {
    let have = values.dtype();
    T::slice(values).ok_or_else(|| {
        shape::invalid(kernel, format_args!("{name} holds {have}, but the call's other values are {}", T::DTYPE))
    })
}

impl Kernels for NativeKernels {
    fn axpy(&self, a: f64, x: ValuesRef<'_>, y: ValuesMut<'_>) -> Result<(), HostError> {
        typed!("axpy", "y", ValuesMut, y, y => blas1::axpy(&self.exec, a, same("axpy", "x", x, y)?, y))
    }

    fn scale(&self, a: f64, x: ValuesMut<'_>) -> Result<(), HostError> {
        typed!("scale", "x", ValuesMut, x, x => {
            blas1::scale(&self.exec, a, x);
            Ok(())
        })
    }

    fn dot(&self, x: ValuesRef<'_>, y: ValuesRef<'_>) -> Result<f64, HostError> {
        typed!("dot", "x", ValuesRef, x, x => blas1::dot(&self.exec, x, same("dot", "y", y, x)?))
    }

    fn gemv(
        &self,
        transpose: bool,
        m: u32,
        n: u32,
        alpha: f64,
        a: ValuesRef<'_>,
        x: ValuesRef<'_>,
        beta: f64,
        y: ValuesMut<'_>,
    ) -> Result<(), HostError> {
        typed!("gemv", "y", ValuesMut, y, y => {
            let (a, x) = (same("gemv", "a", a, y)?, same("gemv", "x", x, y)?);
            blas2::gemv(&self.exec, transpose, m, n, alpha, a, x, beta, y)
        })
    }

    fn gemm(
        &self,
        ta: bool,
        tb: bool,
        m: u32,
        n: u32,
        k: u32,
        alpha: f64,
        a: ValuesRef<'_>,
        b: ValuesRef<'_>,
        beta: f64,
        c: ValuesMut<'_>,
    ) -> Result<(), HostError> {
        typed!("gemm", "c", ValuesMut, c, c => {
            let (a, b) = (same("gemm", "a", a, c)?, same("gemm", "b", b, c)?);
            blas3::gemm(&self.exec, ta, tb, m, n, k, alpha, a, b, beta, c)
        })
    }

    fn spmm(
        &self,
        transpose: bool,
        offsets: ValuesRef<'_>,
        columns: ValuesRef<'_>,
        values: ValuesRef<'_>,
        x: ValuesRef<'_>,
        width: u32,
        y: ValuesMut<'_>,
    ) -> Result<(), HostError> {
        let offsets = shape::indices("spmm", "offsets", offsets)?;
        let columns = shape::indices("spmm", "columns", columns)?;
        typed!("spmm", "y", ValuesMut, y, y => {
            let a = Csr { offsets, columns, values: same("spmm", "values", values, y)? };
            sparse::spmm(&self.exec, transpose, a, same("spmm", "x", x, y)?, width, y)
        })
    }

    fn sddmm(
        &self,
        i: ValuesRef<'_>,
        j: ValuesRef<'_>,
        x: ValuesRef<'_>,
        y: ValuesRef<'_>,
        width: u32,
        out: ValuesMut<'_>,
    ) -> Result<(), HostError> {
        let (i, j) = (shape::indices("sddmm", "i", i)?, shape::indices("sddmm", "j", j)?);
        typed!("sddmm", "out", ValuesMut, out, out => {
            let pairs = Pairs { i, j, x: same("sddmm", "x", x, out)?, y: same("sddmm", "y", y, out)? };
            sparse::sddmm(&self.exec, pairs, width, out)
        })
    }

    fn gather(&self, rows: ValuesRef<'_>, x: ValuesRef<'_>, width: u32, out: ValuesMut<'_>) -> Result<(), HostError> {
        let rows = shape::indices("gather", "rows", rows)?;
        typed!("gather", "out", ValuesMut, out, out => {
            rows::gather(&self.exec, rows, same("gather", "x", x, out)?, width, out)
        })
    }

    fn scatter_add(
        &self,
        rows: ValuesRef<'_>,
        x: ValuesRef<'_>,
        width: u32,
        y: ValuesMut<'_>,
    ) -> Result<(), HostError> {
        let rows = shape::indices("scatter_add", "rows", rows)?;
        typed!("scatter_add", "y", ValuesMut, y, y => {
            rows::scatter_add(&self.exec, rows, same("scatter_add", "x", x, y)?, width, y)
        })
    }

    fn softmax_rows(&self, x: ValuesMut<'_>, width: u32) -> Result<(), HostError> {
        typed!("softmax_rows", "x", ValuesMut, x, x => maps::softmax_rows(&self.exec, x, width))
    }

    fn soft_threshold(&self, x: ValuesMut<'_>, t: f64) -> Result<(), HostError> {
        typed!("soft_threshold", "x", ValuesMut, x, x => maps::soft_threshold(&self.exec, x, t))
    }

    fn map(&self, op: &str, x: ValuesMut<'_>) -> Result<(), HostError> {
        typed!("map", "x", ValuesMut, x, x => maps::map(&self.exec, op, x))
    }

    fn reduce(&self, op: &str, x: ValuesRef<'_>) -> Result<f64, HostError> {
        typed!("reduce", "x", ValuesRef, x, x => reduce::reduce(&self.exec, op, x))
    }
}
