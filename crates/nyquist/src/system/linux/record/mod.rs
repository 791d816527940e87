//! `nyquist record`: launch or attach, sample, convert, look up names, save, and show.

mod attached;
mod companions;
mod ending;
mod events;
mod failures;
mod family;
mod run;
mod subject;

pub(crate) use companions::unread_waits;
pub(crate) use ending::line as signal_line;
pub(crate) use failures::{launch_failure, open_failure};
pub(crate) use run::knowing_kernel;
pub(crate) use subject::{command_of, running_target};

use crate::args::{NOT_UNDERSTOOD, RecordArgs};
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure, io_reason};
use crate::form::{self, Form};
use crate::live_page::{LivePage, Tap};
use crate::number::counted;
use crate::output::{Destination, Output};
use crate::printer::{self, Printer};
use crate::save::{Written, save};
use crate::serve::{Served, serve};
use crate::symbolicate::symbolicate;
use crate::system::linux::ending::{Ending, pid_list};
use crate::system::linux::summary;
use crate::{flamegraph, identity, page};
use nyquist_convert::{Converter, Finished, LibSource, Libs};
use nyquist_profile::Profile;
use nyquist_record::linux;
use nyquist_record::linux::backend::Summary;
use nyquist_record::linux::signals::Requests;
use nyquist_record::linux::{EndReason, RecordedEvent};
use nyquist_symbols::KernelFiles;
use run::{Recorder, Run, Whom};
use rustix::process::{Resource, getrlimit};
use std::io::{self, IsTerminal as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    if let Some(pids) = args.pids_in_words() {
        let first = args.command.first().map(|word| word.display().to_string()).unwrap_or_default();
        return Err(Failure::new(format!("`{first}` is no command"))
            .hint(format!("-p {pids} records these processes"))
            .status(NOT_UNDERSTOOD));
    }
    check_descriptors(getrlimit(Resource::Nofile).maximum)?;
    if args.as_root {
        identity::serve_root();
    }
    // Before signal handling starts, because this may wait for the reader of a FIFO.
    let outputs = Destinations::find(args)?;
    // Before any thread starts, so that all threads block these signals and one thread receives them.
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let Outputs { output, form, picture } = outputs.open(args)?;
    let may_look_into_others = linux::may_look_into_others();
    let events = events::wanted(args)?;
    // The links exist before the program prints anything.
    let page = args
        .live
        .then(|| LivePage::start(&subject::profile_name(args), &args.server, &args.symbols, printer));
    let page = page.transpose()?;
    let recorded = record(args, events, (printer, &control), page.as_ref());
    if let Some(page) = &page {
        page.shown().note_saving();
    }
    // The output that is no longer needed is removed by the process that created it.
    let Recorded { finished, summary, events, status, used, living, command_lines, not_kept } =
        recorded.inspect_err(|_| give_up_privileges(printer))?;
    let Finished { profile, statistics, occurrences, libs, side_file_notes } = finished;
    for note in &side_file_notes {
        printer.warn(note);
    }
    let kernel = kernel_files(&libs);
    give_up_privileges(printer);
    let look_up = || symbolicate(profile, &libs, kernel, &args.symbols, printer, &control);
    let profile = identity::as_invoking_user(look_up)?;
    let goes_on = wants_server(args) || page.is_some();
    let_go(libs, goes_on);
    control.enter(Phase::Saving);
    let saved = save(&profile, output, Written { form, version: args.profile_version }, printer)?;
    let about = summary::Recorded {
        profile: &profile,
        program: &subject::target_name(args),
        command_lines: &command_lines,
        waits: args.off_cpu,
        events: (&events, &occurrences),
        may_look_into_others,
    };
    summary::print(
        printer,
        &about,
        &summary,
        &statistics,
        &Ending { used, living: &living, attached: &args.target.pid },
        saved.path.as_deref(),
    );
    if let Some(picture) = picture {
        write_picture(&profile, picture, printer)?;
    }
    not_kept.map_or(Ok(()), Err)?;
    if let Some(page) = page {
        give_up_privileges(printer);
        page.shown().end(profile);
        page.stay(printer, &control)?;
    } else if goes_on && saved.path.is_some() {
        let bytes = saved.bytes(&profile)?;
        // No remaining output needs root.
        give_up_privileges(printer);
        serve(Served::new(bytes, profile, None), &args.server, &args.symbols, printer, &control)?;
    } else {
        let_go(profile, goes_on);
    }
    // A script must get an error status if its requested file is missing.
    Ok(if saved.as_asked { status } else { status.max(FAILED) })
}

