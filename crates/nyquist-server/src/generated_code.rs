//! Code generated at run time. No module's file contains it, and only the server's owner knows where
//! to find it.

use nyquist_object::RelativeAddress;
use nyquist_profile::Lib;
use nyquist_symbols::Disassembly;

/// Finds the code of libs that are not files.
pub trait GeneratedCode: Send + Sync {
    /// Opens the recorded code of a lib; `None` if the lib is an ordinary file.
    fn open(&self, lib: &Lib) -> Option<Result<Box<dyn GeneratedLib>, String>>;

    /// Whether a lib's code was generated at run time.
    fn is_generated(&self, lib: &Lib) -> bool;
}

/// The code of a lib that is not a file.
pub trait GeneratedLib: Send + Sync {
    /// The path that the compiler recorded for a source file, if it did; `file` may be its special path. This
    /// record must be on this machine and trusted, because the file is then shown.
    fn named_source(&self, file: &str) -> Option<String>;

    /// The instructions of a range.
    ///
    /// # Errors
    /// The reason why there are none, as a sentence.
    fn disassemble(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<Disassembly, String>;
}

/// Finds no such code.
pub(crate) struct NoGeneratedCode;

impl GeneratedCode for NoGeneratedCode {
    fn open(&self, _: &Lib) -> Option<Result<Box<dyn GeneratedLib>, String>> {
        None
    }

    fn is_generated(&self, _: &Lib) -> bool {
        false
    }
}
