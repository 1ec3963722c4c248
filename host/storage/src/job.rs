//! Whose state a folder is: the job's document, and what differs between two of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The identity of the job that a folder belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What decides whether two jobs are the same; the caller computes it from what matters.
    pub fingerprint: String,
    /// Name, plugin digest, parameters, data, workers, seed, consistency and whatever else tells jobs apart.
    pub document: Value,
}

/// A key that has different values in two documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its path, with dots, such as `params.topics`.
    pub key: String,
    /// Its value in the first document; `None`: absent.
    pub left: Option<Value>,
    /// Its value in the second document; `None`: absent.
    pub right: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |v: &Option<Value>| v.as_ref().map_or_else(|| "absent".to_owned(), Value::to_string);
        write!(f, "{}: {} against {}", self.key, show(&self.left), show(&self.right))
    }
}

/// The keys in which two documents differ, in order. Objects are entered, lists are compared whole.
pub fn differences(left: &Value, right: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk("", Some(left), Some(right), &mut found);
    found
}

fn walk(key: &str, left: Option<&Value>, right: Option<&Value>, found: &mut Vec<Difference>) {
    match (left, right) {
        (Some(Value::Object(l)), Some(Value::Object(r))) => {
            let names: std::collections::BTreeSet<&String> = l.keys().chain(r.keys()).collect();
            for name in names {
                let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                walk(&path, l.get(name), r.get(name), found);
            }
        }
        (l, r) if l == r => {}
        (l, r) => found.push(Difference { key: key.to_owned(), left: l.cloned(), right: r.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differing_keys_are_named_by_path() {
        let a = json!({"name": "topics", "params": {"topics": 20, "alpha": 0.1}, "workers": 2, "data": ["x"]});
        let b = json!({"name": "topics", "params": {"topics": 30, "alpha": 0.1}, "seed": 1, "data": ["x", "y"]});
        let shown: Vec<String> = differences(&a, &b).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"data: ["x"] against ["x","y"]"#,
                "params.topics: 20 against 30",
                "seed: absent against 1",
                "workers: 2 against absent"
            ]
        );
        assert!(differences(&a, &a).is_empty());
    }
}
