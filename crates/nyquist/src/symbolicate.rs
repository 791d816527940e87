//! Looks up the names of a recording, with progress on a terminal if it takes a while.

use crate::args::SymbolArgs;
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::finder::finder;
use crate::memory;
use crate::printer::Printer;
use crate::watch::{BARS, SHOW_AFTER, Watch};
use indicatif::{ProgressBar, ProgressStyle};
use nyquist_convert::{
    AddressSender, LibReport, LibSource, Libs, Progress, SymbolicatedProfile, Symbolicator, Symbols,
};
use nyquist_profile::{LibId, Profile};
use nyquist_resources::{cpu_count, spawn_helper};
use nyquist_symbols::{AnswerCache, Finder, KernelError, KernelFiles, KernelSymbols};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Looks up the names of a recording's frames. Ctrl-C ends this and keeps the names found so far.
pub(crate) fn symbolicate(
    profile: Profile,
    libs: &Libs,
    kernel: Option<KernelFiles>,
    args: &SymbolArgs,
    printer: Printer,
    control: &Control,
) -> Profile {
    let progress = std::sync::Arc::new(Progress::default());
    control.enter(Phase::Symbolicating(std::sync::Arc::clone(&progress)));
    let finder = finder(args, Watch::new(printer, Some(std::sync::Arc::clone(&progress))));
    let finder = finder.with_kernel_files(kernel);
    finish(profile, libs, &mut symbolicator(&finder), printer, &progress)
}

/// The symbolicator of a recording of this machine.
pub(crate) fn symbolicator(finder: &Finder) -> Symbolicator<'_> {
    Symbolicator::new(Symbols { finder, kernel: KernelSymbols::running, threads: cpu_count() })
}

/// Imports a recording while the symbolicator looks up the addresses in it. `import` receives the way to send
/// them, unless no names are wanted.
pub(crate) fn import_with_lookup<T>(
    symbolicator: &mut Symbolicator<'_>,
    no_symbols: bool,
    import: impl FnOnce(Option<AddressSender>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    thread::scope(|scope| {
        let (sender, receiver) = AddressSender::new();
        let sender = Some(sender).filter(|_| !no_symbols);
        // Starting the thread fails if there is no memory for its stack.
        let listening = thread::Builder::new().spawn_scoped(scope, || symbolicator.listen(receiver));
        listening.map_err(|error| Failure::because("cannot start a thread", &error))?;
        import(sender)
    })
}

/// Looks up the unknown names of a recording's frames, and prints notes about missing ones.
pub(crate) fn finish(
    profile: Profile,
    libs: &Libs,
    symbolicator: &mut Symbolicator<'_>,
    printer: Printer,
    progress: &Progress,
) -> Profile {
    let symbolicated = look_up_with(symbolicator, profile, libs.sources(), printer, progress);
    if progress.cancel.load(Ordering::Relaxed) {
        printer.warn("the lookup of names was stopped early, so some functions have no name");
    }
    if let Some(error) = &symbolicated.kernel_error {
        printer.warn(format_args!("kernel functions have no names: {error}"));
    }
    symbolicated.profile
}

/// Looks up the names of the frames of these libs, with progress on a terminal. On request it prints the
/// searched places.
pub(crate) fn look_up(
    profile: Profile,
    sources: &[(LibId, LibSource)],
    finder: &Finder,
    kernel: fn(&Finder) -> Result<KernelSymbols, KernelError>,
    printer: Printer,
    progress: &Progress,
) -> SymbolicatedProfile {
    let mut symbolicator = Symbolicator::new(Symbols { finder, kernel, threads: cpu_count() });
    look_up_with(&mut symbolicator, profile, sources, printer, progress)
}

fn look_up_with(
    symbolicator: &mut Symbolicator<'_>,
    profile: Profile,
    sources: &[(LibId, LibSource)],
    printer: Printer,
    progress: &Progress,
) -> SymbolicatedProfile {
    let symbolicated = thread::scope(|scope| {
        let (finished, wait) = mpsc::channel::<()>();
        if printer.shows_progress() {
            spawn_helper(scope, move || show(progress, &wait));
        }
        let symbolicated = symbolicator.symbolicate(profile, sources, progress);
        drop(finished);
        symbolicated
    });
    explain(&symbolicated, symbolicator.finder(), printer);
    memory::warn_of_missing_names(printer);
    symbolicated
}

fn show(progress: &Progress, finished: &mpsc::Receiver<()>) {
    if finished.recv_timeout(SHOW_AFTER) != Err(mpsc::RecvTimeoutError::Timeout) {
        return;
    }
    let style = ProgressStyle::with_template("Looking up names {wide_bar} {pos}/{len}");
    let bar = BARS.add(ProgressBar::new(0));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    while finished.recv_timeout(Duration::from_millis(100)) == Err(mpsc::RecvTimeoutError::Timeout) {
        bar.set_length(progress.total.load(Ordering::Relaxed) as u64);
        bar.set_position(progress.done.load(Ordering::Relaxed) as u64);
    }
    bar.finish_and_clear();
}

/// Prints, with `--verbose`, the source of each lib's names and the searched places.
fn explain(symbolicated: &SymbolicatedProfile, finder: &Finder, printer: Printer) {
    for LibReport { lib, symbols_from, tried } in &symbolicated.libs {
        let name = lib_path(&symbolicated.profile, *lib);
        match symbols_from {
            Some(path) => printer.detail(format_args!("{name}: symbols from {}", display_path(path))),
            None => printer.detail(format_args!("{name}: no symbols")),
        }
        for attempt in tried {
            printer.detail(format_args!("  {}: {}", display_path(&attempt.path), attempt.outcome));
        }
    }
    if let Some(problem) = finder.cache().and_then(AnswerCache::problem) {
        printer.detail(format_args!("What was looked up is not kept: {problem}"));
    }
}

/// A path for the user. A file that has been open since it was mapped has only a number here.
fn display_path(path: &Path) -> String {
    if path.starts_with("/proc/self/fd") {
        "the file that was mapped".to_owned()
    } else {
        path.display().to_string()
    }
}

fn lib_path(profile: &Profile, lib: LibId) -> &str {
    &profile.lib(lib).path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_held_open_is_not_called_by_its_number() {
        let check = |path: &str, expected: &str| assert_eq!(display_path(Path::new(path)), expected);
        check("/proc/self/fd/21", "the file that was mapped");
        check("/usr/lib/debug/x.debug", "/usr/lib/debug/x.debug");
    }
}
