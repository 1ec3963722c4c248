//! Checks that every kernel makes before it reads or writes: a guest chose the lengths, widths and indices.

use slackline_core::{HostError, ValuesRef};

/// A refusal that names the kernel.
pub(crate) fn invalid(kernel: &str, why: impl std::fmt::Display) -> HostError {
    HostError::Invalid(format!("{kernel}: {why}"))
}

/// That argument `name` has `want` values; `shape` says where `want` comes from.
pub(crate) fn len(kernel: &str, name: &str, have: usize, want: usize, shape: &str) -> Result<(), HostError> {
    if have == want {
        return Ok(());
    }
    Err(invalid(kernel, format_args!("{name} has {have} values and needs {want} ({shape})")))
}

/// `a · b`, refused when it does not fit.
pub(crate) fn product(kernel: &str, what: &str, a: usize, b: usize) -> Result<usize, HostError> {
    a.checked_mul(b).ok_or_else(|| invalid(kernel, format_args!("{what} of {a} × {b} values is too large")))
}

/// A row width as a length; 0 is refused.
pub(crate) fn width(kernel: &str, width: u32) -> Result<usize, HostError> {
    match width {
        0 => Err(invalid(kernel, "width is 0; give the number of values in a row")),
        w => Ok(w as usize),
    }
}

/// Number of rows of `width` (not 0) in an argument of `have` values.
pub(crate) fn rows(kernel: &str, name: &str, have: usize, width: usize) -> Result<usize, HostError> {
    if have.is_multiple_of(width) {
        return Ok(have / width);
    }
    Err(invalid(kernel, format_args!("{name} has {have} values, which is no whole number of rows of {width}")))
}

/// An index argument: u32.
pub(crate) fn indices<'a>(kernel: &str, name: &str, values: ValuesRef<'a>) -> Result<&'a [u32], HostError> {
    match values {
        ValuesRef::U32(v) => Ok(v),
        other => Err(invalid(kernel, format_args!("{name} holds {} and needs u32", other.dtype()))),
    }
}

/// That every index is below `rows`.
pub(crate) fn bounded(kernel: &str, name: &str, indices: &[u32], rows: usize, of: &str) -> Result<(), HostError> {
    let largest = indices.iter().fold(0, |m, i| m.max(*i));
    if indices.is_empty() || (largest as usize) < rows {
        return Ok(());
    }
    let at = indices.iter().position(|i| *i as usize >= rows).unwrap_or_default();
    Err(invalid(kernel, format_args!("{name}[{at}] is {}, but {of} has {rows} rows", indices[at])))
}

/// That CSR offsets are rows + 1 ascending places inside `stored` entries.
pub(crate) fn offsets(kernel: &str, offsets: &[u32], stored: usize) -> Result<(), HostError> {
    let Some(last) = offsets.last() else {
        return Err(invalid(kernel, "offsets is empty; give one place more than there are rows"));
    };
    if let Some(at) = offsets.windows(2).position(|w| w[0] > w[1]) {
        return Err(invalid(kernel, format_args!("offsets[{}] is smaller than the one before; sort them", at + 1)));
    }
    if *last as usize > stored {
        return Err(invalid(kernel, format_args!("offsets end at {last}, but there are {stored} columns")));
    }
    Ok(())
}

/// What to say of an operation that does not exist; a guest's word is quoted short.
pub(crate) fn unknown(op: &str, ops: &[&str]) -> String {
    let short: String = op.chars().take(32).collect();
    format!("there is no operation {short:?}; use one of {}", ops.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(r: Result<T, HostError>) -> String {
        r.unwrap_err().to_string()
    }

    #[test]
    fn refusals_say_what_where_and_what_to_do() {
        assert_eq!(message(len("dot", "y", 3, 4, "as x")), "invalid: dot: y has 3 values and needs 4 (as x)");
        assert_eq!(
            message(bounded("gather", "rows", &[0, 2, 3], 2, "x")),
            "invalid: gather: rows[1] is 2, but x has 2 rows"
        );
        assert_eq!(
            message(offsets("spmm", &[0, 2, 1], 2)),
            "invalid: spmm: offsets[2] is smaller than the one before; sort them"
        );
        assert_eq!(message(offsets("spmm", &[0, 3], 2)), "invalid: spmm: offsets end at 3, but there are 2 columns");
        assert!(message(offsets("spmm", &[], 2)).contains("offsets is empty"));
        assert!(message(width("gather", 0)).contains("width is 0"));
        assert!(message(rows("gather", "x", 7, 2)).contains("no whole number of rows of 2"));
    }

    #[test]
    fn sizes_that_overflow_are_refused_not_wrapped() {
        assert!(message(product("gather", "out", usize::MAX, 2)).contains("too large"));
        assert_eq!(product("gather", "out", 6, 7).unwrap(), 42);
    }
}
