//! Makes stacks from call graphs. Formats such as callgrind's have the own cost of each function and the cost
//! of its calls, but no stacks.
//!
//! A function's own cost is divided among its callers in proportion to the costs of their calls to it, and so
//! on up to the functions without callers. So own costs and the costs of calls are exact, and only longer
//! stacks are an estimate. Like `gprof`, it assumes that the inner costs of a call do not depend on the outer
//! callers. Calls that close a cycle are removed, so that no function is on a stack twice. The stacks with
//! the highest cost are made first. When the limit for the size of the input is reached, the rest is put
//! below `(other callers)`.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use nyquist_profile::{FrameId, StackId, ThreadIndex};

use crate::import::{CodePosition, Importer};
use crate::values::SampleQueue;

/// The limit of stacks for each line and call of the file, and the additional number of stacks.
const STACKS_PER_ROW: usize = 8;
const MORE_STACKS: usize = 50_000;

/// The maximum depth of a stack.
const MAX_DEPTH: u32 = 1000;

/// The fraction of a function that may be added to the rest of it, instead of below a label, as a divisor.
const NEGLIGIBLE: u64 = 1000;

/// Functions by number, with their own costs and their calls.
#[derive(Default)]
pub(crate) struct CallGraph {
    functions: Vec<GraphFunction>,
}

#[derive(Default)]
struct GraphFunction {
    own: Vec<SelfCost>,
    calls: Vec<GraphCall>,
    /// The totals of the function, after the graph is complete.
    flow: CostFlow,
}

/// The own cost of a function at a place.
struct SelfCost {
    frame: FrameId,
    cost: u64,
    /// The part that is on stacks.
    given: f64,
    last: Option<StackId>,
}

/// The calls to a function from a place, with their total cost.
struct GraphCall {
    site: FrameId,
    callee: usize,
    cost: u64,
    closes_circle: bool,
}

#[derive(Clone, Copy, Default)]
struct CostFlow {
    /// The cost of the calls to it, and its cost beyond that, which has no caller.
    called: u64,
    uncalled: u64,
    /// The number of places that call it.
    callers: u32,
    is_in_circle: bool,
    /// Its cost including its calls.
    total: f64,
}

impl CostFlow {
    /// The share of the function that belongs to a call with this cost.
    fn share(self, cost: u64) -> f64 {
        let all = self.called.saturating_add(self.uncalled);
        if all == 0 { 1.0 / f64::from(self.callers.max(1)) } else { cost as f64 / all as f64 }
    }

    /// The share of the function that has no caller.
    fn root_share(self) -> f64 {
        match (self.callers, self.uncalled) {
            (0, _) => 1.0,
            (_, 0) => 0.0,
            (_, uncalled) => self.share(uncalled),
        }
    }
}

impl CallGraph {
    /// Adds a function and returns its number.
    pub(crate) fn add_function(&mut self) -> usize {
        self.functions.push(GraphFunction::default());
        self.functions.len() - 1
    }

    /// Adds an own cost of a function at a place.
    pub(crate) fn add_own(&mut self, function: usize, frame: FrameId, cost: u64) {
        if let Some(function) = self.functions.get_mut(function).filter(|_| cost > 0) {
            function.own.push(SelfCost { frame, cost, given: 0.0, last: None });
        }
    }

    /// Adds calls from a place of a function. Both functions must exist.
    pub(crate) fn add_call(&mut self, (caller, site): (usize, FrameId), callee: usize, cost: u64) {
        // The cost of a direct recursion is already in the function's cost.
        if caller != callee && callee < self.functions.len() {
            let call = GraphCall { site, callee, cost, closes_circle: false };
            self.functions[caller].calls.push(call);
        }
    }

    /// Adds the stacks to a thread. O(n log n) for the places and calls of the graph.
    pub(crate) fn add_to(mut self, importer: &mut Importer, thread: ThreadIndex) {
        for function in &mut self.functions {
            function.merge();
        }
        let order = self.cut_circles();
        self.sum_up(&order);
        let mut queue = SampleQueue::new(thread);
        self.add_stacks(importer, &mut queue);
        self.add_rest(importer, &mut queue);
    }

    /// Marks the calls that close a cycle, and returns the functions, callees first.
    fn cut_circles(&mut self) -> Vec<usize> {
        let count = self.functions.len();
        let mut is_called = vec![false; count];
        for call in self.functions.iter().flat_map(|function| &function.calls) {
            is_called[call.callee] = true;
        }
        let mut roots: Vec<usize> = (0..count).collect();
        roots.sort_by_key(|&it| (is_called[it], std::cmp::Reverse(self.functions[it].cost())));
        let (mut states, mut order, mut path) =
            (vec![VisitState::New; count], Vec::with_capacity(count), Vec::new());
        for root in roots {
            if states[root] == VisitState::New {
                states[root] = VisitState::Open;
                path.push((root, 0));
            }
            while let Some((caller, next)) = path.last_mut() {
                let caller = *caller;
                let Some(call) = self.functions[caller].calls.get_mut(*next) else {
                    states[caller] = VisitState::Done;
                    order.push(caller);
                    path.pop();
                    continue;
                };
                *next += 1;
                let callee = call.callee;
                match states[callee] {
                    VisitState::New => {
                        states[callee] = VisitState::Open;
                        path.push((callee, 0));
                    }
                    VisitState::Open => {
                        call.closes_circle = true;
                        self.functions[callee].flow.is_in_circle = true;
                    }
                    VisitState::Done => {}
                }
            }
        }
        order
    }

