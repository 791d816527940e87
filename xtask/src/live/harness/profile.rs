//! The tests' own reader of profiles. It is an oracle, because it shares no code with the writer. It reads
//! the tables of each thread (before version 60) and the shared ones.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// A profile, with look-ups for the tests.
pub(crate) struct Profile {
    /// The whole JSON.
    pub json: Value,
    /// The threads.
    pub threads: Vec<Thread>,
}

/// A thread and its samples.
pub(crate) struct Thread {
    /// Its name.
    pub name: String,
    /// Its process's name.
    pub process: String,
    /// Its process's number, as the profile writes it.
    pub pid: String,
    /// Its number, as the profile writes it.
    pub tid: String,
    /// Whether it is its process's main thread.
    pub is_main: bool,
    /// Its samples.
    pub samples: Vec<Sample>,
    /// All rows of its table: the samples, and the rows that show idle time.
    pub rows: Vec<Sample>,
    tables: Rc<Tables>,
}

/// A sample.
#[derive(Clone)]
pub(crate) struct Sample {
    stack: Option<usize>,
    /// Its time in milliseconds.
    pub time: f64,
    /// The number of samples that it represents.
    pub weight: f64,
    /// The CPU time since the previous sample, in the profile's unit.
    pub cpu_delta: Option<f64>,
    /// Whether it is not a sample, but a row that shows idle time. Such a row has no weight.
    is_idle: bool,
}

/// A position on a stack.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    /// The function's name.
    pub function: String,
    /// The library's name.
    pub lib: Option<String>,
    /// The category's name.
    pub category: String,
    /// The subcategory's name.
    pub subcategory: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u64>,
    /// The address in the library, or -1.
    pub address: i64,
    /// 0 for a function that is not inlined, more for an inlined one.
    pub inline_depth: u64,
}

struct Tables {
    /// (prefix, frame) of each stack.
    stacks: Vec<(Option<usize>, usize)>,
    frames: Vec<Frame>,
}

