//! The shared counts as one clock sees them.
//!
//! Updates of a clock become visible to others when it ends, so a row that was read in a clock stays good until then.
//! The instance keeps the rows that its documents have touched, with its own changes applied, and logs the tokens that
//! moved; the log goes to the tables when the clock ends. Each row crosses the border once a clock in each direction,
//! however small the batches are. Nothing of it outlives the clock.

use crate::sampler::{Move, Sampler, stride};
use crate::words::Words;
use slackline_guest::{Result, Table};

/// Counts that are kept within a clock; beyond them, all rows are let go and read anew.
const MOST_COUNTS: usize = 1 << 24;

/// Moves that are logged before they are sent.
const MOST_MOVES: usize = 1 << 20;

/// The word-topic counts and the topics' totals.
pub struct Model {
    word_topics: Table<i32>,
    topic_totals: Table<i64>,
    /// Words whose rows are held.
    held: Words,
    /// Their counts, [`stride`] a row.
    rows: Vec<f32>,
    /// Tokens that moved and were not sent yet.
    moves: Vec<Move>,
    /// [`MOST_COUNTS`] and [`MOST_MOVES`], except in tests.
    limits: (usize, usize),
    fetched: Vec<i32>,
    deltas: Deltas,
}

impl Model {
    /// Opens the tables.
    pub fn open(topics: u32) -> Result<Self> {
        let word_topics = Table::open_with_width("word_topics", topics)?;
        Ok(Self {
            topic_totals: Table::open_with_width("topic_totals", topics)?,
            held: Words::new(word_topics.rows()),
            word_topics,
            rows: Vec::new(),
            moves: Vec::new(),
            limits: (MOST_COUNTS, MOST_MOVES),
            fetched: Vec::new(),
            deltas: Deltas::default(),
        })
    }

    /// With other limits of counts and moves that are kept.
    #[cfg(test)]
    pub(crate) fn limits(mut self, counts: usize, moves: usize) -> Self {
        self.limits = (counts, moves);
        self
    }

    /// Size of the vocabulary.
    pub fn words(&self) -> u64 {
        self.word_topics.rows()
    }

    /// Reads the rows `ids` as the job's consistency shows them.
    pub fn read_rows(&self, ids: &[u64], out: &mut Vec<i32>) -> Result<()> {
        self.word_topics.get(ids, out)
    }

    /// Reads the topics' totals.
    pub fn read_totals(&self) -> Result<Vec<i64>> {
        let mut totals = Vec::new();
        self.topic_totals.get(&[0], &mut totals)?;
        Ok(totals)
    }

    /// Makes sure that the rows of `words` are held, and that `sampler` goes by the same state of the totals.
    pub fn hold(&mut self, words: &[u32], sampler: &mut Sampler) -> Result<()> {
        if self.rows.len() > self.limits.0 {
            self.release()?;
        }
        if self.held.ids().is_empty() {
            sampler.set_totals(&self.read_totals()?);
        }
        let missing = self.held.collect(words)?;
        if !missing.is_empty() {
            self.word_topics.get(missing, &mut self.fetched)?;
            spread(&self.fetched, self.word_topics.width(), &mut self.rows);
        }
        Ok(())
    }

    /// The place of the row of a word that is held.
    #[inline]
    pub fn place(&self, word: u32) -> u32 {
        self.held.place(word)
    }

    /// What a sampler works on: the rows held, and the log of moves.
    pub fn workspace(&mut self) -> (&mut [f32], &mut Vec<Move>) {
        (&mut self.rows, &mut self.moves)
    }

    /// Sends the log when it has become long.
    pub fn settle(&mut self) -> Result<()> {
        if self.moves.len() > self.limits.1 { self.send() } else { Ok(()) }
    }

    /// Sends the log and lets all rows go.
    pub fn release(&mut self) -> Result<()> {
        self.send()?;
        self.held.clear();
        self.rows.clear();
        Ok(())
    }

    /// Sends the first topics of tokens, given as (word, topic).
    pub fn add(&mut self, words: &[u32], tokens: impl Iterator<Item = (u32, u32)>) -> Result<()> {
        self.release()?;
        self.held.collect(words)?;
        self.deltas.clear(self.held.ids().len(), self.word_topics.width());
        for (word, topic) in tokens {
            self.deltas.add(self.held.place(word), topic, 1);
        }
        self.deltas.send(self.held.ids(), &self.word_topics, &self.topic_totals)?;
        self.held.clear();
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        if self.moves.is_empty() {
            return Ok(());
        }
        self.deltas.clear(self.held.ids().len(), self.word_topics.width());
        for m in self.moves.drain(..) {
            self.deltas.add(m.row, m.from, -1);
            self.deltas.add(m.row, m.to, 1);
        }
        self.deltas.send(self.held.ids(), &self.word_topics, &self.topic_totals)
    }
}

/// Appends rows of `topics` counts as rows of [`stride`] f32 values. A count below zero, as stale reads may show it,
/// becomes zero.
fn spread(counts: &[i32], topics: usize, out: &mut Vec<f32>) {
    let stride = stride(topics);
    let first = out.len();
    out.resize(first + counts.len() / topics * stride, 0.0);
    for (to, from) in out[first..].chunks_exact_mut(stride).zip(counts.chunks_exact(topics)) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = from.max(0) as f32;
        }
    }
}

/// Changes of counts, with a row for each changed word.
#[derive(Default)]
struct Deltas {
    topics: usize,
    /// For each row held, its place among the changed rows plus one; 0: unchanged.
    changed: Vec<u32>,
    /// The changed rows, as places among those held.
    rows: Vec<u32>,
    values: Vec<i32>,
    totals: Vec<i64>,
}

impl Deltas {
    fn clear(&mut self, held: usize, topics: usize) {
        self.topics = topics;
        self.changed.clear();
        self.changed.resize(held, 0);
        self.rows.clear();
        self.values.clear();
        self.totals.clear();
        self.totals.resize(topics, 0);
    }

    fn add(&mut self, row: u32, topic: u32, by: i32) {
        let place = &mut self.changed[row as usize];
        if *place == 0 {
            self.rows.push(row);
            self.values.resize(self.rows.len() * self.topics, 0);
            *place = self.rows.len() as u32;
        }
        self.values[(*place as usize - 1) * self.topics + topic as usize] += by;
        self.totals[topic as usize] += i64::from(by);
    }

    fn send(&mut self, ids: &[u64], word_topics: &Table<i32>, topic_totals: &Table<i64>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<u64> = self.rows.iter().map(|&row| ids[row as usize]).collect();
        word_topics.inc(&rows, &self.values)?;
        topic_totals.inc(&[0], &self.totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_pads_rows_and_holds_stale_counts_at_zero() {
        let mut out = vec![9.0; 8];
        spread(&[1, -2, 3, 4, 5, 6], 3, &mut out);
        assert_eq!(out[8..], [1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
