//! Distinct words at hand, each with the place of its row.
//!
//! Rows of the word-topic table cross the border many at a time. In between, a word goes by the place of its row among
//! those at hand, so that hot loops index one flat array.

use slackline_guest::{Result, ensure};

/// The distinct words that were collected, and the place of each.
pub struct Words {
    /// Their row ids, by place.
    ids: Vec<u64>,
    /// For each word of the vocabulary its place plus one; 0: not among them.
    places: Vec<u32>,
}

impl Words {
    /// None, of a vocabulary of `words`.
    pub fn new(words: u64) -> Self {
        Self { ids: Vec::new(), places: vec![0; words as usize] }
    }

    /// Adds the words that are not here yet, ascending, and returns their row ids. Fails when one is beyond the
    /// vocabulary.
    pub fn collect(&mut self, words: &[u32]) -> Result<&[u64]> {
        let first = self.ids.len();
        let size = self.places.len();
        for &word in words {
            ensure!((word as usize) < size, "word {word} is beyond the vocabulary of {size}");
            let place = &mut self.places[word as usize];
            if *place == 0 {
                *place = u32::MAX;
                self.ids.push(u64::from(word));
            }
        }
        self.ids[first..].sort_unstable();
        for (place, &id) in self.ids.iter().enumerate().skip(first) {
            self.places[id as usize] = place as u32 + 1;
        }
        Ok(&self.ids[first..])
    }

    /// The place of a word that was collected.
    #[inline]
    pub fn place(&self, word: u32) -> u32 {
        self.places[word as usize] - 1
    }

    /// Whether the vocabulary has the word.
    pub fn knows(&self, word: u32) -> bool {
        (word as usize) < self.places.len()
    }

    /// Row ids by place.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Forgets all words.
    pub fn clear(&mut self) {
        self.ids.iter().for_each(|&id| self.places[id as usize] = 0);
        self.ids.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_get_places_in_ascending_order_and_keep_them() {
        let mut words = Words::new(130);
        assert_eq!(words.collect(&[129, 5, 64, 5, 0]).unwrap(), [0, 5, 64, 129]);
        assert_eq!(words.collect(&[7, 5, 1]).unwrap(), [1, 7]);
        assert_eq!([129, 5, 64, 0, 1, 7].map(|w| words.place(w)), [3, 1, 2, 0, 4, 5]);
        words.clear();
        assert_eq!(words.collect(&[7]).unwrap(), [7]);
        assert_eq!((words.ids(), words.place(7)), (&[7][..], 0));
    }

    #[test]
    fn a_word_beyond_the_vocabulary_is_refused_by_number() {
        let error = Words::new(3).collect(&[1, 3]).unwrap_err();
        assert!(error.to_string().contains("word 3 is beyond the vocabulary of 3"), "{error}");
    }
}
