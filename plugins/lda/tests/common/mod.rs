//! What the tests of the plugin share: corpora and plain formulas.
#![allow(dead_code)] // Each test is a crate of its own and takes what it needs.

use slackline_guest::testing::Dataset;
use std::path::PathBuf;

/// A document as (word, count) pairs.
pub type Document = Vec<(u32, u32)>;

/// Documents as the plugin wants them.
pub fn dataset(documents: &[Document]) -> Dataset {
    let column = |pick: fn(&(u32, u32)) -> u32| -> Vec<Vec<u32>> {
        documents.iter().map(|d| d.iter().map(pick).collect()).collect()
    };
    Dataset::new().list("word", &column(|e| e.0)).list("count", &column(|e| e.1))
}

/// A corpus of the shared sets, or `None` with a message where there are none: not every corpus may be copied here.
pub fn corpus(name: &str, part: &str) -> Option<Vec<Document>> {
    let shared = std::env::var_os("SLACKLINE_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let path = shared.join(format!("data/sets/{name}/corpus.{part}.ldac"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no corpus {}", path.display());
        return None;
    };
    let entry = |pair: &str| {
        let (word, count) = pair.split_once(':').expect("word:count");
        (word.parse().expect("a word"), count.parse().expect("a count"))
    };
    Some(text.lines().map(|line| line.split_whitespace().skip(1).map(entry).collect()).collect())
}

/// A corpus with two blocks of words, so that topics exist; documents of different lengths, some empty.
pub fn small() -> Vec<Document> {
    let mut documents: Vec<Document> = (0..30u32)
        .map(|d| {
            let block = d % 2 * 10;
            (0..d % 7).map(|i| (block + (d * 3 + i * 7) % 10, 1 + (d + i) % 4)).collect()
        })
        .collect();
    for document in &mut documents {
        document.sort_unstable();
        document.dedup_by_key(|e| e.0);
    }
    documents
}

/// Σ counts.
pub fn tokens(documents: &[Document]) -> u64 {
    documents.iter().flatten().map(|e| u64::from(e.1)).sum()
}

/// Document completion as the published evaluation program states it, token by token. `phi` has a row a topic.
pub fn perplexity(phi: &[Vec<f64>], documents: &[Document], alpha: f64) -> f64 {
    let topics = phi.len();
    let (mut sum, mut scored) = (0.0, 0);
    for document in documents {
        let mut sorted = document.clone();
        sorted.sort_unstable();
        let places: Vec<usize> =
            sorted.iter().flat_map(|&(w, c)| std::iter::repeat_n(w as usize, c as usize)).collect();
        if places.len() < 2 {
            continue;
        }
        let observed: Vec<usize> = places.iter().copied().step_by(2).collect();
        let mut theta = vec![1.0 / topics as f64; topics];
        for _ in 0..100 {
            let mut next = vec![alpha; topics];
            for &w in &observed {
                let all: f64 = (0..topics).map(|k| phi[k][w] * theta[k]).sum();
                (0..topics).for_each(|k| next[k] += phi[k][w] * theta[k] / all);
            }
            let normal = topics as f64 * alpha + observed.len() as f64;
            theta = next.iter().map(|n| n / normal).collect();
        }
        for &w in places.iter().skip(1).step_by(2) {
            sum += (0..topics).map(|k| theta[k] * phi[k][w]).sum::<f64>().ln();
            scored += 1;
        }
    }
    f64::exp(-sum / f64::from(scored))
}

/// φ from counts, `counts` having a row a word.
pub fn phi(counts: &[i32], topics: usize, beta: f64) -> Vec<Vec<f64>> {
    let words = counts.len() / topics;
    (0..topics)
        .map(|k| {
            let column: Vec<f64> = (0..words).map(|w| f64::from(counts[w * topics + k])).collect();
            let all = column.iter().sum::<f64>() + beta * words as f64;
            column.iter().map(|n| (n + beta) / all).collect()
        })
        .collect()
}

/// The value that a χ² variable with `freedom` degrees exceeds once in ten thousand (Wilson and Hilferty, 1931).
pub fn chi_square_bound(freedom: usize) -> f64 {
    let c = 2.0 / (9.0 * freedom as f64);
    freedom as f64 * (1.0 - c + 3.719 * c.sqrt()).powi(3)
}
