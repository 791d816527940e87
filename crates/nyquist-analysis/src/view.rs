//! A view of a profile: the selected part, and the sums of its samples.

use std::borrow::Cow;
use std::sync::OnceLock;

use nyquist_profile::{FuncId, Profile, ThreadIndex};

use crate::amount::Amount;
use crate::index::Index;
use crate::index::category_rows::CategoryRows;
use crate::index::derived::DerivedForest;
use crate::index::forest::{Forest, NONE};
use crate::index::function_info::FunctionInfo;
use crate::index::node_sums::NodeSums;
use crate::index::sampled_nodes::SampledNodes;
use crate::index::sums::{self, SampleSums};
use crate::selection::Selection;
use crate::selection::selected_samples::{SelectedSample, SelectedSamples};
use crate::selection::sum_plan::SumPlan;
use crate::selection::{patterns, transform};

/// The part of a profile that a selection leaves. It answers all queries.
///
/// Making a view is O(stacks + functions × patterns). If part of a thread's time is chosen, it is also
/// O(samples) of that part or of the remaining recording, whichever is less.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) index: &'a Index<'a>,
    pub(crate) selection: Selection,
    pub(crate) chosen: SelectedSamples<'a>,
    pub(crate) derived: DerivedForest<'a>,
    /// The nodes that have samples, after filters and transforms.
    sampled: Cow<'a, SampledNodes>,
    /// The running sums of [`NodeSums`].
    running: Cow<'a, [Amount]>,
    /// The sum of the samples without a stack.
    stackless: Amount,
    /// Computed for the first time line by category.
    pub(crate) category_rows: OnceLock<CategoryRows>,
}

impl<'a> View<'a> {
    /// Applies a selection to a profile.
    pub fn new(index: &'a Index<'a>, selection: &Selection) -> Self {
        let chosen = SelectedSamples::new(index.profile, selection);
        let derived = derive(index, selection);
        let Sums { sampled, running, stackless } = sum_up(index, &chosen, &derived);
        let (selection, category_rows) = (selection.clone(), OnceLock::new());
        Self { index, selection, chosen, derived, sampled, running, stackless, category_rows }
    }

    /// The profile.
    pub fn profile(&self) -> &'a Profile {
        self.index.profile
    }

    /// The selection.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The memory that the view takes beside its index, in bytes, as far as it depends on the profile.
    pub fn own_bytes(&self) -> usize {
        let running = match &self.running {
            Cow::Owned(running) => size_of_val(&**running),
            Cow::Borrowed(_) => 0,
        };
        let sampled = match &self.sampled {
            Cow::Owned(sampled) => sampled.bytes(),
            Cow::Borrowed(_) => 0,
        };
        let category_rows = self.category_rows.get().map_or(0, CategoryRows::bytes);
        running + sampled + category_rows + self.derived.own_bytes()
    }

    /// The name and place of a function, or of the lib that it stands for.
    pub fn function(&self, func: FuncId) -> FunctionInfo<'a> {
        self.index.function(func)
    }

    /// The sum of all samples, including those without a stack. Shares are relative to this.
    pub fn total(&self) -> Amount {
        self.in_stacks() + self.stackless
    }

    /// Whether the selection leaves nothing.
    pub fn is_empty(&self) -> bool {
        self.total().is_zero()
    }

    /// The texts of the patterns of the selection that no function of the profile matches. O(functions ×
    /// patterns).
    pub fn unmatched_patterns(&self) -> Vec<&str> {
        let is_unmatched = |pattern: &&crate::names::pattern::Pattern| {
            let matching = patterns::matching_functions(self.profile(), std::slice::from_ref(*pattern));
            !matching.contains(&true)
        };
        self.selection.patterns().filter(is_unmatched).map(crate::names::pattern::Pattern::as_str).collect()
    }

    /// The sum of the samples whose stacks have any of some functions. O(nodes).
    pub fn total_with(&self, is_requested: impl Fn(FuncId) -> bool) -> Amount {
        let forest = self.forest();
        let mut has_one: Vec<bool> = Vec::with_capacity(forest.len());
        let mut sum = Amount::default();
        for (node, &parent) in forest.parent.iter().enumerate() {
            let inherits = parent != NONE && has_one[parent as usize];
            let has = inherits || is_requested(FuncId::from_index(forest.func[node] as usize));
            has_one.push(has);
            if has {
                sum += self.own(node as u32);
            }
        }
        sum
    }

    /// The sum of the samples with a stack.
    pub(crate) fn in_stacks(&self) -> Amount {
        self.running.last().copied().unwrap_or_default()
    }

    pub(crate) fn forest(&self) -> &Forest {
        &self.derived.forest
    }

    /// The remaining stacks, with the sums of their nodes.
    pub(crate) fn node_sums(&self) -> NodeSums<'_> {
        NodeSums::new(&self.derived.forest, &self.sampled, &self.running)
    }

    /// The self amount of a node.
    pub(crate) fn own(&self, node: u32) -> Amount {
        self.node_sums().own(node)
    }

    /// The total amount of a node.
    pub(crate) fn total_of(&self, node: u32) -> Amount {
        self.node_sums().total_of(node)
    }

    /// The remaining samples of a thread, in the order of time, with their nodes; `None` for those without a
    /// stack.
    pub(crate) fn samples_of(
        &self,
        thread: ThreadIndex,
    ) -> impl Iterator<Item = (SelectedSample, Option<u32>)> {
        self.chosen.of_thread(thread).filter_map(|chosen| match chosen.sample.stack {
            None => self.derived.keeps_stackless.then_some((chosen, None)),
            Some(stack) => {
                let target = self.derived.target(self.index.node_of_stack[stack.index()]);
                target.map(|node| (chosen, Some(node)))
            }
        })
    }
}

