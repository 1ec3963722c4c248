//! Numbers out of text, and between types, without loss that nobody asked for: an integer arrives whole or is refused,
//! a real is rounded once, and what is not finite is no data.

use slackline_core::values::Element;

/// Why a value does not fit its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// No number at all.
    NotNumber,
    /// NaN or infinite.
    NotFinite,
    /// A number that the column's type cannot hold exactly, or at all.
    Range,
    /// Nothing there.
    Missing,
    /// Bytes that are no UTF-8.
    NotText,
}

const TENS_F32: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
const TENS_F64: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A short decimal: its digits as an integer, the number of digits behind the point, whether negative, and whether
/// there was a point.
struct Decimal {
    digits: u64,
    places: usize,
    negative: bool,
    point: bool,
}

/// `None` for anything longer or fancier, which the standard library reads.
#[inline]
fn decimal(text: &[u8]) -> Option<Decimal> {
    let (negative, body) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if body.is_empty() || body.len() > 19 {
        return None;
    }
    let (mut digits, mut places, mut point) = (0u64, 0, false);
    for &c in body {
        if c.is_ascii_digit() {
            digits = digits * 10 + u64::from(c - b'0');
            places += usize::from(point);
        } else if c == b'.' && !point {
            point = true;
        } else {
            return None;
        }
    }
    (body.len() > usize::from(point)).then_some(Decimal { digits, places, negative, point })
}

fn std_real<T: std::str::FromStr>(text: &[u8]) -> Result<T, Misfit> {
    std::str::from_utf8(text).ok().and_then(|s| s.parse().ok()).ok_or(Misfit::NotNumber)
}

/// A double. Digits ≤ 2⁵³ over a power of ten ≤ 10²² are both exact, so their quotient is correctly rounded.
#[inline]
pub(crate) fn parse_f64(text: &[u8]) -> Result<f64, Misfit> {
    match decimal(text) {
        Some(d) if d.digits <= 1 << 53 && d.places < TENS_F64.len() => {
            let v = d.digits as f64 / TENS_F64[d.places];
            Ok(if d.negative { -v } else { v })
        }
        Some(d) if !d.point && d.digits as f64 as u128 != u128::from(d.digits) => Err(Misfit::Range),
        _ => {
            long_integer(text, |v| v as f64 as i128 == v)?;
            overflow(text, std_real::<f64>(text)?, f64::is_finite)
        }
    }
}

/// A single; the same argument with 2²⁴ and 10¹⁰. Longer integers must come out whole.
#[inline]
pub(crate) fn parse_f32(text: &[u8]) -> Result<f32, Misfit> {
    match decimal(text) {
        Some(d) if d.digits <= 1 << 24 && d.places < TENS_F32.len() => {
            let v = d.digits as f32 / TENS_F32[d.places];
            Ok(if d.negative { -v } else { v })
        }
        Some(d) if !d.point && d.digits as f32 as u128 != u128::from(d.digits) => Err(Misfit::Range),
        _ => {
            long_integer(text, |v| v as f32 as i128 == v)?;
            overflow(text, std_real::<f32>(text)?, f32::is_finite)
        }
    }
}

/// Refuses an integer too long for [`decimal`] unless it `survives` the way into the column's type.
fn long_integer(text: &[u8], survives: fn(i128) -> bool) -> Result<(), Misfit> {
    let digits = text.iter().skip_while(|c| matches!(c, b'-' | b'+'));
    if text.len() > 19 && digits.clone().all(u8::is_ascii_digit) {
        let read = std::str::from_utf8(text).ok().and_then(|s| s.parse().ok());
        return if read.is_some_and(survives) { Ok(()) } else { Err(Misfit::Range) };
    }
    Ok(())
}

/// Written as a finite number and not finite, it is out of range; written as "inf" or "nan", it is no data.
fn overflow<T: Copy>(text: &[u8], value: T, is_finite: fn(T) -> bool) -> Result<T, Misfit> {
    match is_finite(value) {
        true => Ok(value),
        false if text.iter().any(u8::is_ascii_digit) => Err(Misfit::Range),
        false => Err(Misfit::NotFinite),
    }
}

fn finite(v: f64) -> Result<f64, Misfit> {
    if v.is_finite() { Ok(v) } else { Err(Misfit::NotFinite) }
}

/// An integer, also one written with a point or exponent (`3.0`, `1e3`) when it is whole.
#[inline]
pub(crate) fn parse_i128(text: &[u8]) -> Result<i128, Misfit> {
    if let Some(d) = decimal(text)
        && !d.point
    {
        let v = i128::from(d.digits);
        return Ok(if d.negative { -v } else { v });
    }
    let s = std::str::from_utf8(text).map_err(|_| Misfit::NotNumber)?;
    s.parse::<i128>().or_else(|_| whole(s.parse().map_err(|_| Misfit::NotNumber)?))
}

