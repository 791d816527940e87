//! Recordings of perf in every mode that works here, converted and compared with `perf script`.

use std::path::{Path, PathBuf};

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::invocation::Finished;
use super::profile::{Frame, Profile};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("frame_pointers_are_as_perf_script_prints_them", frame_pointers).quick(),
    Test::new("frame_pointers_are_followed_only_within_code", frame_pointers_astray)
        .exclusive("perf loses records where it gets no CPU at once"),
    Test::new("stack_copies_are_unwound", stack_copies),
    Test::new("a_stream_is_read_from_a_pipe", stream),
    Test::new("compressed_records_are_read", compressed),
    Test::new("a_folder_of_threads_is_read", threads),
    Test::new("events_can_be_chosen", events),
    Test::new("waiting_is_shown_by_sched_switch", waiting),
    Test::new("tracepoints_are_markers_and_memory_a_counter", tracepoints),
    Test::new("filters_leave_only_what_is_requested", filters),
    Test::new("a_cut_file_gives_what_is_there_and_says_so", cut),
    Test::new("missing_binaries_are_listed", missing),
    Test::new("binaries_in_a_perf_archive_are_found", archive),
    Test::new("an_archive_is_no_recording_and_says_so", archive_as_profile),
];

/// Runs perf. An assertion of perf's own sometimes aborts it (`build-id.c`), and then it is started again.
pub(super) fn run_perf(call: impl Fn() -> anyhow::Result<Finished>) -> anyhow::Result<Finished> {
    const ABORTED: i32 = 128 + libc::SIGABRT;
    let is_over = |run: &anyhow::Result<Finished>| run.as_ref().map_or(true, |run| run.code() != ABORTED);
    (0..2).map(|_| call()).find(is_over).unwrap_or_else(call)
}

/// A recording of the workload that perf makes.
pub(super) fn perf_record(
    test: &Context<'_>,
    options: &[&str],
    name: &str,
) -> Result<PathBuf, super::expect::Stop> {
    let path = test.fresh(name);
    let record = || {
        let call = test.program("perf").args(&["record", "-q", "-N"]).args(options);
        call.args(&["-o"]).path(&path).args(&["--"]).path(&test.workload("shares")).args(&["400"]).run()
    };
    match run_perf(record) {
        Ok(finished) => finished.succeeded().map(|_| path).map_err(Into::into),
        Err(error) => skip(format_args!("there is no perf here: {error}")),
    }
}

/// Converts a recording, and returns the messages.
pub(super) fn import(
    test: &Context<'_>,
    recording: &Path,
    options: &[&str],
) -> Result<(Profile, String), super::expect::Stop> {
    let profile = test.fresh("imported.json.gz");
    let call = test.nyquist(&["import", "-s", "-o"]).path(&profile).args(options).path(recording);
    let finished = call.run()?.succeeded()?;
    Ok((Profile::read(&profile)?, finished.stderr))
}

/// The innermost function of every sample, as `perf script` prints it.
fn perf_leaves(test: &Context<'_>, recording: &Path) -> Result<Vec<String>, super::expect::Stop> {
    let call = test.program("perf").args(&["script", "-G", "-F", "ip,sym", "-i"]).path(recording);
    let text = call.run()?.succeeded()?.stdout_text();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(|line| line.split_whitespace().nth(1).unwrap_or_default().to_owned()).collect())
}

/// Checks that the shares of the workload's functions are the same as in perf.
fn expect_perfs_shares(test: &Context<'_>, recording: &Path, profile: &Profile) -> Verdict {
    let leaves = perf_leaves(test, recording)?;
    expect_eq("samples", profile.count() as usize, leaves.len())?;
    for function in ["alpha", "beta"] {
        let perfs = leaves.iter().filter(|leaf| *leaf == function).count() as f64 / leaves.len() as f64;
        let ours = profile.self_share(function);
        expect((ours - perfs).abs() < 0.02, format_args!("{function}: {ours} instead of {perfs}"))?;
    }
    Ok(())
}