    /// Computes the cost of the calls to each function, and its cost including its own calls.
    fn sum_up(&mut self, order: &[usize]) {
        for caller in 0..self.functions.len() {
            for at in 0..self.functions[caller].calls.len() {
                let call = &self.functions[caller].calls[at];
                let (callee, cost, is_cut) = (call.callee, call.cost, call.closes_circle);
                if !is_cut {
                    let flow = &mut self.functions[callee].flow;
                    flow.called = flow.called.saturating_add(cost);
                    flow.callers = flow.callers.saturating_add(1);
                }
            }
        }
        for function in &mut self.functions {
            let retained =
                function.kept_calls().fold(function.own_cost(), |sum, call| sum.saturating_add(call.cost));
            let uncalled = retained.saturating_sub(function.flow.called);
            // Times are rounded, and calls in a cycle are counted more than once.
            if uncalled > function.flow.called / 100 && !function.flow.is_in_circle {
                function.flow.uncalled = uncalled;
            }
        }
        for &index in order {
            let function = &self.functions[index];
            let called: f64 = function.kept_calls().map(|call| self.flow_of(call)).sum();
            self.functions[index].flow.total = function.own_cost() as f64 + called;
        }
    }

    fn flow_of(&self, call: &GraphCall) -> f64 {
        let callee = self.functions[call.callee].flow;
        callee.share(call.cost) * callee.total
    }

    fn add_stacks(&mut self, importer: &mut Importer, queue: &mut SampleQueue) {
        let rows: usize = self.functions.iter().map(GraphFunction::rows).sum();
        let mut left = rows.saturating_mul(STACKS_PER_ROW).saturating_add(MORE_STACKS);
        let mut paths = BinaryHeap::new();
        for (function, it) in self.functions.iter().enumerate() {
            let part = it.flow.root_share();
            paths.push(CallPath { function, prefix: None, depth: 1, part, cost: part * it.flow.total });
        }
        while let Some(path) = paths.pop() {
            // A cost of less than half a unit is dropped.
            let Some(rest) = left.checked_sub(self.functions[path.function].rows()) else { break };
            if path.cost < 0.5 {
                break;
            }
            left = rest;
            self.functions[path.function].give(&path, importer, queue);
            if path.depth < MAX_DEPTH {
                for call in self.functions[path.function].kept_calls() {
                    let part = path.part * self.functions[call.callee].flow.share(call.cost);
                    let cost = path.part * self.flow_of(call);
                    if cost >= 0.5 {
                        let prefix = Some(importer.stack(path.prefix, call.site));
                        let depth = path.depth + 1;
                        paths.push(CallPath { function: call.callee, prefix, depth, part, cost });
                    }
                }
            }
        }
    }

    /// Adds the costs that are on no stack yet.
    fn add_rest(self, importer: &mut Importer, queue: &mut SampleQueue) {
        let mut others = None;
        for own in self.functions.into_iter().flat_map(|function| function.own) {
            let rest = own.cost.saturating_sub(own.given.round() as u64);
            if rest == 0 {
                continue;
            }
            let stack = own.last.filter(|_| rest <= own.cost / NEGLIGIBLE).unwrap_or_else(|| {
                let label = *others.get_or_insert_with(|| {
                    let frame =
                        importer.frame(&CodePosition { name: "(other callers)", ..CodePosition::default() });
                    importer.stack(None, frame)
                });
                importer.stack(Some(label), own.frame)
            });
            queue.add(importer, Some(stack), rest);
        }
    }
}

impl GraphFunction {
    /// Merges the entries for the same place, and sorts the most expensive calls first.
    fn merge(&mut self) {
        self.own.sort_by_key(|own| own.frame);
        self.own.dedup_by(|next, own| {
            let is_same = next.frame == own.frame;
            own.cost = own.cost.saturating_add(if is_same { next.cost } else { 0 });
            is_same
        });
        self.calls.sort_by_key(|call| (call.site, call.callee));
        self.calls.dedup_by(|next, call| {
            let is_same = (next.site, next.callee) == (call.site, call.callee);
            call.cost = call.cost.saturating_add(if is_same { next.cost } else { 0 });
            is_same
        });
        self.calls.sort_by_key(|call| std::cmp::Reverse(call.cost));
    }