impl Profile {
    /// Reads a gzipped profile from a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Self::decode(file).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Reads gzipped data.
    pub(crate) fn decode(bytes: impl std::io::Read) -> Result<Self> {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).context("not gzip")?;
        Self::from_json(serde_json::from_str(&text)?)
    }

    pub(crate) fn from_json(json: Value) -> Result<Self> {
        let shared = match json.get("shared") {
            Some(shared) if shared.get("stackTable").is_some() => Some(Rc::new(Tables::read(shared, &json)?)),
            _ => None,
        };
        let mut threads = Vec::new();
        for thread in items(&json["threads"])? {
            let tables = match &shared {
                Some(tables) => Rc::clone(tables),
                None => Rc::new(Tables::read(thread, &json)?),
            };
            let name = thread["name"].as_str().unwrap_or_default();
            threads.push(Thread::read(thread, tables).with_context(|| format!("thread {name}"))?);
        }
        Ok(Self { json, threads })
    }

    /// The version in the profile.
    pub(crate) fn version(&self) -> u64 {
        self.json["meta"]["preprocessedProfileVersion"].as_u64().unwrap_or(0)
    }

    /// The weight of all samples.
    pub(crate) fn total(&self) -> f64 {
        self.threads.iter().map(Thread::total).sum::<f64>() + 0.0
    }

    /// The weight of the samples that were taken, without rows for time without samples.
    pub(crate) fn sampled(&self) -> f64 {
        self.threads.iter().map(Thread::sampled).sum::<f64>() + 0.0
    }

    /// The number of samples that were taken. Rows without weight, such as those of waits, do not count, and
    /// neither do rows for time without samples.
    pub(crate) fn taken(&self) -> f64 {
        self.stacks().filter(|(stack, weight)| *weight > 0.0 && was_taken(stack)).count() as f64
    }

    /// The number of samples, from which tolerances are computed.
    pub(crate) fn count(&self) -> f64 {
        self.threads.iter().map(|thread| thread.samples.len()).sum::<usize>() as f64
    }

    /// The effective number of samples: how many samples of equal weight would have the same information. By
    /// ptrace on a busy machine, a few samples represent long times, and those of waiting threads represent
    /// none. Rows for time without samples do not count.
    pub(crate) fn equal_count(&self) -> f64 {
        let samples = self.stacks().filter(|(stack, _)| was_taken(stack));
        let (sum, squares) =
            samples.fold((0.0, 0.0), |(sum, squares), (_, weight)| (sum + weight, squares + weight * weight));
        sum * sum / f64::max(squares, 1.0)
    }

    /// The share of samples with a matching frame anywhere on the stack.
    pub(crate) fn share_with(&self, fits: impl Fn(&Frame) -> bool) -> f64 {
        self.share_of_stacks(|stack| stack.iter().any(|frame| fits(frame)))
    }

    /// The share of samples with this function on the stack.
    pub(crate) fn total_share(&self, function: &str) -> f64 {
        self.share_with(|frame| frame.function == function)
    }

    /// The same share among the samples that were taken.
    pub(crate) fn share_of_taken(&self, function: &str) -> f64 {
        self.of_taken(self.total_share(function))
    }

    /// Converts a share of all samples to a share of the samples that were taken.
    pub(crate) fn of_taken(&self, share: f64) -> f64 {
        share * self.total() / self.sampled()
    }

    /// The share of samples with this function as the innermost frame.
    pub(crate) fn self_share(&self, function: &str) -> f64 {
        self.share_of_stacks(|stack| stack.last().is_some_and(|frame| frame.function == function))
    }

    /// The share of samples with a matching stack. The stack begins with the outermost frame.
    pub(crate) fn share_of_stacks(&self, fits: impl Fn(&[&Frame]) -> bool) -> f64 {
        let fitting = self.stacks().filter(|(stack, _)| fits(stack)).map(|(_, weight)| weight);
        // The sum of nothing is -0.0. Adding 0.0 makes it 0.0.
        (fitting.sum::<f64>() + 0.0) / self.total()
    }

    /// The stack and the weight of every sample. A stack begins with the outermost frame.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = (Vec<&Frame>, f64)> {
        self.threads.iter().flat_map(Thread::stacks)
    }

    /// The outermost functions, with the weight of their samples.
    pub(crate) fn roots(&self) -> BTreeMap<String, f64> {
        let mut roots = BTreeMap::new();
        for (stack, weight) in self.stacks() {
            let root = stack.first().map_or_else(|| "(no stack)".to_owned(), |frame| frame.function.clone());
            *roots.entry(root).or_default() += weight;
        }
        roots
    }

    /// The names of all functions on the stacks of samples, with their weight.
    pub(crate) fn functions(&self) -> BTreeMap<String, f64> {
        let mut functions = BTreeMap::new();
        for (stack, weight) in self.stacks() {
            let mut names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                *functions.entry(name.to_owned()).or_default() += weight;
            }
        }
        functions
    }

    /// A matching frame of any sample.
    pub(crate) fn frame_of(&self, fits: impl Fn(&Frame) -> bool) -> Option<Frame> {
        self.stacks().find_map(|(stack, _)| stack.into_iter().find(|frame| fits(frame)).cloned())
    }

    /// The threads with this name.
    pub(crate) fn threads_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Thread> {
        self.threads.iter().filter(move |thread| thread.name == name)
    }

    /// The names of the threads, as `process/thread`.
    pub(crate) fn thread_names(&self) -> Vec<String> {
        self.threads.iter().map(|thread| format!("{}/{}", thread.process, thread.name)).collect()
    }

    /// A lib with this name.
    pub(crate) fn lib(&self, name: &str) -> Result<&Value> {
        let found = items(&self.json["libs"])?.iter().find(|lib| lib["name"] == name);
        found.with_context(|| format!("the profile has no lib {name}"))
    }
}

