//! A whole perf.data file or stream of arbitrary bytes: read, converted, and what comes out must be a profile by every
//! rule of the format.

use std::io::Cursor;

use nyquist_convert::perf_data::{ImportOptions, import};
use crate::sample_profile::check_rewritten;
use nyquist_perf::file::FileReader;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let (kind, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let reader = if kind % 2 == 0 {
        FileReader::open_stream(Cursor::new([b"PERFILE2\x10\0\0\0\0\0\0\0", bytes].concat()))
    } else {
        let path = std::env::temp_dir().join(format!("nyquist-fuzz-perf-data-{}", std::process::id()));
        let Ok(()) = std::fs::write(&path, bytes) else { return };
        FileReader::open(&path)
    };
    if let Ok(reader) = reader
        && let Ok(imported) = import(reader, ImportOptions::default())
    {
        check_rewritten(&imported.finished.profile);
    }
}
