//! Findings about a program or library for names and stacks.

use super::finding::{Finding, Level, Section};
use nyquist_object::elf::Architecture;
use nyquist_symbols::{Finder, Language, ModuleFacts, NameSource, UnwindSource};
use nyquist_system::{HeldFile, OpenRoot};
use std::path::Path;

/// With a smaller share of functions that keep a frame pointer, many stacks lose callers, because stacks are
/// often about ten frames deep.
const ENOUGH_FRAME_POINTERS: u8 = 95;

/// A module whose files were examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module(ModuleFacts);

impl Module {
    /// Finds a module's files the same way as a recording. Fails if the binary cannot be read.
    pub(crate) fn read(path: &Path, finder: &Finder) -> Result<Self, String> {
        ModuleFacts::read(path, finder).map(Self).map_err(|error| error.to_string())
    }

    /// The same of a file that is held open, in a process with this root folder.
    pub(crate) fn of_held(
        path: &Path,
        file: HeldFile,
        root: Option<OpenRoot>,
        finder: &Finder,
    ) -> Result<Self, String> {
        let facts = ModuleFacts::of_held(path, file, root.into_iter().collect(), finder);
        facts.map(Self).map_err(|error| error.to_string())
    }

    /// All findings about a requested program.
    pub(crate) fn section(&self, kind: &'static str) -> Section {
        let findings = [
            self.architecture(),
            Some(self.names_finding().details(self.attempts())),
            self.split(),
            Some(self.unwinding()),
            self.frame_pointers(),
            Some(self.identity()),
        ];
        let name = self.0.path.display().to_string();
        Section { kind, name, findings: findings.into_iter().flatten().collect() }
    }

    /// One finding, for a library among many.
    pub(crate) fn summary(&self) -> Finding {
        let (names, unwinding) = (self.names_finding(), self.unwinding());
        let level = if unwinding.level == Level::Ok { names.level } else { unwinding.level };
        let mut text = format!("{}: {}", self.0.path.display(), names.text);
        if unwinding.level != Level::Ok {
            text = format!("{text}; {}", unwinding.text);
        }
        if let Some(pointers) = self.0.contents.frame_pointers {
            text = format!("{text}; frame pointers in {} % of its functions", pointers.percent());
        }
        let hints = if names.level == Level::Ok { unwinding.hints } else { vec![package_hint()] };
        Finding::new("library", level, text).hints(hints).details(self.attempts())
    }

    fn architecture(&self) -> Option<Finding> {
        let what = match self.0.contents.architecture {
            Architecture::X86_64 | Architecture::Aarch64 => return None,
            Architecture::X86 => "32-bit x86".to_owned(),
            Architecture::Other(number) => format!("machine {number}"),
        };
        Some(
            Finding::problem(
                "architecture",
                format!("this is code for {what}: only that for 64-bit x86 and ARM is unwound"),
            )
            .hint("build it for one of these, as without -m32"),
        )
    }

    fn names_finding(&self) -> Finding {
        const TOPIC: &str = "names";
        match self.0.names() {
            NameSource::DebugInfo(None) => {
                Finding::ok(TOPIC, "names, lines and inlined calls from its debug info (DWARF)")
            }
            NameSource::DebugInfo(Some(path)) => {
                let path = path.display();
                Finding::ok(TOPIC, format!("names, lines and inlined calls from {path} (DWARF)"))
            }
            NameSource::GoTables => {
                Finding::ok(TOPIC, "names, lines and inlined calls from Go's own tables (.gopclntab)")
            }
            NameSource::SymbolTable => Finding::better(
                TOPIC,
                "names from the symbol table (.symtab), without lines and inlined calls",
            )
            .hint(self.debug_info_hint()),
            NameSource::MiniDebugInfo => {
                Finding::better(TOPIC, "names from .gnu_debugdata, without lines and inlined calls")
                    .hint(package_hint())
            }
            NameSource::Exports => {
                Finding::better(TOPIC, "stripped: only exported functions have names (.dynsym)")
                    .hint(self.stripped_hint())
            }
            NameSource::None => Finding::problem(TOPIC, "stripped: functions have no names, only addresses")
                .hint(self.stripped_hint()),
        }
    }

    fn debug_info_hint(&self) -> String {
        match self.0.contents.language {
            Some(Language::Rust) => {
                "build with debug = \"limited\" under [profile.release], or with `cargo nyquist run`"
            }
            Some(Language::Go) => "build without -ldflags=-w",
            None => "build with -g (it changes nothing of the code)",
        }
        .to_owned()
    }

    fn stripped_hint(&self) -> String {
        match self.0.contents.language {
            Some(Language::Rust) => {
                "build with strip = false and debug = \"limited\" under [profile.release]".to_owned()
            }
            Some(Language::Go) => "build without -ldflags=\"-s -w\"".to_owned(),
            None => package_hint(),
        }
    }

