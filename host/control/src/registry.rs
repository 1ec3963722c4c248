//! A tenant's plugins: numbered revisions by name, tags that point to them.

use crate::Millis;
use crate::names::valid_digest;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A numbered (plugin, digest).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The plugin's name.
    pub plugin: String,
    /// From 1; a number is never given twice, also when its revision is deleted.
    pub number: u32,
    /// `blake3:…` of the component.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
    /// When it was pushed.
    pub at: Millis,
}

/// What pushing some bytes under a name comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushed {
    /// The revision that holds the bytes now.
    pub revision: Revision,
    /// It held them before.
    pub known: bool,
    /// The tag points elsewhere than before.
    pub tag_moved: bool,
}

/// How a user names a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginName {
    /// `name`: the newest.
    Newest(String),
    /// `name@3`.
    Number(String, u32),
    /// `name@tag`.
    Tag(String, String),
    /// `blake3:…`.
    Digest(String),
}

impl std::str::FromStr for PluginName {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.starts_with("blake3:") {
            return match valid_digest(text) {
                true => Ok(Self::Digest(text.to_owned())),
                false => Err(Refusal::invalid(format!("{text:?} is no digest"))
                    .hint("a digest is `blake3:` and 64 hex digits in lower case")),
            };
        }
        match text.split_once('@') {
            None => crate::names::check_name("plugin", text).map(|()| Self::Newest(text.to_owned())),
            Some((name, rev)) => {
                crate::names::check_name("plugin", name)?;
                if rev.chars().all(|c| c.is_ascii_digit()) {
                    let number = rev.parse().ok().filter(|n| *n > 0);
                    return number.map(|n| Self::Number(name.to_owned(), n)).ok_or_else(|| {
                        Refusal::invalid(format!("{text:?}: {rev:?} is no revision")).hint("revisions count from 1")
                    });
                }
                crate::names::check_tag(rev)?;
                Ok(Self::Tag(name.to_owned(), rev.to_owned()))
            }
        }
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest(name) => f.write_str(name),
            Self::Number(name, n) => write!(f, "{name}@{n}"),
            Self::Tag(name, tag) => write!(f, "{name}@{tag}"),
            Self::Digest(digest) => f.write_str(digest),
        }
    }
}

/// All plugins of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Registry {
    plugins: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Entry {
    /// The number that the next revision gets.
    next: u32,
    revisions: BTreeMap<u32, Revision>,
    tags: BTreeMap<String, u32>,
}

impl Registry {
    /// What pushing `digest` as `name` would come to.
    pub(crate) fn push(&self, pushing: &Pushing) -> Result<Pushed, Refusal> {
        let Pushing { name, tag, move_tag, digest, bytes, at } = pushing;
        let entry = self.plugins.get(name);
        let same = entry.and_then(|e| e.revisions.values().rfind(|r| r.digest == *digest));
        let number = same.map_or_else(|| entry.map_or(1, |e| e.next), |r| r.number);
        let new = || Revision { plugin: name.clone(), number, digest: digest.clone(), bytes: *bytes, at: *at };
        let points = tag.as_ref().and_then(|t| entry?.tags.get(t).copied());
        if let (Some(tag), Some(old)) = (tag, points.filter(|p| *p != number && !move_tag)) {
            return Err(Refusal::conflict(format!("tag {name}@{tag} points to revision {old}"))
                .hint("--move-tag lets it point to this one; nothing was pushed"));
        }
        Ok(Pushed {
            revision: same.cloned().unwrap_or_else(new),
            known: same.is_some(),
            tag_moved: tag.is_some() && points != Some(number),
        })
    }

    pub(crate) fn put(&mut self, revision: &Revision, tag: Option<&str>) {
        let entry =
            self.plugins.entry(revision.plugin.clone()).or_insert_with(|| Entry { next: 1, ..Entry::default() });
        entry.next = entry.next.max(revision.number + 1);
        entry.revisions.insert(revision.number, revision.clone());
        if let Some(tag) = tag {
            entry.tags.insert(tag.to_owned(), revision.number);
        }
    }

    /// The revision that `name` means.
    pub fn find(&self, name: &PluginName) -> Result<&Revision, Refusal> {
        let entry = |plugin: &str| {
            let live = self.plugins.get(plugin).filter(|e| !e.revisions.is_empty());
            live.ok_or_else(|| {
                let refusal = Refusal::not_found(format!("there is no plugin {plugin:?} in the registry"));
                let known: Vec<_> = self.names().collect();
                match known.is_empty() {
                    true => refusal.hint("`slackline plugin push FILE --name NAME` puts one there"),
                    false => refusal.hint(format!("there are: {}", known.join(", "))),
                }
            })
        };
        match name {
            PluginName::Newest(plugin) => {
                let newest = entry(plugin)?.revisions.values().next_back();
                newest.ok_or_else(|| Refusal::not_found(format!("plugin {plugin:?} has no revision")))
            }
            PluginName::Number(plugin, n) => {
                let entry = entry(plugin)?;
                entry.revisions.get(n).ok_or_else(|| {
                    let known: Vec<_> = entry.revisions.keys().map(ToString::to_string).collect();
                    Refusal::not_found(format!("plugin {plugin:?} has no revision {n}"))
                        .hint(format!("it has: {}", known.join(", ")))
                })
            }
            PluginName::Tag(plugin, tag) => {
                let entry = entry(plugin)?;
                entry.tags.get(tag).and_then(|n| entry.revisions.get(n)).ok_or_else(|| {
                    let known: Vec<_> = entry.tags.keys().map(String::as_str).collect();
                    Refusal::not_found(format!("plugin {plugin:?} has no tag {tag:?}")).hint(if known.is_empty() {
                        "it has none".into()
                    } else {
                        format!("it has: {}", known.join(", "))
                    })
                })
            }
            PluginName::Digest(digest) => self
                .revisions()
                .find(|r| r.digest == *digest)
                .ok_or_else(|| Refusal::not_found(format!("no plugin in the registry has digest {digest}"))),
        }
    }

    /// The revisions that deleting `name` takes: all of a plugin, or the one that is named.
    pub(crate) fn doomed(&self, name: &PluginName) -> Result<Vec<Revision>, Refusal> {
        let found = self.find(name)?;
        Ok(match name {
            PluginName::Newest(plugin) => self.revisions().filter(|r| r.plugin == *plugin).cloned().collect(),
            _ => vec![found.clone()],
        })
    }

    pub(crate) fn remove(&mut self, revision: &Revision) {
        // The entry stays, empty: numbers that were given are not given again.
        if let Some(entry) = self.plugins.get_mut(&revision.plugin) {
            entry.revisions.remove(&revision.number);
            entry.tags.retain(|_, n| *n != revision.number);
        }
    }

    /// All revisions, by name and number.
    pub fn revisions(&self) -> impl Iterator<Item = &Revision> {
        self.plugins.values().flat_map(|e| e.revisions.values())
    }

    /// The tags that point to a revision.
    pub fn tags_of(&self, revision: &Revision) -> Vec<String> {
        let tags = self.plugins.get(&revision.plugin).into_iter().flat_map(|e| &e.tags);
        tags.filter(|(_, n)| **n == revision.number).map(|(t, _)| t.clone()).collect()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().filter(|(_, e)| !e.revisions.is_empty()).map(|(name, _)| name.as_str())
    }
}

/// A push, before it is decided.
pub(crate) struct Pushing {
    pub(crate) name: String,
    pub(crate) tag: Option<String>,
    pub(crate) move_tag: bool,
    pub(crate) digest: String,
    pub(crate) bytes: u64,
    pub(crate) at: Millis,
}
