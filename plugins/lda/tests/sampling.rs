//! The sampler draws from the distribution that the model defines.

mod common;

use common::{chi_square_bound, dataset};
use serde_json::json;
use slackline_guest::Rng;
use slackline_guest::testing::TestHost;
use slackline_lda::Lda;
use slackline_lda::likelihood::ln_gamma;
use slackline_lda::sampler::{Sampler, stride};

/// (n_dk + α)(n_wk + β) / (n_k + Vβ), normalised.
fn conditional(document: &[f64], word: &[f64], totals: &[f64], alpha: f64, beta: f64, words: f64) -> Vec<f64> {
    let weight = |k: usize| (document[k] + alpha) * (word[k] + beta) / (totals[k] + words * beta);
    let weights: Vec<f64> = (0..totals.len()).map(weight).collect();
    let all: f64 = weights.iter().sum();
    weights.iter().map(|w| w / all).collect()
}

/// Two tokens of one document, of different words: the pair of draws is distributed as the product of the first
/// conditional and the second given the first.
fn check_pair(topics: usize) {
    let (alpha, beta, words) = (0.1, 0.1, 30u64);
    let count = |w: usize, k: usize| ((w * 7 + k * 5 + 3) % 6) as f64;
    // Totals hold more than the two rows: the other words' tokens.
    let total = |k: usize| count(0, k) + count(1, k) + (k % 4 * 9) as f64;
    let assigned = [topics as u32 / 2, topics as u32 - 1];
    let stride = stride(topics);
    let mut rows = vec![0.0f32; 2 * stride];
    for w in 0..2 {
        (0..topics).for_each(|k| rows[w * stride + k] = count(w, k) as f32);
        // The tokens themselves are in the counts.
        rows[w * stride + assigned[w] as usize] += 1.0;
    }
    let mut totals: Vec<i64> = (0..topics).map(|k| total(k) as i64).collect();
    assigned.iter().for_each(|&k| totals[k as usize] += 1);

    let mut expected = vec![0.0; topics * topics];
    let (row0, row1): (Vec<f64>, Vec<f64>) = (0..topics).map(|k| (count(0, k), count(1, k))).unzip();
    let mut document = vec![0.0; topics];
    let mut all: Vec<f64> = (0..topics).map(total).collect();
    document[assigned[1] as usize] = 1.0;
    all[assigned[1] as usize] += 1.0;
    let first = conditional(&document, &row0, &all, alpha, beta, words as f64);
    for (z0, p) in first.iter().enumerate() {
        let mut document = vec![0.0; topics];
        let mut all: Vec<f64> = (0..topics).map(total).collect();
        document[z0] = 1.0;
        all[z0] += 1.0;
        let second = conditional(&document, &row1, &all, alpha, beta, words as f64);
        second.iter().enumerate().for_each(|(z1, q)| expected[z0 * topics + z1] = p * q);
    }

    let draws = 400_000;
    let mut observed = vec![0u32; topics * topics];
    let mut rng = Rng::from_seed(5);
    let mut sampler = Sampler::new(topics, words, alpha, beta);
    for _ in 0..draws {
        sampler.set_totals(&totals);
        let (mut z, mut rows, mut moves) = (assigned, rows.clone(), Vec::new());
        sampler.sample(&[(0, 1), (1, 1)], &mut z, &mut rows, &mut rng, &mut moves);
        observed[z[0] as usize * topics + z[1] as usize] += 1;
    }
    // Cells with few expected draws go together.
    let (mut statistic, mut cells, mut rare) = (0.0, 0, (0.0, 0.0));
    for (&o, p) in observed.iter().zip(&expected) {
        let e = p * f64::from(draws);
        if e < 20.0 {
            rare = (rare.0 + f64::from(o), rare.1 + e);
        } else {
            statistic += (f64::from(o) - e).powi(2) / e;
            cells += 1;
        }
    }
    if rare.1 > 0.0 {
        statistic += (rare.0 - rare.1).powi(2) / rare.1;
        cells += 1;
    }
    let bound = chi_square_bound(cells - 1);
    assert!(statistic < bound, "{topics} topics: chi-square {statistic:.1} of {cells} cells, bound {bound:.1}");
}

