//! A whole trace of Windows of arbitrary bytes: read, converted, and what comes out must be a profile by every rule of
//! the format.

use std::io::Cursor;

use crate::sample_profile::check_rewritten;
use nyquist_convert::etw::{EtwOptions, import};
use nyquist_etw::file::FileReader;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    if let Ok(reader) = FileReader::open(Cursor::new(bytes))
        && let Ok(imported) = import(reader, EtwOptions::default())
    {
        check_rewritten(&imported.finished.profile);
    }
}
