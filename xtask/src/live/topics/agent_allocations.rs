//! `nyquist agent --alloc`: what each profile has of a program that knows what it allocates, for each destination.

use std::fs;

use serde_json::Value;

use super::agent::{decoded, series, takes_all};
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq};
use super::invocation::Invocation;
use super::receiver::Receiver;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("agent_sends_allocations_of_each_window", windows),
    Test::new("agent_samples_allocations_without_bias", sampled),
    Test::new("agent_names_allocations_as_go_does", destinations),
    Test::new("agent_says_what_it_does_of_allocations", checked),
];

const VALUES: [&str; 4] = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];

/// What the functions of the workload allocate: bytes and blocks.
const KNOWN: [(&str, u64, u64); 3] =
    [("keeps", 2_000_000, 2000), ("holds", 2_000_000, 500), ("temps", 3_000_000, 10_000)];

/// A recording of the workload, whose three pauses are longer than two windows.
fn recording<'a>(test: &'a Context<'_>, options: &[&str]) -> Invocation<'a> {
    let call = test.nyquist(&["agent", "--every", "1", "--alloc"]).args(options).args(&["--"]);
    call.path(&test.workload("allocates")).args(&["windows", "3"])
}

/// The sums of a value of the stacks with a function in each window that has any, in the order of time, with the
/// window's start in µs.
fn of_windows(test: &Context<'_>, folder: &str, kind: &str, function: &str) -> Result<Vec<(u64, u64)>, Stop> {
    let rows = super::tables::query(
        test,
        &format!(
            "select epoch_us(time)::bigint as start, sum(value)::bigint as sum from '{folder}/**/*.parquet'
             where kind = '{kind}' and list_contains([frame.function for frame in frames], '{function}')
             group by all order by start"
        ),
    )?;
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap_or_default();
    Ok(rows.iter().map(|row| (number(row, "start"), number(row, "sum"))).collect())
}

fn windows(test: &Context<'_>) -> Verdict {
    let to = test.path("profiles").display().to_string();
    let printed = recording(test, &["--alloc-rate", "1", "--to", &to]).run()?.succeeded()?.stderr;
    expect_contains("what is printed", &printed, "Recording each allocation by a library")?;
    expect(!printed.contains("lost: ") && !printed.contains("too many"), format_args!("losses: {printed}"))?;
    let of = |kind, function| of_windows(test, &to, kind, function);
    for (function, bytes, blocks) in KNOWN {
        for (kind, known) in [("alloc_space", bytes), ("alloc_objects", blocks)] {
            let sum: u64 = of(kind, function)?.iter().map(|(_, sum)| sum).sum();
            expect_eq(&format!("{kind} of {function} in all windows"), sum, known)?;
        }
    }
    // What stays is there at the end of each window from its allocation on. Beside other tests a window can be long.
    let stays = of("inuse_space", "keeps")?;
    expect(
        stays.len() > 1 && stays[1..].iter().all(|(_, sum)| *sum == 2_000_000),
        format_args!("what stays: {stays:?}"),
    )?;
    let blocks = of("inuse_objects", "keeps")?;
    expect(blocks[1..].iter().all(|(_, sum)| *sum == 2000), format_args!("its blocks: {blocks:?}"))?;
    let latest = |kind: &str| -> Result<u64, Stop> {
        let sql = format!(
            "select max(epoch_us(time))::bigint as last from '{to}/**/*.parquet' where kind = '{kind}'"
        );
        Ok(super::tables::query(test, &sql)?[0]["last"].as_u64().unwrap_or_default())
    };
    let last = stays.last().map_or(0, |(start, _)| *start);
    expect(last >= latest("alloc_space")?, format_args!("what stays is in no later window than {last}"))?;
    // What is freed later is there until then. A window can end while blocks are allocated or freed.
    let held = of("inuse_space", "holds")?;
    let end = held.last().map_or(0, |(start, _)| *start);
    expect(!held.is_empty() && end < last, format_args!("what is held: {held:?}, {stays:?}"))?;
    let between = held.iter().skip(1).filter(|(start, _)| *start != end);
    expect(between.into_iter().all(|(_, sum)| *sum == 2_000_000), format_args!("what is held: {held:?}"))?;
    // One block of 300 bytes is there at a time. So a window that ends between the first and the last can have it.
    let (allocated, left) = (of("alloc_space", "temps")?, of("inuse_space", "temps")?);
    let (_, earlier) = allocated.split_last().unwrap_or((&(0, 0), &[]));
    let is_known = |(start, sum): &(u64, u64)| *sum == 300 && earlier.iter().any(|(at, _)| at == start);
    expect(left.iter().all(is_known), format_args!("temporary blocks: {left:?}, allocated: {allocated:?}"))
}

