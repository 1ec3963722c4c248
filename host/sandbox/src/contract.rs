//! Checks a component's imports and exports against the text of the contract, before it is linked, so that a refusal
//! names the function and both types.

use crate::signature::{Dictionary, Resources, Signature};
use std::collections::{BTreeMap, BTreeSet};
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wit_parser::{InterfaceId, Resolve, SourceMap, WorldItem};

/// One world of one track.
pub(crate) struct Contract {
    world: String,
    imports: BTreeMap<String, Interface>,
    exports: BTreeMap<String, Interface>,
    dictionary: Dictionary,
}

#[derive(Default)]
struct Interface {
    functions: BTreeMap<String, Signature>,
    types: BTreeSet<String>,
}

/// The interfaces that a component imports and exports.
#[derive(Clone, Debug)]
pub(crate) struct Surface {
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

impl Contract {
    /// Reads `world` from the text of `package`.
    pub fn parse(package: &str, world: &str, files: &[(&str, &str)]) -> wasmtime::Result<Self> {
        let odd = |e: String| wasmtime::Error::msg(format!("the contract {package}: {e}"));
        let mut sources = SourceMap::default();
        for (path, text) in files {
            sources.push_str(path, *text);
        }
        let group = sources.parse().map_err(|(_, e)| odd(format!("{e:?}")))?;
        let mut resolve = Resolve::default();
        let id = resolve.push_group(group).map_err(|e| odd(format!("{e:?}")))?;
        let chosen = resolve.select_world(&[id], Some(world)).map_err(|e| odd(format!("{e:#}")))?;
        let definition = &resolve.worlds[chosen];
        Ok(Self {
            world: world.into(),
            imports: interfaces(&resolve, definition.imports.values()),
            exports: interfaces(&resolve, definition.exports.values()),
            dictionary: Dictionary::of_contract(&resolve),
        })
    }

    /// What the component imports and exports, or why it is refused.
    pub fn check(
        &self,
        component: &wasmtime::component::Component,
        engine: &wasmtime::Engine,
    ) -> Result<Surface, String> {
        let ty = component.component_type();
        let mut resources = Resources::default();
        let mut learn = |item: &ComponentItem| {
            let ComponentItem::ComponentInstance(instance) = item else { return };
            for (name, item) in instance.exports(engine) {
                if let ComponentItem::Resource(ty) = item.ty {
                    resources.learn(ty, name);
                }
            }
        };
        ty.imports(engine).for_each(|(_, item)| learn(&item.ty));
        ty.exports(engine).for_each(|(_, item)| learn(&item.ty));

        let mut surface = Surface { imports: Vec::new(), exports: Vec::new() };
        for (name, item) in ty.imports(engine) {
            self.check_import(name, &item.ty, engine, &resources)?;
            surface.imports.push(name.into());
        }
        for (name, interface) in &self.exports {
            let found = ty.exports(engine).find(|(given, _)| same_track(given, name));
            match found.map(|(_, item)| item.ty) {
                Some(ComponentItem::ComponentInstance(i)) => {
                    self.check_export(name, interface, &i, engine, &resources)?
                }
                _ => return Err(format!("does not export {name}, which a plugin of world {} has", self.world)),
            }
        }
        surface.exports.extend(ty.exports(engine).map(|(name, _)| name.to_owned()));
        Ok(surface)
    }

    fn check_import(
        &self,
        name: &str,
        item: &ComponentItem,
        engine: &wasmtime::Engine,
        resources: &Resources,
    ) -> Result<(), String> {
        let granted = self.imports.iter().find(|(granted, _)| same_track(name, granted));
        let (Some((_, interface)), ComponentItem::ComponentInstance(instance)) = (granted, item) else {
            let other_track = self.imports.keys().find(|granted| base(granted) == base(name));
            return Err(match other_track {
                Some(granted) => {
                    format!("imports {name}, where this host grants {granted}: build it against that track")
                }
                None => format!(
                    "imports {name}, which this host does not grant: a plugin gets {} and nothing else",
                    self.imports.keys().map(|n| base(n)).collect::<Vec<_>>().join(", ")
                ),
            });
        };
        for (function, item) in instance.exports(engine) {
            let place = format!("{name} {}", plain(function));
            match item.ty {
                ComponentItem::ComponentFunc(ty) => {
                    let Some(expected) = interface.functions.get(function) else {
                        return Err(format!("imports {place}, which this host does not have"));
                    };
                    let given = Signature::of_component(&ty, resources);
                    if !given.agrees(expected) {
                        let (given, granted) = (given.show(&self.dictionary), expected.show(&self.dictionary));
                        return Err(format!("imports {place} as `{given}`, where this host grants `{granted}`"));
                    }
                }
                ComponentItem::Resource(_) | ComponentItem::Type(_) if interface.types.contains(function) => {}
                _ => return Err(format!("imports {place}, which this host does not have")),
            }
        }
        Ok(())
    }

