//! Reads a file of a trace of Windows, and converts it.

use super::events::{EtwCounts, EtwEvents};
use super::survey::Survey;
use crate::build::seen_addresses::AddressSender;
use crate::conversion_result::ConversionResult;
use crate::converter::Converter;
use crate::event::{Event, EventKind, Timestamp};
use crate::jit::aux_files::AuxFiles;
use crate::modules::provided_symbols::ProvidedSymbols;
use crate::modules::recorded_files::RecordedFiles;
use crate::options::Options;
use crate::selection::sample_selection::SampleSelection;
use crate::shape::Shape;
use nyquist_etw::PointerSize;
use nyquist_etw::file::{FileError, FileReader};
use nyquist_etw::kernel::TraceHeader;
use nyquist_profile::Meta;
use nyquist_symbols::Finder;
use rustc_hash::FxHashMap;
use std::io::{Read, Seek};

/// How to convert a trace.
#[derive(Debug, Default)]
pub struct EtwOptions {
    /// Finds images and their debug information.
    pub finder: Finder,
    /// Which samples are requested.
    pub selection: SampleSelection,
    /// The title of the profile.
    pub name: String,
    /// Which threads the profile has.
    pub shape: Shape,
    /// Receives each address when it first occurs.
    pub sender: Option<AddressSender>,
}

/// A converted trace.
#[derive(Debug)]
pub struct EtwImported {
    /// The profile, and the sources of its names.
    pub finished: ConversionResult,
    /// How many events could not be used, and why.
    pub counts: EtwCounts,
    /// Notes about incomplete parts of the trace, a sentence each.
    pub notes: Vec<String>,
}

/// Why a trace cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtwError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The trace has no samples of CPUs.
    #[error("the trace has no samples of CPUs")]
    NoSamples,
}

/// Reads a trace twice: the first time for what it states of the whole, the second time for its events. Where
/// threads wait is shown if it has context switches.
///
/// # Errors
/// The file cannot be read, or has no samples.
pub fn import<R: Read + Seek>(
    mut reader: FileReader<R>,
    mut options: EtwOptions,
) -> Result<EtwImported, EtwError> {
    let mut survey = Survey::default();
    while let Some(event) = reader.next_event()? {
        survey.note(&event);
    }
    let symbols = survey.finish();
    reader.rewind();
    options.shape.waits |= survey.has_switches;
    let mut out = Vec::new();
    let clock = reader.header().clock;
    let wants_switches = options.shape.waits || options.shape.switch_markers;
    let mut events = EtwEvents::surveyed(clock, survey, &mut out).with_switches(wants_switches);
    let start = events.first_sample().ok_or(EtwError::NoSamples)?;
    let began = Timestamp(clock.nanoseconds(reader.header_time()));
    let meta = meta(reader.header(), &options, (began, start), events.interval_ns());
    let mut converter = converter((options, symbols), meta, start);
    pass_on(&mut out, &mut converter);
    while let Some(event) = reader.next_event()? {
        events.push(&event, &mut out);
        if out.len() >= BATCH {
            pass_on(&mut out, &mut converter);
            converter.advance(events.complete_before());
        }
    }
    events.finish(&mut out);
    let lost = u64::from(reader.header().events_lost);
    if lost > 0 {
        let kind = EventKind::LostInAll { records: lost };
        out.push(Event { time: events.complete_before(), cpu: None, kind });
    }
    pass_on(&mut out, &mut converter);
    let counts = events.counts();
    Ok(EtwImported { finished: converter.finish(), counts, notes: notes(&reader, counts) })
}

/// How many events the converter gets at once.
const BATCH: usize = 4096;

fn pass_on(events: &mut Vec<Event>, converter: &mut Converter) {
    for event in events.drain(..) {
        converter.push(event);
    }
}

fn converter(
    (options, symbols): (EtwOptions, FxHashMap<String, ProvidedSymbols>),
    meta: Meta,
    start: Timestamp,
) -> Converter {
    let files = RecordedFiles {
        finder: options.finder,
        build_ids: FxHashMap::default(),
        symbols,
        // Files at the paths of images are compared with what the trace states of them.
        aux: AuxFiles { folders: Vec::new(), made_here: cfg!(windows), owner: None },
    };
    Converter::new(Options {
        shape: options.shape,
        selection: options.selection,
        recorded_files: Some(files),
        address_sender: options.sender,
        ..Options::new(start, meta)
    })
}

fn meta(
    header: &TraceHeader,
    options: &EtwOptions,
    (began, start): (Timestamp, Timestamp),
    interval: u64,
) -> Meta {
    let (major, minor) = header.system_version;
    let since_beginning = start.0.saturating_sub(began.0);
    let start_ns = unix_ns(header.start_time).saturating_add(since_beginning);
    Meta {
        product: options.name.clone(),
        interval,
        start_time: start_ns / 1000,
        has_cpu_deltas: true,
        oscpu: Some(format!("Windows NT {major}.{minor} (build {})", header.build)),
        platform: Some("Windows".to_owned()),
        abi: match header.pointer_size {
            PointerSize::Four => Some("x86-msvc".to_owned()),
            PointerSize::Eight => None,
        },
        logical_cpus: Some(header.cpus),
        imported_from: Some("Event Tracing for Windows".to_owned()),
        ..Meta::default()
    }
}

/// Nanoseconds since 1970, of units of 100 nanoseconds since 1601.
fn unix_ns(time: u64) -> u64 {
    const YEARS: u64 = 116_444_736_000_000_000;
    time.saturating_sub(YEARS).saturating_mul(100)
}

fn notes<R: Read + Seek>(reader: &FileReader<R>, counts: EtwCounts) -> Vec<String> {
    let mut notes = Vec::new();
    if reader.is_cut() {
        notes.push("the trace ends in the middle of a buffer: what comes before is read".to_owned());
    }
    let buffers = reader.header().buffers_lost;
    if buffers > 0 {
        let noun = if buffers == 1 { "buffer" } else { "buffers" };
        notes.push(format!("the session lost {buffers} {noun}, each with many events"));
    }
    if counts.damaged > 0 {
        notes.push(format!("{} damaged events were passed over", counts.damaged));
    }
    if counts.of_nobody > 0 {
        notes.push(format!(
            "{} samples of threads whose process is not known were passed over",
            counts.of_nobody
        ));
    }
    notes
}
