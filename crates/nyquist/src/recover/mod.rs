//! `nyquist recover`: lists, saves and removes recordings whose recorder has ended before it saved them.

mod list;
mod read;

use crate::args::RecoverArgs;
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure};
use crate::form::Form;
use crate::identity;
use crate::number::{counted, time_span};
use crate::output::Destination;
use crate::printer::Printer;
use crate::record::kernel_files;
use crate::save::{SaveFormat, save};
use crate::shell;
use crate::spool;
use crate::symbolicate::symbolicate;
use crate::system::signals::Requests;
use nyquist_convert::{ConversionResult, recover};
use nyquist_record::linux::file_user;
use nyquist_spool::RecoveredTables;
use nyquist_spool::folder::{AbandonedSpool, Entry, SpoolFolder, boot_id};
use std::path::{Path, PathBuf};

/// Where a profile is saved that has no name.
const PROFILE: &str = "profile.json.gz";

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &RecoverArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    let place = identity::as_invoking_user(|| spool::folder(args.spool.as_deref()))?;
    let path = place.ok_or_else(|| {
        Failure::new("this user has no home folder, so no recording is kept").hint("--spool names a folder")
    })?;
    let entries = identity::as_invoking_user(|| entries(&path, args.name.as_deref()))??;
    if args.discard {
        return discard(entries, args, printer).map(|()| 0);
    }
    match (&args.name, &args.output) {
        (None, None) => identity::as_invoking_user(|| list::print(entries, args.json, &path))?.map(|()| 0),
        (name, output) => {
            let spool = chosen(entries, name.as_deref())?;
            let output = output.clone().unwrap_or_else(|| PROFILE.into());
            save_profile(&spool, &output, args, printer)
        }
    }
}

/// What is in the folder, or what has a name there.
fn entries(path: &Path, name: Option<&str>) -> Result<Vec<Entry>, Failure> {
    let failed = |error| Failure::because(format!("cannot read {}", path.display()), &error);
    let folder = match SpoolFolder::open(path, file_user()) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    match name {
        Some(name) => Ok(vec![folder.entry(name.to_owned())]),
        None => folder.entries().map_err(failed),
    }
}

/// The only recording that can be recovered.
fn chosen(entries: Vec<Entry>, name: Option<&str>) -> Result<AbandonedSpool, Failure> {
    let mut abandoned = Vec::new();
    for entry in entries {
        match (entry, name) {
            (Entry::Abandoned(spool), _) => abandoned.push(spool),
            (Entry::Live, Some(name)) => {
                return Err(Failure::new(format!(
                    "{name} is still being recorded, or is read by another nyquist"
                )));
            }
            (Entry::Refused(name, why), Some(_)) => {
                return Err(Failure::new(format!("{name} cannot be recovered: {why}"))
                    .hint("`nyquist recover` lists what can be"));
            }
            _ => {}
        }
    }
    match abandoned.len() {
        0 => Err(Failure::new("there is nothing to recover")),
        1 => Ok(abandoned.remove(0)),
        _ => Err(Failure::new("there are several recordings")
            .hint("`nyquist recover` lists them, and takes the name of one")),
    }
}

fn discard(entries: Vec<Entry>, args: &RecoverArgs, printer: Printer) -> Result<(), Failure> {
    if args.name.is_some() {
        let spool = chosen(entries, args.name.as_deref())?;
        return remove(spool, printer);
    }
    for entry in entries {
        match entry {
            Entry::Abandoned(spool) => remove(spool, printer)?,
            Entry::Refused(name, why) => printer.warn(format_args!("{name} stays: {why}")),
            Entry::Live => {}
        }
    }
    Ok(())
}

fn remove(spool: AbandonedSpool, printer: Printer) -> Result<(), Failure> {
    let name = spool.name().to_owned();
    identity::as_invoking_user(|| spool.remove())?
        .map_err(|error| Failure::because(format!("cannot remove {name}"), &error))?;
    printer.say(format_args!("Removed {name}"));
    Ok(())
}

fn save_profile(
    spool: &AbandonedSpool,
    output: &Path,
    args: &RecoverArgs,
    printer: Printer,
) -> Result<u8, Failure> {
    let form = Form::of(output)?;
    let destination = Destination::find(output).and_then(Destination::kept_for_a_profile);
    let destination = destination.map_err(|refused| refused.failure(output, "-o"))?;
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let cannot = |why: String| Failure::new(format!("{} cannot be recovered: {why}", spool.name()));
    let read = identity::as_invoking_user(|| read::read(spool, RecoveredTables::default))?.map_err(cannot)?;
    let same_boot = read.boot == boot_id();
    if read.skipped > 0 {
        let bytes = counted(read.skipped, "byte");
        printer.warn(format_args!(
            "{bytes} of {} are damaged or were not written in full, and are left out",
            spool.name()
        ));
    }
    let Some(recovered) = read.tables.finish() else { return Err(cannot("it has no data".to_owned())) };
    let ConversionResult { profile, statistics, libs, .. } = recover(recovered, same_boot);
    let kernel = kernel_files(&libs);
    identity::give_up_privileges()?;
    let profile = symbolicate(profile, &libs, kernel, &args.symbols, printer, &control);
    control.enter(Phase::Saving);
    let opened = destination.open().map_err(|refused| refused.failure(output, "-o"))?;
    let saved = save(&profile, opened, SaveFormat { form, version: args.profile_version }, printer)?;
    let samples = counted(statistics.samples, "sample");
    let span = time_span(profile.duration());
    let place = saved.path.unwrap_or_else(|| PathBuf::from("standard output"));
    printer.say(format_args!(
        "Recovered {samples} over {span} of {}: {}",
        profile.meta().product,
        place.display()
    ));
    if !same_boot {
        printer.say("The machine was restarted since, so functions of the kernel have no names");
    }
    let argv = ["recover", "--discard", spool.name()];
    printer.say(format_args!("`{}` removes the recording", shell::nyquist(argv)));
    Ok(if saved.as_requested { 0 } else { FAILED })
}
