//! What a worker did since its clock began, by feature.
//!
//! A step's increment reaches this worker's own reads at once and the others' when the clock ends, all increments of the
//! clock as one sum. So a worker steps freely in its own view, and at the clock's end takes back all but 1/P of the way:
//! the sum over P workers is then the average of their models, and no number of workers overshoots. The same walk keeps
//! what saga adds to the mean gradient, which must not change under the steps of the clock at hand.

/// Rows of `width` values for each feature that was touched.
#[derive(Default)]
pub(crate) struct Moves {
    width: usize,
    /// Feature → slot, `NONE` when untouched.
    slots: Vec<u32>,
    /// Slot → row of the table.
    pub rows: Vec<u64>,
    /// How far this worker moved the weights.
    pub moved: Vec<f32>,
    /// The mean gradient as it was at first touch.
    pub mean: Vec<f32>,
    /// What this worker adds to it.
    pub change: Vec<f32>,
}

const NONE: u32 = u32::MAX;

impl Moves {
    /// Nothing touched of a table of `rows` rows; values are kept by rows of `width`.
    pub fn new(rows: usize, width: usize) -> Self {
        Self { width, slots: vec![NONE; rows], ..Self::default() }
    }

    /// The slots of `needed`, in `out`; the rows of the table that are new to this clock begin at the slot returned.
    pub fn touch(&mut self, needed: &[u64], out: &mut Vec<u32>) -> usize {
        let known = self.rows.len();
        out.clear();
        for row in needed {
            let slot = &mut self.slots[*row as usize];
            if *slot == NONE {
                *slot = self.rows.len() as u32;
                self.rows.push(*row);
            }
            out.push(*slot);
        }
        let values = self.rows.len() * self.width;
        self.moved.resize(values, 0.0);
        self.mean.resize(values, 0.0);
        self.change.resize(values, 0.0);
        known
    }

    /// The values of a slot.
    pub fn range(&self, slot: u32) -> std::ops::Range<usize> {
        slot as usize * self.width..(slot as usize + 1) * self.width
    }

    /// Begins a clock.
    pub fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.slots[row as usize] = NONE;
        }
        self.moved.clear();
        self.mean.clear();
        self.change.clear();
    }
}
