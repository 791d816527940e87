//! Writes a profile: the top level of the document.

use std::io::{self, Write};

use super::FormatVersion;
use super::gzip;
use super::json::JsonWriter;
use super::native_allocations::with_its_process;
use super::row_names::row_names;
use super::subset::Subset;
use super::write_meta::write_meta;
use super::write_tables::{write_code_tables, write_sources, write_string_array};
use super::write_thread::{write_counter, write_thread};
use crate::code::Lib;
use crate::counter::Counter;
use crate::profile::Profile;

/// Options for writing a profile.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// The version of the format.
    pub version: FormatVersion,
    /// Whether to compress the document with gzip.
    pub gzip: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { version: FormatVersion::default(), gzip: true }
    }
}

/// Writes `profile` to `output`, which need not be buffered. Only rows that a thread's samples and markers
/// refer to are written, and only processes with a thread. All libs are written.
///
/// # Errors
/// The first error of `output`.
pub fn write(profile: &Profile, options: WriteOptions, output: impl Write) -> io::Result<()> {
    write_with(profile, options, profile.counters(), output)
}

/// The same without the counters, which the front end shows above the threads.
///
/// # Errors
/// The first error of `output`.
pub fn write_without_counters(
    profile: &Profile,
    options: WriteOptions,
    output: impl Write,
) -> io::Result<()> {
    write_with(profile, options, &[], output)
}

fn write_with(
    profile: &Profile,
    WriteOptions { version, gzip }: WriteOptions,
    counters: &[Counter],
    output: impl Write,
) -> io::Result<()> {
    if gzip {
        let document = |text: &mut dyn Write| write_document(profile, version, counters, text).map(drop);
        gzip::compress(output, document)?.flush()
    } else {
        write_document(profile, version, counters, output)?.flush()
    }
}

fn write_document<W: Write>(
    profile: &Profile,
    version: FormatVersion,
    counters: &[Counter],
    output: W,
) -> io::Result<W> {
    let mut json = JsonWriter::new(output);
    let mut subset = Subset::new(profile, version);
    json.object(|json| {
        json.key("meta");
        write_meta(json, profile, version);
        json.column("libs", profile.libs(), write_lib);
        // A counter is a track of its process, and a process exists only through its threads.
        let counters = counters.iter().filter_map(|counter| Some((counter, main_thread(profile, counter)?)));
        json.column("counters", counters, |json, (counter, main)| {
            write_counter(json, profile, counter, main, version);
        });
        if version == FormatVersion::V66 {
            subset.select(profile.threads());
            json.key("shared");
            write_shared(json, profile, &subset);
        }
        let named = profile.threads().iter().zip(row_names(profile));
        json.column("threads", named, |json, (thread, name)| {
            if version == FormatVersion::V49 {
                subset.select(with_its_process(profile, thread));
            }
            write_thread(json, profile, &subset, (thread, &name), version);
        });
    });
    json.finish()
}

/// The index of the main thread of a counter's process.
fn main_thread(profile: &Profile, counter: &Counter) -> Option<usize> {
    profile.threads().iter().position(|thread| thread.process == counter.process && thread.is_main)
}

fn write_shared<W: Write>(json: &mut JsonWriter<W>, profile: &Profile, subset: &Subset<'_>) {
    json.object(|json| {
        write_code_tables(json, profile, subset, FormatVersion::V66);
        write_sources(json, profile, subset);
        write_string_array(json, profile, subset);
    });
}

fn write_lib<W: Write>(json: &mut JsonWriter<W>, lib: &Lib) {
    json.object(|json| {
        json.key("arch").string(lib.arch.as_deref().unwrap_or_default());
        json.key("name").string(&lib.name);
        json.key("path").string(&lib.path);
        json.key("debugName").string(&lib.debug_name);
        json.key("debugPath").string(&lib.debug_path);
        json.key("breakpadId").string(&lib.breakpad_id);
        match &lib.code_id {
            Some(code_id) => json.key("codeId").string(code_id),
            None => json.key("codeId").null(),
        }
    });
}
