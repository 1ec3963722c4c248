//! A link between two roles that restores order and drops repeats, whatever the network did.
//!
//! The state machines of servers and clients are written for links that keep order: a push and the reply that follows it
//! arrive in that order. A stream transport gives that while a connection lasts; across re-deliveries and reordering
//! this pair of counters does.

use std::collections::BTreeMap;

/// The sending end: numbers messages.
#[derive(Clone, Debug, Default)]
pub struct LinkSender {
    next: u64,
}

impl LinkSender {
    /// The number of the next message.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

/// The receiving end: hands messages out in the order of their numbers, each once.
#[derive(Clone, Debug)]
pub struct LinkReceiver<M> {
    next: u64,
    early: BTreeMap<u64, M>,
    window: u64,
}

impl<M> LinkReceiver<M> {
    /// A receiver that keeps at most `window` messages that came early; what is further ahead is dropped, and the
    /// sender's retransmission brings it again.
    pub fn new(window: u64) -> Self {
        Self { next: 0, early: BTreeMap::new(), window }
    }

    /// Takes message `number` and calls `deliver` for everything that is now in order.
    pub fn receive(&mut self, number: u64, message: M, mut deliver: impl FnMut(M)) {
        if number < self.next || number - self.next > self.window {
            return;
        }
        self.early.entry(number).or_insert(message);
        while let Some(m) = self.early.remove(&self.next) {
            self.next += 1;
            deliver(m);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_restored_and_repeats_are_dropped() {
        let mut got = Vec::new();
        let mut link = LinkReceiver::new(8);
        for n in [2, 0, 0, 1, 2, 4, 1, 3, 20, 5] {
            link.receive(n, n, |m| got.push(m));
        }
        assert_eq!(got, [0, 1, 2, 3, 4, 5]);
    }
}