/// Facts that the running kernel shows only to root, if a recording has kernel addresses. They are used after
/// root's rights were given up.
fn kernel_files(libs: &Libs) -> Option<KernelFiles> {
    let is_kernel = |source: &LibSource| matches!(source, LibSource::Kernel { .. });
    libs.sources().iter().any(|(_, source)| is_kernel(source)).then(KernelFiles::open).flatten()
}

/// The work after a recording is done with only the user's rights. If other rights cannot be given up, this
/// warns, because the recording must not be lost.
fn give_up_privileges(printer: Printer) {
    if let Err(failure) = identity::give_up_privileges() {
        printer.warn(failure.message);
    }
}

/// Frees memory if the program continues. Otherwise the kernel frees all of it at exit, which is faster.
fn let_go<T>(memory: T, goes_on: bool) {
    if goes_on {
        drop(memory);
    } else {
        mem::forget(memory);
    }
}

/// Fails if the hard limit of open files is too low for recording. Otherwise later failures would have
/// misleading messages.
fn check_descriptors(limit: Option<u64>) -> Result<(), Failure> {
    /// Enough for one thread on two CPUs, and the files of its program.
    const LEAST: u64 = 32;
    match limit.filter(|limit| *limit < LEAST) {
        Some(limit) => Err(Failure::new(format!(
            "only {limit} files may be open at once here, which is too few to record anything"
        ))
        .hint("raise the limit (`ulimit -n 1024`)")),
        None => Ok(()),
    }
}

/// The places of the profile and its flame graph.
struct Destinations {
    output: Destination,
    form: Form,
    picture: Option<Destination>,
}

/// The same, opened.
struct Outputs {
    output: Output,
    form: Form,
    picture: Option<Output>,
}

impl Destinations {
    /// Finds both, and checks that their names fit their formats.
    fn find(args: &RecordArgs) -> Result<Self, Failure> {
        let form = Form::of(&args.output)?;
        check_names(args)?;
        args.flamegraph.as_deref().map_or(Ok(()), form::check_picture)?;
        let picture = args
            .flamegraph
            .as_deref()
            .map(|path| Destination::find(path).map_err(|refused| refused.failure(path, "--flamegraph")));
        let output = Destination::find(&args.output).and_then(Destination::kept_for_a_profile);
        let output = output.map_err(|refused| refused.failure(&args.output, "-o"))?;
        Ok(Self { output, form, picture: picture.transpose()? })
    }

    fn open(self, args: &RecordArgs) -> Result<Outputs, Failure> {
        let output = self.output.open().map_err(|refused| refused.failure(&args.output, "-o"))?;
        let path = args.flamegraph.as_deref().unwrap_or(Path::new(""));
        let picture = self.picture.map(Destination::open).transpose();
        let picture = picture.map_err(|refused| refused.failure(path, "--flamegraph"))?;
        Ok(Outputs { output, form: self.form, picture })
    }
}

/// Fails if two files of different content would have one name.
fn check_names(args: &RecordArgs) -> Result<(), Failure> {
    let named = [
        ("-o", Some(&args.output)),
        ("--flamegraph", args.flamegraph.as_ref()),
        ("--perf-data", args.perf_data.as_ref()),
    ];
    let named: Vec<_> =
        named.into_iter().filter_map(|(option, path)| Some((option, path?, place_of(path?)?))).collect();
    for (at, (option, path, place)) in named.iter().enumerate() {
        if let Some((other, ..)) = named.iter().take(at).find(|(.., before)| before == place) {
            let text = format!("{other} and {option} both name {}", path.display());
            return Err(Failure::new(text).hint("give each file a name of its own").status(NOT_UNDERSTOOD));
        }
    }
    Ok(())
}

