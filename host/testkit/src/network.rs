//! A network with manual time: messages are late, overtake one another and arrive twice; links put that right.

use crate::dice::Dice;
use crate::plan::Weather;
use slackline_core::link::{LinkReceiver, LinkSender};
use slackline_core::messages::{ToShard, ToWorker};
use slackline_core::{Clock, ShardId, WorkerId};
use std::collections::BTreeMap;

/// Further ahead than any schedule here gets, so that nothing is dropped.
const WINDOW: u64 = 1 << 20;

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message comes to a shard.
    AtShard(WorkerId, ShardId, Packet<ToShard>),
    /// A message comes to a worker.
    AtWorker(ShardId, WorkerId, Packet<ToWorker>),
    /// A worker does its next step.
    Step(WorkerId),
    /// A shard's cut has been taken; the next one.
    Release(ShardId, Option<Clock>),
    /// A message that the shard's door has held up.
    Inside(WorkerId, ShardId, ToShard),
}

/// A message and its number on its link.
#[derive(Clone, Debug)]
pub struct Packet<M> {
    number: u64,
    message: M,
}

/// One direction between a worker and a shard.
struct Link<M> {
    sender: LinkSender,
    receiver: LinkReceiver<M>,
}

impl<M> Link<M> {
    fn grid(rows: u32, columns: u32) -> Vec<Vec<Self>> {
        let link = || Self { sender: LinkSender::default(), receiver: LinkReceiver::new(WINDOW) };
        (0..rows).map(|_| (0..columns).map(|_| link()).collect()).collect()
    }
}

/// Events in the order of their moments, and the links between workers and shards.
pub struct Network {
    now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    weather: Weather,
    dice: Dice,
    to_shards: Vec<Vec<Link<ToShard>>>,
    to_workers: Vec<Vec<Link<ToWorker>>>,
    in_order: bool,
}

impl Network {
    /// Between `workers` workers and `shards` shards. Not `in_order`: parts go past their links.
    pub fn new(workers: u32, shards: u32, weather: Weather, dice: Dice, in_order: bool) -> Self {
        Self {
            now: 0,
            queue: BTreeMap::new(),
            scheduled: 0,
            weather,
            dice,
            to_shards: Link::grid(workers, shards),
            to_workers: Link::grid(workers, shards),
            in_order,
        }
    }

    /// The time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Lets `event` happen after `delay`.
    pub fn after(&mut self, delay: u64, event: Event) {
        self.queue.insert((self.now + delay, self.scheduled), event);
        self.scheduled += 1;
    }

    /// Goes to the next moment at which something happens.
    pub fn next(&mut self) -> Option<Event> {
        let ((now, _), event) = self.queue.pop_first()?;
        self.now = now;
        Some(event)
    }

    /// A worker's message to a shard.
    pub fn send_to_shard(&mut self, from: WorkerId, to: ShardId, message: ToShard) {
        let number = self.to_shards[from.index()][to.index()].sender.number();
        self.carry(Event::AtShard(from, to, Packet { number, message }));
    }

    /// A shard's message to a worker.
    pub fn send_to_worker(&mut self, from: ShardId, to: WorkerId, message: ToWorker) {
        let number = self.to_workers[to.index()][from.index()].sender.number();
        self.carry(Event::AtWorker(from, to, Packet { number, message }));
    }

    /// What a shard gets now that `packet` is here.
    pub fn arrived_at_shard(&mut self, from: WorkerId, at: ShardId, packet: Packet<ToShard>) -> Vec<ToShard> {
        let (mut messages, part) = (Vec::new(), matches!(packet.message, ToShard::Part(_)));
        let early = (!self.in_order && part).then(|| packet.message.clone());
        let receiver = &mut self.to_shards[from.index()][at.index()].receiver;
        receiver.receive(packet.number, packet.message, |m| messages.push(m));
        if !self.in_order {
            messages.retain(|m| !matches!(m, ToShard::Part(_)));
            messages.extend(early);
        }
        messages
    }

    /// What a worker gets now that `packet` is here.
    pub fn arrived_at_worker(&mut self, from: ShardId, at: WorkerId, packet: Packet<ToWorker>) -> Vec<ToWorker> {
        let mut messages = Vec::new();
        let receiver = &mut self.to_workers[at.index()][from.index()].receiver;
        receiver.receive(packet.number, packet.message, |m| messages.push(m));
        messages
    }

    fn carry(&mut self, event: Event) {
        if self.dice.chance(self.weather.repeats) {
            let delay = self.dice.within(1, self.weather.delay);
            self.after(delay, event.clone());
        }
        let delay = self.dice.within(1, self.weather.delay);
        self.after(delay, event);
    }
}
