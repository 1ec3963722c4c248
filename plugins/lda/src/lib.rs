//! Latent Dirichlet allocation by collapsed Gibbs sampling.
//!
//! Workers hold the topics of their documents' tokens in local state and share the word-topic counts and the topics'
//! totals as tables. Within a clock, a worker reads the rows of its words once, samples every token in sequence against
//! them, own changes included, and sends the differences: approximate distributed sampling (Newman, Asuncion, Smyth and
//! Welling, JMLR 2009) with the staleness that the job allows. README.md has the equations.
//!
//! What to read first: [`sampler`] (the hot loop), then [`Lda`]'s `step`. [`documents`] keeps local state, [`model`] the
//! counts of a clock, [`likelihood`] and [`fold_in`] the metrics.

pub mod documents;
pub mod fold_in;
pub mod likelihood;
pub mod model;
pub mod sampler;
pub mod words;

use documents::{Documented, Documents};
use fold_in::FoldIn;
use likelihood::CountGamma;
use model::Model;
use sampler::Sampler;
use schemars::JsonSchema;
use serde::Deserialize;
use slackline_guest::{
    Batch, ColumnWant, Facts, Manifest, MetricSpec, Plan, Plugin, Result, Rng, Table, TableSpec, ensure, output, run,
    telemetry,
};
use words::Words;

/// Parameters of a job.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of topics.
    #[schemars(range(min = 1, max = 65536))]
    pub topics: u32,
    /// Concentration of documents over topics, per topic.
    #[serde(default = "tenth")]
    pub alpha: f64,
    /// Concentration of topics over words, per word.
    #[serde(default = "tenth")]
    pub beta: f64,
}

fn tenth() -> f64 {
    0.1
}

impl Params {
    /// Weights are single precision: concentrations in this range keep every weight a normal number.
    fn check(&self) -> Result<()> {
        ensure!((1..=65536).contains(&self.topics), "topics is {}, not from 1 to 65536", self.topics);
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            ensure!((1e-6..=1e6).contains(&value), "{name} is {value}, not from 1e-6 to 1e6");
        }
        Ok(())
    }
}

/// The plugin.
pub struct Lda {
    params: Params,
    model: Model,
    partition_tokens: Table<i64>,
    documents: Documents,
    sampler: Sampler,
    /// Words of the batch that is scored or predicted, apart from those that the clock holds.
    words: Words,
    // What follows is memory that batches use anew.
    batch: Documented,
    entries: Vec<(u32, u32)>,
    counts: Vec<i32>,
}

slackline_guest::export!(Lda);

impl Plugin for Lda {
    type Params = Params;

    fn manifest() -> Manifest {
        Manifest::new("lda", env!("CARGO_PKG_VERSION"))
            .summary("latent Dirichlet allocation: topics of documents by collapsed Gibbs sampling")
            .column(ColumnWant::list::<u32>("word"))
            .column(ColumnWant::list::<u32>("count"))
            .metric(MetricSpec::new("log_likelihood_per_token").higher())
            .metric(MetricSpec::new("test_perplexity").exp_neg())
            .predicts("theta")
            .predicts("topic")
            .prepare()
            .view("topics", "word_topics", "word", 10)
    }

    fn plan(params: &Params, facts: &Facts) -> Result<Plan> {
        params.check()?;
        let words = facts.train("word")?.key_count();
        ensure!((1..=1 << 32).contains(&words), "the vocabulary of column \"word\" has {words} words");
        Ok(Plan::new()
            .table(TableSpec::dense::<i32>("word_topics", words, params.topics))
            .table(TableSpec::dense::<i64>("topic_totals", 1, params.topics))
            .table(TableSpec::dense::<i64>("partition_tokens", u64::from(facts.workers.max(1)), 1)))
    }

    fn create(params: Params) -> Result<Self> {
        params.check()?;
        let model = Model::open(params.topics)?;
        Ok(Self {
            partition_tokens: Table::open_with_width("partition_tokens", 1)?,
            documents: Documents::open()?,
            sampler: Sampler::new(params.topics as usize, model.words(), params.alpha, params.beta),
            words: Words::new(model.words()),
            batch: Documented::default(),
            entries: Vec::new(),
            counts: Vec::new(),
            model,
            params,
        })
    }

