//! Amounts by thread, process, lib and category.

use crate::amount::Amount;
use crate::index::Index;
use crate::index::cpu_threads::is_of_cpu;
use crate::index::prefix_sums::Count;
use crate::index::self_and_total;
use crate::parallel;
use crate::view::View;
use nyquist_profile::{CategoryColor, CategoryId, LibId, ProcessIndex, ThreadIndex};

/// The amount of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow<'a> {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its name.
    pub name: &'a str,
    /// Its id.
    pub tid: &'a str,
    /// Its process.
    pub process: ProcessIndex,
    /// Its process's id.
    pub pid: &'a str,
    /// The sum of its samples.
    pub amount: Amount,
    /// The number of its samples.
    pub samples: u64,
}

/// The amount of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRow<'a> {
    /// The process.
    pub process: ProcessIndex,
    /// Its name.
    pub name: &'a str,
    /// Its id.
    pub pid: &'a str,
    /// The number of its selected threads.
    pub threads: usize,
    /// The sum of the samples of these threads.
    pub amount: Amount,
    /// The number of these samples.
    pub samples: u64,
}

/// The amounts of a lib.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibRow<'a> {
    /// The lib; none for frames without one.
    pub lib: Option<LibId>,
    /// Its name.
    pub name: Option<&'a str>,
    /// Its path.
    pub path: Option<&'a str>,
    /// The self amount of its functions.
    pub self_amount: Amount,
    /// The total amount of its functions.
    pub total: Amount,
}

/// The amounts of a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryRow<'a> {
    /// The category; none for frames without one.
    pub category: Option<CategoryId>,
    /// Its name.
    pub name: Option<&'a str>,
    /// Its colour.
    pub color: Option<CategoryColor>,
    /// The self amount of its frames.
    pub self_amount: Amount,
    /// The total amount of its frames.
    pub total: Amount,
}