/// The stacks after filters and transforms.
fn derive<'a>(index: &'a Index<'a>, selection: &Selection) -> DerivedForest<'a> {
    let mut derived = DerivedForest::new(&index.forest);
    if selection.libs.is_some() || selection.categories.is_some() {
        retain_innermost(index, selection, &mut derived);
    }
    patterns::apply(index.profile, selection, &mut derived);
    for change in &selection.transforms {
        transform::apply(index.profile, change, &mut derived);
    }
    derived
}

/// Keeps samples whose innermost frame has one of the libs and one of the categories.
fn retain_innermost(index: &Index<'_>, selection: &Selection, derived: &mut DerivedForest<'_>) {
    let forest = &index.forest;
    let is_of_lib = |node: usize| {
        let lib = index.profile.funcs()[forest.func[node] as usize].lib;
        selection.libs.as_ref().is_none_or(|libs| lib.is_some_and(|lib| libs.contains(&lib)))
    };
    let is_of_category = |node: usize| {
        let category = forest.category[node].map(|pair| pair.category);
        let categories = selection.categories.as_ref();
        categories.is_none_or(|categories| category.is_some_and(|category| categories.contains(&category)))
    };
    derived.retain_samples(|node| is_of_lib(node) && is_of_category(node));
    derived.keeps_stackless = false;
}

/// The sums of a view.
struct Sums<'a> {
    sampled: Cow<'a, SampledNodes>,
    running: Cow<'a, [Amount]>,
    stackless: Amount,
}

/// The running sums of the nodes' amounts, and the amount of samples without a stack.
fn sum_up<'a>(index: &'a Index<'a>, chosen: &SelectedSamples<'_>, derived: &DerivedForest<'_>) -> Sums<'a> {
    let mut plans = chosen.states().iter().map(|&state| SumPlan::new(index, chosen, state));
    let (first, second) = (plans.next(), plans.next());
    let (all, sampled) = (&index.sums.all, &index.sums.sampled);
    let (own, stackless) = match (first, second) {
        (Some(plan), None) if plan.is_all() => (Cow::Borrowed(&*all.own), all.stackless),
        (first, second) => {
            let mut sums = first.map_or_else(|| SampleSums::new(sampled.slots()), |plan| plan.sums());
            if let Some(plan) = second {
                sums.add_all(&plan.sums());
            }
            (Cow::Owned(sums.own), sums.stackless)
        }
    };
    let (sampled, running) = match (&derived.map, own) {
        (None, Cow::Borrowed(_)) => (Cow::Borrowed(sampled), Cow::Borrowed(&*index.sums.running)),
        (None, Cow::Owned(own)) => (Cow::Borrowed(sampled), Cow::Owned(sums::running(own))),
        (Some(map), own) => {
            let (sampled, own) = moved(sampled, &own, map, derived.forest.len());
            (Cow::Owned(sampled), Cow::Owned(sums::running(own)))
        }
    };
    let stackless = if derived.keeps_stackless { stackless } else { Amount::default() };
    Sums { sampled, running, stackless }
}

