//! Programs whose files are made to do harm: they exhaust the recorder's memory, or give names to the code of
//! others.

use std::fs;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_measured, need_root};
use super::invocation::PLAIN_USER;
use super::profile::{Profile, Thread};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("debug_info_beyond_memory_loses_no_profile", debug_info_beyond_memory)
        .in_pairs("takes much memory"),
    Test::new("symbols_beyond_memory_lose_no_profile", symbols_beyond_memory).in_pairs("takes much memory"),
    Test::new("symbols_beyond_memory_are_not_probed", probe_of_many_symbols).in_pairs("takes much memory"),
    Test::new("a_file_with_anothers_build_id_names_itself", forged_id).in_pairs(SHARES),
];

/// The size of each section of debug info in memory. In the file, its size is a thousandth of that.
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
    // The names come from its symbol table.
    let functions = profile.functions();
    expect(functions.contains_key("alpha"), format_args!("no name: {functions:?}"))
}

/// The memory that nyquist may take where a file has many symbols, in bytes.
const MEMORY: u64 = 700 << 20;

/// A copy of a workload with a symbol table of that many functions.
fn with_many_symbols(test: &Context<'_>, symbols: usize) -> Result<PathBuf, Stop> {
    const ENTRY: usize = 24;
    let program = test.path("program");
    let objcopy = test.program("objcopy").args(&["--strip-debug"]).path(&test.workload("shares"));
    objcopy.path(&program).run()?.succeeded()?;
    let mut bytes = fs::read(&program)?;
    let number = |bytes: &[u8], at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes);
    // The headers of sections (ELF-64): their place, and in each the type at 4, the place at 24 and the size at 32.
    let (headers, count) = (number(&bytes, 40)? as usize, usize::from(bytes[60]));
    let is_symbols = |bytes: &[u8], header: usize| bytes[header + 4] == 2;
    let symtab = (0..count).map(|index| headers + index * 64).find(|header| is_symbols(&bytes, *header));
    let symtab = symtab.context("the workload has no .symtab")?;
    let (at, len) = (bytes.len() as u64, (symbols * ENTRY) as u64);
    bytes[symtab + 24..symtab + 32].copy_from_slice(&at.to_le_bytes());
    bytes[symtab + 32..symtab + 40].copy_from_slice(&len.to_le_bytes());
    let mut file = fs::File::create(&program)?;
    file.write_all(&bytes)?;
    let symbol = |number: u64| {
        // A name that is there, and STT_FUNC.
        let head = [1, 0, 0, 0, 2, 0, 1, 0];
        [head, (0x1000 + number * 16).to_le_bytes(), 16_u64.to_le_bytes()].concat()
    };
    for first in (0..symbols as u64).step_by(1 << 16) {
        let last = (symbols as u64).min(first + (1 << 16));
        file.write_all(&(first..last).flat_map(symbol).collect::<Vec<_>>())?;
    }
    file.set_permissions(Permissions::from_mode(0o755))?;
    Ok(program)
}

/// A limit of the memory of whatever is run under it.
fn limit() -> [String; 2] {
    ["prlimit".to_owned(), format!("--data={MEMORY}:{MEMORY}")]
}

/// All symbols in memory took 1.1 GB.
fn symbols_beyond_memory(test: &Context<'_>) -> Verdict {
    let (program, output) = (with_many_symbols(test, 25_000_000)?, test.fresh("profile.json.gz"));
    let call = test.nyquist(&["record", "-s", "--no-cache", "--max-memory", "800M", "-o"]).path(&output);
    let call = call.args(&["--"]).path(&program).args(&["300"]);
    call.under(&limit().each_ref().map(String::as_str)).run()?.succeeded()?;
    let total: f64 = Profile::read(&output)?.threads.iter().map(Thread::total).sum();
    expect(total > 100.0, format_args!("the profile has {total} ms"))
}

fn probe_of_many_symbols(test: &Context<'_>) -> Verdict {
    need_root()?;
    let event = format!("{}:alpha", with_many_symbols(test, 6_000_000)?.display());
    let call = test.nyquist(&["record", "-s", "-e", &event, "--", "true"]);
    let finished = call.under(&limit().each_ref().map(String::as_str)).run()?;
    expect_contains("stderr", &finished.stderr, "its symbols (.symtab) take too much memory")?;
    expect(finished.code() == 2, format_args!("the status is {}", finished.code()))
}

/// A plain user's library has the build id of another library. Each library gives names only to its own code,
/// in either order of mapping.
fn forged_id(test: &Context<'_>) -> Verdict {
    need_root()?;
    let host = test.workload("plugin_host").display().to_string();
    let [own, forged] = ["libnamesake.so", "libforged.so"].map(|name| test.workload(name));
    // The file has the same name and id, but another owner.
    let folder = test.path("forged");
    fs::create_dir(&folder)?;
    let copy = folder.join("libnamesake.so");
    fs::copy(&forged, &copy)?;
    chown(&copy, Some(PLAIN_USER), None)?;
    let own = format!("{host} 300 {}", own.display());
    let forged = format!(
        "setpriv --reuid {PLAIN_USER} --regid {PLAIN_USER} --clear-groups {host} 300 {}",
        copy.display()
    );
    for script in [format!("{forged}; {own}"), format!("{own}; {forged}")] {
        let profile = test.record_command(&["sh", "-c", &script]).run_well()?.profile;
        for function in ["plugin_inner", "other_inner"] {
            let share = profile.total_share(function);
            expect_measured(
                (0.3..0.7).contains(&share),
                format_args!("{function} has {share:.3} of the time of {script}"),
            )?;
        }
    }
    Ok(())
}

/// Records a program with less memory than its debug info needs, and checks that the output says so.
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

/// A section in the old compressed format, which decompresses to zeros.
fn compressed_zeros() -> Result<Vec<u8>, Stop> {
    const PIECE: usize = 1 << 20;
    let head = [b"ZLIB".as_slice(), &SECTION.to_be_bytes()].concat();
    let (mut encoder, zeros) = (ZlibEncoder::new(head, Compression::best()), vec![0; PIECE]);
    for _ in 0..SECTION / PIECE as u64 {
        encoder.write_all(&zeros)?;
    }
    Ok(encoder.finish()?)
}
