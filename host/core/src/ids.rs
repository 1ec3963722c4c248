//! Names of things. Every id that a user can meet carries its tenant, so that isolation is a matter of types.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A worker's iteration counter; `tick` ends clock `c` and starts `c + 1`.
pub type Clock = u32;

/// The owner of plugins, datasets, jobs and tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TenantId(String);

impl TenantId {
    /// A tenant by its name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The tenant of everything that runs embedded.
    pub fn local() -> Self {
        Self::new("default")
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One job of one tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId {
    /// Who owns it.
    pub tenant: TenantId,
    /// Its name, unique within the tenant.
    pub name: String,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.name)
    }
}

macro_rules! index_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// As a place in a vector.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

index_id! {
    /// A logical worker of a job: the one that owns partition `.0`.
    WorkerId
}
index_id! {
    /// A shard of a job's tables.
    ShardId
}
index_id! {
    /// A table of a job, by its place in the plan.
    TableId
}
