//! Looks up the names of a recording: its addresses while it is read, and the rest at the end.

use crate::error::InputError;
use crate::note::Note;
use crate::observer::ReadObserver;
use nyquist_convert::{AddressSender, LibSource, Libs, Progress, SymbolicatedProfile, Symbolicator, Symbols};
use nyquist_profile::{LibId, Profile};
use nyquist_resources::cpu_count;
use nyquist_symbols::{Finder, KernelSymbols};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

/// The symbolicator of a recording that may be of this machine: the kernel is the running one.
pub fn symbolicator(finder: &Finder) -> Symbolicator<'_> {
    Symbolicator::new(Symbols { finder, kernel: KernelSymbols::running, threads: cpu_count() })
}

/// Imports a recording while the symbolicator looks up the addresses in it. `import` receives the way to send
/// them, unless no names are requested.
pub(crate) fn import_with_lookup<T>(
    symbolicator: &mut Symbolicator<'_>,
    no_symbols: bool,
    import: impl FnOnce(Option<AddressSender>) -> Result<T, InputError>,
) -> Result<T, InputError> {
    thread::scope(|scope| {
        let (sender, receiver) = AddressSender::new();
        let sender = Some(sender).filter(|_| !no_symbols);
        // Starting the thread fails if there is no memory for its stack.
        let listening = thread::Builder::new().spawn_scoped(scope, || symbolicator.listen(receiver));
        listening.map_err(InputError::Thread)?;
        import(sender)
    })
}

/// Looks up the unknown names of a recording's frames. The observer is notified if some are missing because the look-up
/// was ended early, or the kernel's symbols cannot be read.
pub fn look_up_recording(
    profile: Profile,
    libs: &Libs,
    symbolicator: &mut Symbolicator<'_>,
    progress: &Arc<Progress>,
    observer: &dyn ReadObserver,
) -> Profile {
    let symbolicated = look_up(profile, libs.sources(), symbolicator, progress, observer);
    if progress.cancel.load(Ordering::Relaxed) {
        observer.note(Note::LookupEnded);
    }
    if let Some(error) = symbolicated.kernel_error {
        observer.note(Note::NoKernelNames(error));
    }
    symbolicated.profile
}

/// Looks up the names of the frames of these libs.
pub(crate) fn look_up(
    profile: Profile,
    sources: &[(LibId, LibSource)],
    symbolicator: &mut Symbolicator<'_>,
    progress: &Arc<Progress>,
    observer: &dyn ReadObserver,
) -> SymbolicatedProfile {
    observer.lookup_began(progress);
    let symbolicated = symbolicator.symbolicate(profile, sources, progress);
    observer.lookup_ended(&symbolicated, symbolicator.finder());
    symbolicated
}
