//! The coordinator, as a pure state machine: what a cluster knows and decides, without sockets, files, threads or time.
//!
//! A driver asks [`Control::decide`] what a request comes to: a list of [`Change`]s and an answer, or a [`Refusal`]. It
//! makes the changes durable, hands them to [`Control::apply`], and only then answers. What happens outside (a host
//! process joins, a job's process ends) comes in the same way, through [`Control::observe`]. So the state is a fold over
//! the changes: replaying them gives the same state, and a crash between two of them loses nothing that was answered.
//!
//! [`Control::place`] says which jobs should be started where, given the state alone. It is asked again after every
//! change, and a start counts once its change is applied: there is no outbox of orders that could be lost or sent twice.
//! Every start has a number, its *attempt*; what a driver reports of an earlier attempt changes nothing.
//!
//! Everything is scoped by tenant, and every changing request carries an id that its client chose: asking again with it
//! answers the same and changes nothing.

mod changes;
mod control;
mod datasets;
mod jobs;
mod names;
mod processes;
mod refusal;
mod registry;
mod requests;
mod tenant;

pub use changes::{Change, Decision};
pub use control::Control;
pub use datasets::Dataset;
pub use jobs::{Action, JobState, Outcome, Record, Start, Submission, Transition, UsedDataset};
pub use names::{check_name, check_tag, valid_digest};
pub use processes::Process;
pub use refusal::{Refusal, RefusalKind};
pub use registry::{PluginName, Pushed, Registry, Revision};
pub use requests::{Answer, Request};

/// Milliseconds since 1970, by the driver's clock.
pub type Millis = u64;
