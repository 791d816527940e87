//! Trees of calls as tables: what `vtune -report top-down -format csv` prints, and the call tree that Visual Studio's
//! profiler exports (`CallTreeSummary.csv`). Each row is a function, with its depth and its own amount.

use nyquist_profile::{Measure, StackId, Unit};

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

const VTUNE: &str = "a table of VTune";
const VISUAL_STUDIO: &str = "a call tree of Visual Studio";

/// Nanoseconds in a second and in a millisecond.
const SECOND: f64 = 1e9;
const MS: f64 = 1e6;

/// Whether a line is the heading of VTune's tree. Its delimiter is a comma, a semicolon or a tab.
pub(crate) fn is_vtune(first: &str) -> bool {
    let first = first.trim_start_matches('"');
    first.starts_with("Function Stack") && first.contains("CPU Time:Self")
}

/// Whether a line is the heading of Visual Studio's tree.
pub(crate) fn is_visual_studio(first: &str) -> bool {
    first.starts_with("Level,Function Name,")
}

/// A table, row by row.
struct Table<'a> {
    delimiter: char,
    columns: Vec<String>,
    rows: std::str::Lines<'a>,
}

impl<'a> Table<'a> {
    fn of(text: &'a str) -> Self {
        let mut rows = text.lines();
        let heading = rows.next().unwrap_or_default().trim_start_matches('\u{feff}');
        let delimiter = [',', ';', '\t'].into_iter().find(|&it| heading.contains(it)).unwrap_or(',');
        let columns = cells(heading, delimiter);
        Self { delimiter, columns, rows }
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.trim() == name)
    }
}

impl Iterator for Table<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        self.rows.next().map(|row| cells(row, self.delimiter))
    }
}

/// The cells of a row. A quoted one may have delimiters, and two quotes for one.
fn cells(row: &str, delimiter: char) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = row.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            letter if letter == delimiter && !is_quoted => cells.push(std::mem::take(&mut cell)),
            letter => cell.push(letter),
        }
    }
    cells.push(cell);
    cells
}

