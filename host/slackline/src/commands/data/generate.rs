//! `slackline data generate`: data sets whose truth is known, so that a run can be judged.

use crate::commands::output::print;
use crate::failure::{Exit, Failure};
use clap::{Args, Subcommand};
use slackline_data::DataError;
use slackline_data::generate::{Classes, Generated, Ratings, Regression, Topics};
use std::fmt::Write;
use std::path::PathBuf;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline data generate ratings --to data --users 5000 --items 2000 --ratings 500000 --seed 1
  slackline data generate topics --to corpus --documents 2000 --topics 20
  slackline data generate classes --to digits --classes 10 --test-every 5

The folder gets the training file, a test file where --test-every is above 0, and
truth.json: what made the data, and the score that nothing beats on average.";

/// Flags of `slackline data generate`.
#[derive(Args, Clone, Debug)]
pub struct GenerateArgs {
    /// Folder for the files; made when it is not there
    #[arg(long, value_name = "DIR", global = true, default_value = ".")]
    pub to: PathBuf,
    /// Print one JSON object on standard output, and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// Which kind.
    #[command(subcommand)]
    pub kind: Kind,
}

/// Kinds of data sets.
#[derive(Clone, Debug, Subcommand)]
pub enum Kind {
    /// Ratings of items by users, for mf
    Ratings(RatingsArgs),
    /// Documents as bags of words, for lda
    Topics(TopicsArgs),
    /// Rows with a number to predict
    Regression(RegressionArgs),
    /// Rows with a class to predict, for mlr
    Classes(ClassesArgs),
}

/// A set's options as flags with its own defaults.
macro_rules! flags {
    ($(#[$doc:meta])* $args:ident, $set:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Args, Clone, Debug)]
        pub struct $args {
            $($(#[$field_doc])* #[arg(long, value_name = "N", default_value_t = $set::default().$field)] pub $field: $ty,)*
        }

        impl From<&$args> for $set {
            fn from(args: &$args) -> Self {
                $set { $($field: args.$field,)* }
            }
        }
    };
}

flags! {
    /// Flags of `slackline data generate ratings`.
    RatingsArgs, Ratings {
        /// Users
        users: usize,
        /// Items
        items: usize,
        /// Ratings, all of distinct pairs
        ratings: usize,
        /// Rank of the truth
        rank: usize,
        /// Standard deviation of the noise
        noise: f64,
        /// Standard deviation of the factors' products
        scale: f64,
        /// Exponent of the items' popularity
        zipf: f64,
        /// The last of every N rows is a test row; 0: none is
        test_every: u64,
        /// Seed of everything random
        seed: u64,
    }
}

flags! {
    /// Flags of `slackline data generate topics`.
    TopicsArgs, Topics {
        /// Documents
        documents: u64,
        /// Words in the vocabulary
        vocabulary: usize,
        /// Topics
        topics: usize,
        /// Mean length of a document, in tokens
        length: f64,
        /// Concentration of topics in a document, per topic
        alpha: f64,
        /// Concentration of words in a topic, per word
        beta: f64,
        /// The last of every N documents is a test document; 0: none is
        test_every: u64,
        /// Seed of everything random
        seed: u64,
    }
}

flags! {
    /// Flags of `slackline data generate regression`.
    RegressionArgs, Regression {
        /// Rows
        rows: usize,
        /// Columns
        columns: usize,
        /// Values other than zero in each column
        column_values: usize,
        /// Columns that matter
        support: usize,
        /// Probability that a column is correlated with its left neighbour
        correlated: f64,
        /// What share of a correlated column is its neighbour
        mix: f64,
        /// Standard deviation of the noise
        noise: f64,
        /// Size of the coefficients
        signal: f64,
        /// The last of every N rows is a test row; 0: none is
        test_every: u64,
        /// Seed of everything random
        seed: u64,
    }
}

flags! {
    /// Flags of `slackline data generate classes`.
    ClassesArgs, Classes {
        /// Rows
        rows: u64,
        /// Columns
        columns: usize,
        /// Classes
        classes: usize,
        /// Values other than zero in each row
        row_values: usize,
        /// Standard deviation of a score
        signal: f64,
        /// The last of every N rows is a test row; 0: none is
        test_every: u64,
        /// Seed of everything random
        seed: u64,
    }
}

/// Makes a data set.
pub fn generate(args: &GenerateArgs) -> Result<Exit, Failure> {
    let made = match &args.kind {
        Kind::Ratings(set) => Ratings::from(set).write(&args.to),
        Kind::Topics(set) => Topics::from(set).write(&args.to),
        Kind::Regression(set) => Regression::from(set).write(&args.to),
        Kind::Classes(set) => Classes::from(set).write(&args.to),
    };
    let made = made.map_err(|e| match e {
        // Nothing was read: what is invalid was typed.
        DataError::Invalid(why) => Failure::new(Exit::Usage, why),
        other => other.into(),
    })?;
    let text = match args.json {
        true => serde_json::to_string(&made).map_err(|e| Failure::new(Exit::Data, e.to_string()))? + "\n",
        false => describe(&made),
    };
    print(&text)
}

fn describe(made: &Generated) -> String {
    let mut out = String::new();
    for file in &made.files {
        _ = writeln!(out, "{}", file.display());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn typed(words: &str) -> GenerateArgs {
        Words::try_parse_from(words.split(' ')).unwrap().args
    }

    #[test]
    fn every_kind_writes_its_files() {
        for (words, train) in [
            ("ratings --users 30 --items 20 --ratings 100", "train.csv"),
            ("topics --documents 20 --vocabulary 50 --topics 3 --length 10", "docword.train.txt"),
            ("regression --rows 40 --columns 10 --column-values 5 --support 2", "train.libsvm"),
            ("classes --rows 40 --columns 10 --classes 3 --row-values 4", "train.libsvm"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut args = typed(&format!("generate {words} --seed 7"));
            args.to = dir.path().to_owned();
            assert_eq!(generate(&args), Ok(Exit::Done), "{words}");
            assert!(dir.path().join(train).exists() && dir.path().join("truth.json").exists(), "{words}");
        }
    }

    #[test]
    fn options_that_make_no_set_are_wrong_usage() {
        let dir = tempfile::tempdir().unwrap();
        let mut args = typed("generate ratings --users 2 --items 2 --ratings 1000");
        args.to = dir.path().to_owned();
        assert_eq!(generate(&args).unwrap_err().exit, Exit::Usage);
    }
}
