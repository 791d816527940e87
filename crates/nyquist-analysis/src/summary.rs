//! The summary of a profile: how long, how much, what was lost.

use nyquist_profile::{CategoryId, Profile, Stack, StackId, Thread, well_known};
use serde::Serialize;

use crate::filter::Filter;
use crate::stack_sums::{Amount, StackSums};

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
    /// What was in the kernel, with what was not permitted to be sampled.
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

/// Sums up a profile. O(samples + stacks).
pub fn summary(profile: &Profile, filter: &Filter) -> Summary {
    let sums = StackSums::new(profile, filter.select(profile));
    let total = sums.total();
    let meta = profile.meta();
    let mut summary = Summary {
        duration_ns: duration(profile, filter),
        interval_ns: meta.interval,
        cpu_ns: if meta.has_cpu_deltas { total.cpu_ns } else { total.weight.saturating_mul(meta.interval) },
        samples: sums.samples,
        lost_samples: meta.lost_samples,
        total,
        ..Summary::default()
    };
    split(profile, &sums.by_stack, &mut summary);
    count_threads(profile, filter, &mut summary);
    summary
}

fn duration(profile: &Profile, filter: &Filter) -> u64 {
    let (start, end) = (profile.meta().profiling_start, profile.meta().profiling_end);
    if let (Some(start), Some(end)) = (start, end) {
        return end.saturating_sub(start);
    }
    let times = |thread: &Thread| Some((thread.samples.first()?.time, thread.samples.last()?.time));
    let span = filter.select(profile).filter_map(times).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    span.map_or(0, |(first, last)| last - first)
}

/// Splits what each stack has by the kind of its code.
fn split(profile: &Profile, by_stack: &[Amount], summary: &mut Summary) {
    for (traits, &amount) in stack_traits(profile).iter().zip(by_stack) {
        let parts = [
            (traits.category == Kind::User, &mut summary.user),
            (traits.category == Kind::Kernel || traits.is_not_permitted, &mut summary.kernel),
            (traits.is_not_permitted, &mut summary.kernel_not_permitted),
            (traits.is_not_sampled, &mut summary.not_sampled),
            (traits.is_truncated, &mut summary.truncated),
        ];
        for (_, part) in parts.into_iter().filter(|(applies, _)| *applies) {
            *part += amount;
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    User,
    Kernel,
    #[default]
    Other,
}

/// What is known of a stack from its frames.
#[derive(Clone, Copy, Default)]
struct StackTraits {
    /// That of its innermost frame that has a category.
    category: Kind,
    /// Whether its root says that it could not be finished.
    is_truncated: bool,
    /// Whether its innermost frame stands for kernel time that was not permitted to be sampled.
    is_not_permitted: bool,
    /// Whether its innermost frame stands for time of which there is no sample.
    is_not_sampled: bool,
}

/// The traits of each stack, made from its prefix's.
fn stack_traits(profile: &Profile) -> Vec<StackTraits> {
    let kinds: Vec<_> = (0..profile.categories().len()).map(|index| kind(profile, index)).collect();
    let mut traits: Vec<StackTraits> = Vec::with_capacity(profile.stacks().len());
    for &Stack { prefix, frame } in profile.stacks() {
        let inherited = prefix.map(StackId::index).and_then(|prefix| traits.get(prefix)).copied();
        let frame = profile.frame(frame);
        let name = profile.func_name(frame.func);
        let own = frame.category.and_then(|pair| kinds.get(pair.category.index())).copied();
        let is_not_permitted = name == well_known::KERNEL_NOT_PERMITTED;
        traits.push(StackTraits {
            category: match own {
                _ if is_not_permitted => Kind::Kernel,
                Some(kind) => kind,
                None => inherited.unwrap_or_default().category,
            },
            is_truncated: inherited
                .map_or_else(|| well_known::is_truncated(name), |prefix| prefix.is_truncated),
            is_not_permitted,
            is_not_sampled: name == well_known::NOT_SAMPLED,
        });
    }
    traits
}

fn kind(profile: &Profile, category: usize) -> Kind {
    match profile.category(CategoryId::from_index(category)).name.as_str() {
        well_known::KERNEL => Kind::Kernel,
        well_known::OTHER | "Idle" => Kind::Other,
        // What runtimes make has categories of its own.
        _ => Kind::User,
    }
}

fn count_threads(profile: &Profile, filter: &Filter, summary: &mut Summary) {
    let mut has_samples = vec![false; profile.processes().len()];
    for thread in filter.select(profile).filter(|thread| !thread.samples.is_empty()) {
        summary.threads += 1;
        has_samples[thread.process.index()] = true;
    }
    summary.processes = has_samples.iter().filter(|&&has| has).count();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::TestProfile;

    fn weights(summary: &Summary) -> [u64; 5] {
        [summary.total, summary.user, summary.kernel, summary.kernel_not_permitted, summary.truncated]
            .map(|amount| amount.weight)
    }

    #[test]
    fn time_is_split_by_the_category_of_the_innermost_frame() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("user:main user:f", 3);
        test.sample("user:main kernel:sys_write", 2);
        test.sample("user:main kernel:sys_write inherits", 1);
        test.sample("main", 1);
        assert_eq!(weights(&summary(&test.finish(), &Filter::default())), [7, 3, 3, 0, 0]);
    }

    #[test]
    fn kernel_time_that_could_not_be_sampled_is_kernel_time() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("user:main", 1);
        test.sample(well_known::KERNEL_NOT_PERMITTED, 41);
        assert_eq!(weights(&summary(&test.finish(), &Filter::default())), [42, 1, 41, 41, 0]);
    }

    #[test]
    fn time_without_a_sample_is_neither_user_nor_kernel_time() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("user:main", 1);
        // A label is one name, spaces and all, and no category of code.
        test.sample(well_known::NOT_SAMPLED, 3);
        let summary = summary(&test.finish(), &Filter::default());
        assert_eq!(weights(&summary), [4, 1, 0, 0, 0]);
        assert_eq!(summary.not_sampled.weight, 3);
    }

    #[test]
    fn a_stack_is_truncated_if_its_root_says_so() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("(truncated) user:f", 2);
        test.sample("user:main (truncated)", 1);
        assert_eq!(weights(&summary(&test.finish(), &Filter::default()))[4], 2);
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
        let all = summary(&profile, &Filter::default());
        assert_eq!((all.processes, all.threads, all.samples, all.total.weight), (2, 2, 3, 6));
        assert_eq!((all.cpu_ns, all.interval_ns, all.lost_samples), (1_000_000, 1_000_000, 9));
        let filter = Filter { processes: vec![profile.threads()[2].process], ..Filter::default() };
        let one = summary(&profile, &filter);
        assert_eq!((one.processes, one.threads, one.samples, one.total.weight), (1, 1, 1, 4));
    }

    #[test]
    fn without_profiling_times_the_samples_say_how_long_it_took() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        for _ in 0..4 {
            test.sample("f", 1);
        }
        assert_eq!(summary(&test.finish(), &Filter::default()).duration_ns, 3_000_000);
    }

    #[test]
    fn without_cpu_deltas_cpu_time_is_counted_in_intervals() {
        let mut test = TestProfile::new();
        test.builder.meta_mut().has_cpu_deltas = false;
        test.thread("1", "a");
        test.sample("f", 5);
        assert_eq!(summary(&test.finish(), &Filter::default()).cpu_ns, 5_000_000);
    }
}
