//! `nyquist import`: converts a recording or a profile of another program to a saved profile.

use crate::args::ImportArgs;
use crate::control::Control;
use crate::failure::{FAILED, Failure};
use crate::form::Form;
use crate::identity;
use crate::input;
use crate::number::time_span;
use crate::output::Destination;
use crate::printer::Printer;
use crate::save::{SaveFormat, save};
use crate::serve::{ServedProfile, serve};
use crate::shell;
use crate::system::signals::Requests;
use nyquist_analysis::{Index, Selection, View};
use nyquist_profile::Profile;

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &ImportArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.presentation.verbosity);
    let form = Form::of(&args.output)?;
    // The file is created when there is data to write. Until then, Ctrl-C ends this program immediately.
    let destination = Destination::find(&args.output).and_then(Destination::kept_for_a_profile);
    let destination = destination.map_err(|refused| refused.failure(&args.output, "-o"))?;
    let profile = input::read_as(&args.file, &args.recording, &args.presentation.symbols, printer)?;
    let is_empty = profile.threads().iter().all(|it| it.samples.is_empty() && it.markers.is_empty());
    if let Some(option) = args.recording.selecting().filter(|_| is_empty) {
        let argv = ["report".as_ref(), "--threads".as_ref(), args.file.as_os_str()];
        return Err(Failure::new(format!("{option} leaves nothing of {}", args.file.display()))
            .hint(format!("`{}` shows what is in it", shell::nyquist(argv))));
    }
    warn_of_impossible_time(&profile, printer);
    let output = destination.open().map_err(|refused| refused.failure(&args.output, "-o"))?;
    let saved = save(&profile, output, SaveFormat { form, version: args.profile_version }, printer)?;
    if let Some(path) = &saved.path {
        printer.say(format_args!("Saved {}", path.display()));
        if !args.save_only {
            let requests = Requests::take_over()
                .map_err(|error| Failure::because("cannot take over signals", &error))?;
            let control = Control::start(requests);
            let symbols = input::with_its_folders(&args.file, &args.presentation.symbols);
            // No remaining output needs root.
            identity::give_up_privileges()?;
            let provided = input::samply_symbols(&args.file, &symbols, printer);
            let served = ServedProfile::new(saved.bytes(&profile)?, profile, provided);
            serve(served, &args.presentation.server, &symbols, printer, &control)?;
        }
    }
    Ok(if saved.as_requested { 0 } else { FAILED })
}

/// Says so if the samples state more CPU time than there can have been.
fn warn_of_impossible_time(profile: &Profile, printer: Printer) {
    let index = Index::new(profile);
    let view = View::new(&index, &Selection::default());
    if let Some(time) = view.impossible_time(&view.summary()) {
        printer.warn(format_args!("{}", time.sentence(time_span)));
    }
}
