//! Between the SDK's types and the host's: the same shapes, on either side of the contract.

use slackline_core::{HostError, Manifest, PluginError, PluginErrorKind};
use slackline_guest::{DType, Error, Limit};

pub fn to_json<T: serde::Serialize>(value: &T) -> Result<serde_json::Value, PluginError> {
    serde_json::to_value(value).map_err(|e| PluginError::new(PluginErrorKind::Refused, e.to_string()))
}

/// The manifest as the host would read it out of a component.
pub fn manifest(described: &slackline_guest::Manifest) -> Result<Manifest, PluginError> {
    let refused = |e: serde_json::Error| PluginError::new(PluginErrorKind::Refused, format!("manifest: {e}"));
    serde_json::from_value(to_json(described)?).map_err(refused)
}

pub fn dtype(dtype: slackline_core::DType) -> DType {
    use slackline_core::DType as Core;
    match dtype {
        Core::F32 => DType::F32,
        Core::F64 => DType::F64,
        Core::I32 => DType::I32,
        Core::I64 => DType::I64,
        Core::U32 => DType::U32,
        Core::U64 => DType::U64,
        Core::U8 => DType::U8,
    }
}

pub fn core_dtype(dtype: DType) -> slackline_core::DType {
    use slackline_core::DType as Core;
    match dtype {
        DType::F32 => Core::F32,
        DType::F64 => Core::F64,
        DType::I32 => Core::I32,
        DType::I64 => Core::I64,
        DType::U32 => Core::U32,
        DType::U64 => Core::U64,
        DType::U8 => Core::U8,
    }
}

pub fn error(e: HostError) -> Error {
    match e {
        HostError::Denied(m) => Error::Denied(m),
        HostError::Limit(l) => Error::Limit(limit(l)),
        HostError::NotFound(m) => Error::NotFound(m),
        HostError::Invalid(m) => Error::Invalid(m),
        HostError::Cancelled => Error::Cancelled,
        HostError::Unavailable(m) => Error::Unavailable(m),
        HostError::Other(m) => Error::Other(m),
    }
}

fn limit(limit: slackline_core::Limit) -> Limit {
    use slackline_core::Limit as Core;
    match limit {
        Core::Memory => Limit::Memory,
        Core::Handles => Limit::Handles,
        Core::Cpu => Limit::Cpu,
        Core::Bandwidth => Limit::Bandwidth,
        Core::Rows => Limit::Rows,
        Core::Log => Limit::Log,
    }
}

macro_rules! slices {
    ($($variant:ident)*) => {
        pub fn values(values: slackline_guest::ValuesRef<'_>) -> slackline_core::ValuesRef<'_> {
            match values { $(slackline_guest::ValuesRef::$variant(v) => slackline_core::ValuesRef::$variant(v),)* }
        }

        pub fn values_mut(values: slackline_guest::ValuesMut<'_>) -> slackline_core::ValuesMut<'_> {
            match values { $(slackline_guest::ValuesMut::$variant(v) => slackline_core::ValuesMut::$variant(v),)* }
        }

        /// Moves values into the guest's vector of the same type; `false` when the types differ.
        pub fn give(values: slackline_core::Values, to: slackline_guest::VecMut<'_>) -> bool {
            match (values, to) {
                $((slackline_core::Values::$variant(v), slackline_guest::VecMut::$variant(to)) => *to = v,)*
                _ => return false,
            }
            true
        }
    };
}

slices! { F32 F64 I32 I64 U32 U64 U8 }
