//! Walks the stacks that `gdb-samples.py` wrote, and compares them with gdb's own backtraces.

use anyhow::{Context, Result, ensure};
use nyquist_object::{Avma, Elf, FileOffset, FileSource, MappedModule};
use nyquist_unwind::{AddressSpace, FrameAddress, Module, Registers, StackCopy, Unwinder, WalkEnd};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

struct OpenedModule {
    module: Arc<Module>,
    segments: Vec<nyquist_object::elf::ElfSegment>,
    image_base: nyquist_object::Svma,
}

#[derive(Default)]
struct Samples {
    modules: HashMap<String, Option<OpenedModule>>,
    space: AddressSpace,
    /// In DWARF's order: 17 of 64-bit x86, or 33 of 64-bit ARM.
    registers: Vec<u64>,
    stack: (u64, Vec<u8>),
    count: usize,
    different: usize,
    truncated: usize,
}

fn hex(text: &str) -> Result<u64> {
    u64::from_str_radix(text, 16).with_context(|| format!("{text:?} is no hexadecimal number"))
}

fn open(path: &str) -> Option<OpenedModule> {
    let elf = Elf::open(FileSource::new(File::open(path).ok()?)).ok()?;
    let module = Arc::new(Module::from_elf(&elf).ok()?);
    Some(OpenedModule { module, segments: elf.segments().to_vec(), image_base: elf.image_base() })
}

impl Samples {
    fn line(&mut self, line: &str, unwinder: &mut Unwinder) -> Result<()> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "maps" => self.map(rest)?,
            "registers" => self.registers = rest.split_whitespace().map(hex).collect::<Result<_>>()?,
            "stack" => {
                let (start, bytes) = rest.split_once(' ').context("a stack without bytes")?;
                let pair = |at| u8::from_str_radix(&bytes[at..at + 2], 16);
                let bytes = (0..bytes.len() / 2).map(|index| pair(index * 2)).collect::<Result<_, _>>()?;
                self.stack = (hex(start)?, bytes);
            }
            "frames" => {
                self.compare(&rest.split_whitespace().map(hex).collect::<Result<Vec<_>>>()?, unwinder)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn map(&mut self, line: &str) -> Result<()> {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (start, end) = fields[0].split_once('-').context("a mapping without a range")?;
        let (start, end, offset) = (hex(start)?, hex(end)?, hex(fields[2])?);
        let path = fields.get(5).copied().unwrap_or_default();
        let opened = self.modules.entry(path.to_owned()).or_insert_with(|| open(path));
        let mapped = opened.as_ref().and_then(|opened| {
            let (start, offset) = (Avma(start), FileOffset(offset));
            let module = &opened.module;
            MappedModule::from_mapping(&opened.segments, opened.image_base, start, offset, end - start.0)
                .map(|mapped| (mapped.base, module.clone()))
        });
        match mapped {
            Some((base, module)) => self.space.map(Avma(start), end - start, base, module),
            None => self.space.map_code(Avma(start), end - start),
        }
        Ok(())
    }

    fn registers(&self) -> Result<Registers> {
        let x86_64 = self.registers.as_slice().try_into().map(Registers::X86_64);
        let aarch64 = || self.registers.as_slice().try_into().map(Registers::Aarch64);
        x86_64.or_else(|_| aarch64()).context("neither the registers of x86 nor those of ARM")
    }

    fn compare(&mut self, theirs: &[u64], unwinder: &mut Unwinder) -> Result<()> {
        let memory = StackCopy { start: Avma(self.stack.0), bytes: &self.stack.1 };
        let mut ours: Vec<FrameAddress> = Vec::new();
        let registers = self.registers()?;
        let end = unwinder.walk(&self.space, &registers, &memory, &mut |frame| ours.push(frame));
        let ours: Vec<u64> = ours.iter().map(|frame| frame.address().0).collect();
        self.count += 1;
        self.truncated += usize::from(end != WalkEnd::Root);
        if ours == theirs {
            if end != WalkEnd::Root {
                println!("sample {}: {end:?} at {:x?}, as gdb", self.count, ours.last());
            }
        } else {
            self.different += 1;
            let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
            let tail = |frames: &[u64]| {
                format!("{:x?}", &frames[same.saturating_sub(1)..frames.len().min(same + 2)])
            };
            let (a, b) = (tail(&ours), tail(theirs));
            println!(
                "sample {}: {end:?}, {} frames, gdb {}, from {same} on {a}, gdb {b}",
                self.count,
                ours.len(),
                theirs.len()
            );
        }
        self.space = AddressSpace::new();
        Ok(())
    }
}

fn main() -> Result<()> {
    let mut different = 0;
    for path in std::env::args().skip(1) {
        let mut samples = Samples::default();
        let mut unwinder = Unwinder::new();
        for line in BufReader::new(File::open(&path)?).lines() {
            samples.line(&line?, &mut unwinder)?;
        }
        let Samples { count, different: differ, truncated, .. } = samples;
        println!("{path}: {count} samples, {differ} differ from gdb's, {truncated} not complete");
        ensure!(count > 0, "{path} has no samples");
        different += differ;
    }
    ensure!(different == 0, "{different} stacks differ from gdb's");
    Ok(())
}
