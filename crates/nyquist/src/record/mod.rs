//! `nyquist record`: records, looks up names, saves, and shows. How a system records is in its folder.

mod destinations;
pub(crate) mod drive;
pub(crate) mod ending;
mod family;
mod feed;
mod launched_command;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
mod recording_result;
mod run;
mod subject;
mod summary;
#[cfg(any(target_os = "macos", windows))]
mod suspending;

#[cfg(target_os = "linux")]
use linux as current;
#[cfg(any(target_os = "macos", windows))]
use suspending as current;

pub(crate) use feed::{Feed, end_of, total_event};
pub(crate) use launched_command::{LaunchedCommand, enter_recording};
pub(crate) use recording_result::RecordingResult;
pub(crate) use run::{Run, record_runs};
pub(crate) use subject::{describe, named_processes, program_name, say_how_it_ends};
pub(crate) use summary::RunReport;
#[cfg(target_os = "linux")]
pub(crate) use summary::dropped_events;

use crate::args::{NOT_UNDERSTOOD, RecordArgs};
use crate::control::{Control, Phase};
use crate::delegates;
use crate::failure::{FAILED, Failure};
use crate::live_page::{LivePage, SnapshotSender};
use crate::output::Output;
use crate::printer::{self, Printer};
use crate::save::{SaveFormat, SavedProfile, save};
use crate::serve::{ServedProfile, serve};
use crate::spool::Spool;
use crate::symbolicate::symbolicate;
use crate::system::signals::Requests;
use crate::unnamed::TypedCommand;
use crate::{flamegraph, identity, page};
use destinations::{Destinations, Outputs};
use ending::Ending;
use nyquist_convert::{ConversionResult, LibSource, Libs};
use nyquist_profile::Profile;
use nyquist_symbols::KernelFiles;
use std::io::{self, IsTerminal as _};
use std::mem;
use subject::{profile_name, target_name};

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &RecordArgs) -> Result<u32, Failure> {
    let printer = Printer::new(args.presentation.verbosity);
    refuse_pids_with_spaces(args)?;
    current::check_limits()?;
    if args.as_root {
        identity::serve_root();
    }
    // Before signal handling starts, because this may wait for the reader of a FIFO.
    let destinations = Destinations::find(args)?;
    // Before any thread starts, so that all threads block these signals and one thread receives them.
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let save_signal = current::SaveSignal::take_over(args)?;
    let session = Session { args, printer, control: &Control::start(requests) };
    let Outputs { output, form, picture } = destinations.open(args)?;
    let plan = current::Plan::of(args, save_signal)?;
    // The links exist before the program prints anything.
    let (page, snapshots) = session.start_page()?.unzip();
    let spool = Spool::of(&args.spool, args.flight.last.is_none(), printer)?;
    let recorded = session.record(plan, page.as_ref(), (snapshots, spool.as_ref()));
    // The output that is no longer needed is removed by the process that created it.
    let recorded = recorded.inspect_err(|_| give_up_privileges(printer));
    let RecordingResult { finished, runs, events, command_lines, may_read_other_processes } = match recorded {
        Ok(recorded) => recorded,
        Err(failure) => {
            end(spool);
            return Err(failure);
        }
    };
    let runs = runs.with_requested_sums(args);
    let ConversionResult { profile, statistics, occurrences, libs, notes } = finished;
    for note in &notes {
        printer.warn(note);
    }
    let goes_on = wants_server(args) || page.is_some();
    let mut profile = session.symbolicate(profile, libs, goes_on)?;
    // Names are read from files that may have been withheld only now.
    for sentence in delegates::sentences().iter().filter(|sentence| !notes.contains(sentence)) {
        printer.warn(sentence);
    }
    let ending = Ending {
        used: runs.used,
        live: &runs.live,
        attached: &args.target.numbers(),
        kernel_not_permitted: summary::has_kernel_not_permitted(&profile),
    };
    if statistics.samples == 0 {
        profile.add_info(ending.nothing_sampled(profile.meta().interval, runs.report.total_cpu_time_ns));
    }
    session.control.enter(Phase::Saving);
    let saved = save(&profile, output, SaveFormat { form, version: args.profile_version }, printer)?;
    // Only now the recording cannot be lost.
    end(spool);
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    let command = if args.target.is_command() { &args.command[..] } else { &[] };
    let about = summary::SummarizedRecording {
        profile: &profile,
        program: &target_name(args),
        command: TypedCommand::new(&argv, command),
        command_lines: &command_lines,
        waits: args.off_cpu,
        is_of_programs: !args.target.all_cpus && args.target.cgroup.is_none(),
        is_shown: goes_on,
        events: (&events, &occurrences),
        may_read_other_processes,
    };
    summary::print(printer, &about, &runs.report, &statistics, &ending, saved.path.as_deref());
    if let Some(picture) = picture {
        write_picture(&profile, picture, printer)?;
    }
    runs.not_kept.map_or(Ok(()), Err)?;
    session.present(profile, &saved, page, goes_on)?;
    // A script must get an error status if its requested file is missing.
    Ok(if saved.as_requested { runs.status } else { runs.status.max(FAILED.into()) })
}