impl<'a> View<'a> {
    /// The amount of each selected thread, the greatest first, including idle threads. O(threads × log
    /// samples), with filters and transforms O(samples).
    pub fn by_thread(&self) -> Vec<ThreadRow<'a>> {
        let retained = self.retained_slots();
        let row = |&thread: &ThreadIndex| self.row_of(thread, retained.as_deref());
        let mut rows = parallel::map(&self.chosen.threads, 1, row);
        rows.sort_by(|a, b| b.amount.cmp(&a.amount).then(a.thread.cmp(&b.thread)));
        rows
    }

    /// The amount of each CPU, in the order of the CPUs, if the profile has a thread for each CPU. Such a
    /// thread repeats samples of other threads, so a selection includes it only if it names it. The times
    /// and filters of the selection apply, its threads do not.
    pub fn by_core(&self) -> Vec<ThreadRow<'a>> {
        let threads = self.profile().threads().iter().enumerate();
        // The thread with the number 0 stands for all CPUs together.
        let cores = threads.filter(|(_, thread)| thread.tid != "0" && is_of_cpu(self.profile(), thread));
        let retained = self.retained_slots();
        let row = |(index, _)| self.row_of(ThreadIndex::from_index(index), retained.as_deref());
        let mut rows: Vec<_> = cores.map(row).collect();
        rows.sort_by_key(|row| (row.tid.parse::<u64>().unwrap_or(u64::MAX), row.thread));
        rows
    }

    fn row_of(&self, id: ThreadIndex, retained: Option<&[bool]>) -> ThreadRow<'a> {
        let (thread, count) = (self.profile().thread(id), self.count_of(id, retained));
        ThreadRow {
            thread: id,
            name: &thread.name,
            tid: &thread.tid,
            process: thread.process,
            pid: &self.profile().process(thread.process).pid,
            amount: count.amount,
            samples: count.samples,
        }
    }

    /// Which slots filters and transforms keep, if not all.
    fn retained_slots(&self) -> Option<Vec<bool>> {
        let is_retained = |node| self.derived.target(node).is_some();
        (!self.derived.keeps_all()).then(|| self.index.sums.sampled.nodes().map(is_retained).collect())
    }

    /// The number of a thread's samples and their sum.
    fn count_of(&self, id: ThreadIndex, retained: Option<&[bool]>) -> Count {
        let Index { profile, sums, .. } = self.index;
        let (state, range) = (self.chosen.state, self.chosen.range_of(id));
        let Some(retained) = retained else {
            if range.len() == profile.thread(id).samples.len() {
                return sums.count(id, state);
            }
            let before = |position| self.index.prefix_sum_before(id, position).count(state);
            return before(range.end) - before(range.start);
        };
        let is_retained =
            |slot: Option<u32>| slot.map_or(self.derived.keeps_stackless, |slot| retained[slot as usize]);
        let one_by_one = |range| {
            let mut count = Count::default();
            sums.slots.go_through(profile, profile.thread(id), range, state, |slot, amount| {
                if is_retained(slot) {
                    count.add(amount);
                }
            });
            count
        };
        let len = profile.thread(id).samples.len();
        if range.len() < len / 2 {
            return one_by_one(range);
        }
        let mut count = Count::default();
        self.index.by_thread()[id.index()].each(state, |slot, of_slot| {
            if is_retained(slot) {
                count += of_slot;
            }
        });
        count - one_by_one(0..range.start) - one_by_one(range.end..len)
    }

    /// The amount of each process that has a selected thread, the greatest first. O(samples).
    pub fn by_process(&self) -> Vec<ProcessRow<'a>> {
        let profile = self.profile();
        let mut rows: Vec<Option<ProcessRow<'a>>> = vec![None; profile.processes().len()];
        for thread in self.by_thread() {
            let process = profile.process(thread.process);
            let row = rows[thread.process.index()].get_or_insert_with(|| ProcessRow {
                process: thread.process,
                name: &process.name,
                pid: &process.pid,
                threads: 0,
                amount: Amount::default(),
                samples: 0,
            });
            row.threads += 1;
            row.amount += thread.amount;
            row.samples += thread.samples;
        }
        let mut rows: Vec<_> = rows.into_iter().flatten().collect();
        rows.sort_by(|a, b| b.amount.cmp(&a.amount).then(a.process.cmp(&b.process)));
        rows
    }

    /// The amounts of each lib, the one with the greatest self weight first. O(nodes).
    pub fn by_lib(&self) -> Vec<LibRow<'a>> {
        let profile = self.profile();
        let forest = self.forest();
        let count = profile.libs().len();
        // The number after all libs stands for no lib.
        let of_func = profile.funcs().iter().map(|func| func.lib.map_or(count, LibId::index));
        let lib_of_func: Vec<usize> = of_func.chain(0..count).collect();
        let amounts = self_and_total::by_key(self.node_sums(), count + 1, |node| {
            Some(lib_of_func[forest.func[node] as usize])
        });
        let sampled = amounts.iter().enumerate().filter(|(_, amounts)| !amounts.total.is_zero());
        let mut rows: Vec<_> = sampled
            .map(|(index, amounts)| {
                let lib = profile.libs().get(index);
                LibRow {
                    lib: lib.map(|_| LibId::from_index(index)),
                    name: lib.map(|lib| lib.name.as_str()),
                    path: lib.map(|lib| lib.path.as_str()),
                    self_amount: amounts.own,
                    total: amounts.total,
                }
            })
            .collect();
        rows.sort_by(|a, b| {
            let by_amount = (b.self_amount, b.total).cmp(&(a.self_amount, a.total));
            by_amount.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    /// The amounts of each category, the one with the greatest self weight first. O(nodes).
    pub fn by_category(&self) -> Vec<CategoryRow<'a>> {
        let categories = self.profile().categories();
        let forest = self.forest();
        // The number after all categories stands for no category.
        let count = categories.len();
        let key = |node: usize| forest.category[node].map_or(count, |pair| pair.category.index());
        let amounts = self_and_total::by_key(self.node_sums(), count + 1, |node| Some(key(node)));
        let sampled = amounts.iter().enumerate().filter(|(_, amounts)| !amounts.total.is_zero());
        let mut rows: Vec<_> = sampled
            .map(|(index, amounts)| {
                let category = categories.get(index);
                CategoryRow {
                    category: category.map(|_| CategoryId::from_index(index)),
                    name: category.map(|category| category.name.as_str()),
                    color: category.map(|category| category.color),
                    self_amount: amounts.own,
                    total: amounts.total,
                }
            })
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
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    #[test]
    fn libs_and_categories_count_once_a_sample() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("user:a@app user:b@libc user:c@app", 2);
        test.sample("user:a@app user:b@libc kernel:sys", 1);
        with_view(&test.finish(), &Selection::default(), |view| {
            let libs = view.by_lib().into_iter();
            let libs: Vec<_> = libs.map(|row| (row.name, row.self_amount.weight, row.total.weight)).collect();
            assert_eq!(libs, [(Some("app"), 2, 3), (None, 1, 1), (Some("libc"), 0, 3)]);
            let categories = view.by_category().into_iter();
            let categories: Vec<_> =
                categories.map(|row| (row.name, row.self_amount.weight, row.total.weight)).collect();
            assert_eq!(categories, [(Some("User"), 2, 3), (Some("Kernel"), 1, 1)]);
        });
    }

    #[test]
    fn threads_and_processes_keep_what_filters_leave() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.sample("f", 1);
        test.sample("g", 5);
        test.thread("1", "idle");
        test.thread("2", "b");
        test.sample("f", 3);
        let selection =
            Selection { focus: vec![crate::Pattern::substring("f").unwrap()], ..Selection::default() };
        with_view(&test.finish(), &selection, |view| {
            let threads = view.by_thread().into_iter();
            let threads: Vec<_> = threads.map(|row| (row.name, row.amount.weight, row.samples)).collect();
            assert_eq!(threads, [("b", 3, 1), ("a", 1, 1), ("idle", 0, 0)]);
            let processes = view.by_process().into_iter();
            let processes: Vec<_> = processes.map(|row| (row.pid, row.threads, row.amount.weight)).collect();
            assert_eq!(processes, [("2", 1, 3), ("1", 2, 1)]);
        });
    }
}
