//! Readers: one file a format. Each says which columns its file offers and then feeds rows to the intake; none knows
//! what becomes of them.

mod bow;
mod columnar;
mod csv;
pub(crate) mod input;
mod libsvm;
mod mtx;
mod npy;

use crate::error::DataError;
use crate::intake::Intake;
use crate::spec::{ColumnMap, Format, Source};
use input::{Compression, Meter};
use slackline_core::manifest::ColumnWant;
use std::path::Path;
use std::sync::Arc;

/// A column that a file offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Native {
    pub(crate) name: String,
    pub(crate) list: bool,
    /// What it holds when that is no number, so that it is refused before the first row.
    pub(crate) only: Option<&'static str>,
}

impl Native {
    fn flat(name: &str) -> Self {
        Self { name: name.into(), list: false, only: None }
    }

    fn list(name: &str) -> Self {
        Self { name: name.into(), list: true, only: None }
    }
}

/// An opened file.
pub(crate) trait Reader {
    /// What it offers.
    fn natives(&self) -> &[Native];

    /// The words that `word` counts from 0, if they are known.
    fn vocabulary(&self) -> Option<Arc<[String]>> {
        None
    }

    /// Feeds all rows: `bound[b]` are the natives that builder `b` takes, in order.
    fn read(self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError>;
}

/// Opens a source.
pub(crate) fn open(source: &Source, meter: &Meter) -> Result<(Box<dyn Reader>, Format, Compression), DataError> {
    let format = source.format()?;
    let path = source.path.as_path();
    if source.vocab.is_some() && !matches!(format, Format::UciBow | Format::Ldac) {
        return Err(DataError::Invalid(format!("{}: vocab belongs to uci-bow and ldac, not {format}", path.display())));
    }
    let (input, compression) = input::open(path, meter)?;
    let whole_file = |compression: Compression| match compression {
        Compression::None => Ok(()),
        other => Err(DataError::Invalid(format!(
            "{}: {format} inside {other} cannot be read from its end; decompress it first (the format compresses by itself)",
            path.display()
        ))),
    };
    let reader: Box<dyn Reader> = match format {
        Format::Csv => Box::new(csv::Csv::open(source, input)?),
        Format::Libsvm => Box::new(libsvm::Libsvm::open(path, input)),
        Format::UciBow => Box::new(bow::UciBow::open(source, input)?),
        Format::Ldac => Box::new(bow::Ldac::open(source, input)?),
        Format::Npy => Box::new(npy::Npy::open(path, input)?),
        Format::Mtx => Box::new(mtx::Mtx::open(path, input)?),
        Format::Parquet => {
            whole_file(compression)?;
            columnar::parquet(path, meter)?
        }
        Format::Arrow => columnar::arrow(path, input)?,
    };
    Ok((reader, format, compression))
}

/// A wanted column and the natives that it comes from.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) want: usize,
    pub(crate) from: Vec<usize>,
}

/// Finds the natives of every wanted column. Optional columns that are absent are left out; so are targets when
/// `predict` is set. `also` is a column that rows are shared out by, which a map may name too.
pub(crate) fn bind(
    source: &Source,
    natives: &[Native],
    wants: &[ColumnWant],
    also: Option<&str>,
    predict: bool,
) -> Result<Vec<Bound>, DataError> {
    for name in source.columns.keys().filter(|n| also != Some(n.as_str())) {
        let wanted = || wants.iter().map(|w| w.name.as_str());
        if wanted().any(|w| w == name) {
            continue;
        }
        // A map that serves other plugins too is no error, a slip of the pen is.
        if let Some(meant) = nearest(name, wanted()) {
            return Err(DataError::Invalid(format!(
                "{}: columns maps {name:?}, which nothing asks for; did you mean {meant:?}?",
                source.path.display()
            )));
        }
    }
    let mut bound = Vec::new();
    for (want, w) in wants.iter().enumerate() {
        let may_lack = w.optional || (predict && w.target);
        match find(source, natives, &w.name) {
            Ok(from) => {
                check_shape(source, natives, w, &from)?;
                bound.push(Bound { want, from });
            }
            Err(DataError::MissingColumn { .. }) if may_lack => {}
            Err(e) => return Err(e),
        }
    }
    Ok(bound)
}

/// The natives of a column by its wanted name.
pub(crate) fn find(source: &Source, natives: &[Native], wanted: &str) -> Result<Vec<usize>, DataError> {
    let own = ColumnMap::One(wanted.to_owned());
    let names = match source.columns.get(wanted).unwrap_or(&own) {
        ColumnMap::One(name) => std::slice::from_ref(name),
        ColumnMap::Many(names) => names,
    };
    let mut from = Vec::new();
    for name in names {
        let before = from.len();
        match name.strip_suffix('*') {
            Some(prefix) => {
                from.extend(natives.iter().enumerate().filter(|(_, n)| n.name.starts_with(prefix)).map(|(i, _)| i))
            }
            None => from.extend(natives.iter().position(|n| n.name == *name)),
        }
        if from.len() == before {
            return Err(DataError::MissingColumn {
                path: source.path.clone(),
                wanted: name.clone(),
                nearest: nearest(name, natives.iter().map(|n| n.name.as_str())),
                available: natives.iter().map(|n| n.name.clone()).collect(),
            });
        }
        if natives.iter().filter(|n| n.name == *name).count() > 1 {
            return Err(DataError::Invalid(format!("{}: two columns are named {name:?}", source.path.display())));
        }
    }
    Ok(from)
}

fn check_shape(source: &Source, natives: &[Native], want: &ColumnWant, from: &[usize]) -> Result<(), DataError> {
    let wrong = |expected: String, found: String| DataError::WrongType {
        path: source.path.clone(),
        column: want.name.clone(),
        expected,
        found,
    };
    let coded = want.encode == slackline_core::manifest::Encode::Dictionary;
    for n in from.iter().map(|i| &natives[*i]) {
        match n.only {
            Some("text") if coded => {}
            Some(what) => return Err(wrong(want.dtype.to_string(), what.to_owned())),
            None => {}
        }
    }
    let lists = from.iter().filter(|i| natives[**i].list).count();
    match (want.list, lists, from.len()) {
        (true, 1, 1) | (true, 0, _) | (false, 0, 1) => Ok(()),
        (true, ..) => Err(wrong("one list, or single values side by side".into(), format!("{lists} lists"))),
        (false, 0, n) => Err(wrong("a value a row".into(), format!("{n} columns"))),
        (false, ..) => Err(wrong("a value a row".into(), "a list a row".into())),
    }
}

/// The name that `name` may be a slip of.
pub(crate) fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Option<String> {
    let scored = among.map(|a| (strsim::jaro_winkler(&name.to_lowercase(), &a.to_lowercase()), a));
    scored.filter(|(s, _)| *s > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, a)| a.to_owned())
}

/// The builders that native `n` feeds.
fn fed_by(bound: &[Vec<usize>], n: usize) -> Vec<usize> {
    (0..bound.len()).filter(|b| bound[*b].contains(&n)).collect()
}

/// A path that errors can keep.
fn owned(path: &Path) -> std::path::PathBuf {
    path.to_owned()
}
