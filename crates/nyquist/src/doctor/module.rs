//! What a program or library holds for names and stacks, and what its findings are.

use super::finding::{Finding, Level, Section};
use nyquist_object::elf::Architecture;
use nyquist_object::{Elf, ObjectError};
use nyquist_symbols::{Attempt, Contents, Finder, Found, Language, ModuleRequest, OpenFile};
use std::path::{Path, PathBuf};

/// The facts about a module's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) path: PathBuf,
    pub(crate) build_id: Option<String>,
    pub(crate) contents: Contents,
    /// A separate debug file that was found, with what it holds.
    pub(crate) debug_file: Option<(PathBuf, Contents)>,
    /// Whether the package of what was split off the debug info was found.
    pub(crate) has_package: bool,
    /// Every path that was tried, in order.
    pub(crate) tried: Vec<Attempt>,
}

/// Where names come from, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names<'a> {
    DebugInfo(Option<&'a Path>),
    SymbolTable,
    MiniDebugInfo,
    Exports,
    None,
}

impl Module {
    /// Looks for a module's files as a recording does. Fails where the binary cannot be read.
    pub(crate) fn look(path: &Path, opens_at: Option<&Path>, finder: &Finder) -> Result<Self, String> {
        let request = ModuleRequest {
            path: path.to_owned(),
            alternatives: opens_at.filter(|place| *place != path).map(Path::to_owned).into_iter().collect(),
            ..ModuleRequest::default()
        };
        let Found { binary, debug_file, package, tried, .. } = finder.find(&request);
        let Some(binary) = binary else {
            let last = tried.iter().map(|attempt| attempt.outcome.to_string()).next();
            return Err(last.unwrap_or_else(|| "no such file".to_owned()));
        };
        let elf = open(&binary).map_err(|error| error.to_string())?;
        let debug_file =
            debug_file.and_then(|file| Some((file.path.clone(), Contents::of(&open(&file).ok()?))));
        Ok(Self {
            path: path.to_owned(),
            build_id: elf.build_id().map(|id| id.to_string()),
            contents: Contents::of(&elf),
            debug_file,
            has_package: package.is_some(),
            tried,
        })
    }

