//! .NET's `.nettrace` files (EventPipe), as `dotnet-trace collect` and `dotnet-monitor` make them.
//!
//! They are described in `NetTraceFormat_v5.md` of <https://github.com/microsoft/perfview>, and the payloads of the
//! runtime's events in <https://learn.microsoft.com/dotnet/fundamentals/diagnostics/runtime-events>.

mod blocks;
mod events;
mod methods;
mod read;
#[cfg(test)]
pub(crate) mod tests;

pub use read::read_value;

/// The first bytes of such a file.
pub(crate) const MAGIC: &[u8] = b"Nettrace";
