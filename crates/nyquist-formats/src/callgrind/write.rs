//! Writes callgrind's format, for KCachegrind and `callgrind_annotate`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use nyquist_profile::{FrameId, FuncId, LibId, Profile, SourceId, StackId, StringId, Thread, Unit};
use rustc_hash::{FxHashMap, FxHashSet};

use super::read::CPU_TIME;
use crate::{SourcePaths, hidden, source_path};

/// The event for time of waiting.
const OFF_CPU: &str = "off_CPU";

/// The name of unknown objects and files.
const UNKNOWN: &str = "???";

/// Writes the own cost of each function by line, and the costs of its calls, with files and libs. Each
/// process is a function that calls the outermost functions. A call counts once for each sample, at the
/// outermost occurrence of the called function, so that the sum of the calls to a function is its total.
/// Calls at inner occurrences are left out. `calls=` has sampling intervals, because the number of calls is
/// not known. Time of waiting is a separate event. O(samples + stacks × processes).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let table = CostTable::new(profile);
    let events = events(profile);
    let mut writer = CallgrindWriter {
        profile,
        paths,
        table: &table,
        events: events.len(),
        files: FxHashMap::default(),
        written_objects: FxHashSet::default(),
        written_functions: FxHashSet::default(),
        out,
    };
    writer.header(&events)?;
    for (function, rows) in table.rows_by_function() {
        writer.function(function, rows)?;
    }
    writeln!(writer.out, "\ntotals: {}", costs(table.total, events.len()))
}

/// The names of the events: the profile's measure, and time of waiting if the profile has any.
fn events(profile: &Profile) -> Vec<String> {
    let measure = &profile.meta().measure;
    let name = if measure.is_cpu_time() { CPU_TIME.to_owned() } else { word(&measure.name) };
    let unit = |name: &str| match measure.unit {
        Unit::Time => format!("{name}_(ns)"),
        Unit::Bytes => format!("{name}_(bytes)"),
        Unit::Count => name.to_owned(),
    };
    let mut events = vec![unit(&name)];
    let mut samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    if measure.unit == Unit::Time && samples.any(|sample| sample.off_cpu && sample.weight > 0) {
        events.push(unit(OFF_CPU));
    }
    events
}

/// A name as one word.
fn word(name: &str) -> String {
    sanitize(name).split_whitespace().collect::<Vec<_>>().join("_")
}

/// A name on one line. It is never empty.
fn sanitize(name: &str) -> String {
    let name: String = name.trim().chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    if name.is_empty() { UNKNOWN.into() } else { hidden::escape(&name).into_owned() }
}

/// The costs of a place: on the CPU and waiting, in the profile's unit.
type PlaceCosts = [u64; 2];

fn add(to: &mut PlaceCosts, costs: PlaceCosts) {
    for (to, cost) in to.iter_mut().zip(costs) {
        *to = to.saturating_add(cost);
    }
}

fn costs(costs: PlaceCosts, events: usize) -> String {
    let costs: Vec<_> = costs[..events].iter().map(u64::to_string).collect();
    costs.join(" ")
}

/// A function of the file: one for all functions of the profile with the same name, file and lib, or a
/// process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CallgrindFunction {
    Process(usize),
    Func(FuncId),
}

/// A row of a function: its line, in its own file or another, and the function that is called there, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct CostLine {
    /// The other file.
    source: Option<SourceId>,
    line: u32,
    callee: Option<FuncId>,
}

/// The costs of all rows.
struct CostTable<'a> {
    profile: &'a Profile,
    /// The function in the file for each function of the profile.
    same: Vec<FuncId>,
    rows: BTreeMap<(CallgrindFunction, CostLine), CostRow>,
    total: PlaceCosts,
}

#[derive(Clone, Copy, Default)]
struct CostRow {
    costs: PlaceCosts,
    /// The number of sampling intervals.
    weight: u64,
}

impl CostRow {
    fn add(&mut self, other: Self) {
        add(&mut self.costs, other.costs);
        self.weight = self.weight.saturating_add(other.weight);
    }
}

