//! The profile's description of a recording: its machine, its command, its zero, and notes about missing
//! data.

use std::path::Path;

use nyquist_object::BuildId;
use nyquist_object::elf::Architecture;
use nyquist_perf::AttrFlags;
use nyquist_perf::file::{Features, FileBuildId, FileEvent, FileReader, Place, SimplePerf};
use nyquist_profile::{ExtraInfo, Measure, Meta};
use rustc_hash::FxHashMap;

use super::choose::{ImportedEvent, Meaning};
use super::options::ImportOptions;
use crate::decode::perf::Period;
use crate::event::{Event, EventKind, Sample, SampleState, Timestamp};
use crate::jit::aux_files::AuxFiles;
use crate::modules::provided_symbols::ProvidedSymbols;
use crate::modules::recorded_files::RecordedFiles;
use crate::options::Options;
use crate::processes::memory::DEFAULT_PROCESS_MEMORY;
use crate::selection::process_filter::ProcessFilter;

/// The prefix of this program's version as a recorder.
const NYQUIST: &str = "nyquist ";

/// Whether this program made the recording. Then its counters are CPU time.
pub(crate) fn is_by_nyquist(features: &Features) -> bool {
    features.version.as_deref().is_some_and(|version| version.starts_with(NYQUIST))
}

/// Whether a recording is of some threads and not of whole CPUs: of a command, or of perf's `-p` or `-t`. It
/// is false for simpleperf, because with its `--trace-offcpu`, time off the CPU ends at a thread's next
/// sample.
pub(crate) fn is_of_threads(reader: &FileReader) -> bool {
    let is_of_command = |event: &FileEvent| event.attr.flags.contains(AttrFlags::ENABLE_ON_EXEC);
    let is_of_cpus = |word: &str| {
        word.starts_with("-a") || word == "--all-cpus" || word.starts_with("-C") || word.starts_with("--cpu")
    };
    let names_threads = |word: &str| {
        let long = ["--pid", "--tid"].iter().any(|option| word.starts_with(option));
        long || word.starts_with("-p") || word.starts_with("-t")
    };
    let argv = reader.features().command_line.iter();
    let mut deciding = argv.filter(|word| is_of_cpus(word) || names_threads(word));
    if reader.features().simpleperf.is_some() {
        return false;
    }
    reader.events().iter().any(is_of_command) || deciding.next().is_some_and(|word| names_threads(word))
}

/// The architecture that the user or the recording states, otherwise that of this machine.
pub(crate) fn architecture(features: &Features, options: &ImportOptions) -> Architecture {
    options.architecture.unwrap_or_else(|| provided_architecture(features))
}

fn provided_architecture(features: &Features) -> Architecture {
    /// `e_machine` of any other architecture: EM_NONE.
    const NONE: u32 = 0;
    match features.arch.as_deref().unwrap_or(std::env::consts::ARCH) {
        "x86_64" => Architecture::X86_64,
        "aarch64" | "arm64" => Architecture::Aarch64,
        "i386" | "i486" | "i586" | "i686" | "x86" => Architecture::X86,
        _ => Architecture::Other(NONE),
    }
}

