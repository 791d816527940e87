//! `nyquist export --format perf.data`: a recording in perf's format, and a folder with the names that no
//! binary here has.

use crate::args::SymbolArgs;
use crate::finder::finder;
use crate::output::{Output, OutputError};
use crate::printer::Printer;
use crate::watch::Watch;
use nyquist_convert::perf_data::{WriteOptions, write_profile};
use nyquist_profile::Profile;
use std::io::{BufWriter, Write as _};

/// Writes the recording and its folder with names.
pub(crate) fn run(
    profile: &Profile,
    output: Output,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<(), OutputError> {
    let Output::File(pending) = output else { return Err(OutputError::Stream) };
    let finder = finder(symbols, Watch::new(printer, None));
    // `perf.data.symbols` beside `perf.data`.
    let mut name = pending.path().file_name().unwrap_or_default().to_owned();
    name.push(".symbols");
    let folder = pending.path().with_file_name(&name);
    let options = WriteOptions { finder: &finder, stand_ins: &folder };
    let writer = BufWriter::with_capacity(1 << 16, pending.file()?);
    let (mut writer, stand_ins) = write_profile(profile, options, writer)?;
    writer.flush()?;
    if !stand_ins.is_empty() {
        pending.write_sibling_files(&name, stand_ins.iter().map(|file| (&*file.file_name, &*file.bytes)))?;
    }
    let shown = pending.path().to_owned();
    pending.appear()?;
    printer.say(format_args!("Wrote {}", shown.display()));
    if !stand_ins.is_empty() {
        printer.say(format_args!(
            "Wrote {}: the names of functions whose binary is not on this machine; perf reads them from there",
            folder.display()
        ));
    }
    Ok(())
}
