//! Checks of what a guest asks of a table, before anything is read, written or allocated.

use slackline_core::{HostError, Layout, TableId, TableSpec};

/// The table behind an id that a guest holds.
pub fn table(tables: &[TableSpec], id: TableId) -> Result<&TableSpec, HostError> {
    tables.get(id.index()).ok_or_else(|| HostError::NotFound(format!("table {id}")))
}

/// That the table has the layout that a call is for.
pub fn layout(table: &TableSpec, layout: Layout) -> Result<(), HostError> {
    if table.layout == layout {
        return Ok(());
    }
    let (is, call) = match table.layout {
        Layout::Dense => ("dense", "get and inc"),
        Layout::Sparse => ("sparse", "get-sparse and inc-sparse"),
    };
    Err(HostError::Invalid(format!("table {:?} has {is} rows: use {call}", table.name)))
}

/// That every row exists.
pub fn rows(table: &TableSpec, rows: &[u64]) -> Result<(), HostError> {
    // One pass without a branch per row, so that it vectorises; only a failure looks for the culprit.
    if rows.iter().fold(true, |ok, &r| ok & (r < table.rows)) {
        return Ok(());
    }
    let row = rows.iter().find(|&&r| r >= table.rows).copied().unwrap_or_default();
    Err(HostError::Invalid(format!("row {row} of table {:?}, which has {} rows", table.name, table.rows)))
}

/// That `values` values of the right type are what `rows` dense rows hold.
pub fn dense_values(
    table: &TableSpec,
    rows: usize,
    dtype: slackline_core::DType,
    values: usize,
) -> Result<(), HostError> {
    if dtype != table.dtype {
        return Err(HostError::Invalid(format!("table {:?} holds {}, not {dtype}", table.name, table.dtype)));
    }
    if rows.checked_mul(table.width as usize) != Some(values) {
        let (width, name) = (table.width, &table.name);
        return Err(HostError::Invalid(format!(
            "{values} values for {rows} rows of table {name:?}, whose rows have {width} values each"
        )));
    }
    Ok(())
}

/// That three flat lists describe sparse rows of the table.
pub fn sparse_values(
    table: &TableSpec,
    rows: usize,
    offsets: &[u32],
    columns: &[u32],
    dtype: slackline_core::DType,
    values: usize,
) -> Result<(), HostError> {
    let name = &table.name;
    if dtype != table.dtype {
        return Err(HostError::Invalid(format!("table {name:?} holds {}, not {dtype}", table.dtype)));
    }
    if offsets.len() != rows + 1 || columns.len() != values {
        return Err(HostError::Invalid(format!(
            "{} offsets, {} columns and {values} values for {rows} rows of table {name:?}: expected {} offsets, and as \
             many columns as values",
            offsets.len(),
            columns.len(),
            rows + 1
        )));
    }
    let ascend = offsets.first() == Some(&0) && offsets.windows(2).all(|w| w[0] <= w[1]);
    if !ascend || offsets.last().is_none_or(|&end| end as usize != columns.len()) {
        return Err(HostError::Invalid(format!(
            "offsets for table {name:?} do not ascend from 0 to the number of columns, {}",
            columns.len()
        )));
    }
    if let Some(column) = columns.iter().find(|&&c| c >= table.width) {
        return Err(HostError::Invalid(format!("column {column} of table {name:?}, which has {}", table.width)));
    }
    Ok(())
}
