//! Recording the allocations of a command: how they are seen, and what is said of it.

use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::folders::UserFolders;
use crate::identity;
use crate::number::{counted, grouped};
use crate::printer::Printer;
use nyquist_convert::Converter;
use nyquist_record::linux::allocations::{
    AllocationMethod, AllocationReader, AllocationSummary, LibraryVariant, NoAllocations, PreloadedLibrary,
    allocation_method,
};
use nyquist_record::linux::{Command, Credentials};
use std::ffi::OsString;
use std::path::Path;

/// The variable of the loader with the libraries that it loads first.
const PRELOAD: &str = "LD_PRELOAD";

/// Fails if allocations are requested of what runs already. The hint is a command that works.
pub(crate) fn check(is_requested: bool, starts_command: bool, works: &'static str) -> Result<(), Failure> {
    if !is_requested || starts_command {
        return Ok(());
    }
    Err(Failure::new(
        "allocations are recorded of programs that are started, and not of those that run already",
    )
    .hint(works))
}

/// Prepares a command for recording its allocations. Where that cannot be done, a warning says why, and the
/// command is recorded without them.
pub(super) fn listen(
    args: &RecordArgs,
    command: &mut Command,
    user: Option<&Credentials>,
    printer: Printer,
) -> Option<AllocationReader> {
    if !args.alloc {
        return None;
    }
    match begin(args.alloc_rate, command, user) {
        Ok((reader, how)) => {
            printer.say(format_args!("{how}: `report --event live` shows what is left"));
            Some(reader)
        }
        Err(denied) => {
            printer.warn(denied);
            None
        }
    }
}

/// Prepares a command for recording its allocations, of which one in `rate` bytes is sampled. Returns the reader and a
/// sentence that says how they are recorded, or one that says why they are not.
pub(crate) fn begin(
    rate: u64,
    command: &mut Command,
    user: Option<&Credentials>,
) -> Result<(AllocationReader, String), String> {
    let begun = prepare(rate, command, user);
    begun
        .map(|(reader, method)| (reader, how_recorded(method, rate)))
        .map_err(|reason| format!("allocations are not recorded: {reason}"))
}

/// How allocations are recorded.
fn how_recorded(method: AllocationMethod, rate: u64) -> String {
    let by = match method {
        AllocationMethod::Preloaded(_) => "a library that is preloaded into the program",
        AllocationMethod::Wrapped => "the program's own allocator, which is wrapped",
    };
    if rate <= 1 {
        format!("Recording each allocation by {by}")
    } else {
        format!("Recording allocations by {by}, one in {} bytes", grouped(rate))
    }
}

/// Starts reading, and gives the command its variables.
fn prepare(
    rate: u64,
    command: &mut Command,
    user: Option<&Credentials>,
) -> Result<(AllocationReader, AllocationMethod), String> {
    let method = allocation_method(command).map_err(|reason| format!("{reason}; {}", what_works(&reason)))?;
    let owner = user.map(|user| (user.uid, user.gid));
    let reader = AllocationReader::for_command(owner, rate)
        .map_err(|error| format!("no folder can be made for them: {error}"))?;
    let library = match method {
        AllocationMethod::Preloaded(variant) => Some(place(&reader.folder(), variant)?),
        AllocationMethod::Wrapped => None,
    };
    command.env.extend(reader.variables());
    if let Some(library) = library {
        let preload = preload_with(&library, command);
        command.env.push((PRELOAD.into(), preload));
    }
    Ok((reader, method))
}

/// What can be done instead.
fn what_works(reason: &NoAllocations) -> &'static str {
    match reason {
        NoAllocations::Static(_) | NoAllocations::OwnAllocator { .. } => {
            "a Rust program can wrap its allocator (nyquist_alloc::Recorded)"
        }
        NoAllocations::OtherProcessor(_) => "a nyquist for that processor records it",
        NoAllocations::Privileged(_) => "a copy of it without these rights can be recorded",
        NoAllocations::Sanitizer(_) => "a build without it can be recorded",
        NoAllocations::Unreadable(_) => "its owner can record it",
    }
}

/// Puts the library into the user's own cache. A user without one has it in the recording's own folder.
fn place(folder: &Path, variant: LibraryVariant) -> Result<PreloadedLibrary, String> {
    let placed = identity::as_invoking_user(|| {
        let cache = UserFolders::of_user().cache().map(|cache| cache.join("library"));
        match cache.map(|cache| PreloadedLibrary::place(&cache, variant)) {
            Some(Ok(library)) => Ok(library),
            Some(Err(_)) | None => PreloadedLibrary::place(folder, variant),
        }
    });
    placed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// The libraries to preload, this one first: the program's own definitions may be in another.
fn preload_with(library: &PreloadedLibrary, command: &Command) -> OsString {
    let mut all = library.path().as_os_str().to_owned();
    if let Some(others) = command.preloaded() {
        all.push(":");
        all.push(others);
    }
    all
}

/// Adds the last allocations to the recording, and reports losses.
pub(super) fn finish(reader: AllocationReader, converter: &mut Converter, printer: Printer) {
    let mut events = Vec::new();
    let summary = reader.finish(&mut events);
    for event in events {
        converter.push(event);
    }
    for sentence in losses(&summary) {
        printer.warn(sentence);
    }
}

/// What of the allocations was not recorded, in sentences.
pub(crate) fn losses(summary: &AllocationSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    if summary.without_space > 0 {
        let programs = counted(summary.without_space, "program");
        sentences.push(format!(
            "allocations of {programs} are not recorded: there was no space for the records (/dev/shm is full, or \
             files may not be as long: `ulimit -f`)"
        ));
    } else if summary.processes == 0 {
        sentences.push(
            "no allocations were recorded: the program has allocated less than the distance of samples \
             (--alloc-rate), or what starts it has removed LD_PRELOAD from its environment"
                .to_owned(),
        );
    }
    if summary.without_operators > 0 {
        let programs = counted(summary.without_operators, "program");
        sentences.push(format!(
            "C++'s `operator new` of {programs} was not seen, because the allocator has operators of its own: start nyquist \
             with the allocator's library in LD_PRELOAD, or the program itself by `nyquist record --alloc`"
        ));
    }
    if summary.lost_allocations > 0 {
        let lost = counted(summary.lost_allocations, "sampled allocation");
        sentences.push(format!("lost: {lost}, because they came faster than they were read (--alloc-rate)"));
    }
    if summary.lost_frees > 0 {
        let lost = counted(summary.lost_frees, "free");
        sentences.push(format!("not recorded in time: {lost}; these blocks count as live for too long"));
    }
    if summary.unreadable > 0 {
        let records = counted(summary.unreadable, "record");
        sentences.push(format!("{records} of allocations could not be understood"));
    }
    sentences
}
