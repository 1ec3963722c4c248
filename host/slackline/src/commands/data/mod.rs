//! `slackline data`: looks at files, and makes data sets with a known truth.

pub mod generate;
pub mod inspect;
