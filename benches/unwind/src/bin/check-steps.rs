//! Two steps from every instruction of PE images and Mach-O files, held against what the instructions themselves do to
//! the stack, with framehop's beside them: `check-steps [-v] FILE...`. Fails on a step that is wrong, and where
//! framehop's are wrong in a way that known-differences.txt lacks. What `llvm-objdump` and `llvm-readobj` read of the
//! unwind information is held against the rules too.

use anyhow::{Context, Result, ensure};
use framehop::{ExplicitModuleSectionInfo, ModuleSectionInfo};
use nyquist_object::pe::DataDirectory;
use nyquist_object::{Architecture, FileSource, MachO, Pe, RelativeAddress};
use nyquist_unwind::Module;
use nyquist_unwind::rule::{CfaKind, Rule};
use nyquist_unwind_bench::steps::{Comparison, Peer};
use nyquist_unwind_bench::truth;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A file, ready to be compared.
struct Image {
    kind: &'static str,
    architecture: Architecture,
    module: Arc<Module>,
    /// From its base to its end.
    range: Range<u64>,
    /// Where functions begin.
    functions: Vec<u64>,
    peer: Option<Peer>,
}

fn open(path: &Path) -> Result<Image> {
    let source = || Ok::<_, std::io::Error>(FileSource::new(File::open(path)?));
    match Pe::open(source()?) {
        Ok(pe) => open_pe(&pe),
        Err(_) => open_macho(&MachO::open(source()?)?),
    }
}

fn open_pe(pe: &Pe<FileSource>) -> Result<Image> {
    let base = pe.image_base().0;
    let architecture = pe.architecture();
    let range = base..base + u64::from(pe.size_of_image());
    let (address, size) = pe.directory(DataDirectory::Exceptions).context("no table of functions")?;
    let (words, bytes) =
        (if architecture == Architecture::Aarch64 { 2 } else { 3 }, pe.read_at(address, size)?);
    let starts = bytes
        .chunks_exact(4 * words)
        .filter_map(|entry| entry.first_chunk().copied().map(u32::from_le_bytes));
    let functions = starts.map(|start| base + u64::from(start)).collect();
    // Of 64-bit ARM framehop knows no PE images.
    let (kind, peer) = match architecture {
        Architecture::Aarch64 => ("PE arm64", None),
        _ => ("PE x86_64", Some(Peer::new(architecture, range.clone(), Sections(pe)))),
    };
    Ok(Image { kind, architecture, module: Arc::new(Module::from_pe(pe)?), range, functions, peer })
}

fn open_macho(file: &MachO<FileSource>) -> Result<Image> {
    let base = file.image_base().0;
    let architecture = file.architecture();
    let range = base..base + (1 << 30);
    let functions = file.function_starts()?.iter().map(|start| base + u64::from(start.0)).collect();
    let kind = if architecture == Architecture::Aarch64 { "Mach-O arm64" } else { "Mach-O x86_64" };
    let peer = Some(Peer::new(architecture, range.clone(), macho_sections(file)?));
    Ok(Image { kind, architecture, module: Arc::new(Module::from_macho(file)?), range, functions, peer })
}

/// The sections of an image as framehop asks for them.
struct Sections<'a>(&'a Pe<FileSource>);

impl ModuleSectionInfo<Vec<u8>> for Sections<'_> {
    fn base_svma(&self) -> u64 {
        self.0.image_base().0
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let section = self.0.section(std::str::from_utf8(name).ok()?)?;
        let start = self.base_svma() + u64::from(section.address.0);
        Some(start..start + u64::from(section.size()))
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        self.0.data(self.0.section(std::str::from_utf8(name).ok()?)?).ok()
    }
}

fn macho_sections(file: &MachO<FileSource>) -> Result<ExplicitModuleSectionInfo<Vec<u8>>> {
    let read = |name| file.section_data("__TEXT", name);
    let range = |name| file.section("__TEXT", name).map(|s| s.address.0..s.address.0 + s.size);
    Ok(ExplicitModuleSectionInfo {
        base_svma: file.image_base().0,
        text_svma: range("__text"),
        text: read("__text")?,
        stubs_svma: range("__stubs"),
        stub_helper_svma: range("__stub_helper"),
        eh_frame_svma: range("__eh_frame"),
        eh_frame: read("__eh_frame")?,
        unwind_info: read("__unwind_info")?,
        ..Default::default()
    })
}

fn check(path: &Path, comparison: &mut Comparison) -> Result<()> {
    let image = open(path)?;
    ensure!(image.module.damage().count == 0, "{:?}", image.module.damage());
    let space = Comparison::space(&image.module, &image.range);
    let instructions = truth::instructions(path)?;
    let before = (comparison.steps, comparison.wrong);
    for (number, start) in image.functions.iter().enumerate() {
        let end = image.functions.get(number + 1).copied().unwrap_or(image.range.end);
        for (address, state) in truth::states(image.architecture, &instructions, *start, end) {
            if let Some(instruction) = instructions.get(&address) {
                comparison.add(image.kind, (&space, image.peer.as_ref()), (address, instruction), state);
            }
        }
    }
    let (entries, wrong) = entries(path, &image, &instructions)?;
    comparison.wrong += wrong;
    let (steps, wrong) = (comparison.steps - before.0, comparison.wrong - before.1);
    println!(
        "{}: {steps} of {} instructions, {entries} entries of LLVM's, {wrong} wrong",
        path.display(),
        instructions.len()
    );
    ensure!(steps > 0 && entries > 0, "nothing to compare");
    Ok(())
}

