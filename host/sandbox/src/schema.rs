//! Parameters checked against the JSON schema that a plugin publishes.
//!
//! It knows the part of JSON Schema (draft 2020-12) that describes parameters, and refuses a schema that uses more: a
//! rule that is silently not checked is worse than one that cannot be written. At the top level a parameter that the
//! schema does not name is an error unless `additionalProperties` says otherwise, because it is nearly always a typo.

use serde_json::{Map, Value};

/// Bytes of parameters.
const MAX_PARAMS: usize = 1 << 20;
/// Bytes of a schema.
const MAX_SCHEMA: usize = 256 << 10;
/// Schemas inside schemas, references followed included.
const MAX_DEPTH: usize = 32;

/// Words that say nothing about validity.
const NOTES: [&str; 10] =
    ["$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "deprecated", "$defs"];

/// A schema whose every keyword is one that is checked.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Value,
}

/// Parses parameters.
pub(crate) fn parse_object(text: &str) -> Result<Value, String> {
    if text.len() > MAX_PARAMS {
        return Err(format!("{} bytes, where {MAX_PARAMS} are allowed", text.len()));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(Value::Object(map)),
        Ok(other) => Err(format!("expected an object, found {}", kind(&other))),
        Err(e) => Err(format!("this is no JSON: {e}")),
    }
}

