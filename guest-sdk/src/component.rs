//! From the contract's exports to [`Plugin`]: what [`export!`](crate::export!) makes a component of.

use crate::batch::Batch;
use crate::bindings::exports::slackline::plugin::{about, update};
use crate::bindings::slackline::plugin::input;
use crate::bindings::slackline::plugin::types::Error as WireError;
use crate::error::{Error, Result};
use crate::plugin::{self, Plugin};
use crate::telemetry::{self, Level};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Once;

/// The component of a plugin.
pub struct Component<P>(PhantomData<P>);

/// The contract's `program`. Its methods take `&self`; the host calls one at a time and never from within another, so
/// the cell is never borrowed twice.
pub struct Instance<P>(RefCell<P>);

impl<P: Plugin> about::Guest for Component<P> {
    fn describe() -> String {
        report_panics();
        // A manifest is strings, numbers and JSON values with string keys, which always serialise.
        serde_json::to_string(&plugin::describe::<P>()).unwrap_or_default()
    }

    fn plan(params: String, facts: String) -> Result<String, WireError> {
        report_panics();
        let plan = || -> Result<String> {
            let facts = serde_json::from_str(&facts).map_err(|e| Error::Invalid(format!("facts: {e}")))?;
            Ok(serde_json::to_string(&plugin::plan::<P>(&params, &facts)?)?)
        };
        Ok(plan()?)
    }
}

impl<P: Plugin> update::Guest for Component<P> {
    type Program = Instance<P>;

    fn restore(writer: String, state: Vec<u8>, params: String) -> Result<update::Program, WireError> {
        report_panics();
        Ok(wrap(P::restore(&writer, &state, plugin::params::<P>(&params)?)?))
    }
}

impl<P: Plugin> update::GuestProgram for Instance<P> {
    fn create(params: String) -> Result<update::Program, WireError> {
        report_panics();
        Ok(wrap(P::create(plugin::params::<P>(&params)?)?))
    }

    fn prepare(&self, data: &input::Batch) -> Result<(), WireError> {
        Ok(self.0.borrow_mut().prepare(Batch::from_raw(data))?)
    }

    fn step(&self, data: &input::Batch) -> Result<(), WireError> {
        Ok(self.0.borrow_mut().step(Batch::from_raw(data))?)
    }

    fn end_clock(&self, ended: u32) -> Result<(), WireError> {
        Ok(self.0.borrow_mut().end_clock(ended)?)
    }

    fn evaluate(&self, data: &input::Batch) -> Result<(), WireError> {
        Ok(self.0.borrow_mut().evaluate(Batch::from_raw(data))?)
    }

    fn predict(&self, data: &input::Batch) -> Result<(), WireError> {
        Ok(self.0.borrow_mut().predict(Batch::from_raw(data))?)
    }

    fn save(&self) -> Result<Vec<u8>, WireError> {
        Ok(self.0.borrow().save()?)
    }
}

fn wrap<P: Plugin>(program: P) -> update::Program {
    update::Program::new(Instance(RefCell::new(program)))
}

/// Sends a panic's message, file and line to the host as the last log line before the trap. The prefix `panic: ` is how
/// the host knows the line that explains a trap.
fn report_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let message = info.payload_as_str().unwrap_or("(no message)");
            let line = match info.location() {
                Some(at) => format!("panic: {message}, at {}:{}:{}", at.file(), at.line(), at.column()),
                None => format!("panic: {message}"),
            };
            telemetry::log(Level::Error, &line);
        }));
    });
}
