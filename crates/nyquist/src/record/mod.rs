//! `nyquist record`: records, looks up names, saves, and shows. How a system records is in its folder.

mod destinations;
pub(crate) mod ending;
mod family;
mod feed;
mod launched;
mod recorded;
mod run;
mod subject;
mod summary;

pub(crate) use feed::{Feed, end_of, total_event};
pub(crate) use launched::{Launched, enter_recording};
pub(crate) use recorded::Recorded;
pub(crate) use run::{Run, record_runs};
pub(crate) use subject::{describe, named_processes, program_name};
pub(crate) use summary::Course;

use crate::args::{NOT_UNDERSTOOD, RecordArgs};
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure, io_reason};
use crate::live_page::{LivePage, Tap};
use crate::output::Output;
use crate::printer::{self, Printer};
use crate::save::{Written, save};
use crate::serve::{ServedProfile, serve};
use crate::symbolicate::symbolicate;
use crate::system::recording;
use crate::system::signals::Requests;
use crate::{flamegraph, identity, page};
use destinations::{Destinations, Outputs};
use ending::Ending;
use nyquist_convert::{Finished, LibSource, Libs};
use nyquist_profile::Profile;
use nyquist_symbols::KernelFiles;
use std::io::{self, IsTerminal as _};
use std::mem;
use subject::{profile_name, target_name};

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    if let Some(pids) = args.pids_in_words() {
        let first = args.command.first().map(|word| word.display().to_string()).unwrap_or_default();
        return Err(Failure::new(format!("`{first}` is not a command"))
            .hint(format!("-p {pids} records these processes"))
            .status(NOT_UNDERSTOOD));
    }
    recording::check_limits()?;
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
    let plan = recording::Plan::of(args)?;
    // The links exist before the program prints anything.
    let page = args.live.then(|| LivePage::start(&profile_name(args), &args.server, &args.symbols, printer));
    let page = page.transpose()?;
    let tap = page.as_ref().map(|page| Tap::of(page.shown(), &args.symbols)).transpose()?;
    let recorded = plan.record((printer, &control), tap.as_ref());
    // The page gets no snapshots after its last profile.
    if let Some(tap) = tap {
        tap.finish();
    }
    if let Some(page) = &page {
        page.shown().note_saving();
    }
    // The output that is no longer needed is removed by the process that created it.
    let Recorded { finished, runs, events, command_lines, may_read_other_processes } =
        recorded.inspect_err(|_| give_up_privileges(printer))?;
    let runs = runs.with_sums_of_the_asked(args);
    let Finished { profile, statistics, occurrences, libs, side_file_notes } = finished;
    for note in &side_file_notes {
        printer.warn(note);
    }
    let kernel = kernel_files(&libs);
    give_up_privileges(printer);
    let look_up = || symbolicate(profile, &libs, kernel, &args.symbols, printer, &control);
    let profile = identity::as_invoking_user(look_up)?;
    let goes_on = wants_server(args) || page.is_some();
    free_or_forget(libs, goes_on);
    control.enter(Phase::Saving);
    let saved = save(&profile, output, Written { form, version: args.profile_version }, printer)?;
    let about = summary::Recorded {
        profile: &profile,
        program: &target_name(args),
        command_lines: &command_lines,
        waits: args.off_cpu,
        events: (&events, &occurrences),
        may_read_other_processes,
    };
    summary::print(
        printer,
        &about,
        &runs.course,
        &statistics,
        &Ending { used: runs.used, living: &runs.living, attached: &args.target.pid },
        saved.path.as_deref(),
    );
    if let Some(picture) = picture {
        write_picture(&profile, picture, printer)?;
    }
    runs.not_kept.map_or(Ok(()), Err)?;
    if let Some(page) = page {
        give_up_privileges(printer);
        page.shown().end(profile);
        page.stay(printer, &control)?;
    } else if goes_on && saved.path.is_some() {
        let bytes = saved.bytes(&profile)?;
        // No remaining output needs root.
        give_up_privileges(printer);
        serve(ServedProfile::new(bytes, profile, None), &args.server, &args.symbols, printer, &control)?;
    } else {
        free_or_forget(profile, goes_on);
    }
    // A script must get an error status if its requested file is missing.
    Ok(if saved.as_asked { runs.status } else { runs.status.max(FAILED) })
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
        .map_err(|error| Failure::new(format!("cannot write {}: {}", path.display(), io_reason(&error))))?;
    printer.say(format_args!("Wrote {}", path.display()));
    Ok(())
}

/// Without a terminal, the user could not end the server.
fn wants_server(args: &RecordArgs) -> bool {
    let on_terminal = io::stdin().is_terminal() || page::is_terminal() || printer::is_terminal();
    !args.save_only && (args.serve || on_terminal)
}
