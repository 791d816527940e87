//! The lines from which a function is called.

use nyquist_profile::FuncId;
use rustc_hash::FxHashMap;

use crate::amount::Amount;
use crate::index::forest::NONE;
use crate::index::orders;
use crate::index::self_and_total;
use crate::view::View;

/// A line of a function that calls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite<'a> {
    /// The calling function.
    pub caller: FuncId,
    /// The path of the line's source file, if known.
    pub file: Option<&'a str>,
    /// The line, from 1, if known.
    pub line: Option<u32>,
    /// The amount of the calls from there. A sample counts once, even with recursion.
    pub total: Amount,
}

impl<'a> View<'a> {
    /// The lines from which a function is called, the one with the greatest weight first. O(nodes).
    pub fn call_sites(&self, func: FuncId) -> Vec<CallSite<'a>> {
        let (profile, forest) = (self.profile(), self.forest());
        let number = func.index() as u32;
        let mut keys = FxHashMap::default();
        let mut sites = Vec::new();
        let mut site_of_node = FxHashMap::default();
        for (node, _) in forest.func.iter().enumerate().filter(|(_, called)| **called == number) {
            let parent = forest.parent[node];
            // A collapsed lib has no line.
            if parent == NONE || forest.func[parent as usize] as usize >= profile.funcs().len() {
                continue;
            }
            let frame = profile.stacks()[forest.stack[parent as usize] as usize].frame;
            let site = (forest.func[parent as usize], orders::line_of(profile, profile.frame(frame)));
            let key = *keys.entry(site).or_insert_with(|| {
                sites.push(site);
                sites.len() - 1
            });
            site_of_node.insert(node, key);
        }
        let amounts =
            self_and_total::by_key(self.node_sums(), sites.len(), |node| site_of_node.get(&node).copied());
        let sampled = sites.into_iter().zip(amounts).filter(|(_, amounts)| !amounts.total.is_zero());
        let mut sites: Vec<_> = sampled
            .map(|((caller, (source, line)), amounts)| CallSite {
                caller: FuncId::from_index(caller as usize),
                file: source.map(|source| profile.string(profile.source(source).filename)),
                line,
                total: amounts.total,
            })
            .collect();
        sites.sort_by(|a, b| {
            b.total.cmp(&a.total).then_with(|| (a.caller, a.file, a.line).cmp(&(b.caller, b.file, b.line)))
        });
        sites
    }
}

#[cfg(test)]
mod tests {
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, func, with_view};

    #[test]
    fn calls_are_summed_by_the_callers_line() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("main#1@app f#10@app g#20@lib", 1);
        test.sample("main#1@app f#11@app g#21@lib", 4);
        test.sample("main#1@app f#11@app g#22@lib h#1@lib", 2);
        test.sample("main#3@app g#20@lib", 3);
        test.sample("g#20@lib", 5);
        let profile = test.finish();
        with_view(&profile, &Selection::default(), |view| {
            let sites = view.call_sites(func(&profile, "g")).into_iter();
            let sites: Vec<_> =
                sites.map(|site| (profile.func_name(site.caller), site.line, site.total.weight)).collect();
            assert_eq!(sites, [("f", Some(11), 6), ("main", Some(3), 3), ("f", Some(10), 1)]);
        });
    }
}
