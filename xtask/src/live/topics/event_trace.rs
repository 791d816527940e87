//! Traces of Windows (.etl) in the real program: functions with names, choice of processes, and what it says of traces
//! without samples or stacks.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq};
use super::test::Test;
use nyquist_test_support::made_trace::{self, Buffer, Header};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_trace_of_windows_shows_functions", functions).quick(),
    Test::new("a_trace_without_samples_says_how_to_get_some", without_samples),
    Test::new("a_trace_of_windows_is_imported_by_process", by_process),
    Test::new("a_trace_in_a_zip_archive_is_read", archived),
];

const SAMPLE: (u8, u8) = (made_trace::PERF_INFO, 46);
const STACK: (u8, u8) = (made_trace::STACK_WALK, 32);
const APP: (u64, u64) = (0x7ff6_0000_0000, 0x3000);
const OTHER: (u64, u64) = (0x7ff7_0000_0000, 0x3000);
/// A millisecond of the clock.
const MS: u64 = 10_000;

/// The identity of the program's PDB as it is in traces, and as symbol stores have it.
const GUID: [u8; 16] =
    [0xbe, 0x4e, 0x97, 0x6c, 0x32, 0x52, 0x46, 0xee, 0x9d, 0x6b, 0x78, 0x47, 0xa6, 0x70, 0xb2, 0xa9];
const BREAKPAD_ID: &str = "6C974EBE5232EE469D6B7847A670B2A91";
const BREAKPAD_FILE: &str = "MODULE windows x86_64 6C974EBE5232EE469D6B7847A670B2A91 app.pdb\nFUNC 1000 40 0 busy(int)\n\
    FUNC 1040 40 0 main\n";

/// Two processes with a thread each, and what the trace states of their programs.
fn begun() -> Buffer {
    let mut buffer = Buffer::new(0, 1);
    for (pid, name, range) in [(100, "app.exe", APP), (200, "other.exe", OTHER)] {
        let path = format!(r"\Device\HarddiskVolume3\bin\{name}");
        buffer
            .system((3, 3, 4), (0, 0), 10 * MS, &made_trace::process((pid, 4), name, name))
            .system((5, 3, 4), (0, 0), 10 * MS, &made_trace::thread((pid, pid + 4), ""))
            .system((20, 3, 3), (0, 0), 10 * MS, &made_trace::image(range, pid, 0x5ca1_2c43, &path));
    }
    let pdb = made_trace::pdb_id(APP.0, 100, (&GUID, 1), "app.pdb");
    buffer.full(&made_trace::IMAGE_ID, (36, 2), (100, 0), 10 * MS, &pdb);
    buffer
}

/// Three samples of one process in `busy`, called by `main`, and one of the other process without a stack.
fn sampled() -> Buffer {
    let mut buffer = begun();
    for time in 11..14 {
        let stack = [APP.0 + 0x1010, APP.0 + 0x1050];
        buffer.perf_info(SAMPLE, time * MS, &made_trace::sample(APP.0 + 0x1010, 104)).perf_info(
            STACK,
            time * MS,
            &made_trace::stack(time * MS, (100, 104), &stack),
        );
    }
    buffer.perf_info(SAMPLE, 14 * MS, &made_trace::sample(OTHER.0 + 0x1234, 204));
    buffer
}

fn written(test: &Context<'_>, header: &Header, buffers: &[Buffer]) -> Result<PathBuf, Stop> {
    let path = test.fresh("trace.etl");
    fs::write(&path, made_trace::file(header, buffers)).context("no trace")?;
    Ok(path)
}

fn functions(test: &Context<'_>) -> Verdict {
    let symbols = test.path("symbols");
    let stored = symbols.join("app.pdb").join(BREAKPAD_ID);
    fs::create_dir_all(&stored).context("no folder")?;
    fs::write(stored.join("app.sym"), BREAKPAD_FILE).context("no symbols")?;
    let header = Header { events_lost: 7, ..Header::default() };
    let trace = written(test, &header, &[sampled()])?;
    let symbols = symbols.display().to_string();
    let report = test.nyquist(&["report", "--symbol-dir", &symbols]).path(&trace).run()?.succeeded()?;
    expect_contains("the messages", &report.stderr, "the session lost 7 events")?;
    let text = report.stdout_text();
    for line in ["app.exe    busy", "app.exe    main", "other.exe  0x1234"] {
        expect_contains("the report", &text, line)?;
    }
    let busy = text.lines().find(|line| line.contains("busy")).unwrap_or_default();
    expect(busy.contains("75"), format_args!("three of four samples are in busy: {busy}"))
}

