//! `--alloc` of programs in Rust, JavaScript, Java and Python: what is seen of their memory, and what is not.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::cargo::{cargo_nyquist, manifest};
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::python::managed_python;
use super::recorded::Recorded;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("rust_allocations_have_their_functions", rust),
    Test::new("nodes_buffers_are_seen_and_not_its_heap", node),
    Test::new("javas_buffers_are_seen_and_not_its_heap", java),
    Test::new("pythons_large_objects_are_seen", python),
    Test::new("pythons_functions_have_their_bytes", python_names),
];

/// The mean distance of samples, in bytes. If it were much smaller, samples of these programs would be lost.
const RATE: f64 = 131_072.0;

const SAMPLED: [&str; 3] = ["--alloc", "--alloc-rate", "131072"];

/// Allocates 1,008,000 bytes that stay, 3,000,000 in 3,000 blocks that do not, and 1,000,000 at once.
const RUST: &str = "use std::hint::black_box;
#[inline(never)]
fn keeps() {
    let mut all = Vec::with_capacity(1000);
    for _ in 0..1000 { all.push(Box::new(black_box([1_u8; 1000]))); }
    std::mem::forget(black_box(all));
}
#[inline(never)]
fn temps() { for _ in 0..3000 { black_box(String::with_capacity(1000)); } }
#[inline(never)]
fn collects() { black_box((0..black_box(125_000_u64)).collect::<Vec<_>>()); }
fn main() { keeps(); temps(); collects(); }
";

fn rust(test: &Context<'_>) -> Verdict {
    fs::create_dir_all(test.path("src"))?;
    fs::write(test.path("Cargo.toml"), manifest("demo", ""))?;
    fs::write(test.path("src/main.rs"), RUST)?;
    let printed = cargo_nyquist(test, &["--alloc", "--alloc-rate", "1", "-s"]).run()?.succeeded()?.stderr;
    expect_contains("what is said", &printed, "Recording each allocation by a library")?;
    let profile = test.path("profile.json.gz");
    for (event, sums) in [("total", [1_008_000.0, 3e6, 1e6]), ("live", [1_008_000.0, 0.0, 0.0])] {
        let report = report(test, &profile, event)?;
        let of = |function: &str| total(&report, &format!("demo::{function}"));
        expect_eq(event, ["keeps", "temps", "collects"].map(of), sums)?;
    }
    Ok(())
}

/// 100 buffers of 1,000,000 bytes each, and 300,000 objects. Prints the bytes of the heap. Each buffer is sampled, with
/// a copy of its stack: it waits, so that all are read in time on a loaded machine, too.
const NODE: &str = "const wait = new Int32Array(new SharedArrayBuffer(4));
function buffers() {
    const all = [];
    for (let i = 0; i < 100; i++) { all.push(Buffer.alloc(1e6)); Atomics.wait(wait, 0, 0, 5); }
    return all;
}
function objects() { const all = []; for (let i = 0; i < 3e5; i++) all.push({a: i, b: [i, i]}); return all; }
const kept = [buffers(), objects()];
console.log(process.memoryUsage().heapUsed);
";

fn node(test: &Context<'_>) -> Verdict {
    let script = test.path("buffers.js").display().to_string();
    fs::write(&script, NODE)?;
    // These name functions of JavaScript.
    let words = ["node", "--perf-basic-prof", "--interpreted-frames-native-stack", &script];
    if test.program("node").args(&["--version"]).run().is_err() {
        return skip("node is not installed");
    }
    for recorded in by_both(test, &words)? {
        let report = report(test, &recorded.path, "total")?;
        expect_near("buffers", total(&report, "buffers"), 1e8)?;
        let heap: f64 = recorded.finished.stdout_text().trim().parse().context("node prints no number")?;
        let seen = total(&report, "objects");
        expect(seen < heap / 2.0, format_args!("{seen} of the heap's {heap} bytes are seen"))?;
    }
    Ok(())
}

/// 100 buffers of 1,000,000 bytes outside of the heap, and as many within it. It waits as node's does.
const JAVA: &str = "import java.nio.ByteBuffer;
import java.util.*;
public class Buffers {
    public static void main(String[] words) throws Exception {
        List<Object> all = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            all.add(ByteBuffer.allocateDirect(1000000));
            all.add(new byte[1000000]);
            Thread.sleep(5);
        }
        System.out.println(all.size());
    }
}
";

