//! How often threads are sampled, and how long they may be stopped for it in total.

use crate::random::Random;

/// The share of its time that a running thread may be stopped.
const SHARE_OF_A_THREAD: f64 = 0.05;
/// The share of all time in which some thread may be stopped: the recorder is busy meanwhile.
const SHARE_OF_ALL: f64 = 0.25;
/// How much of the budget may accumulate.
const SAVED_UP_NS: f64 = 2_000_000.0;

/// The budget of time in which threads are stopped.
#[derive(Debug)]
pub(crate) struct StopBudget {
    cpus: usize,
    left_ns: f64,
    since: u64,
    /// The time allowed so far, and the time spent of it.
    allowed_ns: f64,
    spent_ns: f64,
    /// The time of single stops that was not charged.
    excused_ns: f64,
    /// The number of sampling rounds.
    rounds: u64,
    /// How many of them it has cut short.
    cut_rounds: u64,
    /// Whether more threads run than there are CPUs.
    is_crowded: bool,
}

impl StopBudget {
    /// A budget for a machine with that many CPUs, starting at a time in nanoseconds.
    pub(crate) fn new(cpus: usize, now: u64) -> Self {
        Self {
            cpus,
            left_ns: 0.0,
            since: now,
            allowed_ns: 0.0,
            spent_ns: 0.0,
            excused_ns: 0.0,
            rounds: 0,
            cut_rounds: 0,
            is_crowded: false,
        }
    }

    /// Begins a sampling round: adds what the time since the last one allows with this many running threads.
    /// At most one thread per CPU can be delayed.
    pub(crate) fn begin_round(&mut self, now: u64, running: usize) {
        self.rounds += 1;
        let held_up = running.min(self.cpus).max(1) as f64;
        let share = (held_up * SHARE_OF_A_THREAD).min(SHARE_OF_ALL);
        let passed = now.saturating_sub(self.since) as f64;
        self.allowed_ns += passed * share;
        self.left_ns = (self.left_ns + passed * share).min(SAVED_UP_NS);
        self.since = now;
        self.is_crowded = running > self.cpus;
    }

    /// Whether a thread may be stopped.
    pub(crate) fn allows(&self) -> bool {
        self.left_ns > 0.0
    }

    /// Counts a sampling round in which threads were skipped because the budget was used up.
    pub(crate) fn cut_round(&mut self) {
        self.cut_rounds += 1;
    }

    /// The totals.
    fn summary(&self) -> BudgetSummary {
        BudgetSummary {
            allowed_ns: self.allowed_ns as u64,
            spent_ns: self.spent_ns as u64,
            excused_ns: self.excused_ns as u64,
            rounds: self.rounds,
            cut_rounds: self.cut_rounds,
        }
    }

    /// Charges the time for which a thread was stopped, including the time of the sample itself. If threads
    /// wait for a CPU, others run while a stopped one waits to be sampled, so this wait costs the program
    /// nothing.
    pub(crate) fn spend(&mut self, held_ns: u64, looked_ns: u64) {
        let spent = if self.is_crowded { looked_ns.min(held_ns) } else { held_ns };
        // One thread that was slow to stop, as on a busy machine, is no reason to stop sampling.
        let charged = (spent as f64).min(self.left_ns + SAVED_UP_NS);
        self.left_ns -= charged;
        self.spent_ns += charged;
        self.excused_ns += spent as f64 - charged;
    }
}

/// The times at which threads are sampled. They are an interval apart on average, but irregular, so that they
/// cannot be in step with a program.
#[derive(Debug)]
pub(crate) struct Ticks {
    interval_ns: u64,
    next_ns: u64,
    random: Random,
}

impl Ticks {
    /// Ticks from a time on.
    pub(crate) fn new(interval_ns: u64, now: u64) -> Self {
        Self { interval_ns: interval_ns.max(1), next_ns: now, random: Random::new(now) }
    }

    /// The time of the next tick.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Advances to the next tick. Ticks that a busy machine has missed are skipped.
    pub(crate) fn advance(&mut self, now: u64) {
        // Between a half and one and a half of the interval.
        let step = self.interval_ns / 2 + self.random.below(self.interval_ns);
        self.next_ns = (self.next_ns + step).max(now);
    }
}

/// How long threads were stopped: the number of stops for each number of microseconds.
#[derive(Debug)]
pub(crate) struct StopDurations {
    by_microseconds: Vec<u32>,
    count: u64,
    total_ns: u64,
}

/// Longer ones are counted together.
const MAX_HOLD_US: usize = 20_000;

impl StopDurations {
    /// Contains none yet, and allocates the memory for all that will be counted.
    pub(crate) fn new() -> Self {
        Self { by_microseconds: vec![0; MAX_HOLD_US + 1], count: 0, total_ns: 0 }
    }

    /// Counts a stop.
    pub(crate) fn add(&mut self, held_ns: u64) {
        let microseconds = usize::try_from(held_ns / 1000).unwrap_or(MAX_HOLD_US).min(MAX_HOLD_US);
        if let Some(count) = self.by_microseconds.get_mut(microseconds) {
            *count += 1;
        }
        self.count += 1;
        self.total_ns += held_ns;
    }

    /// The totals of the stops and of their budget.
    pub(crate) fn summary(&self, budget: &StopBudget) -> HoldSummary {
        HoldSummary {
            budget: budget.summary(),
            count: self.count,
            total_ns: self.total_ns,
            median_us: self.quantile(1, 2),
            percentile_99_us: self.quantile(99, 100),
        }
    }

