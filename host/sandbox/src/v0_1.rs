//! Bindings for track 0.1 of the contract: the only module that sees what `bindgen!` makes of `wit/v0.1`.

wasmtime::component::bindgen!({
    path: "../../wit/v0.1",
    world: "data-parallel",
    imports: { default: trappable },
    trappable_error_type: { "slackline:plugin/types.error" => crate::host::Fault },
    with: {
        "slackline:plugin/buffers.buffer": crate::host::HeldBuffer,
        "slackline:plugin/tables.table": crate::host::OpenTable,
        "slackline:plugin/input.batch": crate::host::BatchView,
    },
});

use crate::host::{State, link_dense_reads};
use wasmtime::component::{HasSelf, Linker};

/// The package and version of the track.
pub(crate) const PACKAGE: &str = "slackline:plugin@0.1.0";

/// The world that this host runs.
pub(crate) const WORLD: &str = "data-parallel";

/// The text of the contract, by file.
pub(crate) const WIT: [(&str, &str); 2] = [
    ("plugin.wit", include_str!("../../../wit/v0.1/plugin.wit")),
    ("later.wit", include_str!("../../../wit/v0.1/later.wit")),
];

/// Grants the track's imports, and nothing else.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    DataParallel::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    link_dense_reads(&mut linker, "slackline:plugin/tables@0.1.0")?;
    Ok(linker)
}