impl Schema {
    /// Takes a schema when all of it can be checked.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA {
            return Err(format!("the schema has {bytes} bytes, where {MAX_SCHEMA} are allowed"));
        }
        let this = Self { root: schema.clone() };
        this.sound(schema, "#", 0)?;
        if let Some(Value::Object(defs)) = schema.get("$defs") {
            for (name, def) in defs {
                this.sound(def, &format!("#/$defs/{name}"), 1)?;
            }
        }
        Ok(this)
    }

    /// Checks `params`, and adds the defaults of those that are missing at the top level.
    pub fn complete(&self, mut params: Value) -> Result<Value, String> {
        if let (Some(properties), Some(given)) = (self.properties(&self.root), params.as_object_mut()) {
            for (name, property) in properties {
                if let (false, Some(default)) = (given.contains_key(name), property.get("default")) {
                    given.insert(name.clone(), default.clone());
                }
            }
        }
        self.valid(&self.root, &params, "", 0)?;
        Ok(params)
    }

    fn properties<'a>(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        schema.get("properties")?.as_object()
    }

    fn resolve(&self, reference: &str) -> Result<&Value, String> {
        let found = match reference {
            "#" => Some(&self.root),
            _ => reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)),
        };
        found.ok_or_else(|| format!("the schema refers to {reference:?}, which is not in it"))
    }

    /// Whether every keyword is known and has a value of its kind.
    fn sound(&self, schema: &Value, at: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("the schema is more than {MAX_DEPTH} deep at {at}"));
        }
        let map = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(map) => map,
            other => return Err(format!("{at} is {}, where a schema is expected", kind(other))),
        };
        for (word, value) in map {
            let inner = format!("{at}/{word}");
            let fits = match word.as_str() {
                note if NOTES.contains(&note) || note.starts_with("x-") => true,
                "type" => types(value).is_some_and(|t| !t.is_empty()),
                "const" => true,
                "enum" | "required" => value.is_array(),
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
                "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
                "$ref" => {
                    self.resolve(value.as_str().unwrap_or_default())?;
                    true
                }
                "items" | "additionalProperties" => {
                    self.sound(value, &inner, depth + 1)?;
                    true
                }
                "properties" => match value.as_object() {
                    None => false,
                    Some(map) => {
                        for (name, property) in map {
                            self.sound(property, &format!("{inner}/{name}"), depth + 1)?;
                        }
                        true
                    }
                },
                "allOf" | "anyOf" | "oneOf" => match value.as_array() {
                    None => false,
                    Some(list) => {
                        for (i, part) in list.iter().enumerate() {
                            self.sound(part, &format!("{inner}/{i}"), depth + 1)?;
                        }
                        true
                    }
                },
                _ => return Err(format!("{inner} is a keyword that this host does not check")),
            };
            if !fits {
                return Err(format!("{inner} cannot be {value}"));
            }
        }
        Ok(())
    }

    fn valid(&self, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("{} goes deeper than {MAX_DEPTH} schemas", place(at)));
        }
        let map = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(map) => map,
            _ => return Err(format!("{} is not allowed", place(at))),
        };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            self.valid(self.resolve(reference)?, value, at, depth + 1)?;
        }
        if let Some(wanted) = map.get("type").and_then(types)
            && !wanted.iter().any(|t| is_a(t, value))
        {
            return Err(format!("{} must be {}, and is {}", place(at), wanted.join(" or "), found(value)));
        }
        if let Some(constant) = map.get("const")
            && constant != value
        {
            return Err(format!("{} must be {constant}, and is {}", place(at), found(value)));
        }
        if let Some(allowed) = map.get("enum").and_then(Value::as_array)
            && !allowed.contains(value)
        {
            let nearest = value.as_str().and_then(|v| nearest(v, allowed.iter().filter_map(Value::as_str)));
            return Err(format!(
                "{} must be one of {}, and is {}{}",
                place(at),
                list(allowed),
                found(value),
                hint(nearest)
            ));
        }
        self.numbers(map, value, at)?;
        self.lengths(map, value, at)?;
        if let Value::Object(given) = value {
            self.object(map, given, at, depth)?;
        }
        if let (Some(items), Value::Array(values)) = (map.get("items"), value) {
            for (i, item) in values.iter().enumerate() {
                self.valid(items, item, &format!("{at}[{i}]"), depth + 1)?;
            }
        }
        self.combined(map, value, at, depth)
    }

    fn numbers(&self, map: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
        let Some(v) = value.as_f64() else { return Ok(()) };
        type Rule = (&'static str, &'static str, fn(f64, f64) -> bool);
        let rules: [Rule; 4] = [
            ("minimum", "at least", |v, bound| v >= bound),
            ("maximum", "at most", |v, bound| v <= bound),
            ("exclusiveMinimum", "more than", |v, bound| v > bound),
            ("exclusiveMaximum", "less than", |v, bound| v < bound),
        ];
        for (word, says, holds) in rules {
            if let Some(bound) = map.get(word)
                && !bound.as_f64().is_some_and(|bound| holds(v, bound))
            {
                return Err(format!("{} must be {says} {bound}, and is {value}", place(at)));
            }
        }
        Ok(())
    }

    fn lengths(&self, map: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
        let (least, most, len, of) = match value {
            Value::String(s) => ("minLength", "maxLength", s.chars().count(), "characters"),
            Value::Array(a) => ("minItems", "maxItems", a.len(), "items"),
            _ => return Ok(()),
        };
        if let Some(bound) = map.get(least).and_then(Value::as_u64).filter(|bound| (len as u64) < *bound) {
            return Err(format!("{} must have at least {bound} {of}, and has {len}", place(at)));
        }
        if let Some(bound) = map.get(most).and_then(Value::as_u64).filter(|bound| len as u64 > *bound) {
            return Err(format!("{} must have at most {bound} {of}, and has {len}", place(at)));
        }
        Ok(())
    }

    fn object(
        &self,
        map: &Map<String, Value>,
        given: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let none = Map::new();
        let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&none);
        for name in map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !given.contains_key(name) {
                return Err(format!("{} is missing", place(&join(at, name))));
            }
        }
        for (name, value) in given {
            let at = join(at, name);
            match (properties.get(name), map.get("additionalProperties")) {
                (Some(property), _) => self.valid(property, value, &at, depth + 1)?,
                (None, Some(Value::Bool(true))) => {}
                (None, Some(schema @ Value::Object(_))) => self.valid(schema, value, &at, depth + 1)?,
                (None, None) if depth > 0 => {}
                (None, _) => {
                    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                    let nearest = nearest(name, known.iter().copied());
                    let known = if known.is_empty() {
                        "there are none".into()
                    } else {
                        format!("there are {}", known.join(", "))
                    };
                    return Err(format!("{} is not known: {known}{}", place(&at), hint(nearest)));
                }
            }
        }
        Ok(())
    }

    fn combined(&self, map: &Map<String, Value>, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        let parts = |word: &str| map.get(word).and_then(Value::as_array);
        for part in parts("allOf").into_iter().flatten() {
            self.valid(part, value, at, depth + 1)?;
        }
        for (word, exactly_one) in [("anyOf", false), ("oneOf", true)] {
            let Some(choices) = parts(word) else { continue };
            let errors: Vec<String> =
                choices.iter().filter_map(|choice| self.valid(choice, value, at, depth + 1).err()).collect();
            let fit = choices.len() - errors.len();
            if fit == 0 {
                let constants: Vec<Value> = choices.iter().filter_map(|c| c.get("const").cloned()).collect();
                if !constants.is_empty() && constants.len() == choices.len() {
                    let nearest = value.as_str().and_then(|v| nearest(v, constants.iter().filter_map(Value::as_str)));
                    let (one_of, is) = (list(&constants), found(value));
                    return Err(format!("{} must be one of {one_of}, and is {is}{}", place(at), hint(nearest)));
                }
                return Err(errors.join("; or "));
            }
            if exactly_one && fit > 1 {
                return Err(format!("{} fits {fit} of the choices, where it must fit one", place(at)));
            }
        }
        Ok(())
    }
}

fn place(at: &str) -> String {
    if at.is_empty() { "the parameters".into() } else { format!("`{at}`") }
}

