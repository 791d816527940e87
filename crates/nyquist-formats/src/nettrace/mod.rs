//! .NET's `.nettrace` files (EventPipe), as `dotnet-trace collect` and `dotnet-monitor` make them.
//!
//! They are described in `NetTraceFormat_v5.md` of <https://github.com/microsoft/perfview>, and the payloads of the
//! runtime's events in <https://learn.microsoft.com/dotnet/fundamentals/diagnostics/runtime-events>.

mod blocks;
mod events;
mod methods;
mod read;
#[cfg(test)]
mod tests;

pub use read::read_value;

/// The first bytes of such a file.
const MAGIC: &[u8] = b"Nettrace";

/// Whether a file begins like a trace: behind the magic is the length of a text or, from version 6 on, 0.
pub(crate) fn is_trace(start: &[u8]) -> bool {
    let rest = start.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk());
    rest.is_some_and(|rest| matches!(u32::from_le_bytes(*rest), 0 | 20))
}
