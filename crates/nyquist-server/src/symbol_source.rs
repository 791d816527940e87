//! The interface for responses that need binaries and debug info. The server itself handles neither.

use std::fmt;

use nyquist_object::RelativeAddress;
use nyquist_symbols::SourceError;

/// Provides symbols for the libs of a profile. It is called from several threads concurrently, and never
/// from the thread that serves the network, so a call may take long. If a call panics, only its request
/// fails with a 500.
pub trait SymbolSource: Send + Sync {
    /// Resolves addresses of a lib: one entry per address, in the order of `addresses`, which is ascending
    /// and without duplicates. `None` if the lib is unknown.
    fn symbolicate(&self, lib: &LibKey, addresses: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>>;

    /// The text of a source file. The file's name comes from the network: an implementation must serve only
    /// files that the lib's own debug info names.
    fn source(&self, request: &SourceRequest) -> Result<String, LookupError>;

    /// The instructions of a range of a lib's code.
    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError>;

    /// The names of the function that begins at an address of a lib, besides `name`: the linker has folded
    /// functions with the same code into one. An implementation downloads nothing for it. By default there
    /// are none.
    fn folded_names(&self, _lib: &LibKey, _start: RelativeAddress, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

/// The key of a lib in viewers' requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LibKey {
    /// The name of the file with the debug info, without its folder.
    pub debug_name: String,
    /// The debug id in its Breakpad form.
    pub breakpad_id: String,
}

impl fmt::Display for LibKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.debug_name, self.breakpad_id)
    }
}

/// What is known of an address within a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressInfo {
    /// The name of the outermost function, which is the one that has a symbol.
    pub function: String,
    /// The offset of the address in the function, in bytes.
    pub function_offset: u32,
    /// The function's size in bytes, if known.
    pub function_size: Option<u32>,
    /// The file of the position in the outermost function.
    pub file: Option<String>,
    /// The line of that position, from 1.
    pub line: Option<u32>,
    /// The functions inlined at the address, the innermost first. Empty if nothing is inlined.
    pub inlines: Vec<InlineFrame>,
}

/// A function inlined at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineFrame {
    /// Its name.
    pub function: Option<String>,
    /// The file of the position within it.
    pub file: Option<String>,
    /// The line of that position, from 1.
    pub line: Option<u32>,
}

/// A request for a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRequest {
    /// The lib whose debug info names the file.
    pub lib: LibKey,
    /// An address whose symbols name the file.
    pub address: RelativeAddress,
    /// The file, spelled as in symbolication or in the debug info.
    pub file: String,
}

/// A request for instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyRequest {
    /// The lib.
    pub lib: LibKey,
    /// The start address.
    pub start: RelativeAddress,
    /// The number of bytes to decode.
    pub size: u32,
    /// Whether to continue beyond `size` to the end of the function at `start`, for a viewer that does not
    /// know the end.
    pub continue_until_function_end: bool,
}

/// Decoded instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The start address.
    pub start: RelativeAddress,
    /// The number of bytes that they span.
    pub size: u32,
    /// The architecture in the Rust toolchain's spelling: `x86_64`, `aarch64`.
    pub arch: String,
    /// The dialect of the text, such as `Intel`.
    pub syntax: String,
    /// The instructions in the order of their addresses.
    pub instructions: Vec<AssemblyInstruction>,
}

/// An instruction as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyInstruction {
    /// Its distance from the start of the [`Assembly`], in bytes.
    pub offset: u32,
    /// Its text.
    pub text: String,
}

/// The reason why there is no source or assembly. The text is sent to the viewer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The profile has no such lib.
    #[error("the profile has no lib {0}")]
    UnknownLib(LibKey),
    /// The lib's file is not on this machine, or not in the recorded version.
    #[error("the file of lib {lib} is not available on this machine: {reason}")]
    NoBinary {
        /// The lib.
        lib: LibKey,
        /// The reason.
        reason: String,
    },
    /// The kernel's image is not here, and its memory cannot be read.
    #[error("no code of this kernel is here: {reason}")]
    NoKernelCode {
        /// The reason why its memory cannot be read.
        reason: String,
    },
    /// The debug info does not name the file, so it is not served.
    #[error("the debug info of {lib} names no source file {file}")]
    SourceNotNamed {
        /// The lib.
        lib: LibKey,
        /// The requested file.
        file: String,
    },
    /// The source file cannot be read, or must not be shown.
    #[error("no source of {file}: {source}")]
    NoSource {
        /// The file.
        file: String,
        /// The reason.
        source: SourceError,
    },
    /// The instructions are not available.
    #[error("no instructions of {lib} at {start}: {reason}")]
    NoInstructions {
        /// The lib.
        lib: LibKey,
        /// The requested start address.
        start: RelativeAddress,
        /// The reason.
        reason: String,
    },
}