impl Thread {
    fn read(json: &Value, tables: Rc<Tables>) -> Result<Self> {
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let pid = json["pid"].as_str().map_or_else(|| json["pid"].to_string(), str::to_owned);
        let rows = read_rows(&json["samples"], tables.stacks.len())?;
        Ok(Self {
            // If several threads have the same name, the row of each is renamed. This field has the original
            // name.
            name: json["nyquistName"].as_str().map_or_else(|| text("name"), str::to_owned),
            process: text("processName"),
            pid,
            tid: json["tid"].as_str().map_or_else(|| json["tid"].to_string(), str::to_owned),
            is_main: json["isMainThread"].as_bool().unwrap_or(false),
            samples: rows.iter().filter(|row| !row.is_idle).cloned().collect(),
            rows,
            tables,
        })
    }

    /// The weight of the samples.
    pub(crate) fn total(&self) -> f64 {
        self.samples.iter().map(|sample| sample.weight).sum()
    }

    /// The weight of the samples that were taken.
    pub(crate) fn sampled(&self) -> f64 {
        self.stacks().filter(|(stack, _)| was_taken(stack)).map(|(_, weight)| weight).sum()
    }

    /// The functions of a stack with an index, from the outermost on.
    pub(crate) fn names_of(&self, stack: usize) -> Vec<&str> {
        self.tables.stack(Some(stack)).into_iter().map(|frame| &*frame.function).collect()
    }

    /// The functions of the row that the front end draws at a time, in ms.
    pub(crate) fn names_at(&self, time: f64) -> Option<Vec<&str>> {
        let row = self.rows.iter().rev().find(|row| row.time <= time)?;
        Some(self.tables.stack(row.stack).into_iter().map(|frame| &*frame.function).collect())
    }

    /// The stack of every row, including rows that show idle time. A stack begins with the outermost frame.
    pub(crate) fn stacks_of_rows(&self) -> impl Iterator<Item = Vec<&Frame>> {
        self.rows.iter().map(|row| self.tables.stack(row.stack))
    }

    /// The stack and the weight of every sample. A stack begins with the outermost frame.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = (Vec<&Frame>, f64)> {
        self.samples.iter().map(|sample| (self.tables.stack(sample.stack), sample.weight))
    }
}

/// Whether a stack belongs to a sample, and not to time without samples.
fn was_taken(stack: &[&Frame]) -> bool {
    let stands_in =
        |frame: &&Frame| ["[not sampled]", "[kernel: not permitted]"].contains(&frame.function.as_str());
    !stack.iter().any(stands_in)
}

fn read_rows(json: &Value, stack_count: usize) -> Result<Vec<Sample>> {
    let stacks = items(&json["stack"]).context("samples.stack")?;
    let mut now = 0.0;
    let mut samples = Vec::with_capacity(stacks.len());
    for (index, stack) in stacks.iter().enumerate() {
        now = match (&json["time"][index], &json["timeDeltas"][index]) {
            (time, _) if time.is_number() => number(time)?,
            (_, delta) => now + number(delta).context("samples.timeDeltas")?,
        };
        let stack = stack.as_u64().map(|index| index as usize);
        ensure!(
            stack.is_none_or(|stack| stack < stack_count),
            "a sample's stack {stack:?} is beyond the table"
        );
        let weight = if json["weight"].is_array() { number(&json["weight"][index])? } else { 1.0 };
        let cpu_delta = json["threadCPUDelta"][index].as_f64();
        let waited = json["nyquistOffCpuWeight"][index].as_f64().unwrap_or(0.0);
        let is_idle = weight == 0.0 && cpu_delta == Some(0.0) && waited == 0.0;
        samples.push(Sample { stack, time: now, weight, cpu_delta, is_idle });
    }
    Ok(samples)
}

