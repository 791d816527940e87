//! Programs whose own files are made to take the recorder's memory: the profile is saved all the same.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains};
use super::harness::Test;
use super::profile::Profile;

pub(super) const TESTS: &[Test] =
    &[Test::new("debug_info_beyond_memory_loses_no_profile", debug_info_beyond_memory)];

/// What each section of debug info takes in memory, and in the file a thousandth of that.
const SECTION: u64 = 400 << 20;

fn debug_info_beyond_memory(test: &Context<'_>) -> Verdict {
    let (section, program) = (test.path("section"), test.path("program"));
    fs::write(&section, compressed_zeros()?)?;
    let add = |name: &str| format!("{name}={}", section.display());
    let objcopy = test.program("objcopy").args(&["--strip-debug"]);
    let objcopy = [".zdebug_info", ".zdebug_str", ".zdebug_line"]
        .iter()
        .fold(objcopy, |call, name| call.args(&["--add-section", &add(name)]));
    objcopy.path(&test.workload("shares")).path(&program).run()?.succeeded()?;
    let profile = record(test, &program)?;
    // The names are in its symbol table.
    let functions = profile.functions();
    expect(functions.contains_key("alpha"), format_args!("no name: {functions:?}"))
}

/// Records a program with less memory than its debug info takes, and expects that to be said.
fn record(test: &Context<'_>, program: &Path) -> Result<Profile, Stop> {
    let output = test.fresh("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "--no-cache", "-o"]).path(&output).args(&["--"]);
    let call = call.path(program).args(&["300"]);
    let finished = call.under(&["sh", "-c", "ulimit -v 1000000; exec \"$0\" \"$@\""]).run()?;
    expect_contains("stderr", &finished.stderr, "some names are missing")?;
    expect_contains("stderr", &finished.stderr, "--max-memory")?;
    finished.succeeded()?;
    Ok(Profile::read(&output)?)
}

/// A section of the old compressed form, which decompresses to zeros.
fn compressed_zeros() -> Result<Vec<u8>, Stop> {
    const PIECE: usize = 1 << 20;
    let head = [b"ZLIB".as_slice(), &SECTION.to_be_bytes()].concat();
    let (mut encoder, zeros) = (ZlibEncoder::new(head, Compression::best()), vec![0; PIECE]);
    for _ in 0..SECTION / PIECE as u64 {
        encoder.write_all(&zeros)?;
    }
    Ok(encoder.finish()?)
}
