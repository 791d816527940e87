//! Generates profiles of any size whose stacks look like those of a compiler.

use nyquist_profile::{
    CategoryColor, CategoryId, Frame, FrameId, Func, FuncId, Lib, LibId, Meta, Process, Profile,
    ProfileBuilder, Sample, Samples, Source, StackId, Thread, ThreadIndex, well_known,
};

use crate::random::{Random, mix};

/// The size of a profile.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The number of samples.
    pub samples: usize,
    /// The number of threads; every eighth begins a process.
    pub threads: usize,
    /// The number of functions.
    pub functions: usize,
    /// The least number of stacks, each a node of the tree of all stacks.
    pub stacks: usize,
    /// Different seeds give different profiles of the same shape.
    pub seed: u64,
}

/// The depths of stacks at every twentieth, then at 99 % and at the maximum. They are those of a recording of
/// `cargo check` of a crate, scaled to a median of 30. Beyond 75 % they are stretched to 200 at 99 %, because
/// deeper crates have such stacks.
const DEPTHS: [usize; 22] =
    [1, 13, 16, 16, 17, 19, 22, 24, 25, 28, 30, 32, 35, 38, 41, 44, 56, 66, 85, 132, 200, 270];

const LIBS: usize = 40;
const INTERVAL: u64 = 1_000_000;

/// Generates a profile of about that shape. The numbers of samples, threads and functions are exact.
pub fn generate(shape: &Shape) -> Profile {
    let mut maker = Maker::new(shape);
    let leaves = maker.stacks(shape.stacks);
    maker.samples(shape, &leaves);
    maker.builder.finish()
}

struct Maker {
    builder: ProfileBuilder,
    random: Random,
    funcs: Vec<FuncId>,
    categories: [CategoryId; 2],
}

impl Maker {
    fn new(shape: &Shape) -> Self {
        let meta = Meta { interval: INTERVAL, has_cpu_deltas: true, symbolicated: true, ..Meta::default() };
        let mut builder = ProfileBuilder::new(meta);
        let categories = [
            builder.add_category(well_known::USER, CategoryColor::Yellow),
            builder.add_category(well_known::KERNEL, CategoryColor::Orange),
        ];
        let libs: Vec<LibId> = (0..LIBS).map(|index| builder.add_lib(lib(index))).collect();
        let funcs = (0..shape.functions).map(|index| func(&mut builder, &libs, index)).collect();
        Self { builder, random: Random::new(shape.seed), funcs, categories }
    }

    /// Generates stacks up to that number, and returns the leaves.
    ///
    /// Each stack derives from the previous one as in a program: it returns a few levels and calls other
    /// functions.
    fn stacks(&mut self, count: usize) -> Vec<StackId> {
        let mut leaves = Vec::new();
        let mut path: Vec<(StackId, usize)> = Vec::new();
        while self.builder.profile().stacks().len() < count {
            let depth = self.depth();
            let retained = path.len().min(depth.saturating_sub(1));
            path.truncate(retained - self.random.below(retained + 1, 3.0));
            while path.len() < depth {
                let (prefix, caller) = path.last().copied().unzip();
                let callee = self.callee(caller);
                let frame = self.frame(callee, path.len() + 1 == depth);
                path.push((self.builder.intern_stack(prefix, frame), callee));
            }
            leaves.extend(path.last().map(|(stack, _)| *stack));
        }
        leaves
    }

    fn depth(&mut self) -> usize {
        // The last step of the table begins at 99 %, the one before it at 95 %.
        let share = self.random.unit() * 20.0;
        let (step, part) = match share {
            share if share >= 19.8 => (20, (share - 19.8) / 0.2),
            share if share >= 19.0 => (19, (share - 19.0) / 0.8),
            share => (share as usize, share.fract()),
        };
        let (low, high) = (DEPTHS[step] as f64, DEPTHS[step + 1] as f64);
        (low + (high - low) * part) as usize
    }