fn frame_pointers(test: &Context<'_>) -> Verdict {
    let recording = perf_record(test, &["-F", "1999", "-g"], "fp.data")?;
    let (profile, _) = import(test, &recording, &[])?;
    expect_perfs_shares(test, &recording, &profile)
}

/// The file that is mapped at the address of a user frame, if there is one.
type MappedFile = Option<String>;

/// The compiler has no frame pointers, so the kernel follows arbitrary values. Our stacks are those of perf
/// up to the first caller outside of all mappings, and are marked as truncated there.
fn frame_pointers_astray(test: &Context<'_>) -> Verdict {
    let recording = test.fresh("astray.data");
    let compiler = compiler_command(test)?;
    let record = || {
        let call = test.program("perf").args(&["record", "-q", "-N", "-F", "1999", "-g", "-m", "4M", "-o"]);
        let call = call.path(&recording).args(&["--"]);
        compiler.iter().fold(call, |call, word| call.args(&[word])).run()
    };
    match run_perf(record) {
        Ok(finished) => finished.succeeded()?,
        Err(error) => return skip(format_args!("there is no perf here: {error}")),
    };
    let perfs = perf_user_stacks(test, &recording)?;
    let (profile, _) = import(test, &recording, &["--no-symbols"])?;
    let ours = user_stacks(&profile);
    expect_eq("samples", ours.len(), perfs.len())?;
    let (mut cut, mut odd) = (0, 0);
    for ((truncated, ours), perfs) in ours.iter().zip(&perfs) {
        // Perf prints nothing for a chain with a number that is reserved for the kernel's context marks. It
        // looks up a thread's samples before `exec` in the old program.
        if (perfs.is_empty() && !ours.is_empty()) || (ours.as_slice() == [None] && perfs.len() == 1) {
            odd += 1;
            continue;
        }
        let in_code =
            perfs.iter().skip(1).position(Option::is_none).map_or(perfs.len(), |callers| callers + 1);
        expect_eq("the files of a stack's frames", ours.as_slice(), &perfs[..in_code])?;
        expect_eq(&format!("whether {perfs:?} is said to be cut"), *truncated, in_code < perfs.len())?;
        cut += usize::from(*truncated);
    }
    let all = perfs.len();
    expect(odd <= 5 + all / 50, format_args!("{odd} of {all} stacks cannot be compared"))?;
    expect(cut * 20 > all && cut < all, format_args!("{cut} of {all} stacks leave code"))
}

/// The root of a stack that was cut because a return address is not in code.
pub(super) const NOT_IN_CODE: &str = "(truncated: return address not in code)";

/// The compiler driver, which starts the compiler.
const DRIVER: &str = "cc";

/// A compilation that takes some hundred milliseconds.
pub(super) fn compiler_command(test: &Context<'_>) -> Result<Vec<String>, super::expect::Stop> {
    let source = test.fresh("many.c");
    let function =
        |n: u32| format!("int f{n}(int a) {{ for (int i = 0; i < a; i++) a ^= i * {n}; return a; }}\n");
    std::fs::write(&source, (0..300).map(function).collect::<String>())?;
    let paths = [test.fresh("many.o"), source].map(|path| path.display().to_string());
    Ok([DRIVER, "-O2", "-c", "-o"].map(str::to_owned).into_iter().chain(paths).collect())
}

