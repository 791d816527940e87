//! Recordings of the performance panel that Firefox had up to version 91: its markers and a profile of its sampler, of
//! an older form than the Firefox Profiler's.
//!
//! The members are those of `devtools/client/performance` in Firefox' sources; the tables are described in
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/gecko-profile-format.md>.

use nyquist_profile::{FuncKind, Measure, StackId, StringId, Unit};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};
use crate::json::{id_text, nanoseconds};

const FORMAT: &str = "a recording of Firefox' performance panel";

#[derive(Deserialize)]
struct PanelFile {
    profile: PanelProfile,
}

#[derive(Deserialize)]
struct PanelProfile {
    #[serde(default)]
    meta: PanelMeta,
    threads: Vec<PanelThread>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PanelMeta {
    product: String,
    /// In ms.
    interval: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PanelThread {
    #[serde(default)]
    name: String,
    #[serde(default)]
    pid: Value,
    #[serde(default)]
    tid: Value,
    samples: Rows,
    stack_table: Rows,
    frame_table: Rows,
    string_table: Vec<String>,
}

/// A table: which column has which name, and its rows.
#[derive(Deserialize)]
struct Rows {
    schema: serde_json::Map<String, Value>,
    data: Vec<Vec<Value>>,
}

impl Rows {
    /// The place of a column in each row.
    fn column(&self, name: &str) -> Option<usize> {
        usize::try_from(self.schema.get(name)?.as_u64()?).ok()
    }
}

fn index(row: &[Value], column: Option<usize>) -> Option<usize> {
    usize::try_from(row.get(column?)?.as_u64()?).ok()
}

/// Reads the samples of all threads. Each stands for the time until the next one of its thread, and the last one for
/// the interval. Firefox samples by the wall clock.
///
/// # Errors
/// If it is no such JSON, or its tables have other columns.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let PanelFile { profile } =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let product = if profile.meta.product.is_empty() { "Firefox" } else { &profile.meta.product };
    let mut importer = Importer::new(product, "Firefox' performance panel");
    importer.meta_mut().measure = Measure { name: "wall time".into(), unit: Unit::Time };
    let interval = nanoseconds(profile.meta.interval, 1e6);
    let interval = if interval > 0 { interval } else { MILLISECOND };
    let mut unknown = 0;
    for thread in &profile.threads {
        unknown += add_thread(&mut importer, product, thread, interval)?;
    }
    importer.note_left_out(unknown, "samples whose stack is not there");
    Ok(importer.finish(None))
}

/// Adds a thread, and returns the number of samples whose stack is not known.
fn add_thread(
    importer: &mut Importer,
    product: &str,
    it: &PanelThread,
    interval: u64,
) -> Result<u64, ReadError> {
    let missing =
        |name: &str| ReadError::Malformed { format: FORMAT, problem: format!("it has no column `{name}`") };
    let time_column = it.samples.column("time").ok_or_else(|| missing("time"))?;
    let stack_column = it.samples.column("stack").ok_or_else(|| missing("stack"))?;
    let (pid, tid) = (id_text(&it.pid), id_text(&it.tid));
    let name = ThreadName { pid: &pid, process: product, tid: &tid, thread: &it.name };
    let thread = importer.thread(name);
    let stacks = stacks(importer, it);
    let mut samples: Vec<_> = it
        .samples
        .data
        .iter()
        .filter_map(|row| Some((nanoseconds(row.get(time_column)?.as_f64()?, 1e6), row)))
        .collect();
    samples.sort_by_key(|&(time, _)| time);
    let mut unknown = it.samples.data.len() - samples.len();
    for (place, &(time, row)) in samples.iter().enumerate() {
        let duration = samples.get(place + 1).map_or(interval, |&(next, _)| next - time);
        let stack = match row.get(stack_column) {
            None | Some(Value::Null) => None,
            Some(_) => {
                match index(row, Some(stack_column)).and_then(|place| stacks.get(place).copied().flatten()) {
                    Some(stack) => Some(stack),
                    None => {
                        unknown += 1;
                        continue;
                    }
                }
            }
        };
        importer.span(thread, time, (stack, false), duration);
    }
    Ok(unknown as u64)
}

/// The stacks of a thread. A prefix comes before what it is a prefix of; `None` for a stack whose prefix or frame does
/// not.
fn stacks(importer: &mut Importer, it: &PanelThread) -> Vec<Option<StackId>> {
    let (prefix, frame) = (it.stack_table.column("prefix"), it.stack_table.column("frame"));
    let (location, line) = (it.frame_table.column("location"), it.frame_table.column("line"));
    let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(it.stack_table.data.len());
    let mut locations = Locations { texts: &it.string_table, known: FxHashMap::default() };
    for row in &it.stack_table.data {
        let code = index(row, frame).and_then(|place| it.frame_table.data.get(place)).and_then(|code| {
            let location = locations.find(importer, index(code, location)?)?;
            Some((location, index(code, line).and_then(|line| u32::try_from(line).ok())))
        });
        let has_prefix = prefix.and_then(|column| row.get(column)).is_some_and(|prefix| !prefix.is_null());
        let before = index(row, prefix).and_then(|place| stacks.get(place).copied().flatten());
        let stack = code.filter(|_| !has_prefix || before.is_some()).map(|(location, line)| {
            let Location { name, file, start_line, kind } = location;
            let line = line.or(start_line);
            let code = CodePosition { start_line, line, kind, ..CodePosition::default() };
            let frame = importer.frame_of(name, file, &code);
            importer.stack(before, frame)
        });
        stacks.push(stack);
    }
    stacks
}

/// The locations of a thread's table of texts. Each is processed once, because many frames may have the same long one.
struct Locations<'a> {
    texts: &'a [String],
    known: FxHashMap<usize, Location>,
}

