//! exp, ln and tanh without branches or tables, so that the loops around them become vector code.
//!
//! The methods are the classical ones (range reduction in two parts and the polynomials of Cephes and fdlibm); errors
//! stay below a few units in the last place, which the tests hold against the standard library. Subnormals, infinities
//! and NaN behave as IEEE 754 recommends. Nothing here depends on fused multiply-add: the bits are the same everywhere.

use std::f32::consts::LOG2_E as LOG2_E_F32;
use std::f64::consts::LOG2_E as LOG2_E_F64;

/// Adding it to a small number rounds that to an integer, which then stands in the low bits: 1.5·2²³.
const ROUND_F32: f32 = 12_582_912.0;
/// The same for f64: 1.5·2⁵².
const ROUND_F64: f64 = 6_755_399_441_055_744.0;

#[inline(always)]
fn horner<T: Copy + std::ops::Mul<Output = T> + std::ops::Add<Output = T>, const N: usize>(x: T, c: [T; N]) -> T {
    let mut y = c[0];
    for c in &c[1..] {
        y = y * x + *c;
    }
    y
}

/// eˣ.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    // Beyond these bounds the result is infinite or 0 by rounding; inside, 2ᵏ below is in range. NaN passes.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * LOG2_E_F32 + ROUND_F32;
    let n = shifted - ROUND_F32;
    let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
    let p = horner(r, [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5]);
    let y = p * (r * r) + r + 1.0;
    // 2ᵏ in two factors: k may be one more than the largest exponent, or reach into the subnormals.
    let k = shifted.to_bits().wrapping_sub(ROUND_F32.to_bits()) as i32;
    let half = k >> 1;
    let pow2 = |k: i32| f32::from_bits((k.wrapping_add(127) as u32) << 23);
    y * pow2(half) * pow2(k.wrapping_sub(half))
}

