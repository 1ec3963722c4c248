//! The native core on buffers: SIMD and threads on the host's side. Shapes are row-major; the output may not share its
//! array with an input. Worth it for big dense work; small loops are better unrolled in the guest.

use crate::buffer::Buffer;
use crate::element::Float;
use crate::error::Result;
use crate::sys;

/// An element-wise function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Map {
    Exp,
    Ln,
    Sqrt,
    Abs,
    Neg,
    Recip,
    Square,
    Sigmoid,
    Tanh,
    Relu,
}

impl Map {
    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Map::Exp => "exp",
            Map::Ln => "ln",
            Map::Sqrt => "sqrt",
            Map::Abs => "abs",
            Map::Neg => "neg",
            Map::Recip => "recip",
            Map::Square => "square",
            Map::Sigmoid => "sigmoid",
            Map::Tanh => "tanh",
            Map::Relu => "relu",
        }
    }
}

/// A reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduce {
    Sum,
    Min,
    Max,
    SumSquares,
    SumAbs,
    MaxAbs,
}

impl Reduce {
    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Min => "min",
            Reduce::Max => "max",
            Reduce::SumSquares => "sum-squares",
            Reduce::SumAbs => "sum-abs",
            Reduce::MaxAbs => "max-abs",
        }
    }
}

/// A matrix operand as it is, or transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// As it is.
    Plain,
    /// Transposed.
    Transposed,
}

impl Op {
    fn flag(self) -> bool {
        self == Op::Transposed
    }
}

/// A sparse matrix by rows: row `i` owns `columns[offsets[i]..offsets[i + 1]]` and the values at the same places.
pub struct Csr<'a, T: Float> {
    /// Rows + 1 places.
    pub offsets: &'a Buffer<u32>,
    /// Columns.
    pub columns: &'a Buffer<u32>,
    /// Values.
    pub values: &'a Buffer<T>,
}

/// y ← a·x + y.
pub fn axpy<T: Float>(a: f64, x: &Buffer<T>, y: &Buffer<T>) -> Result<()> {
    sys::axpy(a, &x.raw, &y.raw)
}

/// x ← a·x.
pub fn scale<T: Float>(a: f64, x: &Buffer<T>) -> Result<()> {
    sys::scale(a, &x.raw)
}

/// Σ x·y.
pub fn dot<T: Float>(x: &Buffer<T>, y: &Buffer<T>) -> Result<f64> {
    sys::dot(&x.raw, &y.raw)
}

/// y ← α·op(A)·x + β·y, A is m × n.
#[allow(clippy::too_many_arguments)]
pub fn gemv<T: Float>(
    op: Op,
    (m, n): (u32, u32),
    alpha: f64,
    a: &Buffer<T>,
    x: &Buffer<T>,
    beta: f64,
    y: &Buffer<T>,
) -> Result<()> {
    sys::gemv(op.flag(), m, n, alpha, &a.raw, &x.raw, beta, &y.raw)
}

/// C ← α·op(A)·op(B) + β·C, op(A) is m × k, op(B) is k × n.
#[allow(clippy::too_many_arguments)]
pub fn gemm<T: Float>(
    (op_a, op_b): (Op, Op),
    (m, n, k): (u32, u32, u32),
    alpha: f64,
    a: &Buffer<T>,
    b: &Buffer<T>,
    beta: f64,
    c: &Buffer<T>,
) -> Result<()> {
    sys::gemm(op_a.flag(), op_b.flag(), m, n, k, alpha, &a.raw, &b.raw, beta, &c.raw)
}

/// Y ← A·X, with `width` columns in X and Y. Transposed: Y ← Y + Aᵀ·X.
pub fn spmm<T: Float>(op: Op, a: &Csr<'_, T>, x: &Buffer<T>, width: u32, y: &Buffer<T>) -> Result<()> {
    sys::spmm(op.flag(), &a.offsets.raw, &a.columns.raw, &a.values.raw, &x.raw, width, &y.raw)
}

/// `out[e] ← ⟨X[i_e], Y[j_e]⟩`: a factorisation's predictions.
pub fn sddmm<T: Float>(
    i: &Buffer<u32>,
    j: &Buffer<u32>,
    x: &Buffer<T>,
    y: &Buffer<T>,
    width: u32,
    out: &Buffer<T>,
) -> Result<()> {
    sys::sddmm(&i.raw, &j.raw, &x.raw, &y.raw, width, &out.raw)
}

/// `out[e] ← X[rows_e]`.
pub fn gather<T: Float>(rows: &Buffer<u32>, x: &Buffer<T>, width: u32, out: &Buffer<T>) -> Result<()> {
    sys::gather(&rows.raw, &x.raw, width, &out.raw)
}

/// `Y[rows_e] ← Y[rows_e] + X[e]`.
pub fn scatter_add<T: Float>(rows: &Buffer<u32>, x: &Buffer<T>, width: u32, y: &Buffer<T>) -> Result<()> {
    sys::scatter_add(&rows.raw, &x.raw, width, &y.raw)
}

/// Each row of `width` ← softmax of it.
pub fn softmax_rows<T: Float>(x: &Buffer<T>, width: u32) -> Result<()> {
    sys::softmax_rows(&x.raw, width)
}

/// x ← sign(x)·max(|x| − t, 0).
pub fn soft_threshold<T: Float>(x: &Buffer<T>, t: f64) -> Result<()> {
    sys::soft_threshold(&x.raw, t)
}

/// x ← f(x), element by element.
pub fn map<T: Float>(f: Map, x: &Buffer<T>) -> Result<()> {
    sys::map(f.name(), &x.raw)
}

/// One number from all values.
pub fn reduce<T: Float>(how: Reduce, x: &Buffer<T>) -> Result<f64> {
    sys::reduce(how.name(), &x.raw)
}