/// The nodes that have samples after filters and transforms, and their amounts.
fn moved(sampled: &SampledNodes, own: &[Amount], map: &[u32], len: usize) -> (SampledNodes, Vec<Amount>) {
    let targets = || {
        let moved = sampled.nodes().zip(own).map(|(node, &amount)| (map[node as usize], amount));
        moved.filter(|(target, amount)| *target != NONE && !amount.is_zero())
    };
    let mut is_sampled = vec![false; len];
    targets().for_each(|(target, _)| is_sampled[target as usize] = true);
    let sampled = SampledNodes::new(&is_sampled);
    let mut own = SampleSums::new(sampled.slots()).own;
    targets().for_each(|(target, amount)| own[sampled.slots_before(target)] += amount);
    (sampled, own)
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{CategoryId, LibId, ProcessIndex, ThreadIndex};

    use super::*;
    use crate::sample_state::SampleState;
    use crate::test_profile::{TestProfile, tree_text, with_view};

    fn check(selection: &Selection, expected: &str, total: u64) {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.sample("f@one user:g@two", 1);
        test.sample("f@one", 2);
        test.wait("f@one kernel:wait", 50);
        test.sample("", 4);
        test.thread("2", "b");
        test.sample("h", 8);
        with_view(&test.finish(), selection, |view| {
            assert_eq!(tree_text(view.call_tree()), expected, "{selection:?}");
            assert_eq!(view.total().weight, total, "{selection:?}");
            assert_eq!(view.is_empty(), total == 0);
        });
    }

    #[test]
    fn samples_have_to_pass_all_filters() {
        let all = Selection::default();
        check(&all, "h:8,8 f:3,2 .g:1,1", 15);
        let thread = Some(vec![ThreadIndex::from_index(0)]);
        check(&Selection { threads: thread.clone(), ..all.clone() }, "f:3,2 .g:1,1", 7);
        let process = Some(vec![ProcessIndex::from_index(1)]);
        check(&Selection { processes: process.clone(), ..all.clone() }, "h:8,8", 8);
        check(&Selection { threads: thread, processes: process, ..all.clone() }, "", 0);
        check(&Selection { threads: Some(vec![]), ..all.clone() }, "", 0);
        check(&Selection { libs: Some(vec![LibId::from_index(0)]), ..all.clone() }, "f:2,2", 2);
        check(&Selection { libs: Some(vec![LibId::from_index(1)]), ..all.clone() }, "f:1,0 .g:1,1", 1);
        let user = Some(vec![CategoryId::from_index(1)]);
        check(&Selection { categories: user, ..all }, "f:1,0 .g:1,1", 1);
    }

    #[test]
    fn a_range_has_its_start_and_not_its_end() {
        let check = |range, total| {
            let mut test = TestProfile::new();
            test.thread("1", "a");
            (0..5).for_each(|exponent| test.sample("f", 1 << exponent));
            let selection = Selection { range: Some(range), ..Selection::default() };
            with_view(&test.finish(), &selection, |view| assert_eq!(view.total().weight, total));
        };
        check(0..u64::MAX, 31);
        check(1_000_000..3_000_000, 2 + 4);
        check(1_000_001..3_000_001, 4 + 8);
        check(9_000_000..u64::MAX, 0);
        // A range that ends before it begins is empty.
        #[expect(clippy::reversed_empty_ranges)]
        check(3_000_000..1_000_000, 0);
    }

    #[test]
    fn waiting_is_apart_from_cpu_time() {
        let of = |state| Selection { state, ..Selection::default() };
        check(&of(SampleState::OffCpu), "f:50,0 .wait:50,50", 50);
        check(&of(SampleState::Both), "f:53,2 .wait:50,50 .g:1,1 h:8,8", 65);
    }

    #[test]
    fn samples_with_any_of_some_functions_count_once() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for (stack, weight) in [("m a b a", 1), ("m b", 2), ("m c", 4), ("", 8)] {
            test.sample(stack, weight);
        }
        with_view(&test.finish(), &Selection::default(), |view| {
            let with =
                |names: &[&str]| view.total_with(|func| names.contains(&view.function(func).name)).weight;
            assert_eq!((with(&["a"]), with(&["a", "b"]), with(&["m"]), with(&[])), (1, 3, 7, 0));
        });
    }
}
