//! Function types as text, from the contract and from a component alike, so that they can be compared and shown.

use std::fmt::Write;
use wasmtime::component::ResourceType;
use wasmtime::component::types::{ComponentFunc, Type};
use wit_parser::{Function, Handle, Resolve, Type as WitType, TypeDefKind, TypeId};

/// A function's type. Types inside are written out in full; only resources go by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    params: Vec<(String, String)>,
    result: Option<String>,
}

impl Signature {
    /// Of a function of the contract.
    pub fn of_contract(resolve: &Resolve, function: &Function) -> Self {
        Self {
            params: function.params.iter().map(|p| (p.name.clone(), wit_type(resolve, &p.ty))).collect(),
            result: function.result.as_ref().map(|ty| wit_type(resolve, ty)),
        }
    }

    /// Of a function of a component.
    pub fn of_component(function: &ComponentFunc, resources: &Resources) -> Self {
        Self {
            params: function.params().map(|(name, ty)| (name.to_owned(), component_type(&ty, resources))).collect(),
            result: function.results().next().map(|ty| component_type(&ty, resources)),
        }
    }

    /// Whether one can stand for the other: parameters' names do not matter.
    pub fn agrees(&self, other: &Self) -> bool {
        let types = |s: &Self| s.params.iter().map(|(_, ty)| ty.clone()).collect::<Vec<_>>();
        types(self) == types(other) && self.result == other.result
    }

    /// For people, with the contract's names for its types.
    pub fn show(&self, dictionary: &Dictionary) -> String {
        let params: Vec<String> = self.params.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        let mut text = format!("func({})", params.join(", "));
        if let Some(result) = &self.result {
            // Writing to a string cannot fail.
            let _ = write!(text, " -> {result}");
        }
        dictionary.shorten(text)
    }
}

/// The contract's names for types that are written out in full.
#[derive(Default)]
pub(crate) struct Dictionary {
    /// Longest text first, so that a type is shortened before its parts.
    entries: Vec<(String, String)>,
}

impl Dictionary {
    pub fn of_contract(resolve: &Resolve) -> Self {
        let mut entries: Vec<(String, String)> = resolve
            .types
            .iter()
            .filter(|(_, def)| {
                matches!(def.kind, TypeDefKind::Record(_) | TypeDefKind::Variant(_) | TypeDefKind::Enum(_))
            })
            .filter_map(|(id, def)| Some((wit_type(resolve, &WitType::Id(id)), def.name.clone()?)))
            .collect();
        entries.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { entries }
    }

    fn shorten(&self, text: String) -> String {
        self.entries.iter().fold(text, |text, (long, short)| text.replace(long, short))
    }
}

/// Names of a component's resources.
#[derive(Default)]
pub(crate) struct Resources {
    names: Vec<(ResourceType, String)>,
}

impl Resources {
    pub fn learn(&mut self, ty: ResourceType, name: &str) {
        if !self.names.iter().any(|(known, _)| *known == ty) {
            self.names.push((ty, name.to_owned()));
        }
    }

    fn name(&self, ty: &ResourceType) -> &str {
        self.names.iter().find(|(known, _)| known == ty).map_or("resource", |(_, name)| name)
    }
}

fn fields(parts: impl Iterator<Item = (String, Option<String>)>, open: &str, close: &str) -> String {
    let parts: Vec<String> =
        parts.map(|(name, ty)| ty.map_or(name.clone(), |ty| format!("{name}{open}{ty}{close}"))).collect();
    format!("{{ {} }}", parts.join(", "))
}

fn result_type(ok: Option<String>, err: Option<String>) -> String {
    match (ok, err) {
        (None, None) => "result".into(),
        (Some(ok), None) => format!("result<{ok}>"),
        (ok, Some(err)) => format!("result<{}, {err}>", ok.unwrap_or_else(|| "_".into())),
    }
}