    fn quantile(&self, numerator: u64, denominator: u64) -> u32 {
        let rank = (self.count * numerator).div_ceil(denominator);
        let mut seen = 0;
        let at = self.by_microseconds.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        });
        at.and_then(|at| u32::try_from(at).ok()).unwrap_or_default()
    }
}

/// The totals of the budget of time in which threads may be stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetSummary {
    /// The time allowed in total, in nanoseconds.
    pub allowed_ns: u64,
    /// The time spent of it, in nanoseconds.
    pub spent_ns: u64,
    /// The additional time for which threads were stopped, in nanoseconds. It is the part of single stops,
    /// prolonged by a busy machine, that exceeds the largest possible debt. It is not charged.
    pub excused_ns: u64,
    /// The number of sampling rounds.
    pub rounds: u64,
    /// How many of them it has cut short. There, the rate was lower than requested.
    pub cut_rounds: u64,
}

/// How long threads were stopped to be sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldSummary {
    /// The number of stops.
    pub count: u64,
    /// The total in nanoseconds.
    pub total_ns: u64,
    /// The median in whole microseconds.
    pub median_us: u32,
    /// The 99th percentile in whole microseconds; 20,000 stands for all longer ones.
    pub percentile_99_us: u32,
    /// The budget for the stops.
    pub budget: BudgetSummary,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// With ticks of one millisecond: how many stops of 30 µs per second are allowed, how long all may take,
    /// and how many ticks were cut short.
    fn holds_a_second(cpus: usize, running: usize) -> (u64, u64, u64) {
        let mut budget = StopBudget::new(cpus, 0);
        let mut holds = 0;
        for tick in 1..=1000 {
            budget.begin_round(tick * MS, running);
            for _ in 0..running {
                if !budget.allows() {
                    budget.cut_round();
                    break;
                }
                budget.spend(30_000, 30_000);
                holds += 1;
            }
        }
        let BudgetSummary { allowed_ns, spent_ns, excused_ns, rounds, cut_rounds } = budget.summary();
        assert_eq!((spent_ns, excused_ns, rounds), (30_000 * holds, 0, 1000));
        // The last digit of a sum of fractions is not exact.
        (holds, allowed_ns.next_multiple_of(10), cut_rounds)
    }

    #[test]
    fn the_budget_lowers_the_rate_of_many_threads() {
        let allowed = |ms: u64| ms * MS;
        assert_eq!(holds_a_second(2, 1), (1000, allowed(50), 0));
        assert_eq!(holds_a_second(2, 2), (2000, allowed(100), 0));
        let (many, of_two, cut) = holds_a_second(2, 200);
        assert!((3300..3500).contains(&many), "{many}");
        assert_eq!((of_two, cut), (allowed(100), 1000));
        let (most, of_all, cut) = holds_a_second(128, 1000);
        assert!((8300..8500).contains(&most), "{most}");
        assert_eq!((of_all, cut), (allowed(250), 1000));
    }

    #[test]
    fn one_long_hold_is_not_paid_for_by_later_ones() {
        let mut budget = StopBudget::new(2, 0);
        budget.begin_round(10 * MS, 1);
        budget.spend(20 * MS, 20 * MS);
        assert!(!budget.allows());
        let BudgetSummary { spent_ns, excused_ns, .. } = budget.summary();
        // Half a millisecond was left, and the debt may be as large as the accumulated budget.
        assert_eq!((spent_ns, excused_ns), (MS * 5 / 2, MS * 35 / 2));
        budget.begin_round(51 * MS, 1);
        assert!(budget.allows());
    }

    #[test]
    fn in_a_crowd_awaiting_a_look_costs_nothing() {
        for (running, may_go_on) in [(2, false), (3, true)] {
            let mut budget = StopBudget::new(2, 0);
            budget.begin_round(10 * MS, running);
            budget.spend(5 * MS, 30_000);
            assert_eq!(budget.allows(), may_go_on, "{running}");
        }
    }

    #[test]
    fn ticks_have_no_rhythm_and_keep_their_rate() {
        let mut ticks = Ticks::new(MS, 1000);
        let mut steps = Vec::new();
        for _ in 0..10_000 {
            let before = ticks.next_ns();
            ticks.advance(before);
            steps.push(ticks.next_ns() - before);
        }
        assert!(steps.iter().all(|step| (MS / 2..=MS * 3 / 2).contains(step)));
        let mean = steps.iter().sum::<u64>() / steps.len() as u64;
        assert!((MS * 98 / 100..MS * 102 / 100).contains(&mean), "{mean}");
        ticks.advance(u64::MAX / 2);
        assert_eq!(ticks.next_ns(), u64::MAX / 2, "what was missed is left out");
    }

    #[test]
    fn holds_are_summed_up() {
        let (mut holds, budget) = (StopDurations::new(), StopBudget::new(2, 0));
        assert_eq!(holds.summary(&budget), HoldSummary::default());
        for microseconds in 1..=100 {
            holds.add(microseconds * 1000 + 999);
        }
        let expected = HoldSummary {
            count: 100,
            total_ns: 5_050_000 + 99_900,
            median_us: 50,
            percentile_99_us: 99,
            budget: BudgetSummary::default(),
        };
        assert_eq!(holds.summary(&budget), expected);
        holds.add(u64::MAX / 2);
        assert_eq!(holds.summary(&budget).count, 101);
    }
}
