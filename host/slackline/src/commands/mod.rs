//! One file a command: its flags, their documentation, and what it does.

pub mod cluster;
pub mod data;
pub mod job;
pub mod output;
pub mod plugin;
pub mod predict;
pub mod run;
pub mod table;
