//! Which shard owns which rows: contiguous ranges of nearly equal size.

use crate::ids::ShardId;
use crate::table::TableSpec;

/// The split of one table over `shards` shards: shard `i` owns rows `i·per_shard..(i + 1)·per_shard`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardMap {
    rows: u64,
    per_shard: u64,
    shards: u32,
}

impl ShardMap {
    /// Splits `table`; `shards` is at least 1.
    pub fn new(table: &TableSpec, shards: u32) -> Self {
        let shards = shards.max(1);
        Self { rows: table.rows, per_shard: table.rows.div_ceil(u64::from(shards)).max(1), shards }
    }

    /// The owner of `row`, which is below the table's row count.
    #[inline]
    pub fn owner(&self, row: u64) -> ShardId {
        if self.shards == 1 { ShardId(0) } else { ShardId((row / self.per_shard) as u32) }
    }

    /// The rows that `shard` owns.
    pub fn range(&self, shard: ShardId) -> std::ops::Range<u64> {
        let first = (u64::from(shard.0) * self.per_shard).min(self.rows);
        first..(first + self.per_shard).min(self.rows)
    }

    /// Number of shards.
    pub fn shards(&self) -> u32 {
        self.shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Init, Layout};
    use crate::values::DType;

    #[test]
    fn every_row_has_one_owner_and_lies_in_its_range() {
        for rows in [0, 1, 2, 7, 10, 11, 64] {
            for shards in 1..6 {
                let spec = TableSpec {
                    name: "t".into(),
                    dtype: DType::F32,
                    layout: Layout::Dense,
                    rows,
                    width: 1,
                    init: Init::Zero,
                };
                let map = ShardMap::new(&spec, shards);
                let total: u64 = (0..shards).map(|s| map.range(ShardId(s)).count() as u64).sum();
                assert_eq!(total, rows);
                for row in 0..rows {
                    assert!(map.range(map.owner(row)).contains(&row), "row {row} of {rows} over {shards}");
                }
            }
        }
    }
}