/// The folder and the name of a file, independent of the form of its path. `None` for files that several may
/// write to, such as `/dev/null`.
fn place_of(path: &Path) -> Option<PathBuf> {
    if path.metadata().is_ok_and(|file| !file.is_file()) {
        return None;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

fn write_picture(profile: &Profile, picture: Output, printer: Printer) -> Result<(), Failure> {
    let path = picture.name().to_owned();
    picture
        .save(|out| flamegraph::write_picture(profile, out))
        .map_err(|error| Failure::new(format!("cannot write {}: {}", path.display(), io_reason(&error))))?;
    printer.say(format_args!("Wrote {}", path.display()));
    Ok(())
}

/// Without a terminal, the user could not end the server.
fn wants_server(args: &RecordArgs) -> bool {
    let on_terminal = io::stdin().is_terminal() || page::is_terminal() || printer::is_terminal();
    !args.save_only && (args.serve || on_terminal)
}

/// The result of the recording.
struct Recorded {
    finished: Finished,
    summary: Summary,
    /// The names of the events beside the samples.
    events: Vec<String>,
    status: u8,
    /// The command's CPU time in all runs by the kernel's accounting, if all of it was to be recorded.
    used: Option<Duration>,
    /// The processes that the command left running.
    living: Vec<u32>,
    /// The command lines of the attached processes.
    command_lines: String,
    /// The reason why the kernel's records could not be kept, if they were to be.
    not_kept: Option<Failure>,
}

/// Records all runs of the command, or running processes.
fn record(
    args: &RecordArgs,
    events: Vec<RecordedEvent>,
    (printer, control): (Printer, &Control),
    page: Option<&LivePage>,
) -> Result<Recorded, Failure> {
    let tap = page.map(|page| Tap::of(page.shown(), &args.symbols)).transpose()?;
    let recorder =
        Recorder { args, printer, control, user: identity::invoking_user(), events, tap: tap.as_ref() };
    let recorded = record_with(&recorder);
    // The page gets no snapshots after its last profile.
    if let Some(tap) = tap {
        tap.finish();
    }
    recorded
}

fn record_with(recorder: &Recorder<'_>) -> Result<Recorded, Failure> {
    let Recorder { args, printer, .. } = *recorder;
    let began = Instant::now();
    let asked = recorder.events.iter().filter(|recorded| !recorded.may_be_left_out());
    let names = asked.map(|recorded| recorded.event.name.clone()).collect();
    let mut kept = None;
    // The processes may end before the recording does.
    let mut command_lines = attached::command_lines(&args.target.pid);
    let Run { mut summary, mut status, mut used, mut living, not_kept } =
        recorder.run(Whom::Asked, args.duration, &mut kept)?;
    for run in 2..=args.runs.iteration_count {
        let left = args.duration.map(|duration| duration.saturating_sub(began.elapsed()));
        if summary.reason != EndReason::Exited || left == Some(Duration::ZERO) {
            break;
        }
        if status != 0 && !args.runs.ignore_exit_code {
            let runs = counted(u64::from(args.runs.iteration_count - run + 1), "run");
            printer.warn(format_args!("the command failed with {status}: {runs} left out (-i goes on)"));
            break;
        }
        printer.detail(format_args!("Run {run} of {}", args.runs.iteration_count));
        let (mut former, used_before) = (summary, used);
        Run { summary, status, used, living, .. } = recorder.run(Whom::Asked, left, &mut kept)?;
        used = used.zip(used_before).map(|(a, b)| a + b);
        summary.total_cpu_time_ns =
            summary.total_cpu_time_ns.zip(former.total_cpu_time_ns).map(|(a, b)| a + b);
        former.lost_privileges.retain(|notice| !summary.lost_privileges.contains(notice));
        summary.lost_privileges.append(&mut former.lost_privileges);
    }
    while let Some(left) = time_for_the_rest(args, &summary, began.elapsed()).filter(|_| !living.is_empty()) {
        let pids = pid_list(&living);
        printer.say(format_args!(
            "The command has ended, and what it left running is recorded from now on: PIDs {pids}"
        ));
        let attached = Whom::LeftRunning(mem::take(&mut living));
        match recorder.run(attached, Some(left), &mut kept) {
            Ok(run) => {
                let time = summary.total_cpu_time_ns.zip(run.summary.total_cpu_time_ns).map(|(a, b)| a + b);
                (summary.reason, summary.total_cpu_time_ns) = (run.summary.reason, time);
                summary.left_running = run.summary.left_running;
                (living, used) = (run.living, None);
            }
            Err(failure) => printer.warn(failure.message),
        }
    }
    let used = used.filter(|_| args.cpu.is_none() && !args.shape.rows.main_thread_only);
    let finished = kept.map(Converter::finish).ok_or_else(|| Failure::new("nothing was recorded"))?;
    if !args.target.is_command() {
        command_lines += &attached::command_lines_of_running(&finished.profile);
    }
    Ok(Recorded { finished, summary, events: names, status, used, living, command_lines, not_kept })
}

/// How long to record processes that the command left running, if a duration was given and the command
/// ended before it.
fn time_for_the_rest(args: &RecordArgs, summary: &Summary, taken: Duration) -> Option<Duration> {
    let is_command = args.target.is_command() && args.runs.iteration_count <= 1;
    // A recording that is kept as perf.data has one run.
    let is_asked = is_command && args.perf_data.is_none() && summary.reason == EndReason::Exited;
    let left = args.duration.filter(|_| is_asked)?.saturating_sub(taken);
    (!left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_descriptors_are_given_as_the_reason() {
        let failure = check_descriptors(Some(12)).unwrap_err();
        assert!(
            failure.message.contains("12 files") && failure.hints[0].contains("ulimit -n"),
            "{failure:?}"
        );
        assert!(check_descriptors(Some(256)).is_ok() && check_descriptors(None).is_ok());
    }
}
