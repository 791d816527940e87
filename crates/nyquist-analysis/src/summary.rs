//! The summary of a profile: how long, how much, what was lost.

use nyquist_profile::{Profile, well_known};
use serde::Serialize;

use crate::amount::Amount;
use crate::forest::NONE;
use crate::view::View;

/// What a profile holds, in a few figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// From the begin of the profiling to its end in ns; where these are not known, from the first sample to
    /// the last.
    pub duration_ns: u64,
    /// The sampling interval in ns.
    pub interval_ns: u64,
    /// The CPU time of all samples in ns: their measured CPU deltas, or without these their weights times the
    /// interval.
    pub cpu_ns: u64,
    /// How many samples there are, with those that stand for time without one.
    pub samples: u64,
    /// How many samples were lost while recording, in the whole profile.
    pub lost_samples: u64,
    /// What all samples sum to.
    pub total: Amount,
    /// What was in user code.
    pub user: Amount,
    /// Time in the kernel, including the time that was not permitted to be sampled.
    pub kernel: Amount,
    /// What was kernel time that was not permitted to be sampled.
    pub kernel_not_permitted: Amount,
    /// What was used by threads that slept or ended before a sample came.
    pub not_sampled: Amount,
    /// What has a stack that could not be finished.
    pub truncated: Amount,
    /// How many processes have samples.
    pub processes: usize,
    /// How many threads have samples.
    pub threads: usize,
}

impl View<'_> {
    /// Sums up what is selected. O(nodes + samples).
    pub fn summary(&self) -> Summary {
        let meta = self.profile().meta();
        let total = self.total();
        let times = self.times();
        let mut summary = Summary {
            duration_ns: times.end - times.start,
            interval_ns: meta.interval,
            cpu_ns: if meta.has_cpu_deltas {
                total.cpu_ns
            } else {
                total.weight.saturating_mul(meta.interval)
            },
            lost_samples: meta.lost_samples,
            total,
            ..Summary::default()
        };
        self.split(&mut summary);
        self.count(&mut summary);
        summary
    }

    /// Splits what each node has by the kind of its code.
    fn split(&self, summary: &mut Summary) {
        let profile = self.profile();
        let kinds: Vec<_> = profile.categories().iter().map(|category| kind(&category.name)).collect();
        let traits = function_traits(profile);
        let forest = self.forest();
        for node in 0..forest.len() {
            let own = self.own(node as u32);
            let function = traits.get(forest.func[node] as usize).copied().unwrap_or_default();
            if forest.parent[node] == NONE && function.is_truncated {
                summary.truncated += self.total_of(node as u32);
            }
            let category = forest.category[node].map(|pair| kinds[pair.category.index()]).unwrap_or_default();
            let is_kernel = category == Kind::Kernel || function.is_not_permitted;
            let parts = [
                (category == Kind::User && !is_kernel, &mut summary.user),
                (is_kernel, &mut summary.kernel),
                (function.is_not_permitted, &mut summary.kernel_not_permitted),
                (function.is_not_sampled, &mut summary.not_sampled),
            ];
            for (_, part) in parts.into_iter().filter(|(applies, _)| *applies) {
                *part += own;
            }
        }
    }

    fn count(&self, summary: &mut Summary) {
        let mut has_samples = vec![false; self.profile().processes().len()];
        for row in self.by_thread().iter().filter(|row| row.samples > 0) {
            summary.samples += row.samples;
            summary.threads += 1;
            has_samples[row.process.index()] = true;
        }
        summary.processes = has_samples.iter().filter(|&&has| has).count();
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    User,
    Kernel,
    #[default]
    Other,
}

fn kind(category: &str) -> Kind {
    match category {
        well_known::KERNEL => Kind::Kernel,
        well_known::OTHER | "Idle" => Kind::Other,
        // What runtimes make has categories of its own.
        _ => Kind::User,
    }
}

