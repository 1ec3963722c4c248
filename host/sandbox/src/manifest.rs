//! What a plugin says of itself, taken strictly: unknown keys, odd names and absurd numbers are refused before anything
//! is built on them.

use serde_json::Value;
use slackline_core::{Init, Layout, Manifest, Plan};
use std::collections::BTreeSet;

/// Bytes of either document.
const MAX_BYTES: usize = 512 << 10;
/// Entries of any list in it.
const MAX_ENTRIES: usize = 64;
/// Characters of a name.
const MAX_NAME: usize = 64;
/// Characters of a text for people.
const MAX_TEXT: usize = 1024;
/// Values in a row.
const MAX_WIDTH: u32 = 1 << 24;
/// Rows that a view shows a line.
const MAX_TOP: u32 = 1000;

/// Parses the answer of `describe`.
pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
    let manifest: Manifest = parse_strictly(text, "the manifest", &["params"])?;
    let m = &manifest;
    name("name", &m.name, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')?;
    text_for_people("version", &m.version)?;
    text_for_people("summary", &m.summary)?;
    distinct("columns", m.columns.iter().map(|c| c.name.as_str()), |c| !c.is_control())?;
    distinct("metrics", m.metrics.iter().map(|m| m.name.as_str()), is_identifier)?;
    distinct("predicts", m.predicts.iter().map(String::as_str), |c| !c.is_control())?;
    distinct("views", m.views.iter().map(|v| v.title.as_str()), |c| !c.is_control())?;
    if let Some(partition) = &m.partition {
        text_for_people("partition", partition)?;
    }
    for view in &m.views {
        if view.top == 0 || view.top > MAX_TOP {
            return Err(format!(
                "the manifest: view {:?} shows {} rows, where 1 to {MAX_TOP} fit",
                view.title, view.top
            ));
        }
    }
    if !m.params.is_object() {
        return Err("the manifest: params is no JSON schema".into());
    }
    Ok(manifest)
}

/// Parses the answer of `plan`.
pub(crate) fn parse_plan(text: &str, manifest: &Manifest) -> Result<Plan, String> {
    let plan: Plan = parse_strictly(text, "the document", &[])?;
    distinct("tables", plan.tables.iter().map(|t| t.name.as_str()), |c| is_identifier(c) || c == '-')?;
    for table in &plan.tables {
        let wrong = |what: String| Err(format!("table {:?} {what}", table.name));
        if !table.dtype.is_table_type() {
            return wrong(format!("holds {}, where tables hold f32, f64, i32 or i64", table.dtype));
        }
        if table.width == 0 || table.width > MAX_WIDTH {
            return wrong(format!("is {} wide, where 1 to {MAX_WIDTH} are allowed", table.width));
        }
        if table.layout == Layout::Dense && table.bytes().is_none_or(|bytes| bytes > i64::MAX as u64) {
            return wrong(format!("has {} rows of {} values: more bytes than can be counted", table.rows, table.width));
        }
        if table.layout == Layout::Sparse && table.init != Init::Zero {
            return wrong("is sparse, and sparse rows begin empty".into());
        }
        let sound = match table.init {
            Init::Zero => true,
            Init::Constant { value } => value.is_finite(),
            Init::Uniform { low, high } => low.is_finite() && high.is_finite() && low <= high,
            Init::Normal { mean, sd } => mean.is_finite() && sd.is_finite() && sd >= 0.0,
        };
        if !sound {
            return wrong(format!("cannot begin as {:?}", table.init));
        }
    }
    if let Some(view) = manifest.views.iter().find(|v| !plan.tables.iter().any(|t| t.name == v.table)) {
        return Err(format!("view {:?} shows table {:?}, which is not planned", view.title, view.table));
    }
    Ok(plan)
}

/// Parses `text`, and refuses keys that `T` does not know; under `free` anything goes.
fn parse_strictly<T>(text: &str, what: &str, free: &[&str]) -> Result<T, String>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    if text.len() > MAX_BYTES {
        return Err(format!("{what} has {} bytes, where {MAX_BYTES} are allowed", text.len()));
    }
    let given: Value = serde_json::from_str(text).map_err(|e| format!("{what} is no JSON: {e}"))?;
    let parsed = T::deserialize(&given).map_err(|e| format!("{what}: {e}"))?;
    let known = serde_json::to_value(&parsed).map_err(|e| format!("{what}: {e}"))?;
    match unknown_key(&given, &known, free) {
        Some(key) => Err(format!("{what} has a key `{key}` that this host does not know")),
        None => Ok(parsed),
    }
}