fn sampled(test: &Context<'_>) -> Verdict {
    const RATE: f64 = 20_000.0;
    let to = test.path("profiles").display().to_string();
    recording(test, &["--alloc-rate", "20000", "--to", &to]).run()?.succeeded()?;
    for (function, bytes, _) in KNOWN {
        let sum: u64 = of_windows(test, &to, "alloc_space", function)?.iter().map(|(_, sum)| sum).sum();
        // Five times the standard error of a sum.
        let error = sum.abs_diff(bytes) as f64 / (RATE * bytes as f64).sqrt();
        expect(error < 5.0, format_args!("{function} allocates {bytes} bytes and not {sum}"))?;
    }
    let stays = of_windows(test, &to, "inuse_space", "keeps")?;
    let whole = stays.last().map_or(0, |(_, sum)| *sum);
    expect(
        (whole as f64 - 2e6).abs() < 5.0 * (RATE * 2e6_f64).sqrt(),
        format_args!("what stays: {stays:?}"),
    )?;
    // The same blocks have the same weight in each window.
    expect(
        stays.len() > 1 && stays[1..].iter().all(|(_, sum)| sum.abs_diff(whole) < 3000),
        format_args!("{stays:?}"),
    )
}

fn destinations(test: &Context<'_>) -> Verdict {
    let (pyroscope, collector) = (takes_all()?, takes_all()?);
    let push = format!("otlp+{}", collector.url);
    let options = ["--alloc-rate", "1", "--push", &pyroscope.url, "--push", &push];
    recording(test, &options).by_plain_user().run()?.succeeded()?;
    let profiles = decoded(test, &collector)?;
    let of_kind = |kind: &'static str| {
        profiles.iter().filter(move |it| it["type"].as_str().is_some_and(|text| text.starts_with(kind)))
    };
    for (value, unit) in VALUES.into_iter().zip(["count", "bytes", "count", "bytes"]) {
        let mut found = 0;
        for profile in of_kind(value) {
            found += 1;
            expect_eq("the type", profile["type"].as_str(), Some(&*format!("{value}/{unit}")))?;
            expect_eq("the type of the period", profile["period_type"].as_str(), Some("space/bytes"))?;
            expect_eq("the period", profile["period"].as_u64(), Some(1))?;
        }
        expect(found > 0, format_args!("no {value} among the profiles"))?;
    }
    let allocated = of_kind("alloc_space").filter_map(|it| it["functions"]["temps"].as_u64());
    expect_eq("what temps allocates, by OpenTelemetry", allocated.sum::<u64>(), 3_000_000)?;
    let live: Vec<_> = of_kind("inuse_space").filter_map(|it| it["functions"]["keeps"].as_u64()).collect();
    expect(live.len() > 1 && live[1..].iter().all(|sum| *sum == 2_000_000), format_args!("{live:?}"))?;
    pushed(test, &pyroscope)
}

/// Pyroscope gets what it calls `memory:inuse_space:bytes:space:bytes`, and Go's reader agrees.
fn pushed(test: &Context<'_>, receiver: &Receiver) -> Verdict {
    let series = series(test, receiver)?;
    let memory: Vec<_> =
        series.iter().filter(|it| it["labels"]["__name__"].as_str() == Some("memory")).collect();
    expect(memory.len() > 4, format_args!("{} series of memory", memory.len()))?;
    let mut found = [0; VALUES.len()];
    for file in memory.iter().filter_map(|series| series["files"][0].as_str()) {
        let Ok(raw) = test.program("go").args(&["tool", "pprof", "-raw", file]).run() else {
            return super::expect::skip("no go");
        };
        let raw = raw.succeeded()?.stdout_text();
        expect_contains("the period", &raw, "PeriodType: space bytes")?;
        for (value, found) in VALUES.into_iter().zip(&mut found) {
            *found += usize::from(raw.contains(&format!("{value}/")));
        }
    }
    expect(found.iter().all(|found| *found > 0), format_args!("files of {VALUES:?}: {found:?}"))
}

fn checked(test: &Context<'_>) -> Verdict {
    let file = test.path("agent.toml");
    fs::write(&file, "push = \"http://127.0.0.1:9\"\nalloc = true\nalloc-rate = 65536\n")?;
    let config = file.display().to_string();
    let checked = test.nyquist(&["agent", "--config", &config, "--check", "--", "ls"]).run()?.succeeded()?;
    let text = "alloc_objects, alloc_space, inuse_objects, inuse_space; one in 65,536 bytes is sampled";
    expect_contains("what --check says", &checked.stdout_text(), text)?;
    // As `record` refuses it.
    let agent = test.nyquist(&["agent", "--config", &config, "-a"]).run()?;
    let record = test.nyquist(&["record", "--alloc", "-a"]).run()?;
    expect_eq("the status", agent.code(), record.code())?;
    let sentence = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    expect_eq("the refusal", sentence(&agent.stderr), sentence(&record.stderr))?;
    expect_contains("the hint", &agent.stderr, "nyquist agent --alloc -- COMMAND")
}
