//! The durable steps that the state is a fold over.

use crate::Millis;
use crate::datasets::Dataset;
use crate::jobs::{Action, Outcome, Submission};
use crate::registry::Revision;
use crate::requests::Answer;
use serde::{Deserialize, Serialize};
use slackline_core::TenantId;
use std::collections::BTreeMap;

/// One durable step of the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// A request was answered; asking again answers the same.
    Answered {
        /// Whose.
        tenant: TenantId,
        /// The id that the client chose.
        id: String,
        /// BLAKE3 of the request: the same id must not ask for something else.
        asked: String,
        /// What it was told.
        answer: Answer,
    },
    /// A revision is there, and a tag may point to it.
    Revision {
        /// Whose.
        tenant: TenantId,
        /// Which.
        revision: Revision,
        /// Points to it from now on.
        tag: Option<String>,
    },
    /// A revision is gone, and the tags that pointed to it.
    RevisionGone {
        /// Whose.
        tenant: TenantId,
        /// Which.
        revision: Revision,
    },
    /// A dataset is there.
    Dataset {
        /// Whose.
        tenant: TenantId,
        /// Which.
        dataset: Dataset,
    },
    /// A dataset is gone.
    DatasetGone {
        /// Whose.
        tenant: TenantId,
        /// Which.
        name: String,
    },
    /// A job waits in the queue.
    Submitted {
        /// Whose.
        tenant: TenantId,
        /// Its id.
        job: String,
        /// What it is.
        submission: Submission,
        /// When.
        at: Millis,
    },
    /// A user changed its course.
    Acted {
        /// Whose.
        tenant: TenantId,
        /// Its id.
        job: String,
        /// How.
        action: Action,
        /// When.
        at: Millis,
    },
    /// A process begins to run it.
    Started {
        /// Whose.
        tenant: TenantId,
        /// Its id.
        job: String,
        /// Which start.
        attempt: u32,
        /// Where.
        process: String,
        /// When.
        at: Millis,
    },
    /// Its process has ended.
    Ended {
        /// Whose.
        tenant: TenantId,
        /// Its id.
        job: String,
        /// Which start.
        attempt: u32,
        /// How.
        outcome: Outcome,
        /// Clocks that every worker has ended.
        clock: u32,
        /// The newest metrics; those that are not finite are left out.
        metrics: BTreeMap<String, f64>,
        /// When.
        at: Millis,
    },
    /// Something that a job's history should show.
    Noted {
        /// Whose.
        tenant: TenantId,
        /// Its id.
        job: String,
        /// In words.
        what: String,
        /// When.
        at: Millis,
    },
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// To be made durable and applied, in this order and together. Empty when nothing changes.
    pub changes: Vec<Change>,
    /// To be told after that.
    pub answer: Answer,
}
