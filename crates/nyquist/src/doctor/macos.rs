//! Findings about a file of macOS for names and stacks: an image, a universal file, the file in a `.dSYM`.

use super::finding::{Finding, Section};
use nyquist_object::FileSource;
use nyquist_object::elf::Architecture;
use nyquist_symbols::{
    Attempt, AttemptOutcome, FileRole, Finder, MachoContents, ModuleRequest, OpenFile, SymbolFiles,
};
use nyquist_system::open_regular;
use std::path::Path;
use std::sync::Arc;

/// The findings about a Mach-O file. `None` for other files.
pub(crate) fn inspect(path: &Path, finder: &Finder) -> Result<Option<Section>, String> {
    let Ok(file) = open_regular(path) else { return Ok(None) };
    let file = OpenFile { path: path.to_owned(), source: Arc::new(FileSource::new(file)) };
    let contents = MachoContents::of(&file).map_err(|error| error.to_string())?;
    Ok(contents.map(|contents| section(path, &contents, finder)))
}

/// Each file in a universal file has separate findings.
fn section(path: &Path, contents: &[MachoContents], finder: &Finder) -> Section {
    let is_debug_file = contents.iter().all(|image| image.is_debug_file);
    let mut findings = Vec::new();
    for image in contents {
        if contents.len() > 1 {
            findings.push(Finding::ok("architecture", format!("code for {}:", architecture(image))));
        }
        if !image.is_debug_file {
            findings.extend(image_findings(path, image, finder));
        }
        findings.push(identity(image));
    }
    let kind = if is_debug_file { "debug_file" } else { "program" };
    Section { kind, name: path.display().to_string(), findings }
}

fn image_findings(path: &Path, image: &MachoContents, finder: &Finder) -> [Finding; 2] {
    let request =
        ModuleRequest { path: path.to_owned(), debug_id: image.debug_id, ..ModuleRequest::default() };
    let found = finder.find(&request);
    let tried = found.tried.iter().map(|attempt| format!("{}: {}", attempt.path.display(), attempt.outcome));
    [names(image, &found).details(tried), unwinding(image)]
}

fn names(image: &MachoContents, found: &SymbolFiles) -> Finding {
    const TOPIC: &str = "names";
    if let Some(file) = &found.debug_file {
        let is_macho = matches!(MachoContents::of(file), Ok(Some(_)));
        let kind = if is_macho { "DWARF" } else { "Breakpad symbols" };
        let path = file.path.display();
        return Finding::ok(TOPIC, format!("names, lines and inlined calls from {path} ({kind})"));
    }
    if image.debug_info {
        return Finding::ok(TOPIC, "names, lines and inlined calls from its debug info (DWARF)");
    }
    if image.object_files > 0 {
        return of_objects(image, found);
    }
    let finding = if image.symbol_table {
        Finding::better(TOPIC, "names from the symbol table, without lines and inlined calls")
    } else if image.exports > 0 {
        Finding::better(TOPIC, format!("stripped: only {} exported functions have names", image.exports))
    } else {
        Finding::problem(TOPIC, "stripped: functions have no names, only addresses")
    };
    finding.hint(hint(image))
}

/// The object file that holds each function's debug info.
fn of_objects(image: &MachoContents, found: &SymbolFiles) -> Finding {
    const TOPIC: &str = "names";
    let count = image.object_files;
    let is_object = |attempt: &&Attempt| attempt.requested == FileRole::ObjectFile;
    let missing =
        found.tried.iter().filter(is_object).find(|attempt| attempt.outcome != AttemptOutcome::Used);
    match missing {
        None => {
            let what = "lines and inlined calls from the object files that it was linked from";
            Finding::ok(TOPIC, format!("names from the symbol table, {what} ({count})"))
        }
        Some(attempt) => {
            let (path, outcome) = (attempt.path.display(), &attempt.outcome);
            let text = format!(
                "debug info is in the {count} object files that it was linked from; {path}: {outcome}"
            );
            Finding::better(TOPIC, text).hint("run dsymutil where it was built, and bring the .dSYM along")
        }
    }
}

fn hint(image: &MachoContents) -> String {
    match image.uuid {
        Some(uuid) => format!(
            "build with -g and run dsymutil; give the folder of the .dSYM with --symbol-dir; its UUID is {}",
            uuid.grouped()
        ),
        None => "build with -g, and link with a UUID (no -no_uuid)".to_owned(),
    }
}