fn without_samples(test: &Context<'_>) -> Verdict {
    let trace = written(test, &Header::default(), &[begun()])?;
    let finished = test.nyquist(&["report"]).path(&trace).run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("the error", &finished.stderr, "the trace has no samples of CPUs")?;
    expect_contains("the error", &finished.stderr, "hint: xperf -on PROC_THREAD+LOADER+PROFILE")?;
    let mut buffer = begun();
    buffer.perf_info(SAMPLE, 11 * MS, &made_trace::sample(APP.0 + 0x1010, 104));
    let trace = written(test, &Header::default(), &[buffer])?;
    let finished = test.nyquist(&["report"]).path(&trace).run()?.succeeded()?;
    expect_contains("the messages", &finished.stderr, "the trace has no stacks")?;
    fs::write(&trace, [0_u8, 0, 1, 0, 0, 0, 0, 0])?;
    let finished = test.nyquist(&["report"]).path(&trace).run()?;
    expect_contains("the error", &finished.stderr, "the file does not begin with the header of a trace")
}

fn by_process(test: &Context<'_>) -> Verdict {
    let trace = written(test, &Header::default(), &[sampled()])?;
    let profile = test.path("profile.json.gz");
    let output = profile.display().to_string();
    let import = test.nyquist(&["import", "-s", "--pid", "200", "-o", &output]);
    import.path(&trace).run()?.succeeded()?;
    let text = test.nyquist(&["report", "--threads"]).path(&profile).run()?.succeeded()?.stdout_text();
    expect_contains("the report", &text, "other.exe")?;
    expect(!text.contains("app.exe"), format_args!("the other process is left out: {text}"))?;
    let refused = test.nyquist(&["report", "--event", "cycles"]).path(&trace).run()?;
    expect_eq("the status", refused.code(), 1)?;
    expect_contains("the error", &refused.stderr, "--event cannot be used with")
}

/// Python's archive, in which names lead elsewhere, a folder comes first, and a large file is behind the trace. Nothing
/// is written below those names.
fn archived(test: &Context<'_>) -> Verdict {
    const ARCHIVE: &str = "import sys, zipfile
with zipfile.ZipFile(sys.argv[2], 'w', int(sys.argv[3])) as archive:
    archive.writestr('folder/', '')
    archive.write(sys.argv[1], '../../../trace.etl')
    archive.writestr('/tmp/nyquist-symbols.pdb', bytes(1 << 24), zipfile.ZIP_DEFLATED)
";
    let trace = written(test, &Header::default(), &[sampled()])?;
    let plain = test.nyquist(&["report"]).path(&trace).run()?.succeeded()?.stdout_text();
    expect_contains("the report", &plain, "other.exe  0x1234")?;
    let folder = test.path("archives");
    let name = trace.file_name().unwrap_or_default().display().to_string();
    fs::create_dir_all(&folder).context("no folder")?;
    // Stored, and deflated.
    for method in ["0", "8"] {
        let archive = folder.join(format!("{name}.zip"));
        test.program("python3")
            .args(&["-c", ARCHIVE])
            .path(&trace)
            .path(&archive)
            .args(&[method])
            .run()?
            .succeeded()?;
        let report = test.nyquist(&["report"]).path(&archive).run()?.succeeded()?;
        expect_eq(method, report.stdout_text().replace(".etl.zip", ".etl"), plain.clone())?;
        let names: Vec<_> = fs::read_dir(&folder).context("no folder")?.collect();
        expect_eq("the files beside the archive", names.len(), 1)?;
        let bytes = fs::read(&archive).context("no archive")?;
        let cut = folder.join("cut.etl.zip");
        fs::write(&cut, &bytes[..150]).context("no archive")?;
        let printed = test.nyquist(&["report"]).path(&cut).run()?;
        expect_eq("the status of a cut archive", printed.code(), 1)?;
        expect_contains("what is said of a cut archive", &printed.stderr, "cut.etl.zip")?;
        fs::remove_file(&cut).context("the file stays")?;
    }
    Ok(())
}