/// The user's part of each stack as `perf script` prints it, innermost frame first, sorted by time. Perf does
/// not forget mappings at exec. So the addresses of the driver's code can be data of the compiler, which has
/// replaced it; such addresses are not code.
fn perf_user_stacks(
    test: &Context<'_>,
    recording: &Path,
) -> Result<Vec<Vec<MappedFile>>, super::expect::Stop> {
    let call = test.program("perf").args(&["script", "--show-lost-events", "-F", "comm,time,ip,dso", "-i"]);
    let text = call.path(recording).run()?.succeeded()?.stdout_text();
    if text.contains("PERF_RECORD_LOST") {
        return skip("perf has lost records, perhaps of mappings");
    }
    let driver = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .find_map(|folder| folder.join(DRIVER).canonicalize().ok());
    let driver = driver.as_ref().and_then(|driver| driver.to_str());
    let mut is_driver = false;
    let mut stacks: Vec<Vec<MappedFile>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (line.trim().split_once(" ("), stacks.last_mut()) {
            (Some((_, dso)), Some(stack)) => match dso.trim_end_matches(')') {
                "[unknown]" => stack.push(None),
                path if Some(path) == driver && !is_driver => stack.push(None),
                kernels if kernels.starts_with('[') && kernels != "[vdso]" => {}
                path => stack.push(path.rsplit('/').next().map(str::to_owned)),
            },
            _ => {
                is_driver = line.split_whitespace().next() == Some(DRIVER);
                stacks.push(Vec::new());
            }
        }
    }
    Ok(stacks)
}

/// The user's part of each stack, innermost frame first, and whether it is marked as cut because it leaves
/// code.
fn user_stacks(profile: &Profile) -> Vec<(bool, Vec<MappedFile>)> {
    let of_thread = |thread: &super::profile::Thread| -> Vec<_> {
        let stack = |stack: Vec<&Frame>| {
            let is_cut = |frame: &&Frame| frame.function == NOT_IN_CODE;
            let (cut, rest) =
                if stack.first().is_some_and(is_cut) { stack.split_at(1) } else { stack.split_at(0) };
            let users = rest.iter().rev().filter(|frame| frame.category == "User");
            (!cut.is_empty(), users.map(|frame| frame.lib.clone()).collect())
        };
        thread
            .samples
            .iter()
            .zip(thread.stacks())
            .map(|(sample, (frames, _))| (sample.time, stack(frames)))
            .collect()
    };
    let mut stacks: Vec<(f64, _)> = profile.threads.iter().flat_map(of_thread).collect();
    stacks.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    stacks.into_iter().map(|(_, stack)| stack).collect()
}

fn stack_copies(test: &Context<'_>) -> Verdict {
    let recording = perf_record(test, &["-F", "999", "--call-graph", "dwarf"], "dwarf.data")?;
    let (profile, _) = import(test, &recording, &[])?;
    let under_main = profile.total_share("main");
    expect(under_main > 0.95, format_args!("only {under_main} of the samples are under main"))?;
    expect_perfs_shares(test, &recording, &profile)
}

fn stream(test: &Context<'_>) -> Verdict {
    let stream = test.fresh("stream.data");
    let record = || {
        std::fs::write(&stream, "")?;
        let call = test.program("perf").args(&["record", "-q", "-g", "-o", "-", "--"]);
        call.path(&test.workload("shares")).args(&["400"]).stdout_to(&stream).run()
    };
    run_perf(record)?.succeeded()?;
    let profile = test.fresh("piped.json.gz");
    let args = format!(
        "cat '{}' | '{}' import - -s -o '{}'",
        stream.display(),
        test.nyquist_path().display(),
        profile.display()
    );
    test.program("sh").args(&["-c", &args]).run()?.succeeded()?;
    let profile = Profile::read(&profile)?;
    expect(profile.self_share("alpha") > 0.2, "no share of alpha")?;
    // Every command can read it, both from a pipe and from a redirected file.
    let (nyquist, stream) = (test.nyquist_path().display(), stream.display());
    for args in
        [format!("cat '{stream}' | '{nyquist}' report -"), format!("'{nyquist}' report - < '{stream}'")]
    {
        let table = test.program("sh").args(&["-c", &args]).run()?.succeeded()?.stdout_text();
        expect_contains(&args, &table, "alpha")?;
    }
    Ok(())
}