impl Tables {
    fn read(owner: &Value, profile: &Value) -> Result<Self> {
        let strings: Vec<&str> = items(&owner["stringArray"])
            .context("stringArray")?
            .iter()
            .map(|text| text.as_str().unwrap_or(""))
            .collect();
        let names = Names { owner, profile, strings };
        let table = &owner["stackTable"];
        let mut stacks = Vec::new();
        for (index, frame) in items(&table["frame"]).context("stackTable.frame")?.iter().enumerate() {
            stacks.push((prefix(table, index)?, position(frame)?));
        }
        let frame_count = items(&owner["frameTable"]["func"]).context("frameTable.func")?.len();
        ensure!(stacks.iter().all(|(_, frame)| *frame < frame_count), "a stack's frame is beyond the table");
        let frames = (0..frame_count).map(|index| names.frame(index)).collect::<Result<_>>()?;
        Ok(Self { stacks, frames })
    }

    fn stack(&self, innermost: Option<usize>) -> Vec<&Frame> {
        let mut frames = Vec::new();
        let mut next = innermost;
        while let Some((prefix, frame)) = next.map(|index| self.stacks[index]) {
            frames.push(&self.frames[frame]);
            next = prefix;
        }
        frames.reverse();
        frames
    }
}

/// The prefix of a stack. It always has a lower index, so following prefixes ends.
fn prefix(table: &Value, index: usize) -> Result<Option<usize>> {
    let prefix = match (&table["prefix"][index], &table["prefixOffset"][index]) {
        (Value::Number(prefix), _) => prefix.as_u64().map(|prefix| prefix as usize),
        (_, Value::Number(offset)) => match offset.as_u64().context("prefixOffset")? as usize {
            0 => None,
            offset => Some(index.checked_sub(offset).context("a prefixOffset leads before the table")?),
        },
        (Value::Null, Value::Null) if table["prefix"].is_array() => None,
        _ => bail!("stack {index} has no prefix"),
    };
    ensure!(prefix.is_none_or(|prefix| prefix < index), "stack {index} comes before its prefix");
    Ok(prefix)
}

/// Looks up the tables that the frame table refers to.
struct Names<'a> {
    owner: &'a Value,
    profile: &'a Value,
    strings: Vec<&'a str>,
}

impl Names<'_> {
    fn frame(&self, index: usize) -> Result<Frame> {
        let (frames, funcs) = (&self.owner["frameTable"], &self.owner["funcTable"]);
        let category = self.category(&frames["category"][index]);
        let subcategory = frames["subcategory"][index].as_u64().unwrap_or_default();
        let text = |name: &Value| name.as_str().unwrap_or_default().to_owned();
        let func = position(&frames["func"][index])?;
        Ok(Frame {
            function: self.string(&funcs["name"][func])?.context("a func without a name")?,
            lib: self.lib(&funcs["resource"][func])?,
            category: text(&category["name"]),
            subcategory: text(&category["subcategories"][subcategory as usize]),
            file: self.file(funcs, func)?,
            line: frames["line"][index].as_u64(),
            address: frames["address"][index].as_i64().unwrap_or(-1),
            inline_depth: frames["inlineDepth"][index].as_u64().unwrap_or(0),
        })
    }

    fn string(&self, index: &Value) -> Result<Option<String>> {
        let Some(index) = index.as_u64() else { return Ok(None) };
        let text = self
            .strings
            .get(index as usize)
            .with_context(|| format!("string {index} is beyond the array"))?;
        Ok(Some((*text).to_owned()))
    }

    fn lib(&self, resource: &Value) -> Result<Option<String>> {
        let Some(resource) = resource.as_u64() else { return Ok(None) };
        let lib = &self.owner["resourceTable"]["lib"][resource as usize];
        let Some(lib) = lib.as_u64() else { return Ok(None) };
        let name = self.profile["libs"][lib as usize]["name"].as_str();
        Ok(Some(name.with_context(|| format!("lib {lib} is beyond the table"))?.to_owned()))
    }

    fn file(&self, funcs: &Value, func: usize) -> Result<Option<String>> {
        if let Some(source) = funcs["source"][func].as_u64() {
            return self.string(&self.owner["sources"]["filename"][source as usize]);
        }
        self.string(&funcs["fileName"][func])
    }

    fn category(&self, index: &Value) -> &Value {
        let category = index.as_u64().map(|index| &self.profile["meta"]["categories"][index as usize]);
        category.unwrap_or(&Value::Null)
    }
}

