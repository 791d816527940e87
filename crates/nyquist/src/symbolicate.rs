//! Looks up the names of a new recording. Ctrl-C ends this.

use crate::args::SymbolArgs;
use crate::control::{Control, Phase};
use crate::finder::finder;
use crate::input::ReadReporter;
use crate::printer::Printer;
use crate::watch::Watch;
use nyquist_convert::{Libs, Progress};
use nyquist_input::{look_up_recording, symbolicator};
use nyquist_profile::Profile;
use nyquist_symbols::KernelFiles;
use std::sync::Arc;

/// Looks up the names of a recording's frames. Ctrl-C ends this and keeps the names found so far.
pub(crate) fn symbolicate(
    profile: Profile,
    libs: &Libs,
    kernel: Option<KernelFiles>,
    args: &SymbolArgs,
    printer: Printer,
    control: &Control,
) -> Profile {
    let progress = Arc::new(Progress::default());
    control.enter(Phase::Symbolicating(Arc::clone(&progress)));
    let finder = finder(args, Watch::new(printer, Some(Arc::clone(&progress)))).with_kernel_files(kernel);
    look_up_recording(profile, libs, &mut symbolicator(&finder), &progress, &ReadReporter::new(printer))
}
