//! Amounts by groups of functions: by file, by crate or namespace, by lib.

use nyquist_profile::FuncId;
use rustc_hash::FxHashMap;

use crate::amount::Amount;
use crate::index::function_info::{FunctionInfo, function_count};
use crate::index::self_and_total;
use crate::names::module_name;
use crate::view::View;

/// What the functions of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionGrouping {
    /// The source file.
    File,
    /// The crate, namespace or package; for names without a path, the lib.
    Module,
    /// The lib.
    Lib,
}

/// The amounts of a group of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionGroup<'a> {
    /// The name of the file, module or lib; `None` for functions without one.
    pub name: Option<&'a str>,
    /// The self amount of its functions.
    pub self_amount: Amount,
    /// The samples with any of its functions, each once.
    pub total: Amount,
}

impl<'a> View<'a> {
    /// The amounts of groups of functions, the greatest self amount first. O(functions + nodes).
    pub fn by_function_group(&self, grouping: FunctionGrouping) -> Vec<FunctionGroup<'a>> {
        let profile = self.profile();
        let mut groups: Vec<Option<&str>> = Vec::new();
        let mut known = FxHashMap::default();
        let group_of_func: Vec<usize> = (0..function_count(profile))
            .map(|index| {
                let info = FunctionInfo::new(profile, FuncId::from_index(index));
                let name = match grouping {
                    FunctionGrouping::File => info.file,
                    FunctionGrouping::Module => module_name(info.name).or(info.lib),
                    FunctionGrouping::Lib => info.lib,
                };
                *known.entry(name).or_insert_with(|| {
                    groups.push(name);
                    groups.len() - 1
                })
            })
            .collect();
        let forest = self.forest();
        let amounts = self_and_total::by_key(self.node_sums(), groups.len(), |node| {
            Some(group_of_func[forest.func[node] as usize])
        });
        let rows = groups.into_iter().zip(amounts).filter(|(_, amounts)| !amounts.total.is_zero());
        let mut rows: Vec<_> = rows
            .map(|(name, amounts)| FunctionGroup { name, self_amount: amounts.own, total: amounts.total })
            .collect();
        rows.sort_by(|a, b| {
            let by_amount = (b.self_amount, b.total).cmp(&(a.self_amount, a.total));
            by_amount.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    #[test]
    fn a_sample_counts_once_for_each_group() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("", 1);
        for (stack, weight) in
            [("app::main@app std::sort@app std::cmp@app", 4), ("app::main@app malloc@libc", 2)]
        {
            test.sample(stack, weight);
        }
        with_view(&test.finish(), &Selection::default(), |view| {
            let text = |grouping| {
                let rows = view.by_function_group(grouping).into_iter();
                let rows = rows.map(|row| {
                    format!("{} {} {}", row.name.unwrap_or("-"), row.self_amount.weight, row.total.weight)
                });
                rows.collect::<Vec<_>>().join(", ")
            };
            assert_eq!(text(FunctionGrouping::Module), "std 4 4, libc 2 2, app 0 6");
            assert_eq!(text(FunctionGrouping::Lib), "app 4 6, libc 2 2");
            assert_eq!(text(FunctionGrouping::File), "- 6 6");
        });
    }
}