/// How to convert a recording whose first events are these.
pub(crate) fn converter_options(
    reader: &FileReader,
    options: &ImportOptions,
    events: &[ImportedEvent],
    first: &[(Event, Option<Place>)],
) -> Options {
    let features = reader.features();
    let start = Timestamp(zero(features, first));
    let mut used: Vec<&ImportedEvent> = events.iter().filter(|imported| imported.is_used()).collect();
    // Waits and marks are not units of the profile.
    used.sort_by_key(|imported| imported.meaning() != Some(Meaning::Samples));
    let kernel_permitted =
        !used.iter().all(|imported| imported.attr().flags.contains(AttrFlags::EXCLUDE_KERNEL));
    let meta = meta(features, options, &used, start);
    let files = RecordedFiles {
        finder: options.finder.clone(),
        build_ids: build_ids(features),
        symbols: provided_symbols(features),
        aux: aux_files(features, options),
    };
    let counts_cycles = used.first().is_some_and(|main| main.period() == Period::Cycles);
    let converted = Options {
        kernel_permitted,
        shape: options.shape,
        selection: options.selection.clone(),
        filter: ProcessFilter::from_words(&features.requested),
        side_files: options.side_files.clone(),
        process_memory: options.process_memory.unwrap_or(DEFAULT_PROCESS_MEMORY),
        recorded_files: Some(files),
        ..Options::new(start, meta)
    };
    if !counts_cycles {
        return converted;
    }
    let converted = converted.of_cycles();
    if is_by_nyquist(features) {
        // The live conversion did not know them ahead.
        return converted;
    }
    let cycles = first.iter().filter_map(|(event, _)| cycles_of(event));
    Options { cycle_time: converted.cycle_time.map(|time| time.knowing(cycles)), ..converted }
}

/// The cycles of a sample that a counter of cycles has triggered.
fn cycles_of(event: &Event) -> Option<u64> {
    let EventKind::Sample(Sample { state: SampleState::Counted { cycles }, .. }) = event.kind else {
        return None;
    };
    Some(cycles)
}

/// The functions that the recording states of files, by their paths.
pub(crate) fn provided_symbols(features: &Features) -> FxHashMap<String, ProvidedSymbols> {
    features.simpleperf.iter().flat_map(|simpleperf| ProvidedSymbols::of_simpleperf(simpleperf)).collect()
}

/// Where to look for files that programs wrote while they ran.
pub(crate) fn aux_files(features: &Features, options: &ImportOptions) -> AuxFiles {
    AuxFiles {
        folders: options.aux_folders.clone(),
        made_here: is_this_machine(features),
        owner: options.owner,
    }
}

/// The profile's zero: the time when the recorder began, if it is stated, otherwise the first sample's. Without
/// samples, it is the first event of a program. Records of what was there before have no time.
fn zero(features: &Features, first: &[(Event, Option<Place>)]) -> u64 {
    if let (true, Some(clock)) = (is_by_nyquist(features), features.clock) {
        return clock.clock_ns;
    }
    let samples =
        first.iter().map(|(event, _)| event).filter(|event| matches!(event.kind, EventKind::Sample(_)));
    let in_events = samples.map(|event| event.time.0).filter(|time| *time > 0).min();
    let provided = features.sample_time.map(|(first, _)| first).filter(|first| *first > 0);
    let of_any = || first.iter().map(|(event, _)| event.time.0).filter(|time| *time > 0).min();
    provided.into_iter().chain(in_events).min().or_else(of_any).unwrap_or_default()
}

fn meta(features: &Features, options: &ImportOptions, used: &[&ImportedEvent], start: Timestamp) -> Meta {
    let argv = &features.command_line;
    let main = used.first().filter(|imported| imported.meaning() == Some(Meaning::Samples));
    let line =
        |label: &str, value: String| ExtraInfo { section: "Recording".into(), label: label.into(), value };
    let mut names: Vec<_> = used.iter().map(|imported| imported.name()).collect();
    names.dedup();
    let mut extra = vec![line("Event", names.join(", "))];
    extra.extend(features.hostname.clone().map(|name| line("Machine", name)));
    let android = features.simpleperf.as_deref();
    extra.extend(features.os_release.as_ref().map(|release| ExtraInfo {
        section: "Machine".into(),
        label: "Kernel".into(),
        value: format!("Linux {release}"),
    }));
    Meta {
        product: options
            .name
            .clone()
            .unwrap_or_else(|| android.and_then(app_title).unwrap_or_else(|| title(argv))),
        interval: used.first().map_or(1_000_000, |imported| imported.interval()),
        measure: main.map_or_else(Measure::default, |imported| imported.measure()),
        start_time: start_time(features, options, start),
        has_cpu_deltas: used.first().is_some_and(|imported| imported.is_clock()) || is_by_nyquist(features),
        arguments: Some(argv.join(" ")).filter(|argv| !argv.is_empty()),
        oscpu: system(features),
        platform: Some(if android.is_some() { "Android" } else { "Linux" }.to_owned()),
        abi: features.arch.as_ref().map(|arch| format!("{arch}-gcc3")),
        cpu_name: features.cpu_name.clone(),
        logical_cpus: features.cpus.map(|(_, online)| online),
        main_memory: features.memory_kb.map(|kilobytes| kilobytes.saturating_mul(1024)),
        imported_from: Some(match &features.version {
            _ if android.is_some() => simpleperf_version(android),
            Some(version) if is_by_nyquist(features) => version.clone(),
            Some(version) => format!("perf {version}"),
            None => "perf".to_owned(),
        }),
        extra,
        ..Meta::default()
    }
}