    fn split(&self) -> Option<Finding> {
        const TOPIC: &str = "split_debug_info";
        self.0.is_split().then_some(())?;
        Some(if self.0.has_package {
            Finding::ok(TOPIC, "the debug info that was split off is in a package (.dwp)")
        } else {
            Finding::better(TOPIC, "the debug info is split: it is whole only where its .dwo files still are")
                .hint("pack them beside the program: dwp -e PROGRAM -o PROGRAM.dwp")
        })
    }

    fn unwinding(&self) -> Finding {
        const TOPIC: &str = "unwinding";
        let percent = self.0.contents.unwound_percent;
        match self.0.unwinding() {
            UnwindSource::UnwindInformation => Finding::ok(
                TOPIC,
                format!("stacks by its unwind information (.eh_frame of {percent} % of the code)"),
            ),
            UnwindSource::DebugFrame => {
                Finding::ok(TOPIC, "stacks by the unwind information for debuggers (.debug_frame)")
            }
            UnwindSource::GoFramePointers => Finding::ok(TOPIC, "stacks by frame pointers, which Go keeps"),
            UnwindSource::FramePointers => Finding::better(
                TOPIC,
                format!(
                    "unwind information for {percent} % of the code: stacks are whole only where frame pointers are kept"
                ),
            )
            .hint(format!("build with -fasynchronous-unwind-tables, or {}", self.frame_pointer_option())),
        }
    }

    /// The finding about `--call-graph fp`. If stacks have unwind information, they are complete without
    /// frame pointers.
    fn frame_pointers(&self) -> Option<Finding> {
        const TOPIC: &str = "frame_pointers";
        if self.0.contents.language == Some(Language::Go) {
            let text = "Go keeps frame pointers in all functions that have a frame: --call-graph fp finds their callers";
            return Some(Finding::ok(TOPIC, text));
        }
        let percent = self.0.contents.frame_pointers?.percent();
        let share = format!("{percent} % of its functions keep frame pointers");
        if percent >= ENOUGH_FRAME_POINTERS {
            return Some(Finding::ok(TOPIC, format!("{share}: --call-graph fp finds their callers")));
        }
        let level = self.unwinding().level;
        let finding =
            Finding::new(TOPIC, level, format!("{share}: --call-graph fp loses callers of the others"));
        Some(
            finding
                .hint(format!("to record with --call-graph fp, build with {}", self.frame_pointer_option())),
        )
    }

    fn frame_pointer_option(&self) -> &'static str {
        match self.0.contents.language {
            Some(Language::Rust) => "RUSTFLAGS=\"-C force-frame-pointers=yes\"",
            _ => "-fno-omit-frame-pointer",
        }
    }

    fn identity(&self) -> Finding {
        match &self.0.build_id {
            Some(id) => Finding::ok("build_id", format!("build id {id}")),
            None => Finding::better(
                "build_id",
                "no build id: separate debug files are found by a debug link alone, and a rebuilt file is distinguished only on this machine",
            )
            .hint("link with -Wl,--build-id"),
        }
    }

    fn attempts(&self) -> impl Iterator<Item = String> {
        self.0.tried.iter().map(|attempt| format!("{}: {}", attempt.path.display(), attempt.outcome))
    }
}

/// The source of debug files for packages of a distribution.
fn package_hint() -> String {
    "install the debug packages (Debian, Ubuntu: find-dbgsym-packages FILE; Fedora: dnf debuginfo-install PACKAGE), or \
     give the folder of the debug files with --symbol-dir, or name a server that has them in DEBUGINFOD_URLS"
        .to_owned()
}

