//! The methods of .NET's runtime: the verbose events of `Microsoft-Windows-DotNETRuntime` and of its rundown, which
//! <https://learn.microsoft.com/dotnet/framework/performance/method-etw-events> describes.

use crate::{Event, Guid, PayloadError, fields::EventFields};

/// `Microsoft-Windows-DotNETRuntime`.
pub const RUNTIME: Guid = Guid(0xe13c_0d23_ccbc_4e12_931b_d9cc_2eee_27e4);
/// `Microsoft-Windows-DotNETRuntimeRundown`: what there is when a trace begins or ends.
pub const RUNDOWN: Guid = Guid(0xa669_021c_c450_4609_a035_5af5_9af4_df18);

/// The opcodes of `MethodLoadVerbose`, `MethodDCStartVerbose` and `MethodDCEndVerbose`. No other event of the two
/// providers has them.
const LOAD_VERBOSE: u8 = 37;
const START_VERBOSE: u8 = 39;
const END_VERBOSE: u8 = 40;

/// The code of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The process that it is in.
    pub pid: u32,
    /// The first address.
    pub start: u64,
    /// The number of bytes.
    pub size: u32,
    /// The name with its class and the types of its parameters: `System.String.Concat(class System.String)`.
    pub name: String,
}

/// Reads an event, if it is one of a method's code in a known process.
///
/// # Errors
/// The payload ends before its fields do.
pub fn method(event: &Event<'_>) -> Result<Option<Method>, PayloadError> {
    let is_method = matches!(event.provider, RUNTIME | RUNDOWN)
        && matches!(event.opcode, LOAD_VERBOSE | START_VERBOSE | END_VERBOSE);
    let Some(pid) = event.process.filter(|_| is_method) else { return Ok(None) };
    let mut fields = EventFields::of(event, "MethodLoadVerbose");
    let (_id, _module) = (fields.u64("method")?, fields.u64("module")?);
    let (start, size) = (fields.u64("start address")?, fields.u32("size")?);
    let (_token, _flags) = (fields.u32("token")?, fields.u32("flags")?);
    let (class, method, signature) = (fields.utf16(), fields.utf16(), fields.utf16());
    let parameters = signature.find('(').map_or("", |at| &signature[at..]);
    let dot = if class.is_empty() { "" } else { "." };
    Ok(Some(Method { pid, start, size, name: format!("{class}{dot}{method}{parameters}") }))
}