fn unwinding(image: &MachoContents) -> Finding {
    const TOPIC: &str = "unwinding";
    match image.architecture {
        Architecture::X86_64 | Architecture::Aarch64 if image.unwind_information => {
            Finding::ok(TOPIC, "stacks by its unwind information (__unwind_info, __eh_frame)")
        }
        Architecture::X86_64 | Architecture::Aarch64 => {
            Finding::better(TOPIC, "no unwind information: stacks by frame pointers alone")
                .hint("link without -no_compact_unwind, or build with -fno-omit-frame-pointer")
        }
        _ => Finding::problem(
            TOPIC,
            format!("this is code for {}: only that for 64-bit x86 and ARM is unwound", architecture(image)),
        )
        .hint("build it for x86_64 or arm64"),
    }
}

fn identity(image: &MachoContents) -> Finding {
    match image.uuid {
        Some(uuid) => Finding::ok("uuid", format!("UUID {}", uuid.grouped())),
        None => {
            Finding::better("uuid", "no UUID: a .dSYM cannot be distinguished from that of another build")
                .hint("link without -no_uuid")
        }
    }
}

fn architecture(image: &MachoContents) -> String {
    match image.architecture {
        Architecture::X86_64 => "x86_64".to_owned(),
        Architecture::X86 => "i386".to_owned(),
        Architecture::Aarch64 if image.authenticates_pointers => "arm64e".to_owned(),
        Architecture::Aarch64 => "arm64".to_owned(),
        Architecture::Other(number) => format!("CPU type {number:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;
    use crate::doctor::finding::tests::assert_mendable;
    use nyquist_object::MachUuid;

    fn image() -> MachoContents {
        MachoContents {
            architecture: Architecture::Aarch64,
            authenticates_pointers: false,
            uuid: Some(MachUuid([0xab; 16])),
            debug_id: None,
            is_debug_file: false,
            debug_info: false,
            object_files: 0,
            symbol_table: false,
            exports: 0,
            function_starts: 3,
            unwind_information: true,
        }
    }

    fn check(finding: &Finding, level: Level, part: &str) {
        assert_mendable([finding]);
        let message = format!("{} {}", finding.text, finding.hints.join(" "));
        assert!(finding.level == level && message.contains(part), "{finding:?}");
    }

    #[test]
    fn names_come_from_the_best_there_is() {
        let of = |image: MachoContents, level, part: &str| {
            check(&names(&image, &SymbolFiles::default()), level, part);
        };
        of(image(), Level::Problem, "its UUID is ABABABAB-ABAB-");
        of(MachoContents { exports: 3, ..image() }, Level::Better, "only 3 exported");
        of(MachoContents { symbol_table: true, exports: 3, ..image() }, Level::Better, "symbol table");
        of(MachoContents { symbol_table: true, object_files: 7, ..image() }, Level::Ok, "linked from (7)");
        of(MachoContents { debug_info: true, ..image() }, Level::Ok, "DWARF");
        of(MachoContents { uuid: None, ..image() }, Level::Problem, "with a UUID");
    }

    #[test]
    fn object_files_that_are_gone_are_reported() {
        let attempt = Attempt {
            requested: FileRole::ObjectFile,
            path: "/build/a.o".into(),
            outcome: AttemptOutcome::Missing,
        };
        let found = SymbolFiles { tried: vec![attempt], ..SymbolFiles::default() };
        let image = MachoContents { symbol_table: true, object_files: 2, ..image() };
        check(&names(&image, &found), Level::Better, "/build/a.o: no such file");
    }

    #[test]
    fn ids_and_unwinding_are_reported() {
        check(&identity(&image()), Level::Ok, "UUID ABABABAB-ABAB-ABAB-ABAB-ABABABABABAB");
        check(&identity(&MachoContents { uuid: None, ..image() }), Level::Better, "no UUID");
        check(&unwinding(&image()), Level::Ok, "__unwind_info");
        check(&unwinding(&MachoContents { unwind_information: false, ..image() }), Level::Better, "alone");
        let other = MachoContents { architecture: Architecture::Other(18), ..image() };
        check(&unwinding(&other), Level::Problem, "CPU type 0x12");
    }
}