fn whole(v: f64) -> Result<i128, Misfit> {
    if !v.is_finite() {
        return Err(Misfit::NotFinite);
    }
    // Beyond 2⁵³ a double no longer says which integer was meant.
    if v.fract() == 0.0 && v.abs() <= 9_007_199_254_740_992.0 { Ok(v as i128) } else { Err(Misfit::Range) }
}

/// A plain unsigned integer as index and count fields use it; `None` for anything else.
#[inline]
pub(crate) fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut v = 0u64;
    for &c in text {
        let digit = c.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        v = v.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(v)
}

/// A type that columns hold, with the three ways in.
pub(crate) trait Number: Element {
    /// From text.
    fn of_text(text: &[u8]) -> Result<Self, Misfit>;
    /// From an integer: whole or not at all.
    fn of_int(value: i128) -> Result<Self, Misfit>;
    /// From a real: rounded to a real, whole or not at all to an integer.
    fn of_real(value: f64) -> Result<Self, Misfit>;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            #[inline]
            fn of_text(text: &[u8]) -> Result<Self, Misfit> {
                Self::of_int(parse_i128(text)?)
            }
            #[inline]
            fn of_int(value: i128) -> Result<Self, Misfit> {
                <$ty>::try_from(value).map_err(|_| Misfit::Range)
            }
            #[inline]
            fn of_real(value: f64) -> Result<Self, Misfit> {
                Self::of_int(whole(value)?)
            }
        }
    )*};
}

integers!(i32, i64, u32, u64, u8);

impl Number for f64 {
    #[inline]
    fn of_text(text: &[u8]) -> Result<Self, Misfit> {
        parse_f64(text)
    }
    #[inline]
    fn of_int(value: i128) -> Result<Self, Misfit> {
        let v = value as f64;
        if v as i128 == value { Ok(v) } else { Err(Misfit::Range) }
    }
    #[inline]
    fn of_real(value: f64) -> Result<Self, Misfit> {
        finite(value)
    }
}

impl Number for f32 {
    #[inline]
    fn of_text(text: &[u8]) -> Result<Self, Misfit> {
        parse_f32(text)
    }
    #[inline]
    fn of_int(value: i128) -> Result<Self, Misfit> {
        let v = value as f32;
        if v as i128 == value { Ok(v) } else { Err(Misfit::Range) }
    }
    #[inline]
    fn of_real(value: f64) -> Result<Self, Misfit> {
        let v = finite(value)? as f32;
        if v.is_finite() { Ok(v) } else { Err(Misfit::Range) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reals_are_read_as_the_standard_library_reads_them(
            v in any::<f64>().prop_filter("finite", |v| v.is_finite()), places in 0usize..12, small in -1e6f64..1e6,
        ) {
            for text in [format!("{v}"), format!("{small:.places$}"), format!("{small:e}")] {
                let want64: f64 = text.parse().unwrap();
                // A long integer may be refused, never changed.
                if let Ok(got) = parse_f64(text.as_bytes()) {
                    prop_assert_eq!(got.to_bits(), want64.to_bits());
                } else {
                    prop_assert!(!text.contains(['.', 'e']));
                }
                let want32: f32 = text.parse().unwrap();
                if let Ok(got) = parse_f32(text.as_bytes()) {
                    prop_assert_eq!(got.to_bits(), want32.to_bits());
                }
            }
        }

        #[test]
        fn integers_arrive_whole_or_not_at_all(v in any::<i64>()) {
            let text = v.to_string();
            prop_assert_eq!(i64::of_text(text.as_bytes()), Ok(v));
            prop_assert_eq!(i32::of_text(text.as_bytes()).ok(), i32::try_from(v).ok());
            prop_assert_eq!(u32::of_text(text.as_bytes()).ok(), u32::try_from(v).ok());
            for read in [f32::of_text(text.as_bytes()), f32::of_int(v.into())] {
                prop_assert_eq!(read.is_ok(), v as f32 as i128 == i128::from(v));
            }
        }
    }

    #[test]
    fn what_is_no_finite_number_is_refused() {
        for text in ["", "-", ".", "+.", "1..2", "1,5", "0x1", "1e", " 1", "abc"] {
            assert_eq!(parse_f32(text.as_bytes()), Err(Misfit::NotNumber), "{text:?}");
            assert_eq!(parse_f64(text.as_bytes()), Err(Misfit::NotNumber), "{text:?}");
            assert_eq!(u32::of_text(text.as_bytes()), Err(Misfit::NotNumber), "{text:?}");
        }
        for text in ["nan", "inf", "-infinity"] {
            assert_eq!(parse_f32(text.as_bytes()), Err(Misfit::NotFinite), "{text:?}");
        }
        assert_eq!(parse_f32(b"1e39"), Err(Misfit::Range));
        assert_eq!(u32::of_text(b"3.5"), Err(Misfit::Range));
        assert_eq!(u32::of_text(b"3.0"), Ok(3));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_f32(b"+1"), Ok(1.0));
    }
}
