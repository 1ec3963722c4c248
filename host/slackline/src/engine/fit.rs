//! Whether a candidate fits a job that runs: the same tables, columns that are there in the same coding, the metric that
//! the stop rule watches. Each difference is a line with both sides.

use crate::engine::run::RunInput;
use crate::failure::{Exit, Failure};
use slackline_core::manifest::{ColumnWant, Encode, Facts};
use slackline_core::ports::Plugin;
use slackline_core::{Layout, Manifest, PluginErrorKind, TableSpec};

/// What keeps `candidate` from going on where `running` is. `columns` are those that the data was loaded with.
pub fn misfits(
    input: &RunInput<'_>,
    columns: &[ColumnWant],
    running: &dyn Plugin,
    candidate: &dyn Plugin,
    params: &str,
) -> Result<Vec<String>, Failure> {
    let facts = input.data.facts(input.job.workers);
    let (old, new) = (running.manifest(), candidate.manifest());
    let mut found = of_columns(columns, &new.columns, &facts);
    found.extend(of_manifests(old, new, &input.job.data.partition.to_string()));
    match candidate.plan(params, &facts) {
        Ok(plan) => found.extend(of_tables(&input.tables, &plan.tables)),
        // Of data that are not what it wants it can plan nothing.
        Err(_) if !found.is_empty() => {}
        Err(e) => {
            let exit = if e.kind == PluginErrorKind::Failed { Exit::Usage } else { Exit::Refused };
            return Err(Failure::new(exit, e.message).hint("the version that runs goes on"));
        }
    }
    if let Some(rule) = &input.job.stop
        && !new.metrics.iter().any(|m| m.name == rule.metric)
    {
        let known: Vec<_> = new.metrics.iter().map(|m| m.name.as_str()).collect();
        found.push(format!("stop.metric: {:?} against the metrics {}", rule.metric, known.join(", ")));
    }
    Ok(found)
}

fn of_tables(running: &[TableSpec], asked: &[TableSpec]) -> Vec<String> {
    let mut found = Vec::new();
    for old in running {
        let new = asked.iter().find(|t| t.name == old.name);
        let (was, is) = (table(Some(old)), table(new));
        if was != is {
            found.push(format!("table {:?}: {was} against {is}", old.name));
        }
    }
    for new in asked.iter().filter(|t| running.iter().all(|old| old.name != t.name)) {
        found.push(format!("table {:?}: absent against {}", new.name, table(Some(new))));
    }
    found
}

/// How rows begin does not count: these have begun.
fn table(spec: Option<&TableSpec>) -> String {
    spec.map_or_else(
        || "absent".to_owned(),
        |t| {
            let layout = if t.layout == Layout::Dense { "dense" } else { "sparse" };
            format!("{layout}, {} × {} {}", t.rows, t.width, t.dtype)
        },
    )
}

fn of_columns(there: &[ColumnWant], wanted: &[ColumnWant], facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    for want in wanted {
        match there.iter().find(|c| c.name == want.name) {
            None if want.optional => {}
            None => found.push(format!("column {:?}: absent against {}", want.name, column(want))),
            Some(has) if column(has) != column(want) => {
                found.push(format!("column {:?}: {} against {}", want.name, column(has), column(want)));
            }
            // A dataset may lack what was optional, and this version needs it.
            Some(has) if has.optional && !want.optional => {
                let lacks = facts.datasets.iter().filter(|(_, d)| !d.columns.contains_key(&want.name));
                found.extend(lacks.map(|(name, _)| {
                    format!("column {:?}: absent in dataset {name} against {}", want.name, column(want))
                }));
            }
            Some(_) => {}
        }
    }
    found
}

fn column(want: &ColumnWant) -> String {
    let list = if want.list { "lists of " } else { "" };
    let coded = if want.encode == Encode::Dictionary { ", coded by a dictionary" } else { "" };
    format!("{list}{}{coded}", want.dtype)
}

fn of_manifests(old: &Manifest, new: &Manifest, partition: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(needed) = new.partition.as_ref().filter(|p| *p != partition) {
        found.push(format!("partition: {partition:?} against {needed:?}"));
    }
    if new.prepare && !old.prepare {
        found.push(
            "prepare: the partition was not shown before the first step, and this version needs to see it".into(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_core::manifest::DatasetFacts;
    use slackline_core::{DType, Init};

    fn spec(name: &str, rows: u64, width: u32) -> TableSpec {
        TableSpec { name: name.into(), dtype: DType::F32, layout: Layout::Dense, rows, width, init: Init::Zero }
    }

    fn want(name: &str, optional: bool) -> ColumnWant {
        ColumnWant { name: name.into(), dtype: DType::U32, list: false, encode: Encode::None, optional, target: false }
    }

    #[test]
    fn tables_are_compared_by_name_and_each_difference_has_both_sides() {
        let mut begun = spec("w", 4, 2);
        begun.init = Init::Constant { value: 1.0 };
        assert!(of_tables(&[spec("w", 4, 2), spec("v", 1, 1)], &[spec("v", 1, 1), begun]).is_empty());
        let found = of_tables(&[spec("w", 4, 2), spec("v", 1, 1)], &[spec("w", 4, 3), spec("x", 1, 1)]);
        assert_eq!(
            found,
            [
                "table \"w\": dense, 4 × 2 f32 against dense, 4 × 3 f32",
                "table \"v\": dense, 1 × 1 f32 against absent",
                "table \"x\": absent against dense, 1 × 1 f32",
            ]
        );
    }

    #[test]
    fn columns_must_be_there_in_the_same_coding() {
        let facts = Facts { workers: 1, datasets: [("train".to_owned(), DatasetFacts::default())].into() };
        let coded = ColumnWant { encode: Encode::Dictionary, ..want("a", false) };
        let check = |wanted: ColumnWant, found: &[&str]| {
            assert_eq!(of_columns(&[want("a", false), want("b", true)], &[wanted], &facts), found);
        };
        check(want("a", false), &[]);
        check(want("c", true), &[]);
        check(want("c", false), &["column \"c\": absent against u32"]);
        check(coded, &["column \"a\": u32 against u32, coded by a dictionary"]);
        check(want("b", false), &["column \"b\": absent in dataset train against u32"]);
    }
}