    fn names(&self) -> Names<'_> {
        let separate = self.debug_file.as_ref();
        let has = |part: fn(&Contents) -> bool| {
            part(&self.contents) || separate.is_some_and(|(_, contents)| part(contents))
        };
        match separate {
            _ if self.contents.debug_info => Names::DebugInfo(None),
            Some((path, contents)) if contents.debug_info => Names::DebugInfo(Some(path)),
            _ if has(|it| it.symbol_table) => Names::SymbolTable,
            _ if has(|it| it.mini_debug_info) => Names::MiniDebugInfo,
            _ if has(|it| it.dynamic_symbols) => Names::Exports,
            _ => Names::None,
        }
    }

    /// All findings, of a program that is asked about.
    pub(crate) fn section(&self, kind: &'static str) -> Section {
        let findings = [
            self.architecture(),
            Some(self.names_finding().details(self.attempts())),
            self.split(),
            Some(self.unwinding()),
            Some(self.identity()),
        ];
        let name = self.path.display().to_string();
        Section { kind, name, findings: findings.into_iter().flatten().collect() }
    }

    /// One finding, for a library among many.
    pub(crate) fn summary(&self) -> Finding {
        let (names, unwinding) = (self.names_finding(), self.unwinding());
        let level = if unwinding.level == Level::Ok { names.level } else { unwinding.level };
        let mut text = format!("{}: {}", self.path.display(), names.text);
        if unwinding.level != Level::Ok {
            text = format!("{text}; {}", unwinding.text);
        }
        let hints = if level == Level::Ok { None } else { Some(package_hint()) };
        Finding::new("library", level, text).hints(hints).details(self.attempts())
    }

    fn architecture(&self) -> Option<Finding> {
        let what = match self.contents.architecture {
            Architecture::X86_64 => return None,
            Architecture::X86 => "32-bit x86".to_owned(),
            Architecture::Aarch64 => "64-bit ARM".to_owned(),
            Architecture::Other(number) => format!("machine {number}"),
        };
        Some(Finding::problem("architecture", format!("this is code for {what}: only 64-bit x86 is unwound")))
    }

    fn names_finding(&self) -> Finding {
        const TOPIC: &str = "names";
        match self.names() {
            Names::DebugInfo(None) => {
                Finding::ok(TOPIC, "names, lines and inlined calls from its debug info (DWARF)")
            }
            Names::DebugInfo(Some(path)) => {
                let path = path.display();
                Finding::ok(TOPIC, format!("names, lines and inlined calls from {path} (DWARF)"))
            }
            Names::SymbolTable => Finding::better(
                TOPIC,
                "names from the symbol table (.symtab), without lines and inlined calls",
            )
            .hint(self.debug_info_hint()),
            Names::MiniDebugInfo => {
                Finding::better(TOPIC, "names from .gnu_debugdata, without lines and inlined calls")
                    .hint(package_hint())
            }
            Names::Exports => {
                Finding::better(TOPIC, "stripped: only exported functions have names (.dynsym)")
                    .hint(self.stripped_hint())
            }
            Names::None => Finding::problem(TOPIC, "stripped: functions have no names, only addresses")
                .hint(self.stripped_hint()),
        }
    }

    fn debug_info_hint(&self) -> String {
        match self.contents.language {
            Some(Language::Rust) => {
                "build with debug = \"line-tables-only\" under [profile.release], or with `cargo nyquist run`"
            }
            Some(Language::Go) => "build without -ldflags=-w",
            None => "build with -g (it changes nothing of the code)",
        }
        .to_owned()
    }

    fn stripped_hint(&self) -> String {
        match self.contents.language {
            Some(Language::Rust) => {
                "build with strip = false and debug = \"line-tables-only\" under [profile.release]".to_owned()
            }
            Some(Language::Go) => "build without -ldflags=\"-s -w\"".to_owned(),
            None => package_hint(),
        }
    }

    fn split(&self) -> Option<Finding> {
        const TOPIC: &str = "split_debug_info";
        let holder = self.debug_file.as_ref().map_or(&self.contents, |(_, contents)| contents);
        holder.split.then_some(())?;
        Some(if self.has_package {
            Finding::ok(TOPIC, "the debug info that was split off is in a package (.dwp)")
        } else {
            Finding::better(TOPIC, "the debug info is split: it is whole only where its .dwo files still are")
                .hint("pack them beside the program: dwp -e PROGRAM -o PROGRAM.dwp")
        })
    }

    fn unwinding(&self) -> Finding {
        const TOPIC: &str = "unwinding";
        let in_debug_file = self.debug_file.as_ref().is_some_and(|(_, contents)| contents.debug_frame);
        if self.contents.eh_frame {
            Finding::ok(TOPIC, "stacks by its unwind information (.eh_frame)")
        } else if self.contents.debug_frame || in_debug_file {
            Finding::ok(TOPIC, "stacks by the unwind information for debuggers (.debug_frame)")
        } else if self.contents.language == Some(Language::Go) {
            Finding::ok(TOPIC, "stacks by frame pointers, which Go keeps")
        } else {
            Finding::better(
                TOPIC,
                "no unwind information: stacks are whole only where frame pointers are kept",
            )
            .hint("build with -fasynchronous-unwind-tables, or -fno-omit-frame-pointer")
        }
    }

    fn identity(&self) -> Finding {
        match &self.build_id {
            Some(id) => Finding::ok("build_id", format!("build id {id}")),
            None => Finding::better(
                "build_id",
                "no build id: separate debug files are found by a debug link alone, and a rebuilt file only on this machine is told apart",
            )
            .hint("link with -Wl,--build-id"),
        }
    }

    fn attempts(&self) -> impl Iterator<Item = String> {
        self.tried.iter().map(|attempt| format!("{}: {}", attempt.path.display(), attempt.outcome))
    }
}

/// What has the debug file of a file that is not one's own.
fn package_hint() -> String {
    "install the debug packages (Debian, Ubuntu: find-dbgsym-packages FILE; Fedora: dnf debuginfo-install PACKAGE), or \
     give the folder of the debug files with --symbol-dir"
        .to_owned()
}

fn open(file: &OpenFile) -> Result<Elf<&nyquist_object::FileSource>, ObjectError> {
    Elf::open(&*file.source)
}