/// A number with separators of thousands, as `1,929,216`, or a percentage.
fn number(text: &str) -> Option<f64> {
    let digits: String =
        text.trim().trim_end_matches(['%', 's']).chars().filter(|letter| *letter != ',').collect();
    digits.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// Makes stacks of rows.
struct TreeRows {
    importer: Importer,
    queue: SampleQueue,
    open: Vec<StackId>,
    rows: u64,
    damaged: u64,
}

impl TreeRows {
    fn new(format: &str) -> Self {
        let mut importer = Importer::new(format, format);
        let thread = importer.thread(ThreadName { pid: "0", process: format, tid: "0", thread: format });
        Self { importer, queue: SampleQueue::new(thread), open: Vec::new(), rows: 0, damaged: 0 }
    }

    /// Adds a function. One that is deeper by several levels than the one before is that one's callee.
    fn add(&mut self, depth: usize, (name, module): (&str, &str), amount: u64) {
        self.open.truncate(depth);
        let lib = (!module.is_empty() && module != "[Unknown]").then(|| self.importer.lib(module, None));
        let frame = self.importer.frame(&CodePosition { name, lib, ..CodePosition::default() });
        let stack = self.importer.stack(self.open.last().copied(), frame);
        self.open.push(stack);
        self.queue.add(&mut self.importer, Some(stack), amount);
        self.rows += 1;
    }

    fn finish(mut self, format: &'static str) -> Result<ImportedProfile, ReadError> {
        if self.rows == 0 {
            return Err(ReadError::Malformed { format, problem: "it has no rows".into() });
        }
        self.importer.note_left_out(self.damaged, "damaged rows");
        Ok(self.importer.finish(None))
    }
}

/// Reads VTune's tree: a function is as deep as its name is indented, and has CPU time in seconds.
///
/// # Errors
/// If it has no rows.
pub fn read_vtune(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut table = Table::of(&text);
    let time = table.column("CPU Time:Self").unwrap_or(1);
    let module = table.column("Module").unwrap_or(usize::MAX);
    let mut tree = TreeRows::new("VTune");
    for row in table.by_ref() {
        let (Some(name), Some(seconds)) = (row.first(), row.get(time).and_then(|cell| number(cell))) else {
            tree.damaged += 1;
            continue;
        };
        let depth = name.len() - name.trim_start_matches(' ').len();
        let module = row.get(module).map_or("", String::as_str);
        tree.add(depth, (name.trim(), module), (seconds * SECOND).round() as u64);
    }
    tree.finish(VTUNE)
}

/// Reads Visual Studio's tree: samples, or the elapsed time and the number of calls of an instrumented program.
///
/// # Errors
/// If it has no rows or no such columns, or not the requested value.
pub fn read_visual_studio(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let table = Table::of(&text);
    let (samples, calls) = (table.column("Exclusive Samples"), table.column("Number of Calls"));
    let mean = table.column("Avg Elapsed Exclusive Time");
    let known = [
        (samples.map(|at| (at, None)), "samples", Unit::Count),
        (calls.zip(mean).map(|(calls, mean)| (calls, Some(mean))), "wall time", Unit::Time),
        (calls.map(|at| (at, None)), "calls", Unit::Count),
    ];
    let (columns, values): (Vec<_>, Vec<_>) = known
        .into_iter()
        .filter_map(|(column, name, unit)| Some((column?, SampleValueKind::new(name, unit))))
        .unzip();
    if values.is_empty() {
        let problem = "it has neither samples nor calls".into();
        return Err(ReadError::Malformed { format: VISUAL_STUDIO, problem });
    }
    let chosen = choose(&values, requested, 0)?;
    let (amount, mean) = columns[chosen];
    let module = table.column("Module Name").unwrap_or(usize::MAX);
    let mut tree = TreeRows::new("Visual Studio");
    tree.importer.meta_mut().measure =
        Measure { name: values[chosen].name.clone(), unit: values[chosen].unit };
    for row in table {
        let cell = |at: usize| row.get(at).and_then(|cell| number(cell));
        let depth = row.first().and_then(|cell| cell.trim().parse::<usize>().ok());
        let (Some(depth), Some(name), Some(amount)) = (depth, row.get(1), cell(amount)) else {
            tree.damaged += 1;
            continue;
        };
        let each = mean.map_or(Some(1.0), |mean| cell(mean).map(|ms| ms * MS)).unwrap_or(0.0);
        let module = row.get(module).map_or("", String::as_str);
        tree.add(depth, (name, module), (amount * each).round() as u64);
    }
    tree.finish(VISUAL_STUDIO)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{read_visual_studio, read_vtune};
    use crate::test_profile::stacks_of;
    use crate::{Format, Note, detect};

    pub(crate) const VTUNE: &str = "Function Stack,CPU Time:Self,Module\nTotal,0.0,[Unknown]\n main,0.020,app\n  \"f<int, 2>\",0.040,app\n \
            read,0.010,libc.so\nbroken\n";

    pub(crate) const VISUAL_STUDIO: &str = "\u{feff}Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,\
            Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,\n0,\"a.exe\",0,100.00,0.00,0.00,0.00,\"\",\n\
            1,\"App.Main()\",\"1,000\",90.00,10.00,3.00,0.50,\"a.exe\",\n2,\"App.Get(int32,bool)\",2000,80.00,80.00,2.00,0.25,\"a.exe\",\n";

    #[test]
    fn a_table_of_vtune_is_a_tree() {
        assert_eq!(detect(VTUNE.as_bytes(), "x"), Some(Format::Vtune));
        let read = read_vtune(VTUNE.as_bytes()).unwrap();
        assert_eq!(stacks_of(&read.profile), ["Total;main 2", "Total;main;f<int, 2> 4", "Total;read 1"]);
        assert_eq!(read.profile.meta().interval, 10_000_000);
        assert_eq!(read.notes, [Note::LeftOut { count: 1, what: "damaged rows".into() }]);
        let tabs = "Function Stack\tCPU Time:Self\tModule\nmain\t1\tapp\n";
        assert_eq!(stacks_of(&read_vtune(tabs.as_bytes()).unwrap().profile), ["main 1"]);
    }

    #[test]
    fn visual_studios_tree_has_calls_and_times() {
        assert_eq!(detect(VISUAL_STUDIO.as_bytes(), "x"), Some(Format::VisualStudio));
        let stacks =
            |requested| stacks_of(&read_visual_studio(VISUAL_STUDIO.as_bytes(), requested).unwrap().profile);
        assert_eq!(stacks(None), ["a.exe;App.Main() 1", "a.exe;App.Main();App.Get(int32,bool) 1"]);
        assert_eq!(stacks(Some("calls")), ["a.exe;App.Main() 1", "a.exe;App.Main();App.Get(int32,bool) 2"]);
        let sampled = "Level,Function Name,Inclusive Samples,Exclusive Samples\n0,main,7,3\n1,work,4,4\n";
        let profile = read_visual_studio(sampled.as_bytes(), None).unwrap().profile;
        assert_eq!(
            (stacks_of(&profile), profile.meta().interval),
            (vec!["main 3".into(), "main;work 4".into()], 1)
        );
        assert!(read_visual_studio(b"Level,Function Name,x\n0,main,7\n", None).is_err());
    }
}
