//! `nyquist export`: a profile, or a part of it, in another profiler's format.

use crate::args::{ExportArgs, ExportFormat};
use crate::failure::Failure;
use crate::form::FormatOfName;
use crate::output::{Destination, OutputError};
use crate::printer::Printer;
use crate::source_paths::{DiskPaths, name_specially};
use crate::{export_perf_data, file_hash, flamegraph, form, input, page, selection, shell};
use clap::ValueEnum;
use nyquist_analysis::{Index, Selection, View};
#[cfg(feature = "parquet")]
use nyquist_formats::{ProcessLabels, parquet};
use nyquist_formats::{
    SourcePaths, callgrind, chrome, csv, dhat, folded, heaptrack, otlp, perf_script, perfetto, pprof,
    speedscope,
};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

/// Runs the subcommand.
pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.read.verbosity);
    let format = format(args)?;
    let to_stdout = args.output == Path::new("-");
    let options = Options {
        thread_names: args.with_threads,
        libs: args.with_libs,
        version: args.profile_version,
        gzip: form::is_compressed(&args.output),
    };
    if to_stdout && format.is_binary() && page::is_terminal() {
        return Err(not_for_terminals());
    }
    if to_stdout && format == ExportFormat::PerfData {
        return Err(Failure::new("a perf.data file cannot be written to standard output")
            .hint("name a file: -o perf.data"));
    }
    let refused = |refused: OutputError| refused.failure(&args.output, "-o");
    // Reading the profile may drop root's privileges, so the output is found first.
    let destination = (!to_stdout).then(|| Destination::find(&args.output)).transpose().map_err(refused)?;
    let mut profile = selection::part_of(
        input::read(&args.file, &args.read.filter, &args.read.symbols, printer)?,
        &args.read.filter,
    )?;
    if format.is_of_allocations() && profile.allocation_measures().is_empty() {
        return Err(Failure::new(format!(
            "{} has no allocations that nyquist has recorded",
            args.file.display()
        ))
        .hint("nyquist record --alloc COMMAND"));
    }
    if format == ExportFormat::Firefox {
        name_specially(&mut profile);
    } else {
        profile = profile.without_repetition_by_cpu();
    }
    let Some(destination) = destination else {
        return page::write_file_with(format.is_json(), |out| write(&profile, format, options, out));
    };
    let output = destination.open().map_err(refused)?;
    if format.is_binary() && output.is_terminal() {
        return Err(not_for_terminals());
    }
    if format == ExportFormat::PerfData {
        return export_perf_data::run(&profile, output, &args.read.symbols, printer).map_err(refused);
    }
    match output.save(|out| write(&profile, format, options, out)) {
        // The reader has closed the pipe early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::cannot_write(&args.output, &error)),
        Ok(_) => {
            printer.say(format_args!("Wrote {}", args.output.display()));
            Ok(())
        }
    }
}

fn not_for_terminals() -> Failure {
    Failure::new("this format cannot be written to a terminal")
        .hint("name a file with -o FILE, or redirect it")
}

/// The requested format. If the file's name implies one as well, they must agree.
fn format(args: &ExportArgs) -> Result<ExportFormat, Failure> {
    let named = FormatOfName::of(&args.output);
    let picture = ["flamegraph".as_ref(), args.file.as_os_str(), "-o".as_ref(), args.output.as_os_str()];
    match (args.format, named) {
        (Some(format), _) if named.fits(format) => Ok(format),
        (None, FormatOfName::Format(format)) => Ok(format),
        (_, FormatOfName::NotSo(instead)) => Err(form::wrong_name(&args.output).hint(instead)),
        (_, FormatOfName::Picture) => {
            Err(form::wrong_name(&args.output)
                .hint(format!("`{}` draws a flame graph", shell::nyquist(picture))))
        }
        (Some(_), _) => {
            Err(form::wrong_name(&args.output).hint("leave out --format, or choose another name"))
        }
        (None, _) => {
            let message = if args.output == Path::new("-") {
                "no format is given".to_owned()
            } else {
                format!("the name {} does not say which format is wanted", args.output.display())
            };
            let formats = ExportFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            let names: Vec<_> = formats.map(|format| format.get_name().to_owned()).collect();
            Err(Failure::new(message).hint(format!("choose one: --format {}", names.join("|"))))
        }
    }
}

/// The options of some formats.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Whether threads' names are appended to those of processes (folded).
    pub(crate) thread_names: bool,
    /// Whether libraries' names are put before functions (folded).
    pub(crate) libs: bool,
    /// The version (firefox).
    pub(crate) version: FormatVersion,
    /// Whether it is compressed (firefox).
    pub(crate) gzip: bool,
}