#[derive(Clone, Copy)]
struct Location {
    name: Option<StringId>,
    file: Option<StringId>,
    start_line: Option<u32>,
    kind: FuncKind,
}

impl Locations<'_> {
    fn find(&mut self, importer: &mut Importer, place: usize) -> Option<Location> {
        let text = self.texts.get(place)?;
        Some(*self.known.entry(place).or_insert_with(|| {
            let CodePosition { name, file, start_line, kind, .. } = code_position(text);
            let mut intern = |text: &str| (!text.is_empty()).then(|| importer.builder().intern_string(text));
            Location { name: intern(name), file: file.and_then(&mut intern), start_line, kind }
        }))
    }
}

/// The code of a location: `name (file:///a.js:17)`, with a column behind the line in later versions, or a label of the
/// browser's own code. The line is that of the function.
fn code_position(location: &str) -> CodePosition<'_> {
    let place = location.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    let Some((name, place)) = place.filter(|(_, place)| place.contains(':')) else {
        return CodePosition { name: location, ..CodePosition::default() };
    };
    let number = |text: &str| text.parse::<u32>().ok();
    let (file, start_line) = match place.rsplit_once(':').map(|(rest, last)| (rest, number(last))) {
        Some((rest, Some(last))) => match rest.rsplit_once(':').map(|(file, line)| (file, number(line))) {
            Some((file, Some(line))) => (file, Some(line)),
            _ => (rest, Some(last)),
        },
        _ => (place, None),
    };
    CodePosition { name, file: Some(file), start_line, kind: FuncKind::JavaScript, ..CodePosition::default() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    pub(crate) const FILE: &str = r#"{"label":"","duration":74.1,"markers":[],"frames":[],"memory":[],"ticks":[],
        "allocations":{"sites":[]},"profile":{"meta":{"version":9,"interval":1,"product":"Firefox"},"libs":[],
        "threads":[{"name":"GeckoMain","pid":5,"tid":7,"markers":{"schema":{},"data":[]},
            "samples":{"schema":{"stack":0,"time":1,"responsiveness":2},"data":[[1,0.5,12.3],[2,2.5],[0,3.0],[9,4.0],[null,5.0]]},
            "stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1],[1,2]]},
            "frameTable":{"schema":{"location":0,"implementation":1,"optimizations":2,"line":3,"category":4},
                "data":[[0],[1,null,null,9],[2,null]]},
            "stringTable":["(root)","main (file:///a.js:4)","work (file:///a.js:12:7)"]}]},
        "configuration":{},"fileType":"Recorded Performance Data","version":2}"#;

    #[test]
    fn samples_stand_for_the_time_until_the_next() {
        let read = read(FILE.as_bytes()).unwrap();
        let profile = &read.profile;
        assert_eq!(profile.meta().interval, 500_000);
        assert_eq!(stacks_of(profile), [" 2", "(root) 2", "(root);main 4", "(root);main;work 1"]);
        assert_eq!(read.notes.len(), 1);
        let place = |name: &str| {
            let frame = profile.frames().iter().find(|it| profile.func_name(it.func) == name).unwrap();
            (profile.func(frame.func).line, frame.line)
        };
        assert_eq!((place("main"), place("work")), ((Some(4), Some(9)), (Some(12), Some(12))));
    }

    /// A text is processed once. If it were for each of its frames, this would take hours.
    #[test]
    fn a_long_name_of_many_frames_costs_once() {
        let frames: Vec<String> = (0..100_000).map(|line| format!("[1,null,null,{line}]")).collect();
        let stacks: Vec<String> = (0..100_000).map(|frame| format!("[null,{frame}]")).collect();
        let text = FILE
            .replace("main", &"x".repeat(1 << 19))
            .replace("[0],[1,null,null,9],[2,null]", &frames.join(","))
            .replace("[null,0],[0,1],[1,2]", &stacks.join(","));
        let profile = read(text.as_bytes()).unwrap().profile;
        assert_eq!((profile.funcs().len(), profile.stacks().len()), (1, 100_000));
    }

    #[test]
    fn tables_without_their_columns_are_refused() {
        let text = FILE.replace("\"time\":1", "\"when\":1");
        assert!(read(text.as_bytes()).unwrap_err().to_string().contains("`time`"));
        assert!(read(b"{\"profile\":{}}").is_err());
    }
}
