//! Sums of samples by node: of each thread once and for all, and of what a selection chooses.

use std::ops::Range;

use nyquist_profile::{Profile, Thread, ThreadIndex};

use crate::amount::Amount;
use crate::chosen::Chosen;
use crate::columns::{self, CompactSample};
use crate::index::Index;
use crate::parallel;
use crate::selection::SampleState;

/// Fewer samples than this are gone through by one CPU.
const SAMPLES_WORTH_SHARING: usize = 200_000;

/// What samples sum to: by node, and without a stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// What each node has itself.
    pub(crate) own: Vec<Amount>,
    /// What the samples without a stack have.
    pub(crate) stackless: Amount,
}

impl Sums {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { own: vec![Amount::default(); nodes], stackless: Amount::default() }
    }

    fn add_all(&mut self, other: &Self) {
        self.own.iter_mut().zip(&other.own).for_each(|(own, &amount)| *own += amount);
        self.stackless += other.stackless;
    }

    fn subtract_all(&mut self, other: &Self) {
        self.own.iter_mut().zip(&other.own).for_each(|(own, &amount)| *own = *own - amount);
        self.stackless = self.stackless - other.stackless;
    }

    fn add(&mut self, node: Option<u32>, amount: Amount) {
        match node {
            Some(node) => self.own[node as usize] += amount,
            None => self.stackless += amount,
        }
    }

    fn subtract(&mut self, node: Option<u32>, amount: Amount) {
        let sum = node.map_or(&mut self.stackless, |node| &mut self.own[node as usize]);
        *sum = *sum - amount;
    }

    fn add_thread(&mut self, sums: &ThreadSums) {
        for (&node, &amount) in sums.nodes.iter().zip(&sums.amounts) {
            self.own[node as usize] += amount;
        }
        self.stackless += sums.stackless;
    }
}

/// What the samples of a thread sum to, in one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadSums {
    /// The nodes that have samples, in order.
    nodes: Vec<u32>,
    /// What each of these has.
    amounts: Vec<Amount>,
    /// What the samples without a stack have.
    stackless: Amount,
}

impl ThreadSums {
    /// Takes the sums of a thread out of `room` and leaves it empty. `nodes` are those that have any.
    fn take(room: &mut Sums, mut nodes: Vec<u32>) -> Self {
        nodes.sort_unstable();
        let amounts = nodes.iter().map(|&node| std::mem::take(&mut room.own[node as usize])).collect();
        nodes.shrink_to_fit();
        Self { nodes, amounts, stackless: std::mem::take(&mut room.stackless) }
    }
}

/// The sums of all threads, each for itself and together, on the CPU and off it.
#[derive(Debug)]
pub(crate) struct IndexedSums {
    on_cpu: Vec<ThreadSums>,
    off_cpu: Vec<ThreadSums>,
    /// What all threads have on the CPU.
    pub(crate) all_on_cpu: Sums,
    /// The running sums of that.
    pub(crate) running: Vec<Amount>,
    /// The samples of each thread in little room, where they fit.
    columns: Vec<Option<Vec<CompactSample>>>,
}

impl IndexedSums {
    /// Sums up a profile. O(samples).
    pub(crate) fn new(profile: &Profile, node_of_stack: &[u32]) -> Self {
        let threads = profile.threads();
        let nodes = node_of_stack.len();
        let of_state = |state: SampleState| {
            let pieces = parallel::pieces(threads.len(), 1, |range| {
                let mut room = Sums::new(nodes);
                let threads = threads[range].iter();
                let sums =
                    threads.map(|thread| sums_of_thread(profile, thread, state, node_of_stack, &mut room));
                sums.collect::<Vec<_>>()
            });
            pieces.into_iter().flatten().collect::<Vec<_>>()
        };
        let (on_cpu, off_cpu) = (of_state(SampleState::OnCpu), of_state(SampleState::OffCpu));
        let mut all_on_cpu = Sums::new(nodes);
        for sums in &on_cpu {
            all_on_cpu.add_thread(sums);
        }
        let running = running(all_on_cpu.own.clone());
        let columns = parallel::pieces(threads.len(), 1, |range| {
            let columns =
                threads[range].iter().map(|thread| columns::of_thread(profile, thread, node_of_stack));
            columns.collect::<Vec<_>>()
        });
        let columns = columns.into_iter().flatten().collect();
        Self { on_cpu, off_cpu, all_on_cpu, running, columns }
    }
}

/// The sum of all amounts before each, and of all at the end.
pub(crate) fn running(mut own: Vec<Amount>) -> Vec<Amount> {
    let mut sum = Amount::default();
    for amount in &mut own {
        let before = sum;
        sum += *amount;
        *amount = before;
    }
    own.push(sum);
    own
}

fn sums_of_thread(
    profile: &Profile,
    thread: &Thread,
    state: SampleState,
    node_of_stack: &[u32],
    room: &mut Sums,
) -> ThreadSums {
    let mut nodes = Vec::new();
    for (position, sample) in thread.samples.iter().enumerate().filter(|(_, sample)| state.accepts(sample)) {
        let amount = Amount::of_sample(profile, sample, position == 0);
        let node = sample.stack.map(|stack| node_of_stack[stack.index()]);
        if amount.is_zero() {
            continue;
        }
        if let Some(node) = node.filter(|&node| room.own[node as usize].is_zero()) {
            nodes.push(node);
        }
        room.add(node, amount);
    }
    ThreadSums::take(room, nodes)
}