impl<'a> CostTable<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut table = Self { profile, same: same_functions(profile), rows: BTreeMap::new(), total: [0; 2] };
        let outermost = table.outermost();
        let mut threads: Vec<Vec<&Thread>> = vec![Vec::new(); profile.processes().len()];
        for thread in profile.threads() {
            threads[thread.process.index()].push(thread);
        }
        for (process, threads) in threads.into_iter().enumerate() {
            table.add_process(process, &threads, &outermost);
        }
        table
    }

    /// For each stack, whether this is the outermost occurrence of its function.
    fn outermost(&self) -> Vec<bool> {
        let stacks = self.profile.stacks();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); stacks.len()];
        let mut open = Vec::new();
        for (at, stack) in stacks.iter().enumerate() {
            match stack.prefix {
                Some(prefix) => children[prefix.index()].push(at),
                None => open.push((at, false)),
            }
        }
        let (mut outermost, mut on_path) = (vec![false; stacks.len()], FxHashSet::default());
        while let Some((at, is_done)) = open.pop() {
            let function = self.function(stacks[at].frame);
            if is_done {
                on_path.remove(&function);
                continue;
            }
            outermost[at] = on_path.insert(function);
            if outermost[at] {
                open.push((at, true));
            }
            open.extend(children[at].iter().map(|&child| (child, false)));
        }
        outermost
    }

    fn function(&self, frame: FrameId) -> FuncId {
        self.same[self.profile.frame(frame).func.index()]
    }

    /// The line of a frame in its function.
    fn place(&self, frame: FrameId, callee: Option<FuncId>) -> CostLine {
        let frame = self.profile.frame(frame);
        let own = self.profile.func(frame.func).source;
        let source = self.profile.frame_source(frame).filter(|&source| Some(source) != own);
        CostLine { source, line: frame.line.unwrap_or(0), callee }
    }

    fn add_process(&mut self, process: usize, threads: &[&Thread], outermost: &[bool]) {
        let mut totals = self.own_rows(process, threads);
        // Parents have smaller numbers than their children.
        while let Some((stack, row)) = totals.pop_last() {
            let prefix = self.profile.stack(stack).prefix;
            if let Some(prefix) = prefix {
                totals.entry(prefix).or_default().add(row);
            }
            if outermost[stack.index()] {
                let callee = Some(self.function(self.profile.stack(stack).frame));
                let key = match prefix.map(|prefix| self.profile.stack(prefix).frame) {
                    Some(site) => (CallgrindFunction::Func(self.function(site)), self.place(site, callee)),
                    None => (CallgrindFunction::Process(process), CostLine { callee, ..CostLine::default() }),
                };
                self.rows.entry(key).or_default().add(row);
            }
        }
    }

    /// Adds the rows of the innermost functions, and returns the cost of each stack of the process.
    fn own_rows(&mut self, process: usize, threads: &[&Thread]) -> BTreeMap<StackId, CostRow> {
        let mut stacks: BTreeMap<StackId, CostRow> = BTreeMap::new();
        let interval = self.profile.meta().interval;
        for sample in threads.iter().flat_map(|thread| &thread.samples) {
            let weight = sample.weight;
            let mut row = CostRow { weight, ..CostRow::default() };
            row.costs[usize::from(sample.off_cpu)] = weight.saturating_mul(interval);
            if weight == 0 {
                continue;
            }
            add(&mut self.total, row.costs);
            let key = match sample.stack {
                Some(stack) => {
                    stacks.entry(stack).or_default().add(row);
                    let frame = self.profile.stack(stack).frame;
                    (CallgrindFunction::Func(self.function(frame)), self.place(frame, None))
                }
                None => (CallgrindFunction::Process(process), CostLine::default()),
            };
            self.rows.entry(key).or_default().add(row);
        }
        stacks
    }

    fn rows_by_function(&self) -> Vec<(CallgrindFunction, Vec<(CostLine, CostRow)>)> {
        let mut functions: Vec<(CallgrindFunction, Vec<_>)> = Vec::new();
        for (&(function, place), &row) in &self.rows {
            match functions.last_mut().filter(|(last, _)| *last == function) {
                Some((_, rows)) => rows.push((place, row)),
                None => functions.push((function, vec![(place, row)])),
            }
        }
        functions
    }
}

/// For each function, the first one with the same name, file and lib.
fn same_functions(profile: &Profile) -> Vec<FuncId> {
    let mut first: FxHashMap<(StringId, Option<SourceId>, Option<LibId>), FuncId> = FxHashMap::default();
    let funcs = profile.funcs().iter().enumerate();
    funcs
        .map(|(at, func)| *first.entry((func.name, func.source, func.lib)).or_insert(FuncId::from_index(at)))
        .collect()
}

