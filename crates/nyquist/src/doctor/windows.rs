//! Findings about a Windows file for names and stacks: an image, a PDB, a Breakpad symbol file.

use super::finding::{Finding, Section};
use nyquist_object::FileSource;
use nyquist_object::elf::Architecture;
use nyquist_symbols::{Finder, ImageContents, ModuleRequest, OpenFile, SymbolFiles, WindowsContents};
use nyquist_system::open_regular;
use std::path::Path;
use std::sync::Arc;

/// The findings about a Windows file; `None` for other files.
pub(crate) fn inspect(path: &Path, finder: &Finder) -> Result<Option<Section>, String> {
    let Ok(file) = open_regular(path) else { return Ok(None) };
    let file = OpenFile { path: path.to_owned(), source: Arc::new(FileSource::new(file)) };
    let contents = WindowsContents::of(&file).map_err(|error| error.to_string())?;
    Ok(contents.map(|contents| section(path, &contents, finder)))
}

fn section(path: &Path, contents: &WindowsContents, finder: &Finder) -> Section {
    let (kind, findings) = match contents {
        WindowsContents::Image(image) => ("program", image_findings(path, image, finder)),
        WindowsContents::Pdb(id) => {
            ("debug_file", vec![Finding::ok("debug_id", format!("a PDB: debug id {}", id.breakpad()))])
        }
        WindowsContents::Breakpad(id) => {
            let text = format!("a Breakpad symbol file: debug id {}", id.breakpad());
            ("debug_file", vec![Finding::ok("debug_id", text)])
        }
    };
    Section { kind, name: path.display().to_string(), findings }
}

fn image_findings(path: &Path, image: &ImageContents, finder: &Finder) -> Vec<Finding> {
    let found = finder.find(&ModuleRequest { path: path.to_owned(), ..ModuleRequest::default() });
    let tried: Vec<String> = found
        .tried
        .iter()
        .map(|attempt| format!("{}: {}", attempt.path.display(), attempt.outcome))
        .collect();
    vec![names(image, &found).details(tried), unwinding(image), identity(image)]
}

fn names(image: &ImageContents, found: &SymbolFiles) -> Finding {
    const TOPIC: &str = "names";
    if let Some(file) = &found.debug_file {
        let is_pdb = matches!(WindowsContents::of(file), Ok(Some(WindowsContents::Pdb(_))));
        let kind = if is_pdb { "PDB" } else { "Breakpad symbols" };
        let path = file.path.display();
        return Finding::ok(TOPIC, format!("names, lines and inlined calls from {path} ({kind})"));
    }
    if image.debug_info {
        return Finding::ok(TOPIC, "names, lines and inlined calls from its debug info (DWARF)");
    }
    let finding = if image.symbol_table {
        Finding::better(TOPIC, "names from the symbol table, without lines and inlined calls")
    } else if image.exports > 0 {
        Finding::better(TOPIC, format!("no PDB: only {} exported functions have names", image.exports))
    } else {
        Finding::problem(TOPIC, "no PDB: functions have no names, only addresses")
    };
    finding.hint(hint(image))
}

fn hint(image: &ImageContents) -> String {
    let name = nyquist_symbols::layouts::file_name(&image.pdb_path);
    if name.is_empty() {
        return "link with /DEBUG, or keep the debug info in the program".to_owned();
    }
    format!("give the folder of {name} with --symbol-dir; its debug id is {}", image.debug_id.breakpad())
}

fn unwinding(image: &ImageContents) -> Finding {
    const TOPIC: &str = "unwinding";
    match (image.architecture, image.described_functions) {
        (Architecture::X86_64 | Architecture::Aarch64, 0) => {
            Finding::better(TOPIC, "no table of functions (.pdata): stacks by frame pointers alone")
                .hint("bring the image as it was linked: linkers for 64-bit Windows write one")
        }
        (Architecture::X86_64 | Architecture::Aarch64, functions) => {
            Finding::ok(TOPIC, format!("stacks by its table of functions (.pdata, {functions} entries)"))
        }
        (other, _) => Finding::problem(
            TOPIC,
            format!("this is code for {other:?}: only that for 64-bit x86 and ARM is unwound"),
        )
        .hint("build it for x86_64 or arm64"),
    }
}

fn identity(image: &ImageContents) -> Finding {
    let pdb = if image.pdb_path.is_empty() { String::new() } else { format!(" of {}", image.pdb_path) };
    Finding::ok("code_id", format!("code id {}, debug id {}{pdb}", image.code_id, image.debug_id.breakpad()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;
    use crate::doctor::finding::tests::assert_mendable;
    use nyquist_object::{DebugId, PeCodeId};

    fn image() -> ImageContents {
        ImageContents {
            architecture: Architecture::X86_64,
            code_id: PeCodeId { timestamp: 0x5ca1_2c43, size_of_image: 0x3000 },
            debug_id: DebugId::default(),
            pdb_path: "D:\\build\\app.pdb".to_owned(),
            debug_info: false,
            symbol_table: false,
            exports: 0,
            described_functions: 7,
        }
    }

    #[test]
    fn names_come_from_the_best_there_is() {
        let of = |image: ImageContents, level, part: &str| {
            let finding = names(&image, &SymbolFiles::default());
            assert_mendable([&finding]);
            let message = format!("{} {}", finding.text, finding.hints.join(" "));
            assert!(finding.level == level && message.contains(part), "{finding:?}");
        };
        of(image(), Level::Problem, "folder of app.pdb");
        of(ImageContents { exports: 3, ..image() }, Level::Better, "only 3 exported");
        of(ImageContents { symbol_table: true, exports: 3, ..image() }, Level::Better, "symbol table");
        of(ImageContents { debug_info: true, ..image() }, Level::Ok, "DWARF");
        of(ImageContents { pdb_path: String::new(), ..image() }, Level::Problem, "/DEBUG");
    }

    #[test]
    fn ids_and_unwinding_are_reported() {
        let of = |finding: Finding, level, part: &str| {
            assert_mendable([&finding]);
            assert!(finding.level == level && finding.text.contains(part), "{finding:?}");
        };
        of(identity(&image()), Level::Ok, "code id 5CA12C433000, debug id 0000");
        of(unwinding(&image()), Level::Ok, "7 entries");
        of(unwinding(&ImageContents { described_functions: 0, ..image() }), Level::Better, "no table");
        let arm = ImageContents { architecture: Architecture::Aarch64, ..image() };
        of(unwinding(&arm), Level::Ok, "7 entries");
        let x86 = ImageContents { architecture: Architecture::X86, ..image() };
        of(unwinding(&x86), Level::Problem, "64-bit x86 and ARM");
    }
}
