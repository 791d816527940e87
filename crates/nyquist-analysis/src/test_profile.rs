//! Profiles for tests, written as stacks of words, and views of them as text.

use nyquist_profile::{
    CategoryColor, CategoryId, Frame, Func, FuncId, Lib, Meta, Process, ProcessIndex, Profile,
    ProfileBuilder, Sample, StackId, Thread, ThreadIndex, well_known,
};

use crate::index::Index;
use crate::query::tree::{Tree, TreeLimits};
use crate::selection::Selection;
use crate::view::View;

/// Builds a profile with an interval of 1 ms. The samples of a thread are 1 ms apart and have CPU deltas of 1
/// ms.
pub(crate) struct TestProfile {
    pub(crate) builder: ProfileBuilder,
    processes: Vec<(String, ProcessIndex)>,
    thread: Option<ThreadIndex>,
    user: CategoryId,
    kernel: CategoryId,
}

impl TestProfile {
    pub(crate) fn new() -> Self {
        let meta = Meta { interval: 1_000_000, has_cpu_deltas: true, lost_samples: 9, ..Meta::default() };
        let mut builder = ProfileBuilder::new(meta);
        let user = builder.add_category(well_known::USER, CategoryColor::Yellow);
        let kernel = builder.add_category(well_known::KERNEL, CategoryColor::Orange);
        Self { builder, processes: Vec::new(), thread: None, user, kernel }
    }

    /// Begins a thread, which gets the samples that follow.
    pub(crate) fn thread(&mut self, pid: &str, name: &str) {
        let known = self.processes.iter().find(|(known, _)| known == pid).map(|(_, process)| *process);
        let process = known.unwrap_or_else(|| {
            let process = self.builder.add_process(Process { pid: pid.into(), ..Process::default() });
            self.processes.push((pid.into(), process));
            process
        });
        self.thread = Some(self.builder.add_thread(Thread::new(process, name, name)));
    }

    /// Adds a sample. Functions are separated by spaces, the outermost first. `user:` and `kernel:` set a
    /// category, `inlined:` makes the function one that is inlined into the one before it, `@lib` at the end
    /// sets a lib, and `#7` before that a line. Brackets enclose one function,
    /// including spaces. Without a function there is no stack.
    pub(crate) fn sample(&mut self, stack: &str, weight: u64) {
        let words: Vec<_> =
            if stack.starts_with('[') { vec![stack] } else { stack.split_whitespace().collect() };
        let (mut prefix, mut inline_depth) = (None, 0);
        for word in words {
            let (category, name) = match word.split_once(':') {
                Some(("user", name)) => (Some(self.user), name),
                Some(("kernel", name)) => (Some(self.kernel), name),
                Some(("inlined", name)) => (None, name),
                _ => (None, word),
            };
            inline_depth = if word.starts_with("inlined:") { inline_depth + 1 } else { 0 };
            let frame = Frame { inline_depth, ..self.frame(name, category) };
            let frame = self.builder.intern_frame(frame);
            prefix = Some(self.builder.intern_stack(prefix, frame));
        }
        self.add(prefix, weight);
    }

    /// Adds a sample off the CPU.
    pub(crate) fn wait(&mut self, stack: &str, weight: u64) {
        self.sample(stack, weight);
        self.change_last(|sample| sample.off_cpu = true);
    }

    /// Changes the last sample.
    pub(crate) fn change_last(&mut self, change: impl FnOnce(&mut Sample)) {
        let thread = self.thread.expect("a thread comes first");
        let samples = &mut self.builder.thread_mut(thread).samples;
        let mut all: Vec<_> = samples.iter().collect();
        change(all.last_mut().expect("a sample comes first"));
        *samples = all.into_iter().collect();
    }

    fn frame(&mut self, word: &str, category: Option<CategoryId>) -> Frame {
        let (word, lib) = word.split_once('@').map_or((word, None), |(word, lib)| (word, Some(lib)));
        let (name, line) =
            word.split_once('#').map_or((word, None), |(name, line)| (name, line.parse().ok()));
        let lib = lib.map(|name| self.builder.add_lib(Lib { name: name.into(), ..Lib::default() }));
        let name = self.builder.intern_string(name);
        let func = self.builder.intern_func(Func::new(name, lib));
        let address = lib.and(line).map(|line| line * 16);
        Frame { line, address, category: category.map(Into::into), ..Frame::label(func) }
    }

    /// Adds a sample in a function that has called itself `depth` times.
    pub(crate) fn deep_sample(&mut self, name: &str, depth: usize) {
        let mut prefix = None;
        for _ in 0..depth {
            prefix = Some(self.builder.intern_label(prefix, name, None));
        }
        self.add(prefix, 1);
    }

    fn add(&mut self, stack: Option<StackId>, weight: u64) {
        let thread = self.thread.expect("a thread comes first");
        let time = self.builder.profile().thread(thread).samples.len() as u64 * 1_000_000;
        self.builder.add_sample(thread, Sample { time, cpu_delta: 1_000_000, stack, weight, off_cpu: false });
    }

    pub(crate) fn finish(self) -> Profile {
        self.builder.finish()
    }
}

/// Calls `ask` with a view of a profile.
pub(crate) fn with_view<T>(profile: &Profile, selection: &Selection, ask: impl FnOnce(&View<'_>) -> T) -> T {
    ask(&View::new(&Index::new(profile), selection))
}

/// The function of that name.
pub(crate) fn func(profile: &Profile, name: &str) -> FuncId {
    let index = profile.funcs().iter().position(|func| profile.string(func.name) == name);
    FuncId::from_index(index.unwrap_or_else(|| panic!("no function {name}")))
}

/// A tree as text: dots for the depth, the name, the total and the self weight.
pub(crate) fn tree_text(tree: Tree<'_>) -> String {
    let nodes = tree.walk(TreeLimits::default());
    let words = nodes.map(|(depth, node)| {
        format!("{}{}:{},{}", ".".repeat(depth), node.name, node.total.weight, node.self_amount.weight)
    });
    words.collect::<Vec<_>>().join(" ")
}