#[test]
fn draws_follow_the_conditional_at_any_number_of_topics() {
    for topics in [2, 3, 7, 8, 9, 20, 33] {
        check_pair(topics);
    }
}

#[test]
fn one_topic_takes_every_token() {
    let mut sampler = Sampler::new(1, 4, 0.1, 0.1);
    sampler.set_totals(&[3]);
    let (mut z, mut rows, mut moves) = ([0, 0, 0], vec![0.0; stride(1)], Vec::new());
    rows[0] = 3.0;
    sampler.sample(&[(0, 3)], &mut z, &mut rows, &mut Rng::from_seed(1), &mut moves);
    assert_eq!((z, rows[0], moves.len()), ([0, 0, 0], 3.0, 0));
}

#[test]
fn stale_counts_below_the_truth_still_give_topics() {
    // Rows and totals know nothing of the document's own tokens, as after a stale read.
    let mut sampler = Sampler::new(5, 4, 1e-6, 1e-6);
    sampler.set_totals(&[-3, 0, -1, 0, 0]);
    let (mut z, mut rows, mut moves) = ([0, 1, 2, 3, 4, 4], vec![0.0; stride(5)], Vec::new());
    sampler.sample(&[(0, 6)], &mut z, &mut rows, &mut Rng::from_seed(1), &mut moves);
    assert!(z.iter().all(|&k| k < 5) && rows.iter().all(|&n| n >= 0.0), "{z:?} {rows:?}");
}

#[test]
fn the_chain_visits_states_as_often_as_the_joint_says() {
    // Six tokens and two topics: 64 states, with a probability each by the joint, which the whole path from tables to
    // local state has to reproduce.
    let documents = vec![vec![(0, 2), (1, 1)], vec![(1, 1), (2, 2)]];
    let (alpha, beta, topics, tokens) = (0.5, 0.5, 2, 6);
    let words = [0usize, 0, 1, 1, 2, 2];
    let joint = |state: usize| {
        let z = |i: usize| state >> i & 1;
        let (mut nw, mut nd, mut n) = ([[0.0; 2]; 3], [[0.0; 2]; 2], [0.0; 2]);
        for i in 0..tokens {
            nw[words[i]][z(i)] += 1.0;
            nd[i / 3][z(i)] += 1.0;
            n[z(i)] += 1.0;
        }
        let counts = nw.iter().chain(&nd).flatten().map(|c| ln_gamma(c + 0.5)).sum::<f64>();
        (counts - n.iter().map(|c| ln_gamma(c + 3.0 * beta)).sum::<f64>()).exp()
    };
    let weights: Vec<f64> = (0..1 << tokens).map(joint).collect();
    let all: f64 = weights.iter().sum();

    let host = TestHost::new().seed(9).dataset("train", dataset(&documents));
    let params = json!({ "topics": topics, "alpha": alpha, "beta": beta });
    let visits = 20_000;
    let mut observed = vec![0u32; 1 << tokens];
    for _ in 0..visits {
        // Sweeps between visits, so that visits are all but independent.
        host.run::<Lda>(params.clone(), 2, 5).unwrap();
        let z = host.local::<u32>(0, "assignments").unwrap();
        observed[z.iter().enumerate().map(|(i, &k)| (k as usize) << i).sum::<usize>()] += 1;
    }
    let statistic: f64 = observed
        .iter()
        .zip(&weights)
        .map(|(&o, w)| {
            let e = w / all * f64::from(visits);
            (f64::from(o) - e).powi(2) / e
        })
        .sum();
    let bound = chi_square_bound((1 << tokens) - 1);
    assert!(statistic < bound, "chi-square {statistic:.1}, bound {bound:.1}");
}
