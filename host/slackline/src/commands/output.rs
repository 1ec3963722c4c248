//! What commands print on standard output.

use crate::failure::{Exit, Failure};
use std::fmt::Write as _;
use std::io::Write as _;

/// Writes to standard output; a reader that has gone away (`| head`) is no failure.
pub fn print(text: &str) -> Result<Exit, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Data, format!("standard output cannot be written: {e}")))
        }
        _ => Ok(Exit::Done),
    }
}

/// Columns side by side, each as wide as its widest cell.
pub fn table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        _ = writeln!(out, "  {}", line.join("  ").trim_end());
    }
}
