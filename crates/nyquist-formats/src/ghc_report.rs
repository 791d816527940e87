//! The report of a Haskell program (`.prof`, from `+RTS -p` or `-P`): a tree of cost centres as a table.
//!
//! It is described in <https://downloads.haskell.org/ghc/latest/docs/users_guide/profiling.html>.

use nyquist_profile::{StackId, Unit};

use crate::error::{ImportedProfile, Note, ReadError};
use crate::ghc_json::{Place, frame};
use crate::import::{Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

const FORMAT: &str = "a report of GHC's profiler (.prof)";

/// The columns behind the source: number, entries, own and inherited time and allocation.
const NUMBERS: usize = 6;

/// Parts of a percentage that the report has.
const PARTS: u64 = 1000;

/// Whether a line is the first one of such a report.
pub(crate) fn is_report(first: &str) -> bool {
    first.contains("Time and Allocation Profiling Report")
}

/// Reads a value: CPU time, the default; allocated bytes; or how often a cost centre was entered. Reports of `-P` have
/// ticks and bytes, and others have a tenth of a per cent of the sums.
///
/// # Errors
/// If it has no tree of cost centres, or not the requested value.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let sums = Sums::of(&text);
    let values = [
        SampleValueKind::new("CPU time", Unit::Time),
        SampleValueKind::new("allocated", Unit::Bytes),
        SampleValueKind::new("entries", Unit::Count),
    ];
    let at = choose(&values, requested, 0)?;
    let mut lines = text.lines();
    // The first table has the costliest cost centres alone.
    let heading = lines.by_ref().find(|line| line.starts_with("COST CENTRE") && line.contains("entries"));
    let Some(columns) = heading.and_then(Columns::of) else {
        return Err(ReadError::Malformed {
            format: FORMAT,
            problem: "it has no tree of cost centres".into(),
        });
    };
    let mut importer = Importer::new(&sums.program, "a report of GHC");
    if at > 0 {
        importer.meta_mut().measure = values[at].measure();
    }
    let name = ThreadName { pid: "0", process: &sums.program, tid: "0", thread: &sums.program };
    let mut queue = SampleQueue::new(importer.thread(name));
    let (mut open, mut damaged): (Vec<StackId>, u64) = (Vec::new(), 0);
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let Some(row) = columns.row(line) else {
            damaged += 1;
            continue;
        };
        open.truncate(row.depth);
        let frame = frame(&mut importer, Some(row.place));
        let stack = importer.stack(open.last().copied(), frame);
        open.push(stack);
        let amount = [sums.time(&row), sums.bytes(&row), row.entries][at];
        queue.add(&mut importer, Some(stack), amount);
    }
    if !text.ends_with('\n') {
        importer.note(Note::Cut { place: "its last line".into() });
    }
    importer.note_left_out(damaged, "lines that are no cost centre");
    Ok(importer.finish(None))
}

/// What the lines before the tables say.
struct Sums {
    program: String,
    ticks: u64,
    /// In ns.
    tick: u64,
    bytes: u64,
}

impl Sums {
    /// From lines such as `total time  =  0.02 secs   (20 ticks @ 1000 us, 1 processor)`.
    fn of(text: &str) -> Self {
        let mut sums = Self { program: "Haskell".into(), ticks: 0, tick: 1_000_000, bytes: 0 };
        for line in text.lines().map(str::trim).take_while(|line| !line.starts_with("COST CENTRE")) {
            if let Some(ticks) = line.strip_prefix("total time").and_then(|rest| rest.split_once('(')) {
                let numbers: Vec<u64> =
                    ticks.1.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
                sums.ticks = numbers.first().copied().unwrap_or(0);
                sums.tick = numbers.get(1).map_or(sums.tick, |micros| micros.saturating_mul(1000));
            } else if let Some(bytes) = line.strip_prefix("total alloc") {
                let digits: String = bytes.chars().filter(char::is_ascii_digit).collect();
                sums.bytes = digits.parse().unwrap_or(0);
            } else if let Some((command, _)) = line.split_once(" +RTS") {
                let program = command.split(' ').next().unwrap_or_default();
                program.rsplit('/').next().unwrap_or(program).clone_into(&mut sums.program);
            }
        }
        sums
    }

    fn time(&self, row: &ReportRow<'_>) -> u64 {
        let all = self.ticks.saturating_mul(self.tick);
        row.ticks.map_or_else(|| part(all, row.time_parts), |ticks| ticks.saturating_mul(self.tick))
    }

    fn bytes(&self, row: &ReportRow<'_>) -> u64 {
        row.bytes.unwrap_or_else(|| part(self.bytes, row.alloc_parts))
    }
}

fn part(all: u64, parts: u64) -> u64 {
    u64::try_from(u128::from(all) * u128::from(parts) / u128::from(PARTS)).unwrap_or(u64::MAX)
}

/// Where the columns of names begin, in characters.
struct Columns {
    module: usize,
    source: usize,
}

/// A cost centre.
struct ReportRow<'a> {
    depth: usize,
    place: Place<'a>,
    entries: u64,
    time_parts: u64,
    alloc_parts: u64,
    ticks: Option<u64>,
    bytes: Option<u64>,
}