fn component_type(ty: &Type, resources: &Resources) -> String {
    let inner = |ty: Type| component_type(&ty, resources);
    match ty {
        Type::Bool => "bool".into(),
        Type::S8 => "s8".into(),
        Type::U8 => "u8".into(),
        Type::S16 => "s16".into(),
        Type::U16 => "u16".into(),
        Type::S32 => "s32".into(),
        Type::U32 => "u32".into(),
        Type::S64 => "s64".into(),
        Type::U64 => "u64".into(),
        Type::Float32 => "f32".into(),
        Type::Float64 => "f64".into(),
        Type::Char => "char".into(),
        Type::String => "string".into(),
        Type::List(list) => format!("list<{}>", inner(list.ty())),
        Type::Record(record) => {
            format!("record {}", fields(record.fields().map(|f| (f.name.to_owned(), Some(inner(f.ty)))), ": ", ""))
        }
        Type::Tuple(tuple) => format!("tuple<{}>", tuple.types().map(inner).collect::<Vec<_>>().join(", ")),
        Type::Variant(variant) => {
            format!("variant {}", fields(variant.cases().map(|c| (c.name.to_owned(), c.ty.map(inner))), "(", ")"))
        }
        Type::Enum(e) => format!("enum {}", fields(e.names().map(|n| (n.to_owned(), None)), "", "")),
        Type::Flags(f) => format!("flags {}", fields(f.names().map(|n| (n.to_owned(), None)), "", "")),
        Type::Option(option) => format!("option<{}>", inner(option.ty())),
        Type::Result(result) => result_type(result.ok().map(inner), result.err().map(inner)),
        Type::Own(resource) => resources.name(resource).into(),
        Type::Borrow(resource) => format!("borrow<{}>", resources.name(resource)),
        _ => "a type that this host does not know".into(),
    }
}

fn wit_type(resolve: &Resolve, ty: &WitType) -> String {
    match ty {
        WitType::Bool => "bool".into(),
        WitType::S8 => "s8".into(),
        WitType::U8 => "u8".into(),
        WitType::S16 => "s16".into(),
        WitType::U16 => "u16".into(),
        WitType::S32 => "s32".into(),
        WitType::U32 => "u32".into(),
        WitType::S64 => "s64".into(),
        WitType::U64 => "u64".into(),
        WitType::F32 => "f32".into(),
        WitType::F64 => "f64".into(),
        WitType::Char => "char".into(),
        WitType::String => "string".into(),
        WitType::ErrorContext => "error-context".into(),
        WitType::Id(id) => wit_definition(resolve, *id),
    }
}

fn wit_definition(resolve: &Resolve, id: TypeId) -> String {
    let definition = &resolve.types[id];
    let inner = |ty: &WitType| wit_type(resolve, ty);
    match &definition.kind {
        TypeDefKind::Type(ty) => inner(ty),
        TypeDefKind::List(ty) => format!("list<{}>", inner(ty)),
        TypeDefKind::Record(record) => {
            format!("record {}", fields(record.fields.iter().map(|f| (f.name.clone(), Some(inner(&f.ty)))), ": ", ""))
        }
        TypeDefKind::Tuple(tuple) => format!("tuple<{}>", tuple.types.iter().map(inner).collect::<Vec<_>>().join(", ")),
        TypeDefKind::Variant(variant) => {
            format!(
                "variant {}",
                fields(variant.cases.iter().map(|c| (c.name.clone(), c.ty.as_ref().map(inner))), "(", ")")
            )
        }
        TypeDefKind::Enum(e) => format!("enum {}", fields(e.cases.iter().map(|c| (c.name.clone(), None)), "", "")),
        TypeDefKind::Flags(f) => format!("flags {}", fields(f.flags.iter().map(|f| (f.name.clone(), None)), "", "")),
        TypeDefKind::Option(ty) => format!("option<{}>", inner(ty)),
        TypeDefKind::Result(r) => result_type(r.ok.as_ref().map(inner), r.err.as_ref().map(inner)),
        TypeDefKind::Resource => definition.name.clone().unwrap_or_else(|| "resource".into()),
        TypeDefKind::Handle(Handle::Own(of)) => wit_definition(resolve, *of),
        TypeDefKind::Handle(Handle::Borrow(of)) => format!("borrow<{}>", wit_definition(resolve, *of)),
        other => other.as_str().into(),
    }
}
