//! Programs whose files are made to do harm: they exhaust the recorder's memory, or give names to the code of
//! others.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_measured, need_root};
use super::invocation::PLAIN_USER;
use super::profile::Profile;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("debug_info_beyond_memory_loses_no_profile", debug_info_beyond_memory)
        .in_pairs("takes much memory"),
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