/// Holds what LLVM reads of the unwind information against the rules: how much there is, and how much of it is wrong.
fn entries(path: &Path, image: &Image, instructions: &truth::Instructions) -> Result<(usize, usize)> {
    match image.kind {
        "PE arm64" => {
            let sizes = sizes(path, image.range.start)?;
            let wrong = sizes.iter().filter(|entry| !is_of_size(&image.module, **entry)).count();
            Ok((sizes.len(), wrong))
        }
        "PE x86_64" => Ok((image.functions.len(), 0)),
        _ => {
            let entries = encodings(path)?;
            let has_body = |number: usize, (start, encoding): (u32, u32)| {
                let end = entries.get(number + 1).map_or(u32::MAX, |next| next.0);
                let inside = instructions.keys().map(|at| (at - image.range.start) as u32);
                let mut rules = inside
                    .filter(|at| (start..end).contains(at))
                    .map(|at| image.module.rule(RelativeAddress(at)));
                encoding == 0 || rules.any(|rule| is_body(image.architecture, encoding, rule))
            };
            let wrong =
                entries.iter().enumerate().filter(|(number, entry)| !has_body(*number, **entry)).count();
            Ok((entries.len(), wrong))
        }
    }
}

fn llvm(tool: &str, option: &str, path: &Path) -> Result<String> {
    let output = Command::new(tool).arg(option).arg(path).output()?;
    ensure!(output.status.success(), "{tool}: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The functions and compact encodings that LLVM finds.
fn encodings(path: &Path) -> Result<Vec<(u32, u32)>> {
    let number = |line: &str, name: &str| {
        let digits = line.split_once(name)?.1.split_once("=0x")?.1;
        u32::from_str_radix(digits.get(..8)?, 16).ok()
    };
    let entry = |line: &str| Some((number(line, "function offset")?, number(line, "encoding")?));
    Ok(llvm("llvm-objdump", "--unwind-info", path)?.lines().filter_map(entry).collect())
}

/// Whether a rule is that of a body with this encoding, as far as it says so by itself.
fn is_body(architecture: Architecture, encoding: u32, rule: Rule) -> bool {
    let (mode, kind, operand) = (encoding >> 24 & 0xf, rule.kind(), rule.operand());
    let size = i64::from(encoding >> 12 & 0xfff) * 16;
    match (architecture, mode) {
        (Architecture::Aarch64, 2) => kind == CfaKind::StackPointer && operand == size,
        (Architecture::Aarch64, 4) | (Architecture::X86_64, 1) => {
            kind == CfaKind::FramePointer && operand == 16
        }
        (Architecture::X86_64, 2) => {
            kind == CfaKind::StackPointer && operand == i64::from(encoding >> 16 & 0xff) * 8
        }
        (Architecture::X86_64, 3) => kind == CfaKind::StackPointer,
        _ => kind != CfaKind::Uncovered,
    }
}

/// What LLVM reads of each function of a PE image for 64-bit ARM: where it begins, how many bytes its frame has, and
/// how many instructions its prologue.
fn sizes(path: &Path, base: u64) -> Result<Vec<(u32, i64, u32)>> {
    let (mut found, mut start, mut in_prologue) = (Vec::new(), 0, false);
    for line in llvm("llvm-readobj", "--unwind", path)?.lines().map(str::trim) {
        if let Some(function) = line.strip_prefix("Function: ") {
            let digits = function.rsplit("0x").next().unwrap_or_default().trim_end_matches(')');
            start = (u64::from_str_radix(digits, 16)? - base) as u32;
        } else if line.starts_with("Prologue [") {
            in_prologue = true;
            found.push((start, 0, 0));
        } else if line == "]" {
            in_prologue = false;
        } else if let Some((_, size, instructions)) = found.last_mut().filter(|_| in_prologue) {
            let text = line.split_once(';').map_or(line, |(_, text)| text).trim();
            if text != "end" {
                *size += taken(text);
                *instructions += 1;
            }
        }
    }
    Ok(found)
}

/// How many bytes of the stack an instruction of a prologue takes.
fn taken(text: &str) -> i64 {
    let number =
        text.trim_end_matches(['!', ']']).rsplit('#').next().and_then(|digits| digits.parse::<i64>().ok());
    match number {
        Some(bytes) if text.starts_with("sub sp") => bytes,
        Some(bytes) if text.ends_with("]!") => -bytes,
        _ => 0,
    }
}

/// Whether the rule behind a function's prologue is of a frame of this size. A frame pointer says how far above it the
/// frame ends, which is no more.
fn is_of_size(module: &Module, (start, size, prologue): (u32, i64, u32)) -> bool {
    let rule = module.rule(RelativeAddress(start + 4 * prologue));
    let fits = match rule.kind() {
        CfaKind::StackPointer => rule.operand() == size,
        CfaKind::FramePointer => (1..=size).contains(&rule.operand()),
        _ => false,
    };
    if !fits {
        println!("  the function at {start:#x}: {rule:?}, and LLVM has {size} bytes");
    }
    fits
}

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let shown = if arguments.first().is_some_and(|first| first == "-v") { 20 } else { 0 };
    arguments.retain(|argument| argument != "-v");
    let mut comparison = Comparison::new(shown);
    for path in &arguments {
        check(Path::new(path), &mut comparison).with_context(|| path.clone())?;
    }
    ensure!(comparison.steps > 0, "usage: check-steps [-v] FILE...");
    comparison.check()
}
