//! A recording with the modules that its stacks need, opened for both unwinders.

use crate::peer::{Peer, PeerModule};
use crate::perf_data::{self, PerfData, Record};
use anyhow::Result;
use nyquist_object::{Avma, Elf, FileOffset, FileSource, MappedModule, Svma};
use nyquist_unwind::{AddressSpace, Module, Registers, StackCopy};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// One process image: what was mapped between one `exec` and the next.
#[derive(Clone)]
pub struct Process {
    /// For nyquist-unwind.
    pub space: AddressSpace,
    /// For framehop.
    pub peer: Peer,
}

/// One stack.
pub struct Sample {
    /// The number of the process image.
    pub process: usize,
    /// At the time of the sample.
    pub registers: Registers,
    /// The call chain that came with it.
    pub chain: Vec<u64>,
    /// Where the copied bytes are in the file.
    stack: std::ops::Range<usize>,
}

/// Everything that a walk needs.
pub struct Recording {
    data: PerfData,
    /// All process images.
    pub processes: Vec<Process>,
    /// All samples.
    pub samples: Vec<Sample>,
    /// All modules by path.
    pub modules: HashMap<String, Option<Loaded>>,
}

/// A module opened for both.
#[derive(Clone)]
pub struct Loaded {
    /// Compiled.
    pub module: Arc<Module>,
    peer: PeerModule,
    segments: Vec<nyquist_object::elf::ElfSegment>,
    image_base: Svma,
}

impl Loaded {
    /// Opens a file; `None` where it cannot be.
    pub fn open(path: &Path) -> Option<Self> {
        let elf = Elf::open(FileSource::new(File::open(path).ok()?)).ok()?;
        let module = Arc::new(Module::from_elf(&elf).ok()?);
        // Walks are measured alone, without what is compiled on the way.
        module.tables().for_each(drop);
        let (segments, image_base) = (elf.segments().to_vec(), elf.image_base());
        Some(Self { module, peer: PeerModule::read(&elf), segments, image_base })
    }

    fn base(&self, start: u64, offset: u64, len: u64) -> Option<Avma> {
        let mapped =
            MappedModule::from_mapping(&self.segments, self.image_base, Avma(start), FileOffset(offset), len);
        mapped.map(|mapped| mapped.base)
    }
}

impl Process {
    fn new() -> Self {
        Self { space: AddressSpace::new(), peer: Peer::new() }
    }

    /// Maps a further module, for both unwinders.
    pub fn add(&mut self, start: u64, len: u64, loaded: &Loaded) {
        self.space.map(Avma(start), len, Avma(start), loaded.module.clone());
        self.peer.map(start..start + len, start, &loaded.peer);
    }
}

impl Recording {
    /// Reads a file of `perf record --call-graph dwarf`.
    pub fn open(path: &Path) -> Result<Self> {
        let mut data = perf_data::read(path)?;
        let records = std::mem::take(&mut data.records);
        let mut recording =
            Self { data, processes: Vec::new(), samples: Vec::new(), modules: HashMap::new() };
        let mut current = HashMap::new();
        for record in records {
            recording.add(record, &mut current);
        }
        Ok(recording)
    }

    fn add(&mut self, record: Record, current: &mut HashMap<u32, usize>) {
        match record {
            Record::Exec { pid } => {
                self.processes.push(Process::new());
                current.insert(pid, self.processes.len() - 1);
            }
            Record::Fork { pid, parent } if pid != parent => {
                let copy = current.get(&parent).map_or_else(Process::new, |&p| self.processes[p].clone());
                self.processes.push(copy);
                current.insert(pid, self.processes.len() - 1);
            }
            Record::Fork { .. } => {}
            Record::Map { pid, start, len, offset, path } => {
                let process = *current.entry(pid).or_insert_with(|| {
                    self.processes.push(Process::new());
                    self.processes.len() - 1
                });
                self.map(process, start, len, offset, path);
            }
            Record::Sample { pid, registers, chain, stack } => {
                let registers = registers_of(&registers);
                if let Some((&process, registers)) = current.get(&pid).zip(registers) {
                    self.samples.push(Sample { process, registers, chain, stack });
                }
            }
        }
    }

    fn map(&mut self, process: usize, start: u64, len: u64, offset: u64, path: String) {
        let loaded = self.modules.entry(path).or_insert_with_key(|path| Loaded::open(Path::new(path)));
        let process = &mut self.processes[process];
        let based = loaded.as_ref().and_then(|loaded| Some((loaded, loaded.base(start, offset, len)?)));
        match based {
            Some((loaded, base)) => {
                process.space.map(Avma(start), len, base, loaded.module.clone());
                process.peer.map(start..start + len, base.0, &loaded.peer);
            }
            None => process.space.map_code(Avma(start), len),
        }
    }

    /// The stack of a sample.
    pub fn stack(&self, sample: &Sample) -> StackCopy<'_> {
        StackCopy { start: sample.registers.stack_pointer(), bytes: &self.data.bytes[sample.stack.clone()] }
    }
}

/// The registers as nyquist-unwind takes them.
fn registers_of(values: &[u64]) -> Option<Registers> {
    let x86_64 = values.try_into().ok().map(Registers::X86_64);
    x86_64.or_else(|| values.try_into().ok().map(Registers::Aarch64))
}