fn items(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().context("not an array")
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("not a number")
}

fn position(value: &Value) -> Result<usize> {
    Ok(value.as_u64().context("not an index")? as usize)
}

#[cfg(test)]
mod tests {
    use super::Profile;
    use serde_json::{Value, json};

    /// A profile in which main calls f, into which g is inlined. One sample is in g, and two are in main.
    fn shared() -> Value {
        json!({
            "meta": {"preprocessedProfileVersion": 66, "categories": [{"name": "User"}, {"name": "Kernel"}]},
            "libs": [{"name": "app"}],
            "shared": {
                "stringArray": ["main", "f", "g", "a.c"],
                "stackTable": {"frame": [0, 1, 2], "prefixOffset": [0, 1, 1], "length": 3},
                "frameTable": {"func": [0, 1, 2], "category": [0, 0, 1], "line": [null, 3, 4],
                    "address": [16, 32, 32], "inlineDepth": [0, 0, 1], "length": 3},
                "funcTable": {"name": [0, 1, 2], "resource": [0, 0, -1], "source": [null, 0, 0], "length": 3},
                "resourceTable": {"lib": [0], "length": 1},
                "sources": {"filename": [3], "length": 1},
            },
            "threads": [{"name": "t", "processName": "p", "pid": "7", "isMainThread": true, "samples": {
                "stack": [2, 0], "timeDeltas": [1.0, 2.0], "weight": [1, 2], "threadCPUDelta": [null, 5], "length": 2}}],
        })
    }

    fn per_thread() -> Value {
        let mut json = shared();
        let tables = json["shared"].take();
        json.as_object_mut().unwrap().remove("shared");
        for (key, table) in tables.as_object().unwrap() {
            json["threads"][0][key] = table.clone();
        }
        let thread = &mut json["threads"][0];
        thread["stackTable"] = json!({"frame": [0, 1, 2], "prefix": [null, 0, 1], "length": 3});
        thread["funcTable"]["fileName"] = json!([null, 3, 3]);
        thread["funcTable"].as_object_mut().unwrap().remove("source");
        json
    }

    #[test]
    fn both_layouts_say_the_same() {
        for json in [shared(), per_thread()] {
            let profile = Profile::from_json(json).unwrap();
            assert!((profile.self_share("main") - 2.0 / 3.0).abs() < 1e-9);
            assert!((profile.total_share("f") - 1.0 / 3.0).abs() < 1e-9);
            let (stack, _) = profile.stacks().next().unwrap();
            let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
            assert_eq!(names, ["main", "f", "g"]);
            let inlined = stack[2];
            assert_eq!(
                (inlined.line, inlined.inline_depth, inlined.category.as_str()),
                (Some(4), 1, "Kernel")
            );
            assert_eq!(inlined.file.as_deref(), Some("a.c"));
            assert_eq!(stack[1].lib.as_deref(), Some("app"));
            assert!((profile.threads[0].samples[1].time - 3.0).abs() < 1e-9);
            assert_eq!(profile.roots().into_iter().collect::<Vec<_>>(), [("main".to_owned(), 3.0)]);
        }
    }

    #[test]
    fn a_stack_that_leads_nowhere_is_an_error() {
        let mut json = shared();
        json["shared"]["stackTable"]["prefixOffset"] = json!([0, 2, 1]);
        assert!(Profile::from_json(json).is_err());
        let mut json = shared();
        json["threads"][0]["samples"]["stack"] = json!([2, 3]);
        assert!(Profile::from_json(json).is_err());
    }
}
