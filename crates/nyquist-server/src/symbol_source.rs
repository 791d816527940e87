//! What the server asks for the answers that need binaries and debug info. The server knows nothing of either.

use std::fmt;

use nyquist_object::RelativeAddress;
use nyquist_symbols::SourceError;

/// Answers for the libs of a profile. Called from several threads at the same time, and never from the one that
/// serves the network, so a call may take long. A call that panics costs its request a 500 and nothing else.
pub trait SymbolSource: Send + Sync {
    /// Names addresses of a lib: one entry an address, in the order of `addresses`, which is ascending and
    /// without duplicates. `None` where nothing is known of the lib.
    fn symbolicate(&self, lib: &LibKey, addresses: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>>;

    /// The text of a source file. The file's name comes from the network: an implementation must serve only
    /// what the lib's own debug info names.
    fn source(&self, request: &SourceRequest) -> Result<String, LookupError>;

    /// The instructions of a range of a lib's code.
    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError>;
}

/// What a viewer calls a lib by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LibKey {
    /// The name of the file that holds the debug info, without its folder.
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
    /// How far the address is into the function, in bytes.
    pub function_offset: u32,
    /// The function's size in bytes, where it is known.
    pub function_size: Option<u32>,
    /// The file of the position in the outermost function.
    pub file: Option<String>,
    /// The line of that position, from 1.
    pub line: Option<u32>,
    /// The functions inlined at the address, the innermost first. Empty where nothing is inlined.
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

/// Which source file is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRequest {
    /// The lib whose debug info names the file.
    pub lib: LibKey,
    /// An address whose symbols name the file.
    pub address: RelativeAddress,
    /// The file, as symbolication spelled it or as the debug info does.
    pub file: String,
}

/// Which instructions are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyRequest {
    /// The lib.
    pub lib: LibKey,
    /// Where to start.
    pub start: RelativeAddress,
    /// How many bytes to decode.
    pub size: u32,
    /// Whether to go on past `size` to the end of the function at `start`, for a viewer that does not know it.
    pub continue_until_function_end: bool,
}

/// Decoded instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Where they start.
    pub start: RelativeAddress,
    /// How many bytes they span.
    pub size: u32,
    /// The architecture, as the Rust toolchain spells it: `x86_64`, `aarch64`.
    pub arch: String,
    /// The dialect of the text, such as `Intel`.
    pub syntax: String,
    /// The instructions in the order of their addresses.
    pub instructions: Vec<Instruction>,
}

/// An instruction as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its distance from the start of the [`Assembly`], in bytes.
    pub offset: u32,
    /// Its text.
    pub text: String,
}

/// Why there is no source or assembly. The text goes to the viewer.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The profile has no such lib.
    #[error("the profile has no lib {0}")]
    UnknownLib(LibKey),
    /// The lib's file is not on this machine, or not in the version that was recorded.
    #[error("the file of lib {lib} cannot be had here: {reason}")]
    NoBinary {
        /// The lib.
        lib: LibKey,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither the kernel's image is here nor its memory can be read.
    #[error("no code of this kernel is here: {reason}")]
    NoKernelCode {
        /// What is wrong with its memory.
        reason: String,
    },
    /// The debug info does not name the file, so it is not served.
    #[error("the debug info of {lib} names no source file {file}")]
    SourceNotNamed {
        /// The lib.
        lib: LibKey,
        /// The file that was asked for.
        file: String,
    },
    /// The source file cannot be read, or not be shown.
    #[error("no source of {file}: {source}")]
    NoSource {
        /// The file.
        file: String,
        /// What is wrong with it.
        source: SourceError,
    },
    /// The instructions cannot be had.
    #[error("no instructions of {lib} at {start}: {reason}")]
    NoInstructions {
        /// The lib.
        lib: LibKey,
        /// Where they were to start.
        start: RelativeAddress,
        /// What is wrong.
        reason: String,
    },
}
