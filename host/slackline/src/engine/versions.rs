//! Which version of its program a job runs from which clock on, and why: what a cut and the state folder keep of it, and
//! what of it holds for a cut that a run goes back to.

use serde_json::{Map, Value, json};
use slackline_core::ports::Plugin;
use slackline_core::{Clock, Consistency};
use slackline_storage::State;
use std::sync::Arc;

/// The name of the document in a state folder.
const DOCUMENT: &str = "versions";

/// A version as it is recorded. Versions of a job are numbered from 1, and a number is never used twice in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRecord {
    /// Its number.
    pub number: u32,
    /// The plugin's name.
    pub plugin: String,
    /// `blake3:…` of the component.
    pub digest: String,
    /// The parameters as JSON text, kept as it is: a number that is read and written again may change its last bit.
    pub params: String,
    /// The staleness bound.
    pub staleness: u32,
    /// The first clock that it runs.
    pub from: Clock,
    /// Why it came.
    pub reason: String,
}

impl VersionRecord {
    /// Its parameters.
    pub fn params(&self) -> Map<String, Value> {
        serde_json::from_str(&self.params).unwrap_or_default()
    }

    fn to_json(&self) -> Value {
        json!({
            "version": self.number, "plugin": self.plugin, "digest": self.digest, "params": self.params,
            "staleness": self.staleness, "from": self.from, "reason": self.reason,
        })
    }

    fn of_json(value: &Value) -> Option<Self> {
        let number = |key: &str| value.get(key)?.as_u64().and_then(|n| u32::try_from(n).ok());
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let params = text("params")?;
        serde_json::from_str::<Map<String, Value>>(&params).ok()?;
        Some(Self {
            number: number("version")?,
            plugin: text("plugin")?,
            digest: text("digest")?,
            params,
            staleness: number("staleness")?,
            from: number("from")?,
            reason: text("reason")?,
        })
    }
}

/// A version that can run.
#[derive(Clone)]
pub struct Version {
    /// What it is.
    pub record: VersionRecord,
    /// Its component, compiled.
    pub plugin: Arc<dyn Plugin>,
    /// The job's model with the version's bound.
    pub consistency: Consistency,
}

/// A job's versions, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(Vec<VersionRecord>);

impl History {
    /// One that begins with `first`.
    pub fn new(first: VersionRecord) -> Self {
        Self(vec![first])
    }

    /// All of them.
    pub fn all(&self) -> &[VersionRecord] {
        &self.0
    }

    /// The newest.
    pub fn newest(&self) -> Option<&VersionRecord> {
        self.0.last()
    }

    /// The one before the newest.
    pub fn previous(&self) -> Option<&VersionRecord> {
        self.0.len().checked_sub(2).and_then(|at| self.0.get(at))
    }

    /// The same with one more.
    pub fn with(&self, next: VersionRecord) -> Self {
        Self(self.0.iter().cloned().chain([next]).collect())
    }

    /// Those that ran before `clock`; the first of all in any case.
    pub fn before(&self, clock: Clock) -> Self {
        let mut kept = self.0.iter().enumerate().filter(|(i, v)| *i == 0 || v.from < clock);
        Self(kept.by_ref().map(|(_, v)| v.clone()).collect())
    }

    /// For cuts and the state folder.
    pub fn to_json(&self) -> Value {
        self.0.iter().map(VersionRecord::to_json).collect()
    }

    /// Out of what [`History::to_json`] gave; `None` when it is damaged or empty.
    pub fn of_json(value: &Value) -> Option<Self> {
        let all: Vec<VersionRecord> =
            value.as_array()?.iter().map(VersionRecord::of_json).collect::<Option<Vec<_>>>()?;
        let ascending = all.windows(2).all(|w| matches!(w, [a, b] if a.number < b.number && a.from < b.from));
        (!all.is_empty() && ascending).then_some(Self(all))
    }

    /// Keeps it in a state folder, for good once this returns.
    pub fn keep(&self, state: &State) -> Result<(), slackline_storage::Error> {
        state.put_document(DOCUMENT, self.to_json().to_string().as_bytes())
    }

    /// What a state folder keeps.
    pub fn kept(state: &State) -> Result<Option<Self>, slackline_storage::Error> {
        let text = state.document(DOCUMENT)?;
        Ok(text.and_then(|t| serde_json::from_slice(&t).ok()).as_ref().and_then(Self::of_json))
    }

    /// What holds for a run that goes on from a cut at `clock`, and what is lost. `noted` is what the cut says: the
    /// versions that ran before it. `kept` is what the folder says: it may know of one that was to begin at `clock`, which
    /// was decided and so holds, and of later ones, which are of a course of events that is no more.
    pub fn resumed(noted: Self, kept: Option<Self>, clock: Clock) -> (Self, Vec<VersionRecord>) {
        let mut history = noted;
        let mut lost = Vec::new();
        let known = history.newest().map_or(0, |v| v.number);
        for version in kept.into_iter().flat_map(|k| k.0).filter(|v| v.number > known) {
            if version.from <= clock && lost.is_empty() { history.0.push(version) } else { lost.push(version) }
        }
        (history, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u32, from: Clock) -> VersionRecord {
        VersionRecord {
            number,
            plugin: "p".into(),
            digest: format!("blake3:{number}"),
            params: "{\"rate\":0.1}".into(),
            staleness: 0,
            from,
            reason: "asked".into(),
        }
    }

    fn history(all: &[(u32, Clock)]) -> History {
        History(all.iter().map(|(n, from)| version(*n, *from)).collect())
    }

    #[test]
    fn a_history_comes_back_from_json_and_damage_is_seen() {
        let whole = history(&[(1, 0), (2, 7)]);
        assert_eq!(History::of_json(&whole.to_json()), Some(whole));
        for damaged in [
            json!([]),
            json!(3),
            json!([{"version": 1}]),
            history(&[(2, 7), (1, 0)]).to_json(),
            history(&[(1, 0), (2, 0)]).to_json(),
        ] {
            assert_eq!(History::of_json(&damaged), None, "{damaged}");
        }
    }

    #[test]
    fn a_cut_notes_the_versions_that_made_it() {
        let whole = history(&[(1, 0), (2, 7), (3, 9)]);
        assert_eq!(whole.before(0), history(&[(1, 0)]));
        assert_eq!(whole.before(7), history(&[(1, 0)]));
        assert_eq!(whole.before(8), history(&[(1, 0), (2, 7)]));
        assert_eq!(whole.previous().map(|v| v.number), Some(2));
    }

    #[test]
    fn a_swap_decided_for_the_cuts_clock_holds_and_later_ones_are_lost() {
        let kept = history(&[(1, 0), (2, 7), (3, 9)]);
        let check = |clock, held: &[(u32, Clock)], gone: &[u32]| {
            let (history_now, lost) = History::resumed(kept.before(clock), Some(kept.clone()), clock);
            assert_eq!(history_now, history(held), "at {clock}");
            assert_eq!(lost.iter().map(|v| v.number).collect::<Vec<_>>(), gone, "at {clock}");
        };
        check(6, &[(1, 0)], &[2, 3]);
        check(7, &[(1, 0), (2, 7)], &[3]);
        check(8, &[(1, 0), (2, 7)], &[3]);
        check(9, &[(1, 0), (2, 7), (3, 9)], &[]);
        assert_eq!(History::resumed(history(&[(1, 0)]), None, 5), (history(&[(1, 0)]), vec![]));
    }
}
