//! The kernel's files that show more to privileged readers. They are opened before this process drops its
//! privileges, because the kernel decides at opening what they show (`kernel/kallsyms.c`,
//! `kernel/module/procfs.c`, `kernel/module/sysfs.c`).

use super::lines::{for_each_line, parse_module};
use super::section_addresses::{SectionAddresses, sections};
use nyquist_system::FileExt as _;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The open files of the running kernel.
#[derive(Debug)]
pub struct KernelFiles {
    kallsyms: File,
    /// `None` for a kernel without modules.
    modules: Option<File>,
    /// By the names of the modules.
    sections: FxHashMap<String, SectionAddresses>,
}

impl KernelFiles {
    /// Opens the files. `None` if they do not exist.
    pub fn open() -> Option<Self> {
        Self::open_below(Path::new("/"))
    }

    pub(super) fn open_below(root: &Path) -> Option<Self> {
        let kallsyms = File::open(root.join("proc/kallsyms")).ok()?;
        let files = Self {
            kallsyms,
            modules: File::open(root.join("proc/modules")).ok(),
            sections: FxHashMap::default(),
        };
        let mut all = FxHashMap::default();
        let read = for_each_line(files.modules().as_slice(), |line| {
            let name = parse_module(line).map(|(name, _)| name).filter(|name| !name.contains('/'));
            all.extend(name.map(|name| {
                // Only the sections with code are needed.
                let sections = sections(&root.join("sys/module").join(&name).join("sections"), "text");
                (name, sections)
            }));
        });
        read.ok()?;
        Some(Self { sections: all, ..files })
    }

    /// All current symbols.
    pub(super) fn kallsyms(&self) -> impl Read {
        FromStart::of(&self.kallsyms)
    }

    /// The current list of modules.
    pub(super) fn modules(&self) -> Vec<u8> {
        let mut modules = Vec::new();
        // A list that cannot be read to its end is treated as one that ends there.
        let _ = self.modules.as_ref().map(|file| FromStart::of(file).read_to_end(&mut modules));
        modules
    }

    /// The sections with the code of a module.
    pub(super) fn sections(&self, module: &str) -> Option<&SectionAddresses> {
        self.sections.get(module)
    }
}

/// Reads a file without changing its shared position.
struct FromStart<'a> {
    file: &'a File,
    at: u64,
}

impl<'a> FromStart<'a> {
    fn of(file: &'a File) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