    /// One of the callees of a function; some are more frequent than others. Now and then it is the
    /// function itself.
    fn callee(&mut self, caller: Option<usize>) -> usize {
        let Some(caller) = caller else { return 0 };
        if caller % 17 == 3 && self.random.below(4, 1.0) == 0 {
            return caller;
        }
        let choice = self.random.below(24, 2.5) as u64;
        let random = mix((caller as u64) << 8 | choice);
        // Many functions call the same few, such as allocators.
        let skewed = (random >> 11) as f64 / (1_u64 << 53) as f64;
        (skewed.powf(1.5) * self.funcs.len() as f64) as usize
    }

    fn frame(&mut self, func: usize, is_leaf: bool) -> FrameId {
        let place = self.random.below(if is_leaf { 12 } else { 4 }, 2.0) as u32;
        let is_kernel = func % 29 == 5;
        let frame = Frame {
            address: Some((func as u32) << 8 | place << 2),
            line: Some(place + 1),
            category: Some(self.categories[usize::from(is_kernel)].into()),
            ..Frame::label(self.funcs[func])
        };
        self.builder.intern_frame(frame)
    }

    /// Distributes the samples over the threads. Each has its own part of the leaves, some of which are
    /// frequent.
    fn samples(&mut self, shape: &Shape, leaves: &[StackId]) {
        let mut process = None;
        for index in 0..shape.threads {
            let process = *process.insert(match process.filter(|_| index % 8 != 0) {
                Some(process) => process,
                None => {
                    let (pid, name) = (format!("{}", 100 + index), format!("process {}", index / 8));
                    self.builder.add_process(Process { pid, name, ..Process::default() })
                }
            });
            let name = format!("thread {index}");
            let thread = self.builder.add_thread(Thread::new(process, format!("{}", 1000 + index), name));
            let count = shape.samples * (index + 1) / shape.threads - shape.samples * index / shape.threads;
            let window = (leaves.len() / 4).max(1);
            let first = self.random.below(leaves.len().saturating_sub(window) + 1, 1.0);
            self.samples_of(thread, count, &leaves[first.min(leaves.len())..][..window.min(leaves.len())]);
        }
    }

    fn samples_of(&mut self, thread: ThreadIndex, count: usize, leaves: &[StackId]) {
        let mut samples = Samples::with_capacity(count);
        let mut time = 0;
        while samples.len() < count {
            let number = self.random.number();
            let off_cpu = number.is_multiple_of(50);
            let weight = if off_cpu { 1 + u64::from((number >> 8) as u32 % 100) } else { 1 };
            time += INTERVAL * weight + number % 1000;
            let stack = leaves
                .get(self.random.below(leaves.len(), 3.0))
                .copied()
                .filter(|_| !number.is_multiple_of(97));
            let cpu_delta = if off_cpu { 0 } else { INTERVAL + number % 1000 };
            samples.push(Sample { time, cpu_delta, stack, weight, off_cpu });
        }
        self.builder.thread_mut(thread).samples = samples;
    }
}

fn lib(index: usize) -> Lib {
    let name = format!("lib{index}.so");
    Lib { path: format!("/usr/lib/{name}"), debug_name: name.clone(), name, ..Lib::default() }
}

fn func(builder: &mut ProfileBuilder, libs: &[LibId], index: usize) -> FuncId {
    const WORDS: [&str; 12] = [
        "parse", "resolve", "check", "encode", "lower", "visit", "build", "intern", "emit", "query", "alloc",
        "walk",
    ];
    let word = |shift: u32| WORDS[(mix(index as u64) >> shift) as usize % WORDS.len()];
    let name = format!("compiler_{}::{}::{}::{}_{index}", word(0), word(8), word(16), word(24));
    let name = builder.intern_string(&name);
    let file = builder.intern_string(&format!("/src/{}/{}/{}.rs", word(0), word(8), index % 1000));
    let source = builder.intern_source(Source { filename: file });
    let lib = libs[mix(index as u64 + 77) as usize % libs.len()];
    let line = Some(index as u32 % 900 + 1);
    builder.intern_func(Func { source: Some(source), line, ..Func::new(name, Some(lib)) })
}
