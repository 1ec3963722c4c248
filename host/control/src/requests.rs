//! What a client may ask that changes something, and what it is answered.

use crate::datasets::Dataset;
use crate::jobs::{Action, Submission};
use crate::registry::{Pushed, Revision};
use serde::{Deserialize, Serialize};

/// A changing request. Reading the state needs none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Put a component into the registry. Its bytes are kept and validated by whoever asks.
    PushPlugin {
        /// The plugin's name.
        name: String,
        /// A tag that is to point to it.
        tag: Option<String>,
        /// Whether the tag may leave another revision.
        move_tag: bool,
        /// `blake3:…` of the bytes.
        digest: String,
        /// How many they are.
        bytes: u64,
    },
    /// Take a plugin, or one revision of it, out of the registry.
    DeletePlugin {
        /// `name`, `name@3`, `name@tag` or `blake3:…`.
        plugin: String,
    },
    /// Keep an uploaded file.
    PushDataset {
        /// What it is.
        dataset: Dataset,
        /// Whether it may take the place of another.
        replace: bool,
    },
    /// Forget an uploaded file.
    DeleteDataset {
        /// Its name.
        name: String,
    },
    /// Queue a job.
    Submit(Submission),
    /// Change a job's course.
    Act {
        /// Its id or name.
        job: String,
        /// What is asked.
        action: Action,
    },
}

/// What a request came to. Asked again with the same request id, the same is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Of [`Request::PushPlugin`].
    Pushed(Pushed),
    /// Of [`Request::DeletePlugin`]: what is gone.
    Removed(Vec<Revision>),
    /// Of [`Request::PushDataset`]: whether it was there before.
    Kept {
        /// The dataset.
        dataset: Dataset,
        /// It was there before.
        known: bool,
    },
    /// Of [`Request::DeleteDataset`].
    Forgotten,
    /// Of [`Request::Submit`] and [`Request::Act`]: the job's id.
    Job(String),
}