fn java(test: &Context<'_>) -> Verdict {
    let source = test.path("Buffers.java").display().to_string();
    fs::write(&source, JAVA)?;
    let folder = test.path("").display().to_string();
    let built = test.program("javac").args(&["-d", &folder, &source]).run();
    if !built.is_ok_and(|built| built.status.success()) {
        return skip("javac is not installed");
    }
    for recorded in by_both(test, &["java", "-Xmx512m", "-cp", &folder, "Buffers"])? {
        let report = report(test, &recorded.path, "total")?;
        // The Java VM itself needs some.
        let seen = sum(&report, |row| row["lib"] == "libjvm.so");
        expect((0.95e8..1.5e8).contains(&seen), format_args!("{seen} bytes of libjvm.so are seen"))?;
    }
    Ok(())
}

/// 500,000 objects of 16 bytes, and one of 50 MB.
const PYTHON: &str = "def small():
    return [object() for _ in range(500000)]
def large():
    return bytes(50_000_000)
kept = small(), large()
";

/// Small objects come from pools of Python's own, unless it is told to ask malloc for each. It makes many before the
/// script begins.
fn python(test: &Context<'_>) -> Verdict {
    const SYSTEM: &str = "/usr/bin/python3";
    let script = test.path("objects.py").display().to_string();
    fs::write(&script, PYTHON)?;
    if !Path::new(SYSTEM).exists() {
        return skip("there is no /usr/bin/python3");
    }
    // A sample of such an object stands for as many.
    let each = RATE / 17.0;
    let least = 5e5 - 5.0 * (each * 5e5).sqrt();
    for (words, blocks) in
        [(&[SYSTEM, &script][..], 0.0..1e5), (&["env", "PYTHONMALLOC=malloc", SYSTEM, &script], least..2e6)]
    {
        for recorded in by_both(test, words)? {
            let of =
                |event| -> Result<f64, Stop> { Ok(sum(&report(test, &recorded.path, event)?, |_| true)) };
            let (count, bytes) = (of("allocations")?, of("total")?);
            expect(blocks.contains(&count), format_args!("{words:?}: {count} blocks are seen"))?;
            expect((4.5e7..1.5e8).contains(&bytes), format_args!("{words:?}: {bytes} bytes are seen"))?;
        }
    }
    Ok(())
}

/// From Python 3.12 on, with the option that names functions for perf.
fn python_names(test: &Context<'_>) -> Verdict {
    let script = test.path("objects.py").display().to_string();
    fs::write(&script, PYTHON)?;
    let program = managed_python().join("python3").display().to_string();
    if !Path::new(&program).exists() {
        return skip("Python 3.12 is not installed");
    }
    let words = ["env", "PYTHONMALLOC=malloc", &program, "-X", "perf", &script];
    let recorded = test.record_command(&words).options(&SAMPLED).run_well()?;
    let report = report(test, &recorded.path, "total")?;
    expect_near("large", total(&report, "large"), 5e7)?;
    let small = total(&report, "small");
    let known: f64 = 8e6;
    expect(small > known - 5.0 * (RATE * known).sqrt(), format_args!("small has {small} bytes"))
}

/// Recordings by the user who runs the tests, and by a plain user.
fn by_both(test: &Context<'_>, words: &[&str]) -> Result<Vec<Recorded>, Stop> {
    let mut all = vec![test.record_command(words).options(&SAMPLED).run_well()?];
    if crate::sys::is_root() {
        all.push(test.record_command(words).options(&SAMPLED).by_plain_user().run_well()?);
    }
    Ok(all)
}

fn report(test: &Context<'_>, profile: &Path, event: &str) -> anyhow::Result<Value> {
    let call = test.nyquist(&["report", "--json", "--limit", "0", "--event", event]).path(profile);
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// The total of a function.
fn total(report: &Value, function: &str) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"] == function);
    row.and_then(|row| row["total"].as_f64()).unwrap_or(0.0)
}

/// What the chosen functions have themselves.
fn sum(report: &Value, is_chosen: impl Fn(&Value) -> bool) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    rows.filter(|row| is_chosen(row)).filter_map(|row| row["self"].as_f64()).sum()
}

/// Beside the known bytes, there are a few of the language's own.
fn expect_near(what: &str, found: f64, known: f64) -> Verdict {
    let error = 5.0 * (RATE * known).sqrt();
    let bounds = known - error..known * 1.03 + error;
    expect(bounds.contains(&found), format_args!("{what}: {found} bytes are seen, not {known} ± {error}"))
}
