//! Moving a cut to another number of shards (C11).

use crate::rows::TableSnapshot;
use slackline_core::part::RowDeltas;
use slackline_core::{DType, Element, Layout, ShardId, ShardMap, TableSpec};
use std::ops::Range;

/// Splits the rows of one table, as some number of shards left them, for `shards` shards. `None` when the pieces are
/// not all of the table, or do not fit it.
pub fn resplit(table: &TableSpec, mut pieces: Vec<TableSnapshot>, shards: u32) -> Option<Vec<TableSnapshot>> {
    pieces.sort_by_key(|p| (p.range.start, p.range.end));
    match table.dtype {
        DType::F32 => typed::<f32>(table, &pieces, shards),
        DType::F64 => typed::<f64>(table, &pieces, shards),
        DType::I32 => typed::<i32>(table, &pieces, shards),
        DType::I64 => typed::<i64>(table, &pieces, shards),
        _ => None,
    }
}

fn typed<T: Element>(table: &TableSpec, pieces: &[TableSnapshot], shards: u32) -> Option<Vec<TableSnapshot>> {
    let all = match table.layout {
        Layout::Dense => Whole::<T>::dense(table, pieces)?,
        Layout::Sparse => Whole::<T>::sparse(table, pieces)?,
    };
    let map = ShardMap::new(table, shards);
    (0..map.shards()).map(|s| all.piece(table, map.range(ShardId(s)))).collect()
}

/// A whole table: where each row's values begin, the columns of sparse rows, and all values.
struct Whole<T> {
    begins: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Element> Whole<T> {
    fn dense(table: &TableSpec, pieces: &[TableSnapshot]) -> Option<Self> {
        let (mut next, mut values, width) = (0, Vec::new(), table.width as usize);
        for piece in pieces {
            let RowDeltas::Dense(v) = &piece.rows else { return None };
            let v = T::of(v)?;
            if v.len() != rows_after(&mut next, &piece.range)?.checked_mul(width)? {
                return None;
            }
            values.extend_from_slice(v);
        }
        let rows = usize::try_from(next).ok().filter(|_| next == table.rows)?;
        Some(Self { begins: (0..=rows).map(|r| r * width).collect(), columns: Vec::new(), values })
    }

    fn sparse(table: &TableSpec, pieces: &[TableSnapshot]) -> Option<Self> {
        let (mut next, mut all) = (0, Self { begins: vec![0], columns: Vec::new(), values: Vec::new() });
        for piece in pieces {
            let RowDeltas::Sparse { offsets, columns, values } = &piece.rows else { return None };
            let v = T::of(values)?;
            let sound = offsets.len() == rows_after(&mut next, &piece.range)? + 1
                && offsets.first() == Some(&0)
                && offsets.last().is_some_and(|&end| end as usize == columns.len())
                && offsets.windows(2).all(|w| w[0] <= w[1])
                && columns.len() == v.len();
            if !sound {
                return None;
            }
            let base = all.columns.len();
            all.begins.extend(offsets[1..].iter().map(|&end| base + end as usize));
            all.columns.extend_from_slice(columns);
            all.values.extend_from_slice(v);
        }
        (next == table.rows).then_some(all)
    }

    fn piece(&self, table: &TableSpec, range: Range<u64>) -> Option<TableSnapshot> {
        let (first, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
        let (from, to) = (*self.begins.get(first)?, *self.begins.get(end)?);
        let values = T::wrap(self.values[from..to].to_vec());
        let rows = match table.layout {
            Layout::Dense => RowDeltas::Dense(values),
            Layout::Sparse => {
                let offset = |&at: &usize| u32::try_from(at - from).ok();
                let offsets = self.begins[first..=end].iter().map(offset).collect::<Option<_>>()?;
                RowDeltas::Sparse { offsets, columns: self.columns[from..to].to_vec(), values }
            }
        };
        Some(TableSnapshot { range, rows })
    }
}

/// Number of rows of a piece that begins where the last one ended.
fn rows_after(next: &mut u64, range: &Range<u64>) -> Option<usize> {
    if range.start != *next {
        return None;
    }
    *next = range.end;
    usize::try_from(range.end.checked_sub(range.start)?).ok()
}