    /// Its cost including its calls, according to the file.
    fn cost(&self) -> u64 {
        self.calls.iter().fold(self.own_cost(), |sum, call| sum.saturating_add(call.cost))
    }

    fn own_cost(&self) -> u64 {
        self.own.iter().fold(0, |sum, own| sum.saturating_add(own.cost))
    }

    fn rows(&self) -> usize {
        self.own.len() + self.calls.len()
    }

    fn kept_calls(&self) -> impl Iterator<Item = &GraphCall> {
        self.calls.iter().filter(|call| !call.closes_circle)
    }

    /// Adds the part of its own cost that belongs to a path. Rounding errors are passed to the next path.
    fn give(&mut self, path: &CallPath, importer: &mut Importer, queue: &mut SampleQueue) {
        for own in &mut self.own {
            let before = own.given.round();
            own.given = (own.given + own.cost as f64 * path.part).min(own.cost as f64);
            let amount = (own.given.round() - before) as u64;
            if amount > 0 {
                let stack = importer.stack(path.prefix, own.frame);
                own.last = Some(stack);
                queue.add(importer, Some(stack), amount);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    Open,
    Done,
}

/// A path on which a function is reached, and the part of the function that is on it.
struct CallPath {
    function: usize,
    prefix: Option<StackId>,
    depth: u32,
    part: f64,
    /// The cost of that part including its calls.
    cost: f64,
}

impl Ord for CallPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then(other.function.cmp(&self.function))
    }
}

impl PartialOrd for CallPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for CallPath {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for CallPath {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ThreadName;
    use crate::test_profile::stacks_of;

    /// The stacks of a graph, given functions with their own costs, and calls with their costs.
    fn stacks(functions: &[(&str, u64)], calls: &[(&str, &str, u64)]) -> Vec<String> {
        let mut importer = Importer::new("x", "y");
        let thread = importer.thread(ThreadName { pid: "0", tid: "0", ..ThreadName::default() });
        let mut graph = CallGraph::default();
        let frames: Vec<_> = (functions.iter())
            .map(|&(name, own)| {
                let frame = importer.frame(&CodePosition { name, ..CodePosition::default() });
                let function = graph.add_function();
                graph.add_own(function, frame, own);
                frame
            })
            .collect();
        let index = |name| functions.iter().position(|&(it, _)| it == name).unwrap();
        for &(caller, callee, cost) in calls {
            graph.add_call((index(caller), frames[index(caller)]), index(callee), cost);
        }
        graph.add_to(&mut importer, thread);
        // A weight of 1 is one unit.
        stacks_of(&importer.finish(Some(1)).profile)
    }

    #[test]
    fn own_cost_is_divided_as_the_calls_are() {
        let functions = [("main", 10), ("a", 5), ("b", 15), ("work", 70)];
        let calls = [("main", "a", 35), ("main", "b", 55), ("a", "work", 30), ("b", "work", 40)];
        let expected = ["main 10", "main;a 5", "main;a;work 30", "main;b 15", "main;b;work 40"];
        assert_eq!(stacks(&functions, &calls), expected);
    }

    #[test]
    fn recursion_is_cut() {
        let direct = stacks(&[("main", 1), ("fib", 99)], &[("main", "fib", 99), ("fib", "fib", 500)]);
        assert_eq!(direct, ["main 1", "main;fib 99"]);
        let calls = [("main", "a", 90), ("a", "b", 80), ("b", "a", 300)];
        let circle = stacks(&[("main", 10), ("a", 40), ("b", 50)], &calls);
        assert_eq!(circle, ["main 10", "main;a 40", "main;a;b 50"]);
        let alone = stacks(&[("a", 4), ("b", 5)], &[("a", "b", 5), ("b", "a", 4)]);
        assert_eq!(alone, ["a 4", "a;b 5"]);
    }

    #[test]
    fn what_nobody_called_is_outermost() {
        let functions = [("main", 10), ("handler", 40)];
        assert_eq!(
            stacks(&functions, &[("main", "handler", 10)]),
            ["handler 30", "main 10", "main;handler 10"]
        );
        assert_eq!(stacks(&[("lone", 3)], &[]), ["lone 3"]);
    }

    #[test]
    fn paths_without_number_stay_bounded() {
        // Each of 40 layers calls both functions of the next one, which makes 2^40 paths.
        let names: Vec<_> = (0..80).map(|number| format!("f{number}")).collect();
        let functions: Vec<_> = names.iter().map(|name| (&**name, 1_000_000)).collect();
        let mut calls = Vec::new();
        for (at, name) in names.iter().enumerate() {
            for next in [at / 2 * 2 + 2, at / 2 * 2 + 3] {
                calls.extend(names.get(next).map(|next| (&**name, &**next, 1000)));
            }
        }
        let stacks = stacks(&functions, &calls);
        assert!(stacks.len() < 60_000, "{}", stacks.len());
        let count = |line: &String| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        assert_eq!(stacks.iter().map(count).sum::<u64>(), 80_000_000);
    }
}
