//! What a worker remembers of its documents: a topic a token, in partition-local state.
//!
//! `places` has, for each document of the partition, where its tokens begin among the worker's, plus one (0: not seen
//! yet); its last element counts all tokens so far. `assignments` has a topic a token: a document's entries in order, a
//! word with count c taking c consecutive places. A document's topic counts follow from its assignments, so they are
//! counted anew whenever it is visited.

use slackline_guest::{Batch, Buffer, LocalState, Result, ensure, partition_rows};

/// Tokens that one batch may have; they lie in the guest's memory.
const MOST_TOKENS: u64 = 1 << 27;

/// A worker's assignments.
pub struct Documents {
    assignments: Buffer<u32>,
    places: Buffer<u64>,
    /// `places` as read once; local state is what counts.
    cached: Vec<u64>,
}

impl Documents {
    /// Opens the local state.
    pub fn open() -> Result<Self> {
        let places: Buffer<u64> = LocalState::open("places", partition_rows("train") as usize + 1)?;
        let cached = places.to_vec()?;
        let assignments = LocalState::open("assignments", cached.last().map_or(0, |&n| n as usize))?;
        Ok(Self { assignments, places, cached })
    }

    /// Appends documents with their first topics; `lengths` has a number of tokens a document.
    pub fn append(&mut self, ids: &[u64], lengths: &[usize], topics: &[u32]) -> Result<()> {
        let all = self.cached.len() - 1;
        let begin = self.cached[all];
        let mut next = begin;
        for (&id, &length) in ids.iter().zip(lengths) {
            ensure!(id < all as u64, "document {id} of a partition of {all}");
            ensure!(self.cached[id as usize] == 0, "document {id} came twice while preparing");
            self.cached[id as usize] = next + 1;
            next += length as u64;
        }
        self.cached[all] = next;
        self.assignments = LocalState::open("assignments", usize::try_from(next)?)?;
        self.assignments.write(begin as usize, topics)?;
        for run in ids.chunk_by(|a, b| a + 1 == *b) {
            let first = run[0] as usize;
            self.places.write(first, &self.cached[first..first + run.len()])?;
        }
        self.places.write(all, &[next])
    }

    /// Calls `visit` with the rows `first..end` of the batch and the topics of their tokens, for every run of documents
    /// that lie side by side; writes the topics back when `visit` says that they changed.
    pub fn for_runs(
        &self,
        batch: &Documented,
        mut visit: impl FnMut(usize, usize, &mut [u32]) -> Result<bool>,
    ) -> Result<()> {
        let mut topics = Vec::new();
        let mut first = 0;
        while first < batch.ids.len() {
            let at = self.place(batch.ids[first])?;
            let mut end = first + 1;
            let mut tokens = batch.lengths[first];
            while end < batch.ids.len() && self.place(batch.ids[end])? == at + tokens {
                tokens += batch.lengths[end];
                end += 1;
            }
            self.assignments.read(at, tokens, &mut topics)?;
            if visit(first, end, &mut topics)? {
                self.assignments.write(at, &topics)?;
            }
            first = end;
        }
        Ok(())
    }

    /// Whether the worker's first token belongs to this batch: true for one batch of a pass.
    pub fn begins_in(&self, batch: &Documented) -> bool {
        let begins = |(&id, &length): (&u64, &usize)| length > 0 && self.cached.get(id as usize) == Some(&1);
        batch.ids.iter().zip(&batch.lengths).any(begins)
    }

    fn place(&self, id: u64) -> Result<usize> {
        let known = self.cached[..self.cached.len() - 1].get(id as usize).copied().unwrap_or(0);
        ensure!(known > 0, "document {id} was not prepared");
        Ok(known as usize - 1)
    }
}

/// A batch as bags of words, with its documents' ids and lengths.
#[derive(Default)]
pub struct Documented {
    /// Each document's place in the partition.
    pub ids: Vec<u64>,
    /// Document i owns entries `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<u32>,
    /// An entry's word.
    pub words: Vec<u32>,
    /// How often it occurs.
    pub counts: Vec<u32>,
    /// Tokens of each document.
    pub lengths: Vec<usize>,
}

impl Documented {
    /// Reads a batch in place of what this held.
    pub fn read(&mut self, batch: &Batch) -> Result<()> {
        self.ids = batch.ids();
        self.offsets = batch.offsets("word")?;
        batch.read_column("word", &mut self.words)?;
        batch.read_column("count", &mut self.counts)?;
        ensure!(
            batch.offsets("count")? == self.offsets,
            "columns \"word\" and \"count\" have lists of unequal lengths"
        );
        // In u64: a guest's usize has 32 bits.
        let tokens: u64 = self.counts.iter().map(|&c| u64::from(c)).sum();
        ensure!(tokens <= MOST_TOKENS, "a batch of {tokens} tokens, the most is {MOST_TOKENS}: use fewer rows a batch");
        let lists = self.offsets.windows(2).map(|w| w[0] as usize..w[1] as usize);
        self.lengths = lists.map(|r| self.counts[r].iter().map(|&c| c as usize).sum()).collect();
        Ok(())
    }

    /// Entries of document `i`.
    pub fn entries(&self, i: usize) -> std::ops::Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    /// Tokens of all documents.
    pub fn tokens(&self) -> usize {
        self.lengths.iter().sum()
    }
}