/// The finding about a file that cannot be read.
pub(crate) fn unreadable(path: &Path, reason: &str) -> Finding {
    Finding::better("library", format!("{}: {reason}", path.display()))
        .hint("make it readable, or run as root; install a damaged file anew")
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::assert_mendable;
    use super::*;
    use nyquist_symbols::{Contents, FramePointers};

    const NOTHING: Contents = Contents {
        architecture: Architecture::X86_64,
        debug_info: false,
        split: false,
        symbol_table: false,
        mini_debug_info: false,
        dynamic_symbols: false,
        go_tables: false,
        debug_link: false,
        unwound_percent: 0,
        frame_pointers: None,
        debug_frame: false,
        language: None,
    };

    fn module(contents: Contents, debug_file: Option<Contents>) -> Module {
        Module(ModuleFacts {
            path: "/bin/app".into(),
            build_id: Some("ab12".to_owned()),
            contents,
            debug_file: debug_file.map(|contents| ("/debug/app".into(), contents)),
            has_package: false,
            tried: Vec::new(),
        })
    }

    fn check(module: &Module, topic: &str, level: Level, parts: &[&str]) {
        let section = module.section("program");
        assert_mendable(section.findings.iter().chain([&module.summary()]));
        let found = section.findings.iter().find(|finding| finding.topic == topic).unwrap();
        assert_eq!(found.level, level, "{found:?}");
        let message = format!("{} | {}", found.text, found.hints.join(" | "));
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} are not in {message}");
    }

    #[test]
    fn names_come_from_the_best_there_is() {
        let exports = Contents { dynamic_symbols: true, ..NOTHING };
        let mini = Contents { mini_debug_info: true, ..exports };
        let symbols = Contents { symbol_table: true, ..mini };
        let whole = Contents { debug_info: true, ..symbols };
        let of = |contents, debug_file, level, parts: &[&str]| {
            check(&module(contents, debug_file), "names", level, parts);
        };
        of(NOTHING, None, Level::Problem, &["have no names", "debug packages"]);
        of(exports, None, Level::Better, &[".dynsym", "debug packages"]);
        of(mini, None, Level::Better, &[".gnu_debugdata"]);
        of(symbols, None, Level::Better, &[".symtab", "build with -g"]);
        of(whole, None, Level::Ok, &["from its debug info"]);
        of(exports, Some(whole), Level::Ok, &["from /debug/app"]);
        of(exports, Some(symbols), Level::Better, &[".symtab"]);
    }

    #[test]
    fn each_language_is_built_in_its_own_way() {
        let of = |language, symbol_table, part| {
            let contents =
                Contents { language: Some(language), symbol_table, dynamic_symbols: true, ..NOTHING };
            check(&module(contents, None), "names", Level::Better, &[part]);
        };
        of(Language::Rust, true, "cargo nyquist run");
        of(Language::Rust, false, "strip = false");
        of(Language::Go, true, "without -ldflags=-w");
        of(Language::Go, false, "-s -w");
    }

    #[test]
    fn unwinding_takes_information_or_frame_pointers() {
        let of = |contents, level, part| check(&module(contents, None), "unwinding", level, &[part]);
        of(NOTHING, Level::Better, "frame pointers are kept");
        of(Contents { unwound_percent: 99, ..NOTHING }, Level::Ok, ".eh_frame of 99 %");
        of(Contents { unwound_percent: 3, ..NOTHING }, Level::Better, "for 3 %");
        of(Contents { debug_frame: true, ..NOTHING }, Level::Ok, ".debug_frame");
        of(Contents { language: Some(Language::Go), ..NOTHING }, Level::Ok, "which Go keeps");
    }

    #[test]
    fn few_frame_pointers_get_a_hint() {
        const FEW: Option<FramePointers> = Some(FramePointers { functions: 25, preserved: 1 });
        let of = |contents, level, parts: &[&str]| {
            check(&module(contents, None), "frame_pointers", level, parts);
        };
        let all = Some(FramePointers { functions: 100, preserved: 99 });
        of(Contents { frame_pointers: all, ..NOTHING }, Level::Ok, &["99 %", "fp finds their callers"]);
        let few = Contents { frame_pointers: FEW, ..NOTHING };
        of(few, Level::Better, &["4 %", "fp loses", "-fno-omit-frame-pointer"]);
        // Stacks are complete without frame pointers, but --call-graph fp needs them.
        of(Contents { unwound_percent: 99, ..few }, Level::Ok, &["fp loses", "-fno-omit-frame-pointer"]);
        let rust = Contents { language: Some(Language::Rust), ..few };
        of(rust, Level::Better, &["force-frame-pointers=yes"]);
        of(Contents { language: Some(Language::Go), ..NOTHING }, Level::Ok, &["Go keeps"]);
        assert!(module(NOTHING, None).frame_pointers().is_none());
        let library = module(Contents { frame_pointers: FEW, ..NOTHING }, None).summary();
        assert!(library.text.ends_with("; frame pointers in 4 % of its functions"), "{}", library.text);
    }

    #[test]
    fn foreign_code_and_split_debug_info_are_named() {
        let contents = Contents { architecture: Architecture::X86, split: true, ..NOTHING };
        check(&module(contents, None), "architecture", Level::Problem, &["32-bit x86", "without -m32"]);
        let other = Contents { architecture: Architecture::Other(8), ..NOTHING };
        check(&module(other, None), "architecture", Level::Problem, &["machine 8"]);
        check(&module(contents, None), "split_debug_info", Level::Better, &["dwp -e"]);
        let packed = Module(ModuleFacts { has_package: true, ..module(contents, None).0 });
        check(&packed, "split_debug_info", Level::Ok, &[".dwp"]);
        let unnamed = Module(ModuleFacts { build_id: None, ..packed.0 });
        check(&unnamed, "build_id", Level::Better, &["-Wl,--build-id"]);
    }

    #[test]
    fn a_library_has_one_line_with_all_that_is_poor() {
        let poor = module(Contents { dynamic_symbols: true, ..NOTHING }, None).summary();
        assert_eq!(poor.level, Level::Better);
        assert!(
            poor.text.starts_with("/bin/app: stripped") && poor.text.contains("unwind information for 0 %"),
            "{}",
            poor.text
        );
        assert_mendable(&[unreadable(Path::new("/lib/secret.so"), "permission denied")]);
        let fine = module(Contents { debug_info: true, unwound_percent: 99, ..NOTHING }, None).summary();
        assert_eq!((fine.level, fine.hints.len()), (Level::Ok, 0));
    }
}