/// Where a selection's sums come from. Whole threads are taken from the index; of others as few samples as possible are
/// gone through: where all threads are chosen, those that are chosen or those that are not.
pub(crate) struct Plan<'i> {
    index: &'i Index<'i>,
    state: SampleState,
    /// Whether all begins with the sums of all threads, and samples are taken away.
    takes_away: bool,
    /// Threads that are chosen whole.
    whole: Vec<ThreadIndex>,
    /// Samples to go through.
    parts: Vec<(ThreadIndex, Range<usize>)>,
}

impl<'i> Plan<'i> {
    /// Plans for samples in one state. O(threads × log samples).
    pub(crate) fn new(index: &'i Index<'i>, chosen: &Chosen<'_>, state: SampleState) -> Self {
        let threads = chosen.threads.iter();
        let slices: Vec<_> = threads.map(|&thread| (thread, chosen.range_of(thread))).collect();
        let len = |thread: ThreadIndex| index.profile.thread(thread).samples.len();
        let inside: usize = slices.iter().map(|(_, range)| range.len()).sum();
        let of_threads: usize = slices.iter().map(|(thread, _)| len(*thread)).sum();
        let all_threads = chosen.threads.len() == index.profile.threads().len();
        let takes_away = state == SampleState::OnCpu && all_threads && inside >= of_threads - inside;
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for (thread, range) in slices {
            if takes_away {
                parts.extend([(thread, 0..range.start), (thread, range.end..len(thread))]);
            } else if range.len() == len(thread) {
                whole.push(thread);
            } else {
                parts.push((thread, range));
            }
        }
        parts.retain(|(_, range)| !range.is_empty());
        Self { index, state, takes_away, whole, parts }
    }

    /// Whether the sums are those of all threads.
    pub(crate) fn is_all(&self) -> bool {
        self.takes_away && self.parts.is_empty()
    }

    /// Adds what is planned to `sums`. O(nodes of whole threads + samples gone through).
    pub(crate) fn add_to(&self, sums: &mut Sums) {
        if self.takes_away {
            sums.add_all(&self.index.sums.all_on_cpu);
        }
        let of_threads = match self.state {
            SampleState::OffCpu => &self.index.sums.off_cpu,
            _ => &self.index.sums.on_cpu,
        };
        self.whole.iter().for_each(|thread| sums.add_thread(&of_threads[thread.index()]));
        let samples: usize = self.parts.iter().map(|(_, range)| range.len()).sum();
        let nodes = sums.own.len();
        // Each CPU needs its own sums of all nodes.
        if samples < SAMPLES_WORTH_SHARING.max(2 * nodes) {
            let change = if self.takes_away { Sums::subtract } else { Sums::add };
            self.go_through(0..self.parts.len(), |node, amount| change(sums, node, amount));
            return;
        }
        let pieces = parallel::pieces(self.parts.len(), 1, |range| {
            let mut piece = Sums::new(nodes);
            self.go_through(range, |node, amount| piece.add(node, amount));
            piece
        });
        for piece in pieces {
            if self.takes_away { sums.subtract_all(&piece) } else { sums.add_all(&piece) }
        }
    }

    /// Goes through the samples of some of the parts.
    fn go_through(&self, parts: Range<usize>, mut take: impl FnMut(Option<u32>, Amount)) {
        let profile = self.index.profile;
        for (thread, range) in &self.parts[parts] {
            if let Some(column) = &self.index.sums.columns[thread.index()] {
                for sample in column[range.clone()].iter().filter(|sample| sample.is_in(self.state)) {
                    take(sample.node(), sample.amount());
                }
                continue;
            }
            let samples = &profile.thread(*thread).samples[range.clone()];
            for (sample, position) in samples.iter().zip(range.start..) {
                if self.state.accepts(sample) {
                    let node = sample.stack.map(|stack| self.index.node_of_stack[stack.index()]);
                    take(node, Amount::of_sample(profile, sample, position == 0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{Sample, ThreadIndex};

    use crate::amount::Amount;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, tree_text, with_view};

    #[test]
    fn samples_that_cpus_share_are_all_summed_once() {
        const COUNT: u64 = 150_000;
        let mut test = TestProfile::new();
        for stack in ["a b", "a c", ""] {
            test.thread("1", stack);
            for _ in 0..COUNT {
                test.sample(stack, 1);
            }
        }
        let profile = test.finish();
        // More and less than half: what is not chosen is taken away, or what is chosen is added.
        for (end, count) in
            [(COUNT / 2 + 1, COUNT / 2 + 1), (COUNT / 2 - 1, COUNT / 2 - 1), (2 * COUNT, COUNT)]
        {
            let selection = Selection { range: Some(0..end * 1_000_000), ..Selection::default() };
            with_view(&profile, &selection, |view| {
                assert_eq!(view.total().weight, 3 * count);
                let nodes = tree_text(view.call_tree());
                assert_eq!(nodes, format!("a:{},0 .b:{count},{count} .c:{count},{count}", 2 * count));
            });
        }
    }

    #[test]
    fn figures_that_are_too_great_for_little_room_are_summed_too() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        for _ in 0..4 {
            test.sample("f", 1);
        }
        let thread = test.builder.thread_mut(ThreadIndex::from_index(0));
        thread.samples[2] = Sample { cpu_delta: 1 << 40, weight: u32::MAX, ..thread.samples[2] };
        let profile = test.finish();
        for (range, expected) in [
            (1_000_000..3_000_000, Amount { weight: (1 << 32), cpu_ns: (1 << 40) + 1_000_000 }),
            (0..2_000_000, Amount { weight: 2, cpu_ns: 1_000_000 }),
        ] {
            let selection = Selection { range: Some(range), ..Selection::default() };
            with_view(&profile, &selection, |view| assert_eq!(view.total(), expected));
        }
    }
}