fn compressed(test: &Context<'_>) -> Verdict {
    let recording = perf_record(test, &["-F", "1999", "-g", "-z"], "zstd.data")?;
    let (profile, printed) = import(test, &recording, &[])?;
    expect(!printed.contains("damaged"), &printed)?;
    expect_perfs_shares(test, &recording, &profile)
}

fn threads(test: &Context<'_>) -> Verdict {
    let recording = perf_record(test, &["-F", "1999", "-g", "-B", "--threads"], "threads.data")?;
    let (profile, printed) = import(test, &recording, &[])?;
    expect(!printed.contains("damaged") && !printed.contains("later"), &printed)?;
    expect_perfs_shares(test, &recording, &profile)
}

fn events(test: &Context<'_>) -> Verdict {
    let recording = perf_record(test, &["-g", "-e", "cpu-clock,page-faults", "-c", "100000"], "events.data")?;
    let (clock, printed) = import(test, &recording, &[])?;
    expect(clock.self_share("alpha") > 0.2, "the clock's samples are not shown")?;
    expect(printed.is_empty() || !printed.contains("--event cpu-clock"), &printed)?;
    let finished = test.nyquist(&["import", "-s", "--event", "cycles"]).path(&recording).run()?;
    expect_eq("exit status", finished.code(), 1)?;
    expect_contains("the error", &finished.stderr, "no event named cycles")?;
    expect_contains("the hint", &finished.stderr, "cpu-clock, page-faults")
}

fn waiting(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recording = test.fresh("switch.data");
    let record = || {
        let events = ["record", "-q", "-a", "-g", "-e", "cpu-clock,sched:sched_switch", "-o"];
        test.program("perf").args(&events).path(&recording).args(&["--", "sleep", "0.5"]).run()
    };
    run_perf(record)?.succeeded()?;
    let profile = test.fresh("waits.json.gz");
    let call =
        test.nyquist(&["import", "-s", "--name", "sleep", "--profile-version", "66", "-o"]).path(&profile);
    call.path(&recording).run()?.succeeded()?;
    let mut text = String::new();
    std::io::Read::read_to_string(
        &mut flate2::read::GzDecoder::new(std::fs::File::open(&profile)?),
        &mut text,
    )?;
    expect_contains("the profile", &text, "nyquistOffCpuWeight")?;
    expect_contains("the profile", &text, "nanosleep")
}

fn tracepoints(test: &Context<'_>) -> Verdict {
    need_root()?;
    let events = "cpu-clock,kmem:rss_stat,sched:sched_process_exit";
    let recording = perf_record(test, &["-e", events], "tracepoints.data")?;
    let profile = test.fresh("marked.json.gz");
    test.nyquist(&["import", "-s", "-o"]).path(&profile).path(&recording).run()?.succeeded()?;
    let mut text = String::new();
    std::io::Read::read_to_string(
        &mut flate2::read::GzDecoder::new(std::fs::File::open(&profile)?),
        &mut text,
    )?;
    expect_contains("the profile", &text, "sched:sched_process_exit")?;
    expect_contains("the profile", &text, "Resident anonymous pages")
}

fn filters(test: &Context<'_>) -> Verdict {
    let recording = perf_record(test, &["-F", "1999", "-g"], "filters.data")?;
    let (all, _) = import(test, &recording, &[])?;
    let count = |options: &[&str]| -> Result<f64, super::expect::Stop> {
        Ok(import(test, &recording, options)?.0.count())
    };
    expect_eq("samples of the program", count(&["--name", "shares"])? > 0.9 * all.count(), true)?;
    for options in [["--name", "nobody"], ["--pid", "1"]] {
        let output = test.fresh("empty.json.gz");
        let call = test.nyquist(&["import", "-s", "-o"]).path(&output).args(&options).path(&recording);
        let finished = call.run()?;
        expect_eq("the status of an import of nothing", finished.code(), 1)?;
        let text = format!("{} leaves nothing", options[0]);
        expect_contains("stderr", &finished.stderr, &text)?;
        expect(!output.exists(), "an empty profile was saved")?;
    }
    let (early, late) = (count(&["--time-range", "-100ms"])?, count(&["--time-range", "100ms-"])?);
    expect_eq("samples early and late", early + late, all.count())?;
    expect(early > 0.0 && late > 0.0, format_args!("{early} early, {late} late"))
}