/// The first key of `given` that is lost when it is parsed and written again.
fn unknown_key(given: &Value, known: &Value, free: &[&str]) -> Option<String> {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => given.iter().find_map(|(key, value)| match known.get(key) {
            _ if free.contains(&key.as_str()) => None,
            None => Some(key.chars().take(MAX_NAME).collect()),
            Some(known) => unknown_key(value, known, &[]).map(|inner| format!("{key}.{inner}")),
        }),
        (Value::Array(given), Value::Array(known)) => {
            given.iter().zip(known).find_map(|(given, known)| unknown_key(given, known, &[]))
        }
        _ => None,
    }
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn name(what: &str, name: &str, allowed: impl Fn(char) -> bool) -> Result<(), String> {
    if name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(allowed) {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Err(format!("{what}: {shown:?} is no name (1 to {MAX_NAME} characters, none of them odd)"));
    }
    Ok(())
}

fn text_for_people(what: &str, text: &str) -> Result<(), String> {
    if text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(format!("{what} must be one line of at most {MAX_TEXT} characters"));
    }
    Ok(())
}

fn distinct<'a>(
    what: &str,
    names: impl ExactSizeIterator<Item = &'a str>,
    allowed: impl Fn(char) -> bool,
) -> Result<(), String> {
    if names.len() > MAX_ENTRIES {
        return Err(format!("{what} has {} entries, where {MAX_ENTRIES} are allowed", names.len()));
    }
    let mut seen = BTreeSet::new();
    for n in names {
        name(what, n, &allowed)?;
        if !seen.insert(n) {
            return Err(format!("{what} names {n:?} twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({
            "name": "lda", "version": "1.0.0", "params": {"type": "object", "x-anything": 1},
            "columns": [{"name": "words", "dtype": "u32", "list": true}],
            "metrics": [{"name": "loss"}],
            "views": [{"title": "topics", "table": "wt", "labels": "words", "top": 10}],
        })
    }

    #[track_caller]
    fn check(at: &str, value: Value, error: &str) {
        let mut manifest = good();
        *manifest.pointer_mut(at).unwrap_or_else(|| panic!("{at}")) = value;
        match parse(&manifest.to_string()) {
            Ok(_) => assert!(error.is_empty(), "{at} was taken, where {error:?} was expected"),
            Err(e) => assert!(!error.is_empty() && e.contains(error), "{at}: {e}"),
        }
    }

    #[test]
    fn manifests_are_taken_strictly() {
        check("/name", json!("lda"), "");
        check("/name", json!(""), "is no name");
        check("/name", json!("x".repeat(65)), "is no name");
        check("/name", json!("two words"), "is no name");
        check("/name", json!(7), "expected a string");
        check("/params", json!([]), "params is no JSON schema");
        check("/version", json!("1\n2"), "one line");
        check("/columns/0", json!({"name": "w", "dtype": "u32", "lst": true}), "key `columns.lst`");
        check("/columns/0/dtype", json!("f16"), "unknown variant `f16`");
        check("/metrics", json!([{"name": "a"}, {"name": "a"}]), "metrics names \"a\" twice");
        check("/metrics", (0..65).map(|i| json!({"name": format!("m{i}")})).collect(), "65 entries");
        check("/views/0/top", json!(0), "where 1 to 1000 fit");
    }

    #[track_caller]
    fn check_plan(tables: Value, error: &str) {
        let manifest = parse(&good().to_string()).unwrap();
        match parse_plan(&json!({ "tables": tables }).to_string(), &manifest) {
            Ok(_) => assert!(error.is_empty(), "{tables} was taken, where {error:?} was expected"),
            Err(e) => assert!(!error.is_empty() && e.contains(error), "{tables}: {e}"),
        }
    }

    #[test]
    fn plans_are_bounded() {
        let table =
            |dtype: &str, rows: u64, width: u64| json!({"name": "wt", "dtype": dtype, "rows": rows, "width": width});
        check_plan(json!([table("i32", 1000, 20)]), "");
        check_plan(json!([table("i32", 0, 20)]), "");
        check_plan(json!([]), "which is not planned");
        check_plan(json!([table("u8", 10, 1)]), "holds u8");
        check_plan(json!([table("f32", 10, 0)]), "is 0 wide");
        check_plan(json!([table("f32", u64::MAX, 2)]), "more bytes than can be counted");
        check_plan(json!([table("f32", 1, 1), table("f32", 1, 1)]), "twice");
        let mut init = table("f32", 1, 1);
        init["init"] = json!({"kind": "uniform", "low": 1.0, "high": 0.0});
        check_plan(json!([init]), "cannot begin as");
    }
}
