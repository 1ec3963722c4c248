//! How a kernel runs: which instruction set, and on the caller's thread or on the pool.
//!
//! Loops are plain Rust, compiled once for each instruction set by [`simd!`] and picked at run time. Rust never fuses
//! a multiplication with an addition by itself, and the loops fix the order of every sum, so the instruction set
//! changes the speed and not the bits.

use rayon::prelude::*;

/// Below this many simple loop turns a call stays on the caller's thread: waking a pool costs tens of microseconds.
const SMALL: u64 = 1 << 19;

/// The machine's part of a call.
#[derive(Debug)]
pub(crate) struct Exec {
    pub(crate) arch: pulp::Arch,
    /// `None` with one thread.
    pool: Option<rayon::ThreadPool>,
}

impl Exec {
    pub(crate) fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let pool = match threads {
            0 | 1 => None,
            n => Some(rayon::ThreadPoolBuilder::new().num_threads(n).thread_name(|i| format!("kernels-{i}")).build()?),
        };
        Ok(Self { arch: pulp::Arch::new(), pool })
    }

    pub(crate) fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Threads that a call of `work` loop turns would use.
    pub(crate) fn threads_for(&self, work: u64) -> usize {
        if work < SMALL { 1 } else { self.threads() }
    }

    fn pool_for(&self, work: u64) -> Option<&rayon::ThreadPool> {
        self.pool.as_ref().filter(|_| work >= SMALL)
    }

    /// Runs `f(piece index, piece)` on each piece of `data`.
    pub(crate) fn each_piece<T: Send>(
        &self,
        work: u64,
        data: &mut [T],
        piece: usize,
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        match self.pool_for(work) {
            Some(pool) => pool.install(|| data.par_chunks_mut(piece).enumerate().for_each(|(i, p)| f(i, p))),
            None => data.chunks_mut(piece).enumerate().for_each(|(i, p)| f(i, p)),
        }
    }

    /// Runs `f(index)` for each index below `n`.
    pub(crate) fn each(&self, work: u64, n: usize, f: impl Fn(usize) + Sync) {
        match self.pool_for(work) {
            Some(pool) => pool.install(|| (0..n).into_par_iter().for_each(&f)),
            None => (0..n).for_each(f),
        }
    }

    /// Folds `f(0), f(1), …, f(n − 1)` into `into`, in that order whichever threads made them.
    pub(crate) fn fold<R: Send>(&self, work: u64, n: usize, f: impl Fn(usize) -> R + Sync, mut into: impl FnMut(R)) {
        match self.pool_for(work) {
            Some(pool) => {
                let parts: Vec<R> = pool.install(|| (0..n).into_par_iter().map(&f).collect());
                parts.into_iter().for_each(into);
            }
            None => (0..n).for_each(|i| into(f(i))),
        }
    }
}

/// Defines `fn name(arch, arguments…)` whose body is compiled for every instruction set that `pulp` knows.
///
/// A closure would not do: nothing obliges the compiler to inline one, and a body that is not inlined keeps the
/// baseline instruction set. For the same reason what the body calls is `#[inline(always)]`, and it loops with `for`:
/// `fold` and its like are functions that the compiler may leave outside.
macro_rules! simd {
    ($(#[$meta:meta])*
     $vis:vis fn $name:ident<$lt:lifetime $(, $G:ident: $bound:path)*>($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<$lt $(, $G: $bound)*>(arch: pulp::Arch, $($arg: $ty),*) -> $ret {
            struct Op<$lt $(, $G: $bound)*> {
                $($arg: $ty,)*
                of: std::marker::PhantomData<(&$lt (), $($G),*)>,
            }
            impl<$lt $(, $G: $bound)*> pulp::NullaryFnOnce for Op<$lt $(, $G)*> {
                type Output = $ret;
                #[inline(always)]
                fn call(self) -> $ret {
                    let Op { $($arg,)* of: _ } = self;
                    $body
                }
            }
            arch.dispatch(Op::<$lt $(, $G)*> { $($arg,)* of: std::marker::PhantomData })
        }
    };
}
pub(crate) use simd;

/// Asks the cache for `x[at]`, ahead of a read at a random place.
#[inline(always)]
pub(crate) fn prefetch<T>(x: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that reads nothing and never faults, whatever the address; SSE is part of every
        // x86-64, and `wrapping_add` may leave the slice because the pointer is not dereferenced.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(x.as_ptr().wrapping_add(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, at);
}
