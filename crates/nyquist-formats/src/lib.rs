//! Reads and writes the formats of other profilers, with a module for each format.
//!
//! Writers take a [`Profile`](nyquist_profile::Profile) and a `Write`. They write in small pieces, so files
//! need a buffer. Readers take a file's bytes, and return a profile with notes on the parts that were left
//! out. For any input, no reader panics, and memory is linear in the (decompressed) input.

#![forbid(unsafe_code)]

pub mod art_trace;
pub mod austin;
mod call_graph;
pub mod callgrind;
pub mod chrome;
pub mod csv;
pub mod csv_tree;
mod detect;
pub mod dhat;
mod encoding;
mod error;
pub mod firefox_timeline;
pub mod fit;
pub mod flame;
pub mod folded;
pub mod ghc_json;
pub mod ghc_report;
mod gzip;
pub mod heaptrack;
pub mod hidden;
mod import;
pub mod instruments;
pub mod jfr;
mod json;
mod json_tree;
mod labels;
mod layout;
mod le_cursor;
pub mod legacy;
pub mod mac_sample;
pub mod nettrace;
mod number_list;
pub mod otlp;
mod packing;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perf_script;
pub mod perfetto;
pub mod pmcstat;
pub mod pprof;
mod process_labels;
pub mod pstats;
pub mod pyinstrument;
pub mod safari;
pub mod samply_sidecar;
mod select;
pub mod simpleperf_report;
mod source_paths;
mod spans;
pub mod speedscope;
pub mod stack_counts;
pub mod stackprof;
mod strings;
pub mod sysprof;
#[cfg(test)]
mod test_profile;
mod text_lines;
pub mod v8;
mod values;
mod zip;
mod zstd;

use std::borrow::Cow;
use std::io::BufRead;

pub use detect::{Format, PREFIX_BYTES, detect, is_recoded, may_be_json};
pub use error::{ImportedProfile, Note, ReadError};
pub use packing::{Packing, UnpackedFile};
pub use process_labels::ProcessLabels;
pub use source_paths::{SourcePaths, as_named};

pub(crate) use source_paths::source_path;

/// Reads a file of a format that was [detected](detect), compressed with gzip, zstd or not.
///
/// # Errors
/// As for the format's own reader, and for formats that are not read here. Those of the Firefox Profiler, of
/// perf and of Windows (event traces) have their own crates.
pub fn read(format: Format, bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(format, bytes, None)
}

/// As [`read`], for the value with this name if samples have several ([`Format::has_values`]).
///
/// # Errors
/// As for [`read`], and if there is no value with this name.
pub fn read_value(format: Format, bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    read_requested(format, bytes, name, &[])
}

/// As [`read_value`], for the samples with these labels, `KEY=VALUE` or `KEY`, if samples have labels
/// ([`Format::has_labels`]). Otherwise the labels are ignored.
///
/// # Errors
/// As for [`read_value`], and if no sample has a label with such a key.
pub fn read_requested(
    format: Format,
    bytes: &[u8],
    name: Option<&str>,
    labels: &[String],
) -> Result<ImportedProfile, ReadError> {
    let (mut bytes, note) = decompressed(bytes)?;
    if !format.is_binary() {
        bytes = recoded(bytes);
    }
    let mut imported = match format {
        Format::PerfScript => perf_script::read_value(&*bytes, name),
        Format::Pprof => pprof::read_labelled(&bytes, name, labels),
        Format::Folded => folded::read(&*bytes),
        Format::Speedscope => speedscope::read(&bytes),
        Format::ChromeTrace => chrome::read(&bytes),
        Format::V8CpuProfile => v8::read(&*bytes),
        Format::V8OldCpuProfile => v8::read_old(&bytes),
        Format::Instruments => instruments::read(&bytes),
        Format::Callgrind => callgrind::read_value(&bytes, name),
        Format::V8HeapProfile => v8::read_heap(&bytes),
        Format::Austin => austin::read_value(&bytes, name),
        Format::AustinMojo => austin::read_mojo(&bytes, name),
        Format::Stackprof => stackprof::read(&bytes),
        Format::Pstats => pstats::read(&bytes),
        Format::Pyinstrument => pyinstrument::read(&bytes),
        Format::MacSample => mac_sample::read(&bytes),
        Format::Dtrace => stack_counts::read_dtrace(&bytes),
        Format::Bpftrace => stack_counts::read_bpftrace(&bytes, name),
        Format::Heaptrack => heaptrack::read_value(&bytes, name),
        Format::Dhat => dhat::read_value(&bytes, name),
        Format::GperftoolsCpu => legacy::read_cpu(&bytes),
        Format::PprofText => legacy::read_text(&bytes, name),
        Format::Perfetto => perfetto::read_value(&bytes, name),
        Format::Otlp => otlp::read_labelled(&bytes, name, labels),
        Format::OtlpJson => otlp::read_json(&bytes, name, labels),
        Format::Jfr => jfr::read_value(&bytes, name),
        Format::NetTrace => nettrace::read_value(&bytes, name),
        Format::SimpleperfReport => simpleperf_report::read_value(&bytes, name),
        Format::ArtTrace => art_trace::read_value(&bytes, name),
        Format::Pmcstat => pmcstat::read_value(&bytes, name),
        Format::Safari => safari::read(&bytes),
        Format::FirefoxPanel => firefox_timeline::read(&bytes),
        Format::Sysprof => sysprof::read(&bytes),
        Format::V8Log => v8::read_log(&bytes),
        Format::GhcJson => ghc_json::read_value(&bytes, name),
        Format::GhcReport => ghc_report::read_value(&bytes, name),
        Format::Vtune => csv_tree::read_vtune(&bytes),
        Format::VisualStudio => csv_tree::read_visual_studio(&bytes, name),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::read_labelled(&bytes, name, labels),
        other => Err(ReadError::Unsupported(other.unsupported_reason())),
    }?;
    imported.notes.extend(note);
    Ok(imported)
}

/// As [`read_value`], for a text in UTF-8 of a format that is [read in pieces](Format::is_read_in_pieces). It is never
/// in memory as a whole.
///
/// # Errors
/// As for [`read_value`], and if the text cannot be read.
pub fn read_in_pieces(
    format: Format,
    text: impl BufRead,
    name: Option<&str>,
) -> Result<ImportedProfile, ReadError> {
    match format {
        Format::PerfScript => perf_script::read_value(text, name),
        Format::Folded => folded::read(text),
        Format::V8CpuProfile => v8::read(text),
        other => Err(ReadError::Unsupported(other.unsupported_reason())),
    }
}

/// A text as UTF-8 without a byte order mark, even if it is compressed or in UTF-16. It is for readers of
/// other crates, if [`is_recoded`] returns true.
///
/// # Errors
/// If it cannot be decompressed.
pub fn plain_text(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
    Ok(recoded(decompressed(bytes)?.0))
}

fn decompressed(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, Option<Note>), ReadError> {
    if gzip::is_gzip(bytes) {
        gzip::decompress(bytes).map(|(bytes, note)| (Cow::Owned(bytes), note))
    } else if zstd::is_zstd(bytes) {
        zstd::decompress(bytes).map(|(bytes, note)| (Cow::Owned(bytes), note))
    } else {
        Ok((Cow::Borrowed(bytes), None))
    }
}

fn recoded(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => encoding::to_utf8(bytes),
        Cow::Owned(bytes) if encoding::is_recoded(&bytes) => {
            Cow::Owned(encoding::to_utf8(&bytes).into_owned())
        }
        Cow::Owned(bytes) => Cow::Owned(bytes),
    }
}

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
