//! RocksDB's options for the two kinds of database, and why.
//!
//! Measured with the example `cut_speed` on two cores and a virtual disk: a 64 MB table is in a complete, synced cut at
//! 370–450 MB/s while the machine is idle (160–390 with a load of five), and read back with all checksums at 2–3.7 GB/s.
//! A cut costs 75–145 ms however small it is (under that load), mostly the syncs of a new database. Write buffers of 8,
//! 32 and 64 MiB were no faster than those of 16.

use rocksdb::{BlockBasedOptions, DBCompressionType, DBRecoveryMode, LogLevel, Options, ReadOptions, WriteOptions};

/// How much of a cut may wait in memory for the disk: three write buffers, after which writers wait.
const CUT_WRITE_BUFFER: usize = 16 << 20;
const CUT_WRITE_BUFFERS: i32 = 3;

/// Few, small, precious records: logged, synced, compressed.
pub(crate) fn control(create: bool) -> Options {
    let mut o = common(create);
    o.set_write_buffer_size(8 << 20);
    o.set_compression_type(DBCompressionType::Lz4);
    // Refuses a log that is damaged before its end: the default would drop what follows, and with it records of cuts.
    o.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    o.set_log_level(LogLevel::Warn);
    o
}

/// Megabyte chunks, each written once and read once or never.
pub(crate) fn cut(create: bool) -> Options {
    let mut o = common(create);
    o.set_write_buffer_size(CUT_WRITE_BUFFER);
    o.set_max_write_buffer_number(CUT_WRITE_BUFFERS);
    // Nothing is ever overwritten or deleted one by one, so merging files would only write them again.
    o.set_disable_auto_compactions(true);
    // Most tables hold floats, which do not compress, and writing is bounded by processor time on small machines.
    o.set_compression_type(DBCompressionType::None);
    // Spreads write-back, so that the final flush does not wait for all of it.
    o.set_bytes_per_sync(4 << 20);
    o.set_log_level(LogLevel::Error);
    let mut table = BlockBasedOptions::default();
    table.disable_cache();
    o.set_block_based_table_factory(&table);
    o
}

fn common(create: bool) -> Options {
    let mut o = Options::default();
    o.create_if_missing(create);
    o.set_max_background_jobs(2);
    o.set_max_log_file_size(1 << 20);
    o.set_keep_log_file_num(2);
    o.set_stats_dump_period_sec(0);
    o.set_stats_persist_period_sec(0);
    o
}

/// Waits until the record is on disk. Both kinds of write go through [`patiently`](crate::stall::patiently).
pub(crate) fn synced() -> WriteOptions {
    let mut w = WriteOptions::default();
    w.set_sync(true);
    w.set_no_slowdown(true);
    w
}

/// For chunks: no log, since a flush comes before the record that makes them count.
pub(crate) fn unlogged() -> WriteOptions {
    let mut w = WriteOptions::default();
    w.disable_wal(true);
    w.set_no_slowdown(true);
    w
}

/// For chunks: read once.
pub(crate) fn read_once() -> ReadOptions {
    let mut r = ReadOptions::default();
    r.fill_cache(false);
    r
}
