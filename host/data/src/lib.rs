//! Datasets: from files in people's formats to the batches that a plugin sees.
//!
//! One way through: a reader (a file a format, in `read`) offers named columns and feeds rows to the `intake`, which
//! keeps the sound ones, counts the malformed ones and moves full columns on to `chunk`s, in memory or, beyond a limit,
//! in a mapped Arrow file. [`load`] does that for every dataset of a job and gives [`Data`]; from there a worker takes
//! its [`Partition`], and a [`Cursor`] over it yields batches, epoch after epoch, in an order that depends on seed,
//! worker and epoch alone.
//!
//! Absences: readers know nothing of partitions or dictionaries, nothing here knows plugins or tables, and no number in
//! a file is believed before the bytes behind it are there.

mod builder;
mod chunk;
mod dataset;
mod dictionary;
mod error;
mod inspect;
mod intake;
mod load;
mod number;
mod partition;
mod read;
mod spec;
mod survey;

pub mod generate;

pub use dictionary::{Dictionaries, Dictionary, UNSEEN};
pub use error::{DataError, Place};
pub use inspect::{ColumnInspection, Inspection, inspect};
pub use intake::Skipped;
pub use load::{Data, Progress, load, load_for_predict};
pub use partition::{Cursor, InOrder, Partition};
pub use read::input::Compression;
pub use spec::{ColumnMap, DataSpec, Format, Partitioning, Source, Split};