/// What a function's name says of it.
#[derive(Clone, Copy, Default)]
struct FunctionTraits {
    /// Whether it is the root of stacks that could not be finished.
    is_truncated: bool,
    /// Whether it stands for kernel time that was not permitted to be sampled.
    is_not_permitted: bool,
    /// Whether it stands for time of which there is no sample.
    is_not_sampled: bool,
}

fn function_traits(profile: &Profile) -> Vec<FunctionTraits> {
    let names = profile.funcs().iter().map(|func| profile.string(func.name));
    let traits = names.map(|name| FunctionTraits {
        is_truncated: well_known::is_truncated(name),
        is_not_permitted: name == well_known::KERNEL_NOT_PERMITTED,
        is_not_sampled: name == well_known::NOT_SAMPLED,
    });
    traits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::selection::Selection;
    use crate::test_profile::TestProfile;

    fn summary(profile: &Profile, selection: &Selection) -> Summary {
        View::new(&Index::new(profile), selection).summary()
    }

    fn weights(summary: &Summary) -> [u64; 5] {
        [summary.total, summary.user, summary.kernel, summary.kernel_not_permitted, summary.truncated]
            .map(|amount| amount.weight)
    }

    #[test]
    fn time_is_split_by_the_innermost_category() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("user:main user:f", 3);
        test.sample("user:main kernel:sys_write", 2);
        test.sample("user:main kernel:sys_write inherits", 1);
        test.sample("main", 1);
        assert_eq!(weights(&summary(&test.finish(), &Selection::default())), [7, 3, 3, 0, 0]);
    }

    #[test]
    fn unsampled_kernel_time_is_kernel_time() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("user:main", 1);
        test.sample(well_known::KERNEL_NOT_PERMITTED, 41);
        assert_eq!(weights(&summary(&test.finish(), &Selection::default())), [42, 1, 41, 41, 0]);
    }

    #[test]
    fn unsampled_time_is_neither_user_nor_kernel() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("user:main", 1);
        // A label is one name, spaces and all, and no category of code.
        test.sample(well_known::NOT_SAMPLED, 3);
        let summary = summary(&test.finish(), &Selection::default());
        assert_eq!(weights(&summary), [4, 1, 0, 0, 0]);
        assert_eq!(summary.not_sampled.weight, 3);
    }

    #[test]
    fn a_stack_is_truncated_if_its_root_says_so() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("(truncated) user:f", 2);
        test.sample("user:main (truncated)", 1);
        assert_eq!(weights(&summary(&test.finish(), &Selection::default()))[4], 2);
    }

    #[test]
    fn figures_are_of_the_selected_threads() {
        let mut test = TestProfile::new();
        test.thread("1", "idle");
        test.thread("1", "a");
        test.sample("f", 1);
        test.sample("f", 1);
        test.thread("2", "b");
        test.sample("f", 4);
        let profile = test.finish();
        let all = summary(&profile, &Selection::default());
        assert_eq!((all.processes, all.threads, all.samples, all.total.weight), (2, 2, 3, 6));
        assert_eq!((all.cpu_ns, all.interval_ns, all.lost_samples), (6_000_000, 1_000_000, 9));
        let selection =
            Selection { processes: Some(vec![profile.threads()[2].process]), ..Selection::default() };
        let one = summary(&profile, &selection);
        assert_eq!((one.processes, one.threads, one.samples, one.total.weight), (1, 1, 1, 4));
    }

    #[test]
    fn without_profiling_times_samples_give_duration() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        for _ in 0..4 {
            test.sample("f", 1);
        }
        assert_eq!(summary(&test.finish(), &Selection::default()).duration_ns, 3_000_000);
    }

    #[test]
    fn without_cpu_deltas_intervals_give_cpu_time() {
        let mut test = TestProfile::new();
        test.builder.meta_mut().has_cpu_deltas = false;
        test.thread("1", "a");
        test.sample("f", 5);
        assert_eq!(summary(&test.finish(), &Selection::default()).cpu_ns, 5_000_000);
    }
}
