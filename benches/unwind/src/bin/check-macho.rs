//! Holds one step from every instruction of Mach-O files against framehop's, with registers and a stack made up, and every entry
//! that `llvm-objdump --unwind-info` prints against the rules that were compiled. Differences are counted and the first ones shown;
//! those from framehop are to be looked at one by one, those from llvm-objdump fail. As the registers are made up, a frame pointer
//! and a stack pointer that lead to the same place in a real epilogue lead to different ones here.

use anyhow::{Context, Result, ensure};
use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder};
use nyquist_object::{Architecture, Avma, FileSource, MachO, RelativeAddress};
use nyquist_unwind::rule::{Kind, Rule};
use nyquist_unwind::{AddressSpace, Module, Registers, StackCopy, StackMemory};
use std::collections::BTreeMap;
use std::fs::File;
use std::process::Command;
use std::sync::Arc;

const STACK: u64 = 0x16f0_0000_0000;
/// The words of the stack, each of which is another address in the code.
const WORDS: u64 = 0x6000;

/// The word at an address of the stack: frame pointers that go up at even words, addresses in the code at odd ones.
fn word(address: u64, code: (u64, u64)) -> u64 {
    if address.is_multiple_of(16) {
        return address + 0x100;
    }
    code.0 + (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % (code.1 - code.0)
}

/// What one tool of LLVM prints of the file.
fn objdump(path: &str, option: &str) -> Result<String> {
    let output = Command::new("llvm-objdump").args(["--no-show-raw-insn", option, path]).output()?;
    ensure!(output.status.success(), "llvm-objdump {option} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The addresses of instructions.
fn instructions(path: &str) -> Result<Vec<u64>> {
    let text = objdump(path, "-d")?;
    let address = |line: &str| u64::from_str_radix(line.trim().split_once(':')?.0, 16).ok();
    Ok(text.lines().filter_map(address).collect())
}

/// The functions and encodings that LLVM finds.
fn encodings(path: &str) -> Result<Vec<(u32, u32)>> {
    let text = objdump(path, "--unwind-info")?;
    let number = |line: &str, name: &str| {
        let digits = line.split_once(name)?.1.split_once("=0x")?.1;
        u32::from_str_radix(digits.get(..8)?, 16).ok()
    };
    let entry = |line: &str| Some((number(line, "function offset")?, number(line, "encoding")?));
    Ok(text.lines().filter(|line| line.contains("encoding")).filter_map(entry).collect())
}

/// Whether a rule is that of a body with this encoding, as far as it says so by itself.
fn is_body(architecture: Architecture, encoding: u32, rule: Rule) -> bool {
    let (mode, kind, operand) = (encoding >> 24 & 0xf, rule.kind(), rule.operand());
    let size = i64::from(encoding >> 12 & 0xfff) * 16;
    match (architecture, mode) {
        (Architecture::Aarch64, 2) => kind == Kind::StackPointer && operand == size,
        (Architecture::Aarch64, 4) => kind == Kind::FramePointer && operand == 16,
        (Architecture::X86_64, 1) => kind == Kind::FramePointer && operand == 16,
        (Architecture::X86_64, 2) => {
            kind == Kind::StackPointer && operand == i64::from(encoding >> 16 & 0xff) * 8
        }
        (Architecture::X86_64, 3) => kind == Kind::StackPointer,
        _ => kind != Kind::Uncovered,
    }
}

fn check(path: &str) -> Result<usize> {
    let file = MachO::open(FileSource::new(File::open(path)?))?;
    let architecture = file.architecture();
    let base = file.image_base().0;
    let module = Arc::new(Module::from_macho(&file)?);
    ensure!(module.damage().count == 0, "{:?}", module.damage());
    let entries = encodings(path)?;
    let addresses = instructions(path)?;
    let mut wrong = 0;
    for (number, (start, encoding)) in entries.iter().enumerate().filter(|entry| entry.1.1 != 0) {
        let end = entries.get(number + 1).map_or(u32::MAX, |next| next.0);
        let inside = addresses.iter().map(|at| (at - base) as u32).filter(|at| (*start..end).contains(at));
        let mut rules = inside.map(|at| module.rule(RelativeAddress(at)));
        if !rules.any(|rule| is_body(architecture, *encoding, rule)) {
            println!("  {start:#x}: no rule is that of {encoding:#x}");
            wrong += 1;
        }
    }
    let counts = steps(&file, &module, &addresses)?;
    let kinds = addresses.iter().map(|at| module.rule(RelativeAddress((at - base) as u32)).kind());
    let mut by_kind = BTreeMap::new();
    kinds.for_each(|kind| *by_kind.entry(format!("{kind:?}")).or_insert(0) += 1);
    println!("{path}: {} entries, {wrong} wrong; {counts}; rules {by_kind:?}", entries.len());
    Ok(wrong)
}

/// Steps from every instruction with both, and says how often they agree.
fn steps(file: &MachO<FileSource>, module: &Arc<Module>, addresses: &[u64]) -> Result<String> {
    let text = file.section("__TEXT", "__text").context("no code")?;
    let base = file.image_base().0;
    let code = (text.address.0, text.address.0 + text.size);
    let read = |name| file.section_data("__TEXT", name);
    let range = |name| file.section("__TEXT", name).map(|s| s.address.0..s.address.0 + s.size);
    let info = || -> Result<_> {
        Ok(ExplicitModuleSectionInfo {
            base_svma: base,
            text_svma: range("__text"),
            text: read("__text")?,
            stubs_svma: range("__stubs"),
            stub_helper_svma: range("__stub_helper"),
            eh_frame_svma: range("__eh_frame"),
            eh_frame: read("__eh_frame")?,
            unwind_info: read("__unwind_info")?,
            ..Default::default()
        })
    };
    let all = base..base + (1 << 30);
    let mut space = AddressSpace::new();
    space.map(Avma(base), 1 << 30, Avma(base), Arc::clone(module));
    let bytes: Vec<u8> = (0..WORDS).flat_map(|at| word(STACK + 8 * at, code).to_le_bytes()).collect();
    let stack = StackCopy { start: Avma(STACK), bytes: &bytes };
    let mut peer_x86 = UnwinderX86_64::<Vec<u8>>::new();
    peer_x86.add_module(framehop::Module::new(String::new(), all.clone(), base, info()?));
    let mut peer_arm = UnwinderAarch64::<Vec<u8>>::new();
    peer_arm.add_module(framehop::Module::new(String::new(), all, base, info()?));
    let (mut same, mut other, mut refused) = (0, 0, 0);
    let (sp, fp, lr) = (STACK + 0x100, STACK + 0x2_0000, code.0 + 0x10);
    let mut peer_read = |address| stack.read_u64(Avma(address)).ok_or(());
    for &address in addresses {
        let at = FrameAddress::from_instruction_pointer(address);
        let (registers, theirs) = if file.architecture() == Architecture::Aarch64 {
            let mut state = UnwindRegsAarch64::new(lr, sp, fp);
            let next = peer_arm.unwind_frame(at, &mut state, &mut CacheAarch64::new(), &mut peer_read);
            let mut values = [0; 33];
            (values[29], values[30], values[31], values[32]) = (fp, lr, sp, address);
            (Registers::Aarch64(values), next.ok().flatten())
        } else {
            let mut state = UnwindRegsX86_64::new(address, sp, fp);
            let next = peer_x86.unwind_frame(at, &mut state, &mut CacheX86_64::new(), &mut peer_read);
            let mut values = [0; 17];
            (values[6], values[7], values[16]) = (fp, sp, address);
            (Registers::X86_64(values), next.ok().flatten())
        };
        let mut ours = Vec::new();
        nyquist_unwind::Unwinder::new()
            .walk(&space, &registers, &stack, &mut |frame| ours.push(frame.address().0));
        // The stack is made up: what is no address of code there ends both walks.
        let theirs = theirs.filter(|address| (code.0..code.1).contains(address));
        match (ours.get(1), theirs) {
            (ours, theirs) if ours.copied() == theirs => same += 1,
            (_, None) => refused += 1,
            (ours, Some(theirs)) => {
                other += 1;
                if other <= 12 {
                    let rule = module.rule(RelativeAddress((address - base) as u32));
                    println!("  {address:#x}: {ours:x?} by {rule:?}, framehop has {theirs:#x}");
                }
            }
        }
    }
    Ok(format!("{same} steps as framehop's, {other} others, {refused} that it refuses"))
}

fn main() -> Result<()> {
    let mut wrong = 0;
    for path in std::env::args().skip(1) {
        wrong += check(&path).with_context(|| path.clone())?;
    }
    ensure!(wrong == 0, "{wrong} entries have no rule of theirs");
    Ok(())
}
