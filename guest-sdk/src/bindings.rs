//! The contract's bindings, generated from `wit/v0.1`. Only [`sys`](crate::sys) and [`component`](crate::component) look in here.
#![allow(missing_docs, clippy::all)]

wit_bindgen::generate!({
    world: "data-parallel",
    path: "../wit/v0.1",
    ownership: Borrowing { duplicate_if_necessary: true },
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "slackline_guest::bindings",
    runtime_path: "::slackline_guest::wit_bindgen::rt",
});