/// Writes a profile in another profiler's format.
pub(crate) fn write(
    profile: &Profile,
    format: ExportFormat,
    options: Options,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    let disk_paths = DiskPaths::of_user();
    let paths = |file: &str| disk_paths.path(file);
    match format {
        ExportFormat::Pprof => pprof::write(profile, &paths, &mut out),
        ExportFormat::Otlp => {
            let options = otlp::WriteOptions { paths: &paths, file_hash: &file_hash::of, services: None };
            otlp::write_with(profile, options, &mut out)
        }
        ExportFormat::Perfetto => perfetto::write(profile, &paths, &mut out),
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => write_parquet(profile, &paths, &mut out),
        ExportFormat::Folded => {
            let options = folded::WriteOptions { thread_names: options.thread_names, libs: options.libs };
            folded::write(profile, &mut out, options)
        }
        ExportFormat::Speedscope => speedscope::write(profile, &paths, &mut out),
        ExportFormat::Chrome => chrome::write(profile, &paths, &mut out),
        ExportFormat::Firefox => {
            firefox::write(profile, WriteOptions { version: options.version, gzip: options.gzip }, out)
        }
        ExportFormat::PerfScript => perf_script::write(profile, &mut out),
        // These formats need a file and are not written here.
        ExportFormat::PerfData => Err(io::ErrorKind::Unsupported.into()),
        ExportFormat::Callgrind => callgrind::write(profile, &paths, &mut out),
        ExportFormat::Heaptrack => heaptrack::write(profile, &paths, &mut out),
        ExportFormat::Dhat => dhat::write(profile, &paths, &mut out),
        ExportFormat::Csv => write_csv(profile, &paths, &mut out),
        ExportFormat::Html => flamegraph::write_page(profile, &mut out),
        ExportFormat::Viewer => nyquist_viewer::write_page(profile, &mut out),
    }
}

/// The time within which samples of a stack are one row.
#[cfg(feature = "parquet")]
const ROW_TIME_NS: u64 = 1_000_000_000;

/// A table in which the service is the program.
#[cfg(feature = "parquet")]
fn write_parquet(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let labels =
        |process| ProcessLabels { service: profile.process(process).name.clone(), labels: Vec::new() };
    parquet::write(profile, parquet::WriteOptions { paths, slice: Some(ROW_TIME_NS), labels: &labels }, out)
}

/// The functions by CPU time, or by waiting time if there is no CPU time.
fn write_csv(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let index = Index::new(profile);
    let mut view = View::new(&index, &Selection::default());
    if view.is_empty() {
        let state = nyquist_analysis::SampleState::OffCpu;
        view = View::new(&index, &Selection { state, ..Selection::default() });
    }
    let table = view.functions();
    // A recording has no lines where functions begin.
    let hottest_lines = view.hottest_lines();
    let files: Vec<_> = table
        .functions
        .iter()
        .map(|it| it.file.map(|file| paths(file).map_or(Cow::Borrowed(file), Cow::Owned)))
        .collect();
    let rows = table.functions.iter().zip(&files).map(|(function, file)| csv::FunctionRow {
        own: function.self_amount.weight,
        total: function.total.weight,
        function: function.name,
        lib: function.lib,
        file: file.as_deref(),
        line: function.line.or_else(|| hottest_lines.get(&function.func).copied()),
    });
    csv::write(rows, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Frame, Func, Meta, Process, ProfileBuilder, Sample, Source, Thread};

    const COMMIT: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";

    /// A profile of one sample in a file.
    fn profile(file: &str) -> Profile {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let filename = builder.intern_string(file);
        let source = Some(builder.intern_source(Source { filename }));
        let name = builder.intern_string("function");
        let func = builder.intern_func(Func { source, ..Func::new(name, None) });
        let frame = builder.intern_frame(Frame { line: Some(7), ..Frame::label(func) });
        let stack = builder.intern_stack(None, frame);
        builder.add_sample(thread, Sample { weight: 1, ..Sample::new(0, Some(stack), 0) });
        builder.finish()
    }

    fn written(file: &str, format: ExportFormat) -> Vec<u8> {
        let mut out = Vec::new();
        write(&profile(file), format, Options::default(), &mut out).unwrap();
        out
    }

    #[test]
    fn a_functions_hottest_line_is_in_the_table() {
        let text = String::from_utf8(written("/src/a.c", ExportFormat::Csv)).unwrap();
        assert_eq!(text, "self,total,function,lib,file,line\n1,1,function,,/src/a.c,7\n");
    }

    #[test]
    fn other_formats_have_paths_on_disk() {
        let library = format!("git:github.com/rust-lang/rust:library/core/src/lib.rs:{COMMIT}");
        let of_crate = "cargo:index.crates.io-1949cf8c6b5b557f:a-1.0.0:src/lib.rs";
        let in_home = DiskPaths::of_user().path(of_crate).unwrap_or_else(|| of_crate.to_owned());
        for (file, expected) in [
            (&*library, &*format!("/rustc/{COMMIT}/library/core/src/lib.rs")),
            (of_crate, &*in_home),
            ("/src/a.c", "/src/a.c"),
        ] {
            let read = pprof::read(&written(file, ExportFormat::Pprof)).unwrap().profile;
            let files: Vec<_> = read.sources().iter().map(|source| read.string(source.filename)).collect();
            assert_eq!(files, [expected]);
            for format in [ExportFormat::Speedscope, ExportFormat::Chrome, ExportFormat::Csv] {
                let text = String::from_utf8(written(file, format)).unwrap();
                assert!(text.contains(expected), "{text}");
                assert!(expected == file || !text.contains(file), "{text}");
            }
        }
    }
}
