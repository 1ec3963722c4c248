//! A corpus drawn from latent Dirichlet allocation over a Zipf-like vocabulary.

use super::draw::{Draw, sums};
use super::{Folder, Generated, held_back, require};
use crate::error::DataError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// φ_k ~ Dirichlet(β·V·base), base ∝ 1/(rank + 2.7); θ_d ~ Dirichlet(α); lengths are Poisson.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Topics {
    /// Documents.
    pub documents: u64,
    /// Words in the vocabulary.
    pub vocabulary: usize,
    /// Topics.
    pub topics: usize,
    /// Mean length of a document, in tokens.
    pub length: f64,
    /// Concentration of topics in a document, per topic.
    pub alpha: f64,
    /// Concentration of words in a topic, per word.
    pub beta: f64,
    /// The last of every so many documents is a test document; 0: none is.
    pub test_every: u64,
    /// The seed.
    pub seed: u64,
}

impl Default for Topics {
    fn default() -> Self {
        Self {
            documents: 2000,
            vocabulary: 2000,
            topics: 20,
            length: 150.0,
            alpha: 0.1,
            beta: 0.05,
            test_every: 10,
            seed: 1,
        }
    }
}

/// A UCI file that grows in memory, because its head states what follows.
#[derive(Default)]
struct Docword {
    documents: u64,
    entries: u64,
    tokens: u64,
    text: String,
}

impl Topics {
    /// Writes `docword.train.txt`, `docword.test.txt`, `vocab.txt`, the topics and `truth.json` into `folder`.
    pub fn write(&self, folder: &Path) -> Result<Generated, DataError> {
        require(&[
            (
                self.documents > 0 && self.vocabulary > 0 && self.topics > 0,
                "documents, vocabulary and topics are from 1 up",
            ),
            (self.length > 0.0 && self.length < 1e6, "length is between 0 and a million"),
            (self.alpha > 0.0 && self.beta > 0.0, "alpha and beta are positive"),
        ])?;
        let total: f64 = (1..=self.vocabulary).map(|r| 1.0 / (r as f64 + 2.7)).sum();
        let base = |w: usize| 1.0 / (w as f64 + 3.7) / total;
        let mut d = Draw::new(self.seed, 0);
        let weight = self.beta * self.vocabulary as f64;
        let phi: Vec<Vec<f64>> =
            (0..self.topics).map(|_| d.dirichlet((0..self.vocabulary).map(|w| (base(w) * weight).max(1e-6)))).collect();
        let words: Vec<Vec<f64>> = phi.iter().map(|p| sums(p.iter().copied())).collect();

        let mut d = Draw::new(self.seed, 1);
        let (mut train, mut test) = (Docword::default(), Docword::default());
        let mut log_likelihood = 0.0;
        let mut counts = vec![0u32; self.vocabulary];
        for document in 0..self.documents {
            let theta = d.dirichlet(std::iter::repeat_n(self.alpha, self.topics));
            let mix = sums(theta.iter().copied());
            for _ in 0..d.poisson(self.length).max(2) {
                let topic = d.place(&mix);
                counts[d.place(&words[topic])] += 1;
            }
            let is_test = held_back(document, self.test_every);
            let part = if is_test { &mut test } else { &mut train };
            part.documents += 1;
            for (w, c) in counts.iter_mut().enumerate().filter(|(_, c)| **c > 0) {
                part.entries += 1;
                part.tokens += u64::from(*c);
                part.text.push_str(&format!("{} {} {c}\n", part.documents, w + 1));
                if is_test {
                    let p: f64 = theta.iter().zip(&phi).map(|(t, phi)| t * phi[w]).sum();
                    log_likelihood += f64::from(*c) * p.ln();
                }
                *c = 0;
            }
        }
        let mut folder = Folder::create(folder)?;
        for (name, part) in [("train", &train), ("test", &test)] {
            if part.documents > 0 {
                let mut out = folder.file(&format!("docword.{name}.txt"))?;
                out.line(format_args!("{}\n{}\n{}", part.documents, self.vocabulary, part.entries))?;
                out.write(part.text.as_bytes())?;
                out.close()?;
            }
        }
        let mut vocabulary = folder.file("vocab.txt")?;
        for w in 0..self.vocabulary {
            vocabulary.line(format_args!("w{w:06}"))?;
        }
        vocabulary.close()?;
        folder.matrix("truth.topics.npy", self.vocabulary, &phi.concat())?;
        folder.finish(json!({
            "kind": "topics",
            "options": self,
            "train": { "documents": train.documents, "tokens": train.tokens },
            "test": { "documents": test.documents, "tokens": test.tokens },
            "oracle_test_perplexity": (test.tokens > 0).then(|| (-log_likelihood / test.tokens as f64).exp()),
        }))
    }
}