fn join(at: &str, name: &str) -> String {
    let name: String = name.chars().take(64).collect();
    if at.is_empty() { name } else { format!("{at}.{name}") }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value for a message: short ones whole, others by kind.
fn found(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= 40 { text } else { kind(value).into() }
}

fn list(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > 64 {
        return None;
    }
    let known: Vec<&str> = known.collect();
    // `lr` is learning_rate, though `l2` is but a letter away.
    if let Some(meant) = known.iter().find(|k| name.len() > 1 && initials(k).eq(name.chars())) {
        return Some(meant);
    }
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(name, k), k))
        .filter(|(distance, k)| *distance <= k.len().div_ceil(3) && *distance < name.len())
        .min()
        .map(|(_, k)| k)
}

fn initials(name: &str) -> impl Iterator<Item = char> + '_ {
    name.split('_').filter_map(|word| word.chars().next())
}

fn types(value: &Value) -> Option<Vec<&str>> {
    const KNOWN: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let names: Vec<&str> = match value {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    names.iter().all(|n| KNOWN.contains(n)).then_some(names)
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|v| v.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lda() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Params",
            "type": "object",
            "properties": {
                "topics": { "type": "integer", "minimum": 1, "maximum": 65536, "format": "uint32" },
                "alpha": { "type": ["number", "null"], "exclusiveMinimum": 0.0, "default": 0.1 },
                "sampler": { "$ref": "#/$defs/Sampler", "default": "sparse" },
                "step": { "anyOf": [{ "$ref": "#/$defs/Step" }, { "type": "null" }] },
                "seeds": { "type": "array", "items": { "type": "integer" }, "maxItems": 2 },
            },
            "required": ["topics"],
            "$defs": {
                "Sampler": { "oneOf": [{ "const": "sparse" }, { "const": "alias", "description": "x" }] },
                "Step": { "type": "object", "properties": { "rate": { "type": "number" } }, "required": ["rate"] },
            },
        })
    }

    #[track_caller]
    fn check(params: Value, error: &str) {
        match Schema::new(&lda()).unwrap().complete(params.clone()) {
            Ok(done) if error.is_empty() => assert!(done.as_object().unwrap().contains_key("alpha")),
            Ok(_) => panic!("{params} was taken, where {error:?} was expected"),
            Err(e) => assert!(!error.is_empty() && e.contains(error), "{params}: {e}"),
        }
    }

    #[test]
    fn parameters_are_checked_by_name() {
        check(json!({"topics": 20}), "");
        check(json!({"topics": 20.0, "alpha": null, "step": null, "seeds": [1, 2]}), "");
        check(json!({"topics": 20, "step": {"rate": 1.5}}), "");
        check(json!({}), "`topics` is missing");
        check(json!({"topics": "20"}), "`topics` must be integer, and is \"20\"");
        check(json!({"topics": 2.5}), "`topics` must be integer, and is 2.5");
        check(json!({"topics": 0}), "`topics` must be at least 1, and is 0");
        check(json!({"topics": 65537}), "at most 65536");
        check(json!({"topics": 2, "alpha": 0}), "`alpha` must be more than 0");
        check(json!({"topics": 2, "alhpa": 0.1}), "`alhpa` is not known");
        check(json!({"topics": 2, "alhpa": 0.1}), "did you mean `alpha`?");
        check(json!({"topics": 2, "sampler": "alais"}), "must be one of \"sparse\", \"alias\"");
        check(json!({"topics": 2, "sampler": "alais"}), "did you mean `alias`?");
        check(json!({"topics": 2, "step": {}}), "`step.rate` is missing");
        check(json!({"topics": 2, "seeds": [1, "x"]}), "`seeds[1]` must be integer");
        check(json!({"topics": 2, "seeds": [1, 2, 3]}), "at most 2 items");
    }

    #[test]
    fn defaults_are_filled_in() {
        let done = Schema::new(&lda()).unwrap().complete(json!({"topics": 3})).unwrap();
        assert_eq!(done, json!({"topics": 3, "alpha": 0.1, "sampler": "sparse"}));
    }

    #[test]
    fn schemas_that_cannot_be_checked_whole_are_refused() {
        for (schema, error) in [
            (json!({"patternProperties": {}}), "#/patternProperties is a keyword that this host does not check"),
            (json!({"type": "float"}), "#/type cannot be \"float\""),
            (json!({"properties": {"a": {"minimum": "1"}}}), "#/properties/a/minimum cannot be"),
            (json!({"$ref": "#/$defs/Nowhere"}), "which is not in it"),
            (json!([]), "where a schema is expected"),
        ] {
            let e = Schema::new(&schema).unwrap_err();
            assert!(e.contains(error), "{schema}: {e}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = Schema::new(&json!({"$ref": "#"})).unwrap();
        assert!(schema.complete(json!({})).unwrap_err().contains("deeper than"));
    }

    #[test]
    fn parameters_are_an_object_of_bounded_size() {
        assert!(parse_object("[1]").unwrap_err().contains("expected an object, found a list"));
        assert!(parse_object("{").unwrap_err().contains("this is no JSON"));
        assert!(parse_object(&" ".repeat(MAX_PARAMS + 1)).unwrap_err().contains("allowed"));
    }
}
