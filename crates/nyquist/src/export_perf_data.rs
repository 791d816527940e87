//! `nyquist export --format perf.data`: a recording as perf reads it, and beside it the names that no binary here has.

use crate::args::SymbolArgs;
use crate::finder::finder;
use crate::output::Output;
use crate::printer::Printer;
use crate::watch::Watch;
use nyquist_convert::perf_data::{StandIn, WriteOptions, write_profile};
use nyquist_profile::Profile;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Writes the recording and the folder with names that belongs to it.
pub(crate) fn run(
    profile: &Profile,
    output: Output,
    symbols: &SymbolArgs,
    printer: Printer,
) -> io::Result<()> {
    let target = std::path::absolute(output.name())?;
    let folder = stand_in_folder(&target);
    let finder = finder(symbols, Watch::new(printer, None));
    let options = WriteOptions { finder: &finder, stand_ins: &folder };
    let mut stand_ins = Vec::new();
    output.save_seekable(|file| {
        stand_ins = write_profile(profile, options, file)?.1;
        write_stand_ins(&folder, &stand_ins)
    })?;
    printer.say(format_args!("Wrote {}", target.display()));
    if !stand_ins.is_empty() {
        printer.say(format_args!(
            "Wrote {}: the names of functions for which there is no binary here; perf reads them from there",
            folder.display()
        ));
    }
    Ok(())
}

/// `perf.data.symbols` beside `perf.data`.
fn stand_in_folder(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".symbols");
    PathBuf::from(name)
}

fn write_stand_ins(folder: &Path, stand_ins: &[StandIn]) -> io::Result<()> {
    if stand_ins.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    stand_ins.iter().try_for_each(|file| fs::write(folder.join(&file.file_name), &file.bytes))
}