struct CallgrindWriter<'a, W> {
    profile: &'a Profile,
    paths: SourcePaths<'a>,
    table: &'a CostTable<'a>,
    events: usize,
    /// The numbers of the files so far, and of functions without a file. A name is written once, because readers
    /// may refuse a second one.
    files: FxHashMap<Option<SourceId>, usize>,
    /// The numbers of objects and of functions whose names are written.
    written_objects: FxHashSet<usize>,
    written_functions: FxHashSet<usize>,
    out: W,
}

impl<W: Write> CallgrindWriter<'_, W> {
    fn header(&mut self, events: &[String]) -> io::Result<()> {
        let product = sanitize(&self.profile.meta().product);
        writeln!(self.out, "# callgrind format\nversion: 1\ncreator: nyquist\ncmd: {product}\n")?;
        writeln!(self.out, "positions: line\nevents: {}", events.join(" "))?;
        writeln!(self.out, "summary: {}", costs(self.table.total, self.events))
    }

    fn function(&mut self, function: CallgrindFunction, rows: Vec<(CostLine, CostRow)>) -> io::Result<()> {
        writeln!(self.out)?;
        self.name("", function)?;
        let mut current = None;
        for (place, row) in rows {
            if place.source != current {
                current = place.source;
                let (key, source) = match current {
                    Some(source) => ("fi", Some(source)),
                    None => ("fe", self.own_file(function)),
                };
                self.file(key, source)?;
            }
            if let Some(callee) = place.callee {
                self.name("c", CallgrindFunction::Func(callee))?;
                writeln!(self.out, "calls={} 0", row.weight)?;
            }
            writeln!(self.out, "{} {}", place.line, costs(row.costs, self.events))?;
        }
        Ok(())
    }

    fn own_file(&self, function: CallgrindFunction) -> Option<SourceId> {
        match function {
            CallgrindFunction::Process(_) => None,
            CallgrindFunction::Func(func) => self.profile.func(func).source,
        }
    }

    /// Writes the lines that name a function: `ob`, `fl` and `fn`, or `cob`, `cfi` and `cfn`.
    fn name(&mut self, called: &str, function: CallgrindFunction) -> io::Result<()> {
        let (lib, name) = match function {
            CallgrindFunction::Process(process) => {
                let process = &self.profile.processes()[process];
                (None, format!("{} (pid {})", process.name, process.pid))
            }
            CallgrindFunction::Func(func) => {
                (self.profile.func(func).lib, self.profile.func_name(func).to_owned())
            }
        };
        let path = lib.map_or(UNKNOWN, |lib| {
            let lib = self.profile.lib(lib);
            if lib.path.is_empty() { &lib.name } else { &lib.path }
        });
        // Each name has a number, because a name that begins with a parenthesis would be read as a number.
        // One number is enough for all functions without an object.
        let object = lib.map_or(0, |lib| lib.index() + 1);
        let path = self.written_objects.insert(object).then(|| sanitize(path));
        write_name(&mut self.out, &format!("{called}ob"), object, path.as_deref())?;
        self.file(if called.is_empty() { "fl" } else { "cfi" }, self.own_file(function))?;
        let number = match function {
            CallgrindFunction::Process(process) => process,
            CallgrindFunction::Func(func) => self.profile.processes().len() + func.index(),
        };
        let name = self.written_functions.insert(number).then(|| sanitize(&name));
        write_name(&mut self.out, &format!("{called}fn"), number, name.as_deref())
    }

    fn file(&mut self, key: &str, source: Option<SourceId>) -> io::Result<()> {
        let next = self.files.len();
        if let Some(&number) = self.files.get(&source) {
            return write_name(&mut self.out, key, number, None);
        }
        self.files.insert(source, next);
        let path = source.map(|source| source_path(self.profile, source, self.paths));
        write_name(&mut self.out, key, next, Some(&sanitize(path.as_deref().unwrap_or(UNKNOWN))))
    }
}

/// Writes a number, with its name where it comes first.
fn write_name(out: &mut impl Write, key: &str, number: usize, name: Option<&str>) -> io::Result<()> {
    match name {
        Some(name) => writeln!(out, "{key}=({number}) {name}"),
        None => writeln!(out, "{key}=({number})"),
    }
}
