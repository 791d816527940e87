//! Reads a profile of any known format.

use crate::error::InputError;
use crate::input_file::UnpackedInput;
use crate::options::ReadOptions;
use crate::{event_trace, perf_data, saved_profile};
use nyquist_formats::Format;
use nyquist_profile::Profile;

impl UnpackedInput {
    /// Reads a profile, or the part of a recording that the options select. The names of a recording are looked up,
    /// and those of a saved profile are left as they are ([`look_up_missing_names`](crate::look_up_missing_names)).
    ///
    /// # Errors
    /// If the file cannot be read, is of no known format or damaged at its beginning, or does not have the selected
    /// events.
    pub fn read(self, options: ReadOptions<'_>) -> Result<Profile, InputError> {
        match self.format {
            Some(Format::PerfData) => {
                let Self { path, source, kernel, packed, .. } = self;
                let again = source.again();
                let recording =
                    source.recording().map_err(|source| InputError::Recording { path: path.clone(), source });
                perf_data::read((recording?, again), (&path, packed), kernel, &options)
            }
            Some(Format::Etl) => {
                let Self { path, source, .. } = self;
                let file =
                    source.seekable().map_err(|source| InputError::Read { path: path.clone(), source });
                event_trace::read(file?, &path, options)
            }
            _ => saved_profile::read(self, &options),
        }
    }
}
