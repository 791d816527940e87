//! The first step from every instruction of PE images for x86_64, beside framehop's: `check-pe IMAGE...`.
//!
//! Instructions are those of `llvm-objdump`. The stack holds in each word its own address, so that where a return address
//! was read is told by the address itself. Any difference is a failure, but for jumps: framehop takes each for the end of an
//! epilogue, also those that lead to elsewhere in the same function.

use anyhow::{Context as _, Result, ensure};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, ModuleSectionInfo, Unwinder as _};
use nyquist_object::{Avma, FileSource, Pe};
use nyquist_unwind::{AddressSpace, Module, Registers, StackMemory, Unwinder};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Where the stack is. Its words look like return addresses into code that nothing describes.
const STACK: u64 = 0x7000_0000_0000;
const STACK_LEN: u64 = 1 << 32;
const SP: u64 = STACK + 0x1_0000_0000 / 2;
const BP: u64 = SP + 0x40_0000;

struct Stack;

impl StackMemory for Stack {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        (STACK..STACK + STACK_LEN).contains(&address.0).then_some(address.0)
    }
}

fn main() -> Result<()> {
    let mut differences = 0;
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        differences += check(&path).with_context(|| path.display().to_string())?;
    }
    ensure!(differences == 0, "{differences} differences");
    Ok(())
}

fn check(path: &Path) -> Result<usize> {
    let pe = Pe::open(FileSource::new(File::open(path)?))?;
    let module = Module::from_pe(&pe)?;
    ensure!(module.damage().count == 0, "{:?}", module.damage());
    let base = pe.image_base().0;
    let mut space = AddressSpace::new();
    space.map(Avma(base), u64::from(pe.size_of_image()), Avma(base), Arc::new(module));
    space.map_code(Avma(STACK), STACK_LEN);
    let theirs = peer(&pe);
    let instructions = instructions(path)?;
    let (mut walker, mut cache, mut found) = (Unwinder::new(), CacheX86_64::new(), Vec::new());
    for &(address, is_jump) in &instructions {
        let own = own_step(&mut walker, &space, address);
        let mut registers = UnwindRegsX86_64::new(address, SP, BP);
        let mut read = |address| Stack.read_u64(Avma(address)).ok_or(());
        let frame = FrameAddress::from_instruction_pointer(address);
        let peer = theirs.unwind_frame(frame, &mut registers, &mut cache, &mut read).ok().flatten();
        if own != peer && !(is_jump && peer == Some(SP)) {
            found.push((address, own, peer));
        }
    }
    for (address, own, peer) in found.iter().take(20) {
        println!("{address:#x}: {} here, {} there", place(*own), place(*peer));
    }
    println!("{}: {} instructions, {} differences", path.display(), instructions.len(), found.len());
    Ok(found.len())
}

fn own_step(walker: &mut Unwinder, space: &AddressSpace, address: u64) -> Option<u64> {
    let mut values = [0x10_u64; 17];
    (values[6], values[7], values[16]) = (BP, SP, address);
    let mut frames = Vec::new();
    walker.walk(space, &Registers::X86_64(values), &Stack, &mut |frame| frames.push(frame.address().0));
    frames.get(1).copied()
}

fn place(address: Option<u64>) -> String {
    match address {
        Some(address) if address >= BP - 0x1000 => format!("bp{:+#x}", address.wrapping_sub(BP) as i64),
        Some(address) => format!("sp{:+#x}", address.wrapping_sub(SP) as i64),
        None => "nothing".to_owned(),
    }
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

fn peer(pe: &Pe<FileSource>) -> UnwinderX86_64<Vec<u8>> {
    let base = pe.image_base().0;
    let mut unwinder = UnwinderX86_64::new();
    let end = base + u64::from(pe.size_of_image());
    unwinder.add_module(framehop::Module::new("image".to_owned(), base..end, base, Sections(pe)));
    unwinder
}

/// Where instructions are, as a disassembler says, and which are jumps.
fn instructions(path: &Path) -> Result<Vec<(u64, bool)>> {
    let output = Command::new("llvm-objdump").args(["-d", "--no-show-raw-insn", "--section=.text"]).arg(path).output()?;
    ensure!(output.status.success(), "llvm-objdump: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let address = |line: &str| {
        let (address, rest) = line.split_once(':')?;
        let is_code = !rest.trim().is_empty() && !rest.contains("int3") && !rest.contains("nop") && !rest.contains("<unknown>");
        let address = u64::from_str_radix(address.trim(), 16).ok().filter(|_| is_code)?;
        Some((address, rest.trim().starts_with("jmp")))
    };
    Ok(text.lines().filter(|line| line.starts_with(' ') || line.starts_with("1")).filter_map(address).collect())
}
