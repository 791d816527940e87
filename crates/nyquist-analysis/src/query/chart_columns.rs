//! What a flame chart shows in place of boxes that are too narrow: for each column and level, the function that
//! has most of the time.

/// How many steps of coverage are told apart.
const STEPS: u64 = 8;

/// The times of a column are added up by function whenever this many are collected.
const MIN_TIMES_TO_ADD_UP: usize = 1024;

/// Columns next to each other in which the same function has most of the time of narrow boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnRun {
    pub(super) depth: usize,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) func: u32,
    /// How much of the time all narrow boxes of the level cover, in steps of an eighth, rounded up.
    pub(super) eighths: u8,
}

/// The columns of a chart.
pub(super) struct Columns {
    start_ns: u64,
    column_ns: u64,
    levels: Vec<Level>,
    runs: Vec<ColumnRun>,
}

/// A level of the chart. Its boxes come from left to right, so that only one column is open.
#[derive(Default)]
struct Level {
    column: u64,
    /// The times of functions in the open column. A function can be here more than once.
    times: Vec<(u32, u64)>,
    /// The number of times at which they are added up next.
    full_at: usize,
    /// The place of the level's last run.
    last: Option<usize>,
}

impl Columns {
    /// Columns of this length, which is not 0, from `start_ns` on.
    pub(super) fn new(start_ns: u64, column_ns: u64) -> Self {
        Self { start_ns, column_ns, levels: Vec::new(), runs: Vec::new() }
    }

    /// Adds a box. What took no measurable time still is there.
    pub(super) fn add(&mut self, depth: usize, func: u32, start_ns: u64, end_ns: u64) {
        if self.levels.len() <= depth {
            self.levels.resize_with(depth + 1, Level::default);
        }
        let mut from = start_ns.saturating_sub(self.start_ns);
        let end = end_ns.saturating_sub(self.start_ns).max(from + 1);
        while from < end {
            let column = from / self.column_ns;
            let until = end.min((column + 1).saturating_mul(self.column_ns));
            if self.levels[depth].column != column {
                self.end_column(depth);
                self.levels[depth].column = column;
            }
            self.levels[depth].add(func, until - from);
            from = until;
        }
    }

    /// The runs of columns, in no order.
    pub(super) fn finish(mut self) -> Vec<ColumnRun> {
        (0..self.levels.len()).for_each(|depth| self.end_column(depth));
        self.runs
    }

    /// Decides what the open column of a level shows.
    fn end_column(&mut self, depth: usize) {
        let level = &mut self.levels[depth];
        level.add_up();
        // Of functions with the same time, the first is shown.
        let Some(&(func, _)) = level.times.iter().max_by_key(|(func, ns)| (*ns, std::cmp::Reverse(*func)))
        else {
            return;
        };
        let covered: u64 = level.times.drain(..).map(|(_, ns)| ns).sum();
        let eighths = (covered * STEPS).div_ceil(self.column_ns).clamp(1, STEPS) as u8;
        let start_ns = self.start_ns + level.column * self.column_ns;
        let end_ns = start_ns + self.column_ns;
        let last = level.last.map(|last| &mut self.runs[last]);
        let same = |run: &&mut ColumnRun| (run.func, run.eighths, run.end_ns) == (func, eighths, start_ns);
        if let Some(run) = last.filter(same) {
            run.end_ns = end_ns;
        } else {
            level.last = Some(self.runs.len());
            self.runs.push(ColumnRun { depth, start_ns, end_ns, func, eighths });
        }
    }
}

impl Level {
    fn add(&mut self, func: u32, ns: u64) {
        match self.times.last_mut() {
            Some(last) if last.0 == func => last.1 += ns,
            _ => self.times.push((func, ns)),
        }
        // A column can have millions of boxes.
        if self.times.len() >= self.full_at.max(MIN_TIMES_TO_ADD_UP) {
            self.add_up();
            self.full_at = 2 * self.times.len();
        }
    }

    fn add_up(&mut self) {
        self.times.sort_unstable_by_key(|(func, _)| *func);
        self.times.dedup_by(|next, sum| {
            let is_same = next.0 == sum.0;
            sum.1 += if is_same { next.1 } else { 0 };
            is_same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runs of boxes (depth, function, start, end) as (depth, start, end, function, eighths).
    fn runs(boxes: &[(usize, u32, u64, u64)]) -> Vec<(usize, u64, u64, u32, u8)> {
        let mut columns = Columns::new(100, 80);
        for &(depth, func, start, end) in boxes {
            columns.add(depth, func, start, end);
        }
        let runs = columns.finish().into_iter();
        let mut runs: Vec<_> =
            runs.map(|it| (it.depth, it.start_ns, it.end_ns, it.func, it.eighths)).collect();
        runs.sort_unstable();
        runs
    }

    #[test]
    fn the_function_with_most_of_the_time_is_shown() {
        let boxes = [(0, 1, 100, 110), (0, 2, 110, 125), (0, 1, 130, 140), (1, 3, 110, 112)];
        assert_eq!(runs(&boxes), [(0, 100, 180, 1, 4), (1, 100, 180, 3, 1)]);
    }

    #[test]
    fn equal_columns_are_joined_and_boxes_divided() {
        let boxes = [(0, 1, 100, 260), (0, 2, 260, 275), (0, 1, 330, 350)];
        assert_eq!(runs(&boxes), [(0, 100, 260, 1, 8), (0, 260, 340, 2, 3), (0, 340, 420, 1, 1)]);
        let again = [(0, 1, 100, 120), (0, 1, 420, 440)];
        assert_eq!(runs(&again), [(0, 100, 180, 1, 2), (0, 420, 500, 1, 2)]);
    }

    #[test]
    fn what_takes_no_time_is_there() {
        assert_eq!(runs(&[(0, 7, 100, 100)]), [(0, 100, 180, 7, 1)]);
        assert_eq!(runs(&[(0, 7, 50, 60)]), [(0, 100, 180, 7, 1)]);
    }

    #[test]
    fn many_boxes_of_a_column_are_added_up() {
        let mut columns = Columns::new(0, 1_000_000);
        for at in 0..100_000_u64 {
            columns.add(0, (at % 3) as u32, at * 10, at * 10 + 4 + at % 3);
        }
        assert!(columns.levels[0].times.len() <= MIN_TIMES_TO_ADD_UP);
        let [run] = columns.finish()[..] else { panic!("one run") };
        assert_eq!((run.func, run.eighths), (2, 4));
    }
}
