//! How fast a cut is written and read: `cargo run --release -p slackline-storage --example cut_speed -- DIR [MB]`.
//!
//! A dense table of 16 f32 a row, given in pieces of 4 MiB by one thread, committed; then read whole, with every
//! checksum; beside it, a plain file of the same bytes, written and synced.

use slackline_core::{DType, Init, Layout, TableId, TableSpec, Values, ValuesRef};
use slackline_storage::{CutSpec, Mode, State};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: cut_speed DIR [MB]")?);
    let megabytes: u64 = args.next().map_or(Ok(64), |a| a.parse())?;
    let spec = TableSpec {
        name: "table".into(),
        dtype: DType::F32,
        layout: Layout::Dense,
        rows: megabytes * 1_000_000 / 64,
        width: 16,
        init: Init::Uniform { low: -1.0, high: 1.0 },
    };
    let Values::F32(values) = spec.initial(1, 0, spec.rows as usize) else { return Err("not f32".into()) };
    let state = State::open(&dir, Mode::Create)?;
    let rate = |t: Instant| megabytes as f64 / t.elapsed().as_secs_f64();
    for clock in 1..=5 {
        let file = dir.with_extension("plain");
        let start = Instant::now();
        let mut plain = std::fs::File::create(&file)?;
        plain.write_all(bytemuck::cast_slice(&values))?;
        plain.sync_all()?;
        let plain = rate(start);
        std::fs::remove_file(&file)?;

        let start = Instant::now();
        let cut = state.begin_cut(CutSpec { clock, workers: 0, tables: vec![spec.clone()] })?;
        let mut first = 0;
        for piece in values.chunks(1 << 20) {
            cut.dense_rows(TableId(0), first, ValuesRef::F32(piece))?;
            first += (piece.len() / 16) as u64;
        }
        let given = start.elapsed().as_secs_f64() * 1e3;
        cut.commit(serde_json::Value::Null)?;
        let written = rate(start);
        let total = start.elapsed().as_secs_f64() * 1e3;

        let start = Instant::now();
        let cut = state.open_cut(clock)?;
        let mut sum = 0.0f64;
        for rows in cut.dense_rows(TableId(0), 0..spec.rows)? {
            if let Values::F32(v) = rows?.values {
                sum += f64::from(v[0]);
            }
        }
        println!(
            "cut {clock}: written {written:.0} MB/s ({given:.0} ms until all was given, {total:.0} ms until complete), \
             read {:.0} MB/s; plain file {plain:.0} MB/s (sum {sum:.3})",
            rate(start)
        );
    }
    Ok(())
}
