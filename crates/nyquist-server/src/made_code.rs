//! Code that was made while a program ran. No module's file holds it, and only the server's owner knows where
//! it may be.

use nyquist_object::RelativeAddress;
use nyquist_profile::Lib;
use nyquist_symbols::Disassembly;

/// Finds the code of libs that are no files.
pub trait MadeCode: Send + Sync {
    /// Opens what is left of a lib's code. `None` where the lib is a file as others are.
    fn open(&self, lib: &Lib) -> Option<Result<Box<dyn MadeLib>, String>>;

    /// Whether a lib's code was made while the program ran.
    fn is_made(&self, lib: &Lib) -> bool;
}

/// The code of a lib that is no file.
pub trait MadeLib: Send + Sync {
    /// How the compiler spelled a source file, where it named it; `file` may be its special path. The source of
    /// that statement must be on this machine and trusted, because the file is then shown.
    fn named_source(&self, file: &str) -> Option<String>;

    /// The instructions of a range.
    ///
    /// # Errors
    /// Why there are none, as a sentence.
    fn disassemble(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<Disassembly, String>;
}

/// Knows of no such code.
pub(crate) struct NoMadeCode;

impl MadeCode for NoMadeCode {
    fn open(&self, _: &Lib) -> Option<Result<Box<dyn MadeLib>, String>> {
        None
    }

    fn is_made(&self, _: &Lib) -> bool {
        false
    }
}