impl Columns {
    fn of(heading: &str) -> Option<Self> {
        let column = |name: &str| heading.find(name).map(|at| heading[..at].chars().count());
        Some(Self { module: column("MODULE")?, source: column("SRC")? })
    }

    fn row<'a>(&self, line: &'a str) -> Option<ReportRow<'a>> {
        let byte_at = |column: usize| line.char_indices().nth(column).map(|(at, _)| at);
        let (module, source) = (byte_at(self.module)?, byte_at(self.source)?);
        let label = &line[..module];
        let depth = label.chars().take_while(|letter| *letter == ' ').count();
        // A source may have spaces: `<no location info>`.
        let mut fields: Vec<&str> = line[source..].split_whitespace().collect();
        let is_number = |word: &&&str| word.parse::<f64>().is_ok();
        let numbers = fields.iter().rev().take_while(is_number).count();
        let numbers = fields.split_off(fields.len() - numbers.min(NUMBERS + 2));
        if numbers.len() != NUMBERS && numbers.len() != NUMBERS + 2 {
            return None;
        }
        let whole = |at: usize| numbers.get(at).and_then(|word| word.parse().ok());
        let parts = |at: usize| numbers.get(at).and_then(|word| word.replace('.', "").parse().ok());
        let source = line[source..].split("  ").next().unwrap_or_default().trim();
        Some(ReportRow {
            depth,
            place: Place { module: line[module..].split_whitespace().next()?, label: label.trim(), source },
            entries: whole(1)?,
            time_parts: parts(2)?,
            alloc_parts: parts(3)?,
            ticks: whole(NUMBERS),
            bytes: whole(NUMBERS + 1),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_profile::stacks_of;
    use crate::{Format, detect};

    const BEGIN: &str = "\tMon Jan  1 12:00 2024 Time and Allocation Profiling Report  (Final)\n\n\t   app +RTS -p -RTS\n\n\
        \ttotal time  =        0.02 secs   (20 ticks @ 1000 us, 1 processor)\n\ttotal alloc =  1,000,000 bytes  (excludes profiling overheads)\n\n\
        COST CENTRE MODULE  SRC         %time %alloc\n\nmain        Main    a.hs:3:1-9   60.0   70.0\n\n\n\
        \x20                                             individual      inherited\n";

    /// A report of `-P`.
    pub(crate) fn report() -> String {
        format!(
            "{BEGIN}COST CENTRE MODULE SRC                   no.     entries  %time %alloc   %time %alloc  ticks     bytes\n\n\
             MAIN        MAIN   <built-in>            337           0    0.0    0.0   100.0  100.0      0       728\n\
             \x20CAF:一      Lib    <no location info>    295           0   30.0    0.0    30.0    0.0      6       256\n\
             \x20main       Main   a.hs:(3,1)-(9,4)      340           1   70.0  100.0    70.0  100.0     14    900000\n"
        )
    }

    #[test]
    fn cost_centres_have_ticks_bytes_and_entries() {
        let text = report();
        assert_eq!(detect(text.as_bytes(), "x"), Some(Format::GhcReport));
        let stacks = |requested| stacks_of(&read_value(text.as_bytes(), requested).unwrap().profile);
        assert_eq!(stacks(None), ["MAIN.MAIN;Lib.CAF:一 3", "MAIN.MAIN;Main.main 7"]);
        assert_eq!(stacks(Some("entries")), ["MAIN.MAIN;Main.main 1"]);
        let read = read_value(text.as_bytes(), Some("allocated")).unwrap();
        assert_eq!(
            stacks_of(&read.profile),
            ["MAIN.MAIN 91", "MAIN.MAIN;Lib.CAF:一 32", "MAIN.MAIN;Main.main 112500"]
        );
        assert_eq!((read.notes, read.profile.meta().interval), (vec![], 8));
    }

    #[test]
    fn reports_without_ticks_have_parts_of_the_sums() {
        let text = format!(
            "{BEGIN}COST CENTRE MODULE SRC                   no.     entries  %time %alloc   %time %alloc\n\n\
             MAIN        MAIN   <built-in>            337           0    5.0    0.5   100.0  100.0\n\
             \x20main       Main   a.hs:3:1-9            340           1   95.0   99.5    95.0   99.5\n"
        );
        let profile = |requested| read_value(text.as_bytes(), requested).unwrap().profile;
        assert_eq!(stacks_of(&profile(None)), ["MAIN.MAIN 1", "MAIN.MAIN;Main.main 19"]);
        assert_eq!(profile(None).meta().interval, 1_000_000);
        assert_eq!(stacks_of(&profile(Some("allocated"))), ["MAIN.MAIN 1", "MAIN.MAIN;Main.main 199"]);
    }

    #[test]
    fn a_report_without_a_tree_is_refused() {
        let error = read_value(BEGIN.as_bytes(), None).unwrap_err().to_string();
        assert_eq!(
            error,
            "the file is not a report of GHC's profiler (.prof): it has no tree of cost centres"
        );
    }
}