    /// Gives every token a topic at random.
    fn prepare(&mut self, batch: &Batch) -> Result<()> {
        self.batch.read(batch)?;
        let mut rng = Rng::from_host();
        let tokens = self.batch.tokens();
        let topics: Vec<u32> = (0..tokens).map(|_| rng.below(self.params.topics)).collect();
        self.documents.append(&self.batch.ids, &self.batch.lengths, &topics)?;
        if tokens == 0 {
            return Ok(());
        }
        let words = self.batch.words.iter().zip(&self.batch.counts);
        let words = words.flat_map(|(&word, &count)| std::iter::repeat_n(word, count as usize));
        self.model.add(&self.batch.words, words.zip(topics))?;
        self.partition_tokens.inc(&[u64::from(run::worker())], &[tokens as i64])
    }

    /// Samples every token of the batch once.
    fn step(&mut self, batch: &Batch) -> Result<()> {
        self.batch.read(batch)?;
        self.model.hold(&self.batch.words, &mut self.sampler)?;
        self.entries.clear();
        let entries = self.batch.words.iter().zip(&self.batch.counts);
        self.entries.extend(entries.map(|(&word, &count)| (self.model.place(word), count)));
        let (rows, moves) = self.model.workspace();
        let mut rng = Rng::from_host();
        let limit = self.params.topics;
        self.documents.for_runs(&self.batch, |first, end, mut topics| {
            ensure!(topics.iter().all(|&k| k < limit), "an assignment is beyond {limit} topics");
            let before = moves.len();
            for document in first..end {
                let (own, rest) = topics.split_at_mut(self.batch.lengths[document]);
                let entries = &self.entries[self.batch.entries(document)];
                self.sampler.sample(entries, own, rows, &mut rng, moves);
                topics = rest;
            }
            Ok(moves.len() > before)
        })?;
        self.model.settle()
    }

    fn end_clock(&mut self, _ended: u32) -> Result<()> {
        self.model.release()
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<()> {
        self.batch.read(batch)?;
        match batch.dataset().as_str() {
            "train" => self.log_likelihood(),
            "test" => self.perplexity(),
            _ => Ok(()),
        }
    }

    /// The proportions of topics in documents that training need not have seen, and the largest one's topic. Words
    /// beyond the vocabulary are left out.
    fn predict(&mut self, batch: &Batch) -> Result<()> {
        self.batch.read(batch)?;
        let known: Vec<u32> = self.batch.words.iter().copied().filter(|&w| self.words.knows(w)).collect();
        let mut fold_in = self.fold_in(&known)?;
        let mut thetas = Vec::with_capacity(batch.rows() * self.params.topics as usize);
        let mut largest = Vec::with_capacity(batch.rows());
        for document in 0..batch.rows() {
            self.entries.clear();
            for entry in self.batch.entries(document) {
                let word = self.batch.words[entry];
                if self.words.knows(word) {
                    self.entries.push((self.words.place(word), self.batch.counts[entry]));
                }
            }
            let theta = fold_in.proportions(&self.entries, &self.counts);
            largest.push((1..theta.len()).fold(0, |best, k| if theta[k] > theta[best] { k } else { best }) as u32);
            thetas.extend(theta.iter().map(|&p| p as f32));
        }
        output::put("theta", &thetas)?;
        output::put("topic", &largest)
    }
}

impl Lda {
    /// Reads the rows of `words` into `counts`, and the totals.
    fn fold_in(&mut self, words: &[u32]) -> Result<FoldIn> {
        self.words.clear();
        self.model.read_rows(self.words.collect(words)?, &mut self.counts)?;
        let totals = self.model.read_totals()?;
        Ok(FoldIn::new(&totals, self.model.words(), self.params.alpha, self.params.beta))
    }

    /// Adds a training batch's share of the joint log-likelihood: the documents', and once a pass this worker's share
    /// of the words'. Weighted by tokens, the shares of all batches and workers sum up to the whole.
    fn log_likelihood(&mut self) -> Result<()> {
        let tokens = self.batch.tokens();
        if tokens == 0 {
            return Ok(());
        }
        let alpha = self.params.alpha;
        let counted = CountGamma::new(alpha);
        let mut counts = vec![0u32; self.params.topics as usize];
        let mut sum = 0.0;
        let limit = self.params.topics;
        self.documents.for_runs(&self.batch, |first, end, mut topics| {
            ensure!(topics.iter().all(|&k| k < limit), "an assignment is beyond {limit} topics");
            for document in first..end {
                let (own, rest) = topics.split_at_mut(self.batch.lengths[document]);
                counts.fill(0);
                own.iter().for_each(|&k| counts[k as usize] += 1);
                sum += likelihood::document(&counts, alpha, &counted);
                topics = rest;
            }
            Ok(false)
        })?;
        if self.documents.begins_in(&self.batch) {
            sum += self.words_share()?;
        }
        telemetry::metric("log_likelihood_per_token", sum / tokens as f64, tokens as f64);
        Ok(())
    }

