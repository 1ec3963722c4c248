//! The joint log-likelihood ln p(w, z | α, β) of words and topics (Griffiths and Steyvers, PNAS 2004, equations 2 and 3).
//!
//! ```text
//! ln p(w, z) = K (lnΓ(Vβ) − V lnΓ(β)) + Σ_k [ Σ_w lnΓ(n_wk + β) − lnΓ(n_k + Vβ) ]
//!            + D (lnΓ(Kα) − K lnΓ(α)) + Σ_d [ Σ_k lnΓ(n_dk + α) − lnΓ(n_d + Kα) ]
//! ```
//!
//! A count of zero adds lnΓ(β) and takes it away again, so only counts above zero are visited, each adding
//! lnΓ(n + β) − lnΓ(β).

/// lnΓ(n + offset) for counts n, the small ones from a list.
pub struct CountGamma {
    offset: f64,
    small: Vec<f64>,
}

impl CountGamma {
    /// Small counts end here; most counts of a model are small.
    const SMALL: u32 = 512;

    /// For counts plus `offset`, which is above zero.
    pub fn new(offset: f64) -> Self {
        let small = (0..Self::SMALL).map(|n| ln_gamma(f64::from(n) + offset)).collect();
        Self { offset, small }
    }

    /// lnΓ(n + offset).
    pub fn at(&self, n: u64) -> f64 {
        self.small.get(n as usize).copied().unwrap_or_else(|| ln_gamma(n as f64 + self.offset))
    }

    /// lnΓ(n + offset) − lnΓ(offset): 0 for a count of zero.
    pub fn rise(&self, n: u64) -> f64 {
        if n == 0 { 0.0 } else { self.at(n) - self.small[0] }
    }
}

/// The documents' part for one document, from its topics' counts; `counted` is of α.
pub fn document(counts: &[u32], alpha: f64, counted: &CountGamma) -> f64 {
    let all = alpha * counts.len() as f64;
    let tokens = counts.iter().map(|&n| u64::from(n)).sum::<u64>();
    let topics = counts.iter().map(|&n| counted.rise(u64::from(n))).sum::<f64>();
    ln_gamma(all) - ln_gamma(tokens as f64 + all) + topics
}

/// The words' part of some rows of word-topic counts, without the totals; `counted` is of β. Counts below zero, as
/// stale reads may show them, count as zero.
pub fn words(counts: &[i32], counted: &CountGamma) -> f64 {
    counts.iter().map(|&n| counted.rise(n.max(0) as u64)).sum()
}

/// The rest of the words' part: what the topics' totals add.
pub fn totals(totals: &[i64], beta: f64, words: u64) -> f64 {
    let all = beta * words as f64;
    totals.iter().map(|&n| ln_gamma(all) - ln_gamma(n.max(0) as f64 + all)).sum()
}

/// ln Γ(x) for x > 0, to about 15 digits: Stirling's series (Abramowitz and Stegun, 6.1.41) from 10 on, and the
/// recurrence Γ(x + 1) = x Γ(x) up to there.
pub fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 7] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0, 1.0 / 156.0];
    let mut x = x;
    let mut product = 1.0;
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = SERIES.iter().rev().fold(0.0, |sum, c| sum * square + c) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_agrees_with_known_values() {
        let check = |x: f64, want: f64| {
            let got = ln_gamma(x);
            assert!((got - want).abs() <= 2e-15 * want.abs().max(10.0), "ln_gamma({x}) = {got}, not {want}");
        };
        // Γ(n) = (n − 1)!, Γ(1/2) = √π; the others from tables with 16 digits.
        check(1.0, 0.0);
        check(2.0, 0.0);
        check(5.0, 24f64.ln());
        check(13.0, 479_001_600f64.ln());
        check(0.5, std::f64::consts::PI.ln() / 2.0);
        check(0.1, 2.252_712_651_734_205_5);
        check(1e-6, 13.815_509_980_749_43);
        check(1.5, -0.120_782_237_635_245_22);
        check(100.0, 359.134_205_369_575_4);
        check(1e6, 12_815_504.569_147_611);
    }

    #[test]
    fn the_joint_of_two_tokens_follows_by_hand() {
        // One document of two tokens of one word, V = 2, K = 2, α = β = 1; both in topic 0: p(z) = 1/2 · 2/3 and
        // p(w | z) = 1/2 · 2/3 by Pólya's urn.
        let (alpha, beta) = (1.0, 1.0);
        let got = document(&[2, 0], alpha, &CountGamma::new(alpha))
            + words(&[2, 0, 0, 0], &CountGamma::new(beta))
            + totals(&[2, 0], beta, 2);
        assert!((got - (1.0f64 / 9.0).ln()).abs() < 1e-14, "{got}");
    }

    #[test]
    fn listed_and_computed_counts_agree() {
        let counted = CountGamma::new(0.1);
        for n in [0, 1, 511, 512, 100_000] {
            assert!((counted.at(n) - ln_gamma(n as f64 + 0.1)).abs() < 1e-9);
        }
        assert_eq!(counted.rise(0), 0.0);
    }
}