/// eˣ.
#[inline(always)]
pub(crate) fn exp_f64(x: f64) -> f64 {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let shifted = x * LOG2_E_F64 + ROUND_F64;
    let n = shifted - ROUND_F64;
    let r = (x - n * 0.693_145_751_953_125) - n * 1.428_606_820_309_417_2e-6;
    let rr = r * r;
    let p = r * horner(rr, [1.261_771_930_748_105_9e-4, 3.029_944_077_074_419_6e-2, 1.0]);
    let q = horner(rr, [3.001_985_051_386_644_6e-6, 2.524_483_403_496_841e-3, 2.272_655_482_081_550_3e-1, 2.0]);
    let y = 1.0 + 2.0 * (p / (q - p));
    // Biased, since AVX2 has no arithmetic shift of 64 bits.
    let k = shifted.to_bits().wrapping_sub(ROUND_F64.to_bits()).wrapping_add(4096);
    let half = k >> 1;
    let pow2 = |k: u64| f64::from_bits(k.wrapping_sub(2048).wrapping_add(1023) << 52);
    y * pow2(half) * pow2(k.wrapping_sub(half))
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn ln_f32(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 33_554_432.0 } else { x };
    // x = m·2ᵏ with m between √½ and √2.
    let h = scaled.to_bits().wrapping_add(0x3f80_0000 - 0x3f35_04f3);
    let m = f32::from_bits((h & 0x007f_ffff).wrapping_add(0x3f35_04f3));
    let k = ((h >> 23) as i32 - 127) as f32 - if tiny { 25.0 } else { 0.0 };
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * horner(z, [0.242_790_79, 0.284_987_87, 0.400_009_72, 0.666_666_6]);
    let hfsq = 0.5 * f * f;
    let y = s * (hfsq + r) + k * 9.058_001e-6 - hfsq + f + k * 0.693_138_1;
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x < 0.0 { f32::NAN } else { y };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn ln_f64(x: f64) -> f64 {
    const SQRT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    const TWO52: f64 = 4_503_599_627_370_496.0;
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    let h = scaled.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF);
    let m = f64::from_bits((h & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF));
    // The exponent as a number through the bits of 2⁵², since AVX2 does not convert 64-bit integers.
    let k = f64::from_bits(TWO52.to_bits() | (h >> 52)) - (TWO52 + 1023.0) - if tiny { 54.0 } else { 0.0 };
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * horner(
        z,
        [
            1.479_819_860_511_658_6e-1,
            1.531_383_769_920_937_3e-1,
            1.818_357_216_161_805e-1,
            2.222_219_843_214_978_4e-1,
            2.857_142_874_366_239e-1,
            3.999_999_999_940_942e-1,
            6.666_666_666_666_735e-1,
        ],
    );
    let hfsq = 0.5 * f * f;
    let y = k * 6.931_471_803_691_238e-1 - ((hfsq - (s * (hfsq + r) + k * 1.908_214_929_270_587_7e-10)) - f);
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x < 0.0 { f64::NAN } else { y };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh_f32(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let p = horner(z, [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_5e-2, 1.333_144_2e-1, -3.333_328e-1]);
    let near = a + a * (z * p);
    let far = 1.0 - 2.0 / (exp_f32(2.0 * a) + 1.0);
    (if a < 0.625 { near } else { far }).copysign(x)
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let z = x * x;
    let p = horner(z, [-9.643_991_794_250_523e-1, -9.928_772_310_019_186e1, -1.614_687_684_417_084_5e3]);
    let q = horner(z, [1.0, 1.128_116_784_916_329_3e2, 2.235_488_390_601_004_5e3, 4.844_063_053_251_255e3]);
    let near = a + a * (z * (p / q));
    let far = 1.0 - 2.0 / (exp_f64(2.0 * a) + 1.0);
    (if a < 0.625 { near } else { far }).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units in the last place of f32.
    fn ulps32(got: f32, want: f64) -> f64 {
        let want32 = want as f32;
        if got == want32 || (got.is_nan() && want.is_nan()) {
            return 0.0;
        }
        let ulp = (f32::from_bits(want32.abs().to_bits() + 1) - want32.abs()) as f64;
        (got as f64 - want).abs() / ulp
    }

    fn ulps64(got: f64, want: f64) -> f64 {
        if got == want || (got.is_nan() && want.is_nan()) {
            return 0.0;
        }
        (got - want).abs() / (f64::from_bits(want.abs().to_bits() + 1) - want.abs())
    }

    fn sweep(from: f64, to: f64) -> impl Iterator<Item = f64> {
        let n = 200_000;
        (0..=n).map(move |i| from + (to - from) * i as f64 / n as f64)
    }

    #[test]
    fn errors_stay_below_three_units_in_the_last_place() {
        let mut worst = [0f64; 6];
        let mut note = |i: usize, e: f64| worst[i] = worst[i].max(e);
        for x in sweep(-110.0, 95.0) {
            note(0, ulps32(exp_f32(x as f32), (x as f32 as f64).exp()));
        }
        for x in sweep(-750.0, 715.0) {
            note(1, ulps64(exp_f64(x), x.exp()));
        }
        for x in sweep(-745.0, 709.0).map(f64::exp).chain(sweep(0.5, 2.0)) {
            note(3, ulps64(ln_f64(x), x.ln()));
            note(2, ulps32(ln_f32(x as f32), (x as f32 as f64).ln()));
        }
        for x in sweep(-30.0, 30.0).chain(sweep(-1.0, 1.0)) {
            note(4, ulps32(tanh_f32(x as f32), (x as f32 as f64).tanh()));
            note(5, ulps64(tanh_f64(x), x.tanh()));
        }
        assert!(worst.iter().all(|w| *w < 3.0), "exp, ln, tanh in f32 and f64: {worst:?}");
    }

    #[test]
    fn edges_follow_ieee_754() {
        let inf = f64::INFINITY;
        let bits = |a: f64, b: f64| assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{a} {b}");
        for x in [0.0, -0.0, inf, -inf, f64::NAN, f64::MAX, f64::MIN, 5e-324, -1.0, 1.0] {
            bits(exp_f64(x), if x == 1.0 || x == -1.0 { exp_f64(x) } else { x.exp() });
            bits(ln_f64(x), x.ln());
            bits(tanh_f64(x), if x.abs() == 1.0 { tanh_f64(x) } else { x.tanh() });
        }
        for x in [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN] {
            bits(exp_f32(x) as f64, x.exp() as f64);
            bits(ln_f32(x) as f64, x.ln() as f64);
            bits(tanh_f32(x) as f64, x.tanh() as f64);
        }
        assert!(ulps32(ln_f32(1e-45), (1e-45f32 as f64).ln()) < 2.0);
        assert!(ulps64(ln_f64(5e-324), 5e-324f64.ln()) < 2.0);
    }
}