    /// This worker's share of the words' part: every n-th row of the table, n the number of workers that have tokens;
    /// the first of them adds the totals.
    fn words_share(&self) -> Result<f64> {
        const ROWS: usize = 1024;
        let workers: Vec<u64> = (0..self.partition_tokens.rows()).collect();
        let mut tokens = Vec::new();
        self.partition_tokens.get(&workers, &mut tokens)?;
        let own = run::worker() as usize;
        // A worker's own tokens count even where reads are stale, so it always has a share.
        let shares = |(w, &n): (usize, &i64)| w == own || n > 0;
        let sharing: Vec<usize> = tokens.iter().enumerate().filter(|&t| shares(t)).map(|(w, _)| w).collect();
        let place = sharing.iter().position(|&w| w == own).unwrap_or(0);

        let (beta, words) = (self.params.beta, self.model.words());
        let counted = CountGamma::new(beta);
        let rows: Vec<u64> = (place as u64..words).step_by(sharing.len().max(1)).collect();
        let mut counts = Vec::new();
        let mut sum = 0.0;
        for rows in rows.chunks(ROWS) {
            self.model.read_rows(rows, &mut counts)?;
            sum += likelihood::words(&counts, &counted);
        }
        if place == 0 {
            sum += likelihood::totals(&self.model.read_totals()?, beta, words);
        }
        Ok(sum)
    }

    /// Adds the likelihood of the scored halves of a batch's documents.
    fn perplexity(&mut self) -> Result<()> {
        let words = std::mem::take(&mut self.batch.words);
        let mut fold_in = self.fold_in(&words)?;
        let (mut sum, mut scored) = (0.0, 0);
        for document in 0..self.batch.lengths.len() {
            let own = self.batch.entries(document);
            let entries = words[own.clone()].iter().zip(&self.batch.counts[own]);
            self.entries.clear();
            self.entries.extend(entries.map(|(&word, &count)| (self.words.place(word), count)));
            // Places ascend as words do.
            self.entries.sort_unstable();
            let (part, tokens) = fold_in.complete(&self.entries, &self.counts);
            sum += part;
            scored += tokens;
        }
        self.batch.words = words;
        if scored > 0 {
            telemetry::metric("test_perplexity", sum / scored as f64, scored as f64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_guest::testing::{Dataset, TestHost};

    #[test]
    fn letting_rows_go_within_a_clock_changes_nothing() {
        let run = |counts: usize, moves: usize| {
            let words: Vec<Vec<u32>> = (0..24).map(|d| (0..6).map(|i| (d * 5 + i * 7) % 40).collect()).collect();
            let counts_of: Vec<Vec<u32>> = (0..24).map(|d| (0..6).map(|i| 1 + (d + i) % 3).collect()).collect();
            let train = Dataset::new().list("word", &words).list("count", &counts_of);
            let host = TestHost::new().seed(1).dataset("train", train);
            let params = r#"{"topics": 4}"#;
            // No clocks: tables are made and tokens get their first topics.
            host.run::<Lda>(slackline_guest::serde_json::from_str(params).unwrap(), 24, 0).unwrap();
            let _scope = host.enter();
            let mut lda = Lda::create(slackline_guest::plugin::params::<Lda>(params).unwrap()).unwrap();
            lda.model = Model::open(4).unwrap().limits(counts, moves);
            for clock in 0..5 {
                (0..6).for_each(|b| lda.step(&host.batch("train", b * 4, 4).unwrap()).unwrap());
                lda.end_clock(clock).unwrap();
                host.tick();
            }
            (host.values::<i32>("word_topics").unwrap(), host.local::<u32>(0, "assignments").unwrap())
        };
        let want = run(MOST, MOST);
        for (counts, moves) in [(0, MOST), (MOST, 0), (60, 5), (0, 0)] {
            assert_eq!(run(counts, moves), want, "limits {counts} and {moves}");
        }
    }

    const MOST: usize = 1 << 20;
}