    fn check_export(
        &self,
        name: &str,
        interface: &Interface,
        instance: &ComponentInstance,
        engine: &wasmtime::Engine,
        resources: &Resources,
    ) -> Result<(), String> {
        for (function, expected) in &interface.functions {
            let place = plain(function);
            let expected_text = expected.show(&self.dictionary);
            let Some(ComponentItem::ComponentFunc(ty)) = instance.get_export(engine, function).map(|item| item.ty)
            else {
                return Err(format!("{name} does not export `{place}` of type `{expected_text}`"));
            };
            let given = Signature::of_component(&ty, resources);
            if !given.agrees(expected) {
                let given = given.show(&self.dictionary);
                return Err(format!("export `{place}` of {name} has type `{given}`, expected `{expected_text}`"));
            }
        }
        Ok(())
    }
}

fn interfaces<'a>(resolve: &Resolve, items: impl Iterator<Item = &'a WorldItem>) -> BTreeMap<String, Interface> {
    items
        .filter_map(|item| match item {
            WorldItem::Interface { id, .. } => Some((resolve.id_of(*id)?, interface(resolve, *id))),
            _ => None,
        })
        .collect()
}

fn interface(resolve: &Resolve, id: InterfaceId) -> Interface {
    let definition = &resolve.interfaces[id];
    Interface {
        functions: definition.functions.iter().map(|(n, f)| (n.clone(), Signature::of_contract(resolve, f))).collect(),
        types: definition.types.keys().cloned().collect(),
    }
}

/// The name without its version.
fn base(name: &str) -> &str {
    name.split_once('@').map_or(name, |(base, _)| base)
}

/// Whether two versioned names are of one track: below 1.0 the first two numbers, from then on the first.
fn same_track(a: &str, b: &str) -> bool {
    let track = |name: &str| {
        let mut numbers = name.split_once('@').map(|(_, version)| version).unwrap_or_default().splitn(3, '.');
        let major = numbers.next().unwrap_or_default().to_owned();
        let minor = numbers.next().unwrap_or_default().to_owned();
        if major == "0" { (major, minor) } else { (major, String::new()) }
    };
    base(a) == base(b) && track(a) == track(b)
}

/// `[method]program.step` as people write it.
fn plain(function: &str) -> &str {
    function.rsplit_once(']').map_or(function, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v0_1;

    #[test]
    fn the_contract_reads_as_written() {
        let c = Contract::parse(v0_1::PACKAGE, v0_1::WORLD, &v0_1::WIT).unwrap();
        let update = &c.exports["slackline:plugin/update@0.1.0"];
        let step = &update.functions["[method]program.step"];
        assert_eq!(step.show(&c.dictionary), "func(self: borrow<program>, data: borrow<batch>) -> result<_, error>");
        let inc = &c.imports["slackline:plugin/tables@0.1.0"].functions["[method]table.inc-sparse-f32"];
        assert_eq!(
            inc.show(&c.dictionary),
            "func(self: borrow<table>, rows: list<u64>, deltas: sparse-f32) -> result<_, error>"
        );
        assert!(c.imports["slackline:plugin/types@0.1.0"].functions.is_empty());
        assert_eq!(c.exports.len(), 2);
    }

    #[test]
    fn versions_of_one_track_go_together() {
        assert!(same_track("a:b/c@0.1.0", "a:b/c@0.1.7"));
        assert!(!same_track("a:b/c@0.1.0", "a:b/c@0.2.0"));
        assert!(same_track("a:b/c@1.2.0", "a:b/c@1.9.3"));
        assert!(!same_track("a:b/c@1.0.0", "a:b/d@1.0.0"));
        assert!(!same_track("a:b/c", "a:b/c@0.1.0"));
    }
}
