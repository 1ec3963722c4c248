//! The `kernels` interface over buffers: as in the sandbox, an output may not share its array with an input.

use crate::backend::buffer;
use crate::convert::error;
use slackline_core::{Buffer, HostError, ValuesMut, ValuesRef};
use slackline_guest::native::Handle;
use slackline_guest::{Error, Result};

/// Locks the output, then calls `run` with the inputs' values and the output's.
pub fn with_output<const N: usize>(
    inputs: [&Handle; N],
    output: &Handle,
    run: impl FnOnce([ValuesRef<'_>; N], ValuesMut<'_>) -> Result<(), HostError>,
) -> Result<()> {
    let output = buffer(output)?;
    let mut buffers: Vec<&Buffer> = Vec::with_capacity(N);
    for input in inputs {
        let input = buffer(input)?;
        if input.shares_storage(output) {
            return Err(Error::Invalid("the output shares its array with an input".into()));
        }
        buffers.push(input);
    }
    // Inputs that share an array with one another would lock it twice: the later ones are copied.
    let copies: Vec<Option<Buffer>> = (0..N)
        .map(|i| {
            buffers[..i].iter().any(|b| b.shares_storage(buffers[i])).then(|| Buffer::live(buffers[i].to_values()))
        })
        .collect();
    let guards: Vec<_> = buffers.iter().zip(&copies).map(|(b, copy)| copy.as_ref().unwrap_or(b).lock()).collect();
    let mut out = output.lock();
    let Some(out) = out.values_mut() else {
        return Err(Error::Denied("columns of a batch cannot be written".into()));
    };
    run(std::array::from_fn(|i| guards[i].values()), out).map_err(error)
}
