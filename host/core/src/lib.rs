//! The words and contracts that every other crate of Slackline shares.
//!
//! This crate is the middle of a star: `server`, `client`, `sandbox`, `data`, `kernels` and `storage` know it and not
//! each other. It is pure: no I/O, no threads, no wall time. What a role does over time is a state machine that a driver
//! feeds; what a role needs from outside is a trait in [`ports`].
//!
//! Where to look: ids in [`ids`], typed arrays in [`values`], the model in [`table`], what a plugin declares in
//! [`manifest`], one clock's updates in [`oplog`] and [`part`], the consistency models in [`gate`].

pub mod buffer;
pub mod column;
pub mod error;
pub mod gate;
pub mod ids;
pub mod link;
pub mod local;
pub mod manifest;
pub mod messages;
pub mod oplog;
pub mod part;
pub mod ports;
pub mod random;
pub mod shard_map;
pub mod sparse;
pub mod table;
pub mod values;

pub use buffer::Buffer;
pub use column::{Batch, Column};
pub use error::{HostError, Limit, PluginError, PluginErrorKind};
pub use gate::{Consistency, Model};
pub use ids::{Clock, JobId, ShardId, TableId, TenantId, WorkerId};
pub use local::LocalState;
pub use manifest::{Facts, Manifest, Plan};
pub use part::{PartKey, RowDeltas, SealedPart, TableDeltas};
pub use random::RandomStream;
pub use shard_map::ShardMap;
pub use table::{Init, Layout, TableSpec};
pub use values::{DType, Element, Values, ValuesMut, ValuesRef};
