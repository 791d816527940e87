//! Reads an open file under the limit of memory, as the options say.

use super::options::{CommandFinders, check_options, read_options};
use super::progress::ReadReporter;
use crate::args::{RecordingArgs, SymbolArgs};
use crate::failure::Failure;
use crate::memory;
use crate::printer::Printer;
use crate::system::process_memory;
use nyquist_input::{InputFile, look_up_missing_names};
use nyquist_profile::Profile;
use std::path::Path;

/// Reads open files.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) recording: &'a RecordingArgs,
    pub(super) symbols: &'a SymbolArgs,
    pub(super) printer: Printer,
}

impl Reader<'_> {
    /// Reads a profile of any known format, or the part of a recording that the options select, and looks up its
    /// missing names.
    pub(super) fn read_named(self, opened: InputFile) -> Result<Profile, Failure> {
        let path = opened.path().to_owned();
        let profile = self.read(opened)?;
        Ok(self.named(&path, profile))
    }

    /// The same without looking up the missing names of a saved profile.
    pub(super) fn read(self, opened: InputFile) -> Result<Profile, Failure> {
        let _limit = memory::set_limit(opened.path(), self.symbols.max_memory);
        let reporter = ReadReporter::new(self.printer);
        let unpacked = opened.unpack(&reporter)?;
        check_options(&unpacked, self.recording)?;
        // What reading takes is to be free before the answer is made.
        process_memory::map_large_blocks();
        let finders = CommandFinders { symbols: self.symbols, printer: self.printer };
        Ok(unpacked.read(read_options(self.recording, &finders, &reporter))?)
    }

    fn named(self, path: &Path, profile: Profile) -> Profile {
        let _limit = memory::set_limit(path, self.symbols.max_memory);
        let reporter = ReadReporter::new(self.printer);
        let finders = CommandFinders { symbols: self.symbols, printer: self.printer };
        look_up_missing_names(path, profile, &read_options(self.recording, &finders, &reporter))
    }
}