/// The parameters of all steps of the subcommand.
struct Session<'a> {
    args: &'a RecordArgs,
    printer: Printer,
    control: &'a Control,
}

impl Session<'_> {
    /// Starts to serve the page of the recording and to make its snapshots, if it is requested.
    fn start_page(&self) -> Result<Option<(LivePage, SnapshotSender)>, Failure> {
        let Self { args, printer, .. } = *self;
        if !args.live {
            return Ok(None);
        }
        let page = LivePage::start(
            &profile_name(args),
            &args.presentation.server,
            &args.presentation.symbols,
            printer,
        )?;
        let snapshots = SnapshotSender::of(page.profile(), &args.presentation.symbols)?;
        Ok(Some((page, snapshots)))
    }

    /// Records, and shows snapshots on the page meanwhile.
    fn record(
        &self,
        plan: current::Plan<'_>,
        page: Option<&LivePage>,
        (snapshots, spool): (Option<SnapshotSender>, Option<&Spool>),
    ) -> Result<RecordingResult, Failure> {
        let recorded = plan.record((self.printer, self.control), snapshots.as_ref(), spool);
        // The page gets no snapshots after its last profile.
        if let Some(snapshots) = snapshots {
            snapshots.finish();
        }
        if let Some(page) = page {
            page.profile().note_saving();
        }
        recorded
    }

    /// Gives up the privileges that only the recording needed, looks up names, and frees what that has used.
    fn symbolicate(&self, profile: Profile, libs: Libs, goes_on: bool) -> Result<Profile, Failure> {
        let Self { args, printer, control } = *self;
        let kernel = kernel_files(&libs);
        give_up_privileges(printer);
        let look_up = || symbolicate(profile, &libs, kernel, &args.presentation.symbols, printer, control);
        let profile = identity::as_invoking_user(look_up)?;
        free_or_forget(libs, goes_on);
        Ok(profile)
    }

    /// Shows the saved profile on the page of the recording, or serves it, if either is requested.
    fn present(
        &self,
        profile: Profile,
        saved: &SavedProfile,
        page: Option<LivePage>,
        goes_on: bool,
    ) -> Result<(), Failure> {
        let Self { args, printer, control } = *self;
        if let Some(page) = page {
            give_up_privileges(printer);
            page.profile().end(profile);
            page.serve_until_interrupted(printer, control)
        } else if goes_on && saved.path.is_some() {
            let bytes = saved.bytes(&profile)?;
            // No remaining output needs root.
            give_up_privileges(printer);
            serve(
                ServedProfile::new(bytes, profile, None),
                &args.presentation.server,
                &args.presentation.symbols,
                printer,
                control,
            )
        } else {
            free_or_forget(profile, goes_on);
            Ok(())
        }
    }
}

/// Removes what was kept on disk, because it is saved, or there is nothing to save.
fn end(spool: Option<Spool>) {
    if let Some(spool) = spool {
        spool.remove();
    }
}

/// Fails if process ids are separated by spaces, because those behind the first would be the command.
fn refuse_pids_with_spaces(args: &RecordArgs) -> Result<(), Failure> {
    let Some(pids) = args.pids_in_words() else { return Ok(()) };
    let first = args.command.first().map(|word| word.display().to_string()).unwrap_or_default();
    Err(Failure::new(format!("`{first}` is not a command"))
        .hint(format!("-p {pids} records these processes"))
        .status(NOT_UNDERSTOOD))
}

/// Facts that the running kernel shows only to root, if a recording has kernel addresses. They are used after
/// root's rights were given up.
pub(crate) fn kernel_files(libs: &Libs) -> Option<KernelFiles> {
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
fn free_or_forget<T>(memory: T, goes_on: bool) {
    if goes_on {
        drop(memory);
    } else {
        mem::forget(memory);
    }
}

fn write_picture(profile: &Profile, picture: Output, printer: Printer) -> Result<(), Failure> {
    let path = picture.name().to_owned();
    picture
        .save(|out| flamegraph::write_picture(profile, out))
        .map_err(|error| Failure::cannot_write(&path, &error))?;
    printer.say(format_args!("Wrote {}", path.display()));
    Ok(())
}

/// Without a terminal, the user could not end the server.
fn wants_server(args: &RecordArgs) -> bool {
    let on_terminal = io::stdin().is_terminal() || page::is_terminal() || printer::is_terminal();
    !args.save_only && (args.serve || on_terminal)
}
