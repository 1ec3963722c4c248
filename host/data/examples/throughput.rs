//! How fast a file is read and its batches are made: `throughput FILE` for libsvm, bags of words and ratings CSV.

use slackline_core::manifest::{ColumnWant, Encode};
use slackline_core::values::DType;
use slackline_data::{DataSpec, Format, Source, load};
use std::time::Instant;

fn want(name: &str, dtype: DType, list: bool, encode: Encode) -> ColumnWant {
    ColumnWant { name: name.into(), dtype, list, encode, optional: false, target: false }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: throughput FILE")?;
    let source = Source::new(&path);
    let wants = match source.format()? {
        Format::Libsvm => vec![
            want("label", DType::F32, false, Encode::None),
            want("index", DType::U32, true, Encode::None),
            want("value", DType::F32, true, Encode::None),
        ],
        Format::UciBow | Format::Ldac => {
            vec![want("word", DType::U32, true, Encode::None), want("count", DType::U32, true, Encode::None)]
        }
        Format::Csv => vec![
            want("user", DType::U32, false, Encode::Dictionary),
            want("item", DType::U32, false, Encode::Dictionary),
            want("rating", DType::F32, false, Encode::None),
        ],
        other => return Err(format!("no wants for {other}").into()),
    };
    let spec = DataSpec { datasets: [("train".to_owned(), source)].into(), batch: 1024, ..DataSpec::default() };
    let mut bytes = 0;
    let start = Instant::now();
    let data = load(&spec, &wants, None, None, &mut |p| bytes = p.total)?;
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{} rows, {megabytes:.1} MB on disk in {seconds:.3} s: {:.0} MB/s",
        data.rows("train"),
        megabytes / seconds
    );
    let mut cursor = data.partition("train", 0, 1)?.cursor(1);
    let start = Instant::now();
    let (mut rows, mut values) = (0, 0);
    while let Some(batch) = cursor.next() {
        rows += batch.rows();
        values += batch.columns.values().map(|c| c.values.len()).sum::<usize>();
    }
    let seconds = start.elapsed().as_secs_f64();
    let (of_rows, of_values) = (seconds * 1e9 / rows as f64, seconds * 1e9 / values as f64);
    println!("a shuffled epoch: {of_rows:.0} ns a row, {of_values:.2} ns a value");
    Ok(())
}
