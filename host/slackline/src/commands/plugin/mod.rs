//! `slackline plugin`: make, build, test and look at plugins.

pub mod build;
pub mod check;
pub mod inspect;
pub mod new;
pub mod test;
