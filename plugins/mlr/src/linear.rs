//! The loops over entries × classes. Rows of classes are padded to a multiple of four lanes, so that the compiler
//! unrolls and vectorises the inner loop for the common widths.

/// The least curvature that a row is taken to have, a quarter of what any can have. Rows that are told with certainty bend
/// little here but more a step away: without it, steps on separable data outgrow what they know.
const LEAST_BEND: f32 = 0.125;

/// Classes padded to whole vectors of four lanes.
pub(crate) fn padded(classes: usize) -> usize {
    classes.next_multiple_of(4)
}

/// Calls the function with the width as a constant where it is a common one, and else does `$any`.
macro_rules! for_width {
    ($width:expr, $call:ident $args:tt, $any:expr) => {
        match $width {
            4 => $call::<4> $args,
            8 => $call::<8> $args,
            12 => $call::<12> $args,
            16 => $call::<16> $args,
            _ => $any,
        }
    };
}

/// A batch's entries, located: entry e is (places[e], values[e]).
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a> {
    pub offsets: &'a [u32],
    pub places: &'a [u32],
    pub values: &'a [f32],
    /// Whether the last row of weights is added to every row's scores.
    pub intercept: bool,
}

impl Entries<'_> {
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.offsets[i] as usize..self.offsets[i + 1] as usize;
        self.places[range.clone()].iter().map(|p| *p as usize).zip(self.values[range].iter().copied())
    }
}

/// scores ← X·W.
pub(crate) fn scores(x: Entries<'_>, weights: &[f32], width: usize, out: &mut [f32]) {
    for_width!(width, scores_fixed(x, weights, out), {
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            match x.intercept {
                true => out.copy_from_slice(&weights[weights.len() - width..]),
                false => out.fill(0.0),
            }
            for (place, value) in x.row(i) {
                add_scaled(out, value, &weights[place * width..(place + 1) * width]);
            }
        }
    });
}

/// gradient ← Xᵀ·residuals.
pub(crate) fn gradient(x: Entries<'_>, residuals: &[f32], width: usize, out: &mut [f32]) {
    out.fill(0.0);
    for_width!(width, gradient_fixed(x, residuals, out), {
        let bias = out.len() - width;
        for (i, residual) in residuals.chunks_exact(width).enumerate() {
            for (place, value) in x.row(i) {
                add_scaled(&mut out[place * width..(place + 1) * width], value, residual);
            }
            if x.intercept {
                add_scaled(&mut out[bias..], 1.0, residual);
            }
        }
    });
}

/// Each row of scores ← its residual: softmax minus the one of its label. Padding becomes zero. `bends` gets, for each
/// row, a bound on the largest eigenvalue of diag(p) − ppᵀ, the curvature of its loss in its scores: the largest
/// probability q, or Gershgorin's 2q(1 − q) once q is above ½, but at least [`LEAST_BEND`].
pub(crate) fn residuals(scores: &mut [f32], width: usize, classes: usize, labels: &[u32], bends: &mut Vec<f32>) {
    bends.clear();
    for (row, label) in scores.chunks_exact_mut(width).zip(labels) {
        let (row, padding) = row.split_at_mut(classes);
        padding.fill(0.0);
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for s in row.iter_mut() {
            *s = (*s - top).exp();
            sum += *s;
        }
        let scale = 1.0 / sum;
        row.iter_mut().for_each(|s| *s *= scale);
        row[*label as usize] -= 1.0;
        let bend = if scale < 0.5 { scale } else { 2.0 * scale * (1.0 - scale) };
        bends.push(bend.max(LEAST_BEND));
    }
}

/// Copies rows of `from` values into rows of `to` values: padding when it grows, dropping it when it shrinks.
pub(crate) fn repad(source: &[f32], from: usize, to: usize, out: &mut Vec<f32>) {
    out.clear();
    if from == to {
        out.extend_from_slice(source);
        return;
    }
    out.resize(source.len() / from * to, 0.0);
    let n = from.min(to);
    for (source, out) in source.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
        out[..n].copy_from_slice(&source[..n]);
    }
}

fn scores_fixed<const S: usize>(x: Entries<'_>, weights: &[f32], out: &mut [f32]) {
    let (weights, _) = weights.as_chunks::<S>();
    let (out, _) = out.as_chunks_mut::<S>();
    let start = match weights.last() {
        Some(bias) if x.intercept => *bias,
        _ => [0.0; S],
    };
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = start;
        for (place, value) in x.row(i) {
            let w = &weights[place];
            for k in 0..S {
                sum[k] += value * w[k];
            }
        }
        *out = sum;
    }
}