fn cut(test: &Context<'_>) -> Verdict {
    let recording = perf_record(test, &["-F", "1999", "-g"], "whole.data")?;
    let bytes = std::fs::read(&recording)?;
    let cut = test.fresh("cut.data");
    std::fs::write(&cut, &bytes[..bytes.len() / 2])?;
    let (profile, printed) = import(test, &cut, &[])?;
    expect(profile.count() > 10.0, "no samples")?;
    expect_contains("what is said", &printed, "cut off at byte")
}

fn missing(test: &Context<'_>) -> Verdict {
    let program = test.fresh("gone");
    std::fs::copy(test.workload("shares"), &program)?;
    let recording = test.fresh("gone.data");
    let record = || {
        let call = test.program("perf").args(&["record", "-q", "-N", "-g", "-o"]).path(&recording);
        call.args(&["--"]).path(&program).args(&["300"]).run()
    };
    run_perf(record)?.succeeded()?;
    std::fs::remove_file(&program)?;
    let (profile, printed) = import(test, &recording, &[])?;
    expect(profile.count() > 10.0, "no samples")?;
    expect_contains("what is said", &printed, &program.display().to_string())
}

fn archive(test: &Context<'_>) -> Verdict {
    let (home, folder) = (test.fresh("home"), test.fresh("recorded"));
    std::fs::create_dir_all(&home)?;
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("packed");
    std::fs::copy(test.workload("shares"), &program)?;
    let recording = folder.join("perf.data");
    let home = home.display().to_string();
    let record = || {
        let call = test.program("perf").env("HOME", &home).args(&["record", "-q", "-g", "-o"]);
        call.path(&recording).args(&["--"]).path(&program).args(&["300"]).run()
    };
    run_perf(record)?.succeeded()?;
    let packed = test.program("perf").env("HOME", &home).args(&["archive"]).path(&recording).run()?;
    let tarball = folder.join("perf.data.tar.bz2");
    if !packed.status.success() || !tarball.is_file() {
        return skip("perf archive does not work here");
    }
    std::fs::remove_file(&program)?;
    let expect_named = |is_unpacked_now: bool| {
        let (profile, printed) = import(test, &recording, &[])?;
        expect_eq("that it is unpacked", printed.contains("Unpacking"), is_unpacked_now)?;
        expect(!printed.contains("packed (build id"), &printed)?;
        expect(profile.self_share("alpha") > 0.2, "no share of alpha")
    };
    expect_named(true)?;
    expect_named(false)?;
    // The archive is unpacked by hand in another folder, beside the recording.
    let elsewhere = test.fresh("elsewhere");
    std::fs::create_dir_all(&elsewhere)?;
    test.program("tar").args(&["xf"]).path(&tarball).args(&["-C"]).path(&elsewhere).run()?.succeeded()?;
    let recording = elsewhere.join("perf.data");
    std::fs::rename(folder.join("perf.data"), &recording)?;
    let (profile, printed) = import(test, &recording, &[])?;
    expect(!printed.contains("packed (build id") && !printed.contains("Unpacking"), &printed)?;
    expect(profile.self_share("alpha") > 0.2, "no share of alpha where it was unpacked by hand")
}

fn archive_as_profile(test: &Context<'_>) -> Verdict {
    let tarball = test.fresh("perf.data.tar.bz2");
    std::fs::write(&tarball, "BZh9")?;
    let finished = test.nyquist(&["load", "-n"]).path(&tarball).run()?;
    expect_eq("exit status", finished.code(), 1)?;
    expect_contains("the error", &finished.stderr, "it is an archive, and no profile")?;
    expect_contains("the hint", &finished.stderr, "put it into the folder of its perf.data")
}