/// The app and the device, if simpleperf states them.
fn app_title(simpleperf: &SimplePerf) -> Option<String> {
    let app = simpleperf.value("app_package_name")?;
    // Manufacturer, model and name, as in `Google:Pixel 6:oriole`.
    let device: Vec<_> =
        simpleperf.value("product_props").into_iter().flat_map(|text| text.split(':')).collect();
    Some(match device.get(..2) {
        Some([maker, model]) if !model.is_empty() => format!("{app} on {maker} {model}"),
        _ => app.to_owned(),
    })
}

fn system(features: &Features) -> Option<String> {
    let android = features.simpleperf.as_ref().and_then(|simpleperf| simpleperf.value("android_version"));
    let android = android.filter(|version| !version.is_empty()).map(|version| format!("Android {version}"));
    android.or_else(|| features.os_release.as_ref().map(|_| "Linux".to_owned()))
}

fn simpleperf_version(simpleperf: Option<&SimplePerf>) -> String {
    let version = simpleperf.and_then(|simpleperf| simpleperf.value("simpleperf_version"));
    format!("simpleperf {}", version.unwrap_or_default()).trim_end().to_owned()
}

/// The recorded program's name, as far as the recorder's command line has it.
fn title(argv: &[String]) -> String {
    let name = |word: &String| {
        let name = Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| word.clone())
    };
    recorded_command(argv).map_or_else(|| "perf.data".to_owned(), name)
}

/// The options whose value is the next word (perf-record(1); simpleperf's too). An option whose value may be left
/// out, such as `--intr-regs`, has it after `=`.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "-e",
    "-f",
    "--duration",
    "-F",
    "-c",
    "-o",
    "-p",
    "-t",
    "-C",
    "-m",
    "-G",
    "-u",
    "-D",
    "-k",
    "-j",
    "-r",
    "--event",
    "--freq",
    "--count",
    "--output",
    "--pid",
    "--tid",
    "--cpu",
    "--mmap-pages",
    "--cgroup",
    "--uid",
    "--delay",
    "--clockid",
    "--call-graph",
    "--branch-filter",
    "--filter",
    "--max-size",
    "--realtime",
    "--affinity",
    "--control",
    "--mmap-flush",
    "--num-thread-synthesize",
    "--proc-map-timeout",
    "--switch-max-files",
    "--switch-output-event",
    "--synth",
    "--vmlinux",
];

/// The first word of `perf record`'s command line that is neither an option nor an option's value.
fn recorded_command(argv: &[String]) -> Option<&String> {
    let mut argv = argv.iter().skip_while(|word| *word != "record").skip(1);
    while let Some(word) = argv.next() {
        if word == "--" {
            return argv.next();
        }
        if !word.starts_with('-') {
            return Some(word);
        }
        if OPTIONS_WITH_VALUE.contains(&word.as_str()) {
            argv.next();
        }
    }
    None
}

