//! Files of Austin, compared with what its own reader in Python returns.

use std::collections::BTreeMap;

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_eq};
use super::pypi::{self, Package};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("binary_files_of_austin_are_read", binary),
    Test::new("austin_s_text_is_read_as_its_binary_form", text),
];

/// The last version whose programs run with the libc of Debian 12.
const AUSTIN: Package = Package { name: "austin-dist", version: "3.7.0" };
/// The reader of Austin's files, by Austin's author.
const READER: Package = Package { name: "austin-python", version: "2.4.0" };

/// How often Austin may end without samples, and the minimum size of a file with samples.
const TRIES: u32 = 5;
const MIN_BYTES: u64 = 1000;

/// A program with two threads, a child process, and objects for the garbage collector.
const PROGRAM: &str = "import gc, os, threading, time
def busy(seconds):
    end = time.time() + seconds
    while time.time() < end:
        sum(i * i for i in range(300))
def collect(seconds):
    end, kept = time.time() + seconds, []
    while time.time() < end:
        kept.append([[] for _ in range(300)])
        if len(kept) > 300:
            kept.clear()
            gc.collect()
def nap(seconds):
    time.sleep(seconds)
thread = threading.Thread(target=nap, args=(0.8,))
thread.start()
child = os.fork()
busy(0.3)
if child:
    collect(0.3)
    thread.join()
    os.waitpid(child, 0)
";

/// Makes the reader keep the frames that Austin could not read. Austin's own text shows them as `:INVALID:`.
const WITH_INVALID: &str = "from austin.format.mojo import *
def invalid(self):
    self._running_sample.frames.append(MojoFrame(0, EMPTY, MojoString(0, 'INVALID'), 0))
    return MojoSpecialFrame('INVALID')
MojoStreamReader.get_invalid_frame = invalid
";

/// Prints the self value of each function in µs or bytes, for samples on the CPU, for all time, or for memory
/// that grew.
const SUMS: &str = "import collections, json, sys
from austin.events import AustinSample
sums = collections.Counter()
for event in MojoStreamReader(open(sys.argv[1], 'rb')):
    if isinstance(event, AustinSample):
        amount = event.metrics.memory if sys.argv[2] == 'memory' else event.metrics.time
        if amount > 0 and not (sys.argv[2] == 'cpu' and event.idle):
            name = 'GC' if event.gc else event.frames[-1].function if event.frames else ''
            sums[name] += amount
print(json.dumps(sums))";

/// The sums of the functions.
type Sums = BTreeMap<String, u64>;

/// Runs the program under Austin, which writes a file.
fn run_austin(test: &Context<'_>, options: &[&str], name: &str) -> Result<String, Stop> {
    let austin = pypi::folder_of(AUSTIN)?.join("bin/austin");
    let (source, file) = (test.path("program.py"), test.path(name).display().to_string());
    std::fs::write(&source, PROGRAM)?;
    let source = source.display().to_string();
    // `python3` may be a script, which Austin does not accept as a Python program.
    let program = "import sys; print(sys.executable)";
    let python = test.program("python3").args(&["-c", program]).run()?.succeeded()?.stdout_text();
    let args = [&["-t", "30s", "-i", "1ms", "-o", &file][..], options, &[python.trim(), &source]].concat();
    // Austin ends without a sample if it inspects a process that is just starting.
    for _ in 0..TRIES {
        let is_done = test.program(&austin).args(&args).run()?.status.success();
        if is_done && std::fs::metadata(&file)?.len() > MIN_BYTES {
            return Ok(file);
        }
    }
    Err(Stop::Failed(format!("Austin has ended without samples {TRIES} times")))
}

/// The sums of a file that Austin's own reader returns.
fn theirs(test: &Context<'_>, file: &str, value: &str) -> Result<Sums, Stop> {
    let modules = pypi::folder_of(READER)?.display().to_string();
    let script = [WITH_INVALID, SUMS].concat();
    let program = test.program("python3").env("PYTHONPATH", &modules).args(&["-c", &script, file, value]);
    Ok(serde_json::from_str(&program.run()?.succeeded()?.stdout_text())?)
}

/// The sums in the report, in µs or bytes. Samples without a stack are the rest of the total weight.
fn ours(test: &Context<'_>, file: &str, value: &str) -> Result<Sums, Stop> {
    let args = ["report", "--json", "--limit", "0", "--event", value, file];
    let text = test.nyquist(&args).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&text)?;
    let interval = json["interval_ns"].as_u64().unwrap_or_default();
    let unit = if value == "memory" { 1 } else { 1000 };
    let amount = |weight: &Value| weight.as_u64().unwrap_or_default() * interval / unit;
    let mut sums = Sums::new();
    for row in json["functions"].as_array().into_iter().flatten() {
        let name = row["function"].as_str().unwrap_or_default().to_owned();
        *sums.entry(name).or_default() += amount(&row["self"]);
    }
    let of_functions: u64 = sums.values().sum();
    sums.insert(String::new(), amount(&json["weight"]).saturating_sub(of_functions));
    sums.retain(|_, amount| *amount > 0);
    Ok(sums)
}

fn binary(test: &Context<'_>) -> Verdict {
    let modes: [(&[&str], &[&str]); 4] = [
        (&["-b", "-C"], &["wall"]),
        (&["-b", "-C", "-s", "-g"], &["cpu"]),
        (&["-b", "-m"], &["memory"]),
        (&["-b", "-f", "-g"], &["cpu", "wall", "memory"]),
    ];
    for (options, values) in modes {
        let file = run_austin(test, options, "x.mojo")?;
        for &value in values {
            let (ours, theirs) = (ours(test, &file, value)?, theirs(test, &file, value)?);
            expect(value == "memory" || ours.contains_key("busy"), format_args!("no busy in {ours:?}"))?;
            expect_eq(&format!("{value} of austin {options:?}"), ours, theirs)?;
        }
    }
    Ok(())
}

fn text(test: &Context<'_>) -> Verdict {
    let file = run_austin(test, &["-b", "-C", "-s"], "x.mojo")?;
    let converted = test.path("x.austin").display().to_string();
    let modules = pypi::folder_of(READER)?.display().to_string();
    // `mojo2austin` does the same.
    let script = [WITH_INVALID, "from austin.format.collapsed_stack import main\nmain()"].concat();
    let args = ["-c", &script, &file, &converted];
    test.program("python3").env("PYTHONPATH", &modules).args(&args).run()?.succeeded()?;
    expect_eq("the text", ours(test, &converted, "cpu")?, ours(test, &file, "cpu")?)?;
    // Austin's own text comes from a separate run.
    let full = run_austin(test, &["-f", "-g"], "x.text")?;
    for value in ["cpu", "wall", "memory"] {
        let ours = ours(test, &full, value)?;
        expect(!ours.is_empty(), format_args!("no {value} in Austin's text"))?;
    }
    Ok(())
}