fn gradient_fixed<const S: usize>(x: Entries<'_>, residuals: &[f32], out: &mut [f32]) {
    let (residuals, _) = residuals.as_chunks::<S>();
    let (out, _) = out.as_chunks_mut::<S>();
    let mut bias = [0.0; S];
    for (i, residual) in residuals.iter().enumerate() {
        for (place, value) in x.row(i) {
            let g = &mut out[place];
            for k in 0..S {
                g[k] += value * residual[k];
            }
        }
        for k in 0..S {
            bias[k] += residual[k];
        }
    }
    if let Some(last) = out.last_mut().filter(|_| x.intercept) {
        *last = bias;
    }
}

fn add_scaled(out: &mut [f32], by: f32, row: &[f32]) {
    out.iter_mut().zip(row).for_each(|(o, r)| *o += by * r);
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSETS: [u32; 4] = [0, 2, 3, 6];
    const PLACES: [u32; 6] = [0, 2, 1, 0, 1, 2];
    const VALUES: [f32; 6] = [0.5, -1.0, 2.0, 1.5, 0.25, -0.75];

    fn entries(intercept: bool) -> Entries<'static> {
        Entries { offsets: &OFFSETS, places: &PLACES, values: &VALUES, intercept }
    }

    fn loss(x: Entries<'_>, weights: &[f64], width: usize, classes: usize, labels: &[u32]) -> f64 {
        let one = |(i, label): (usize, &u32)| {
            let score = |k: usize| {
                let bias = if x.intercept { weights[weights.len() - width + k] } else { 0.0 };
                bias + x.row(i).map(|(p, v)| f64::from(v) * weights[p * width + k]).sum::<f64>()
            };
            (0..classes).map(|k| score(k).exp()).sum::<f64>().ln() - score(*label as usize)
        };
        labels.iter().enumerate().map(one).sum()
    }

    #[test]
    fn the_gradient_is_what_finite_differences_say() {
        for (classes, intercept) in [(2, true), (3, false), (8, true), (10, true), (13, false), (21, true)] {
            let width = padded(classes);
            let table_rows = 3 + usize::from(intercept);
            let labels = [0, classes as u32 - 1, 1];
            let mut w = vec![0.0; table_rows * width];
            for (i, w) in w.iter_mut().enumerate() {
                *w = if i % width < classes { ((i * 37 % 19) as f64 - 9.0) / 16.0 } else { 0.0 };
            }
            let narrow: Vec<f32> = w.iter().map(|w| *w as f32).collect();
            let x = entries(intercept);
            let (mut r, mut g, mut bends) = (vec![0.0; 3 * width], vec![0.0; narrow.len()], Vec::new());
            scores(x, &narrow, width, &mut r);
            residuals(&mut r, width, classes, &labels, &mut bends);
            gradient(x, &r, width, &mut g);
            for i in (0..w.len()).filter(|i| i % width < classes) {
                let (h, at) = (1e-5, w[i]);
                w[i] = at + h;
                let up = loss(x, &w, width, classes, &labels);
                w[i] = at - h;
                let down = loss(x, &w, width, classes, &labels);
                w[i] = at;
                let slope = (up - down) / (2.0 * h);
                assert!((slope - f64::from(g[i])).abs() < 1e-5, "{classes} classes, weight {i}: {slope}, not {}", g[i]);
            }
            assert!((0..g.len()).filter(|i| i % width >= classes).all(|i| g[i] == 0.0), "padding has a gradient");
        }
    }

    #[test]
    fn bends_bound_the_curvature_of_a_row() {
        // The largest eigenvalue of diag(p) − ppᵀ by power iteration, for rows from uniform to certain.
        for scale in [0.0, 0.5, 1.0, 2.0, 5.0] {
            let mut row: Vec<f32> = (0..4).map(|k| [0.3, 1.0, -0.7, 0.9][k] * scale).collect();
            let mut bends = Vec::new();
            residuals(&mut row, 4, 4, &[2], &mut bends);
            row[2] += 1.0;
            let mut v = [1.0, -0.5, 0.25, -0.75f64];
            let mut top = 0.0;
            for _ in 0..200 {
                let mean: f64 = (0..4).map(|k| f64::from(row[k]) * v[k]).sum();
                v = std::array::from_fn(|k| f64::from(row[k]) * (v[k] - mean));
                top = v.iter().map(|v| v * v).sum::<f64>().sqrt();
                v = v.map(|v| v / top);
            }
            assert!(top <= f64::from(bends[0]) + 1e-6, "scale {scale}: {top} above {}", bends[0]);
        }
    }

    #[test]
    fn repad_pads_with_zeros_and_drops_padding() {
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        repad(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 4, &mut wide);
        assert_eq!(wide, [1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0]);
        repad(&wide, 4, 3, &mut narrow);
        assert_eq!(narrow, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}