/// The wall-clock time at the profile's zero, in µs.
fn start_time(features: &Features, options: &ImportOptions, start: Timestamp) -> u64 {
    let provided = features
        .simpleperf
        .as_ref()
        .and_then(|simpleperf| simpleperf.value("timestamp")?.parse::<u64>().ok());
    let ns = match features.clock {
        None if provided.is_some() => provided.unwrap_or_default().saturating_mul(1_000_000_000),
        Some(clock) => clock.wall_ns.saturating_sub(clock.clock_ns).saturating_add(start.0),
        None => {
            let duration = features.sample_time.map_or(0, |(first, last)| last.saturating_sub(first));
            options.saved_ns.unwrap_or_default().saturating_sub(duration)
        }
    };
    ns / 1000
}

fn build_ids(features: &Features) -> FxHashMap<String, BuildId> {
    /// The host itself, and not a virtual machine (`HOST_KERNEL_ID`).
    const HOST: i32 = -1;
    let of_host = features.build_ids.iter().filter(|file| file.pid == HOST);
    let id = |file: &FileBuildId| {
        let is_filled_up = features.simpleperf.is_some();
        BuildId::new(if is_filled_up { without_filling(&file.build_id) } else { &file.build_id })
    };
    of_host.filter_map(|file| Some((file.path.clone(), id(file)?))).collect()
}

/// Simpleperf pads ids with zeros to 20 bytes. The ids of linkers have 8, 16 or 20 bytes.
fn without_filling(id: &[u8]) -> &[u8] {
    let lens = [8, 16]
        .into_iter()
        .filter(|len| id.get(*len..).is_some_and(|rest| rest.iter().all(|byte| *byte == 0)));
    lens.min().map_or(id, |len| &id[..len])
}

/// Whether the recording was made on this machine, by this kernel.
fn is_this_machine(features: &Features) -> bool {
    let own = |file: &str| std::fs::read_to_string(file).map(|text| text.trim().to_owned()).ok();
    features.hostname.is_some()
        && features.hostname == own("/proc/sys/kernel/hostname")
        && features.os_release == own("/proc/sys/kernel/osrelease")
}

/// The name of the machine that the recording was made on, if it is another machine.
pub(crate) fn other_machine(features: &Features) -> Option<String> {
    features.hostname.clone().filter(|_| !is_this_machine(features))
}

/// How many late records need no message, because a few of them hardly change the profile.
const LATE_TO_MENTION: u64 = 100;

/// Notes about incomplete parts of the recording.
pub(crate) fn notes(reader: &FileReader, not_understood: u64, late: u64) -> Vec<String> {
    let mut notes: Vec<String> = reader.damages().iter().map(ToString::to_string).collect();
    if not_understood > 0 {
        notes.push(format!("{not_understood} damaged records were passed over"));
    }
    // A few loss records always come late.
    if late > LATE_TO_MENTION {
        notes.push(format!("{late} records came later than the recording had promised"));
    }
    if reader.auxtrace_bytes() > 0 {
        notes.push(format!(
            "{} bytes of hardware traces (AUX areas) were passed over: they are not decoded",
            reader.auxtrace_bytes()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_up_build_ids_are_as_linkers_make_them() {
        let check = |used: usize, expected: usize| {
            let id = [vec![7; used], vec![0; 20 - used]].concat();
            assert_eq!(without_filling(&id).len(), expected, "{used}");
        };
        check(20, 20);
        check(17, 20);
        check(16, 16);
        check(15, 16);
        check(8, 8);
        assert_eq!(without_filling(&[7]), [7]);
    }

    #[test]
    fn the_title_is_the_recorded_program() {
        let check = |line: &str, expected: &str| {
            let argv: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(title(&argv), expected, "{line}");
        };
        check("/usr/bin/perf record -q -F 2000 -g -o g.data ./w -o x", "w");
        check("perf record --call-graph dwarf --call-graph=fp -z -- /bin/ls -l", "ls");
        check("perf record -W -I --user-regs --max-size 1G --synth no ./app x", "app");
        check("perf record -a -p 17", "perf.data");
        check("/data/local/tmp/simpleperf record -f 1000 --duration 5 -o x /bin/app y", "app");
        check("", "perf.data");
    }
}
