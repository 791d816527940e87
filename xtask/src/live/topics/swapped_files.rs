//! Files that their owner swaps while nyquist, as root, uses them: what was parsed is what the kernel gets. Programs
//! say themselves when their code changes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::context::Context;
use super::events::need_probes;
use super::expect::{Verdict, expect, expect_contains, expect_eq};
use super::invocation::{PLAIN_USER, Running};
use super::running_targets::end;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_probe_is_in_the_file_that_was_parsed", probe_of_parsed_file),
    Test::new("a_listed_probe_is_in_the_parsed_file", listed_probe),
    Test::new("a_pipe_in_place_of_a_file_blocks_nothing", pipe_swapped_in),
    Test::new("a_probe_is_never_inside_an_instruction", inside_instruction).quick(),
];

/// A program of the plain user, and one of root that runs, too.
struct Pair<'a> {
    test: &'a Context<'a>,
    app: PathBuf,
    /// Another name of the plain user's program.
    retained: PathBuf,
    of_root: PathBuf,
}

impl<'a> Pair<'a> {
    fn make(test: &'a Context<'a>) -> anyhow::Result<Self> {
        let (theirs, roots) = (test.path("theirs"), test.path("roots"));
        for folder in [&theirs, &roots] {
            fs::create_dir(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        }
        let (retained, of_root) = (theirs.join("kept"), roots.join("other"));
        for path in [&retained, &of_root] {
            fs::copy(test.workload("swapped"), path)?;
        }
        for path in [&theirs, &retained] {
            lchown(path, Some(PLAIN_USER), Some(PLAIN_USER))?;
        }
        Ok(Self { test, app: theirs.join("app"), retained, of_root })
    }

    /// Starts both programs.
    fn start(&self) -> anyhow::Result<[Running<'a>; 2]> {
        let theirs = self.test.program(&self.retained).args(&["call"]).by_plain_user().start()?;
        let roots = self.test.program(&self.of_root).args(&["call"]).start()?;
        for running in [&theirs, &roots] {
            says(running, "ready")?;
        }
        Ok([theirs, roots])
    }

    /// Lets the plain user wait until somebody opens `app`, and give another file that name.
    fn swap_for(&self, other: &Path) -> anyhow::Result<Running<'a>> {
        let _ = fs::remove_file(&self.app);
        fs::hard_link(&self.retained, &self.app)?;
        let swapper = self.test.program(&self.retained).args(&["swap"]).path(&self.app).path(other);
        let swapper = swapper.by_plain_user().start()?;
        says(&swapper, "ready")?;
        Ok(swapper)
    }

    /// The same with a link to root's program.
    fn swap_for_link(&self) -> anyhow::Result<Running<'a>> {
        let link = self.app.with_file_name("link");
        symlink(&self.of_root, &link)?;
        lchown(&link, Some(PLAIN_USER), Some(PLAIN_USER))?;
        self.swap_for(&link)
    }
}

fn says(running: &Running<'_>, word: &str) -> anyhow::Result<()> {
    running.wait_until(&format!("it says {word}"), || running.stdout_so_far().contains(word))
}

/// Checks that a call of nyquist changes only the plain user's program.
fn expect_own(pair: &Pair<'_>, options: &[&str], args: &[&str]) -> Verdict {
    let [theirs, roots] = pair.start()?;
    let swapper = pair.swap_for_link()?;
    let pid = theirs.pid().to_string();
    let saved = pair.test.fresh("profile.json.gz").display().to_string();
    let fill = |word: &&str| word.replace("PID", &pid).replace("OUT", &saved);
    let options: Vec<_> = options.iter().map(fill).collect();
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let call = pair.test.nyquist(&options);
    let line = call.line();
    call.run()?.succeeded()?;
    expect_contains(&line, &swapper.wait()?.stdout_text(), "swapped")?;
    for word in args {
        expect(
            theirs.stdout_so_far().contains(word),
            format_args!("{line}: the program that was named did not say {word}"),
        )?;
    }
    expect_eq(&line, roots.stdout_so_far(), "ready\n".to_owned())?;
    end(theirs)?;
    end(roots)
}

fn probe_of_parsed_file(test: &Context<'_>) -> Verdict {
    need_probes()?;
    let pair = Pair::make(test)?;
    let function = format!("{}:called_by_name", pair.app.display());
    let probe = format!("{}:here:passed", pair.app.display());
    let calls: [(&[&str], &[&str]); 7] = [
        (&["record", "-s", "-a", "-d", "0.5", "-o", "OUT", "-e", &function], &["changed"]),
        (&["record", "-s", "-p", "PID", "-d", "0.5", "-o", "OUT", "-e", &function], &["changed"]),
        (&["record", "-s", "-o", "OUT", "-e", &function, "--", "sleep", "0.5"], &[]),
        (&["record", "-s", "-a", "-d", "0.5", "-o", "OUT", "-e", &probe], &["changed", "enabled"]),
        (&["stat", "-a", "-d", "0.5", "-e", &function], &["changed"]),
        (&["stat", "-p", "PID", "-d", "0.5", "-e", &function], &["changed"]),
        (&["stat", "-a", "-d", "0.5", "-e", &probe], &["changed", "enabled"]),
    ];
    for (options, args) in calls {
        expect_own(&pair, options, args)?;
    }
    Ok(())
}

fn listed_probe(test: &Context<'_>) -> Verdict {
    need_probes()?;
    let pair = Pair::make(test)?;
    let app = pair.app.display().to_string();
    // The probe is opened once, to see whether it may be counted, for too short a time to be noticed.
    expect_own(&pair, &["list", &app], &[])?;
    fs::remove_file(&pair.app)?;
    fs::hard_link(&pair.retained, &pair.app)?;
    let listed = test.nyquist(&["list", &app]).run()?.succeeded()?.stdout_text();
    expect_contains("the list", &listed, &format!("{app}:here:passed"))
}

fn pipe_swapped_in(test: &Context<'_>) -> Verdict {
    need_probes()?;
    let pair = Pair::make(test)?;
    let pipe = pair.app.with_file_name("pipe");
    let probe = format!("{}:called_by_name", pair.app.display());
    for command in ["record", "stat"] {
        expect(Command::new("mkfifo").arg(&pipe).status()?.success(), "mkfifo failed")?;
        lchown(&pipe, Some(PLAIN_USER), Some(PLAIN_USER))?;
        let swapper = pair.swap_for(&pipe)?;
        let saved = test.fresh("profile.json.gz");
        let call = test.nyquist(&[command, "-e", &probe]);
        let call = if command == "record" { call.args(&["-s", "-o"]).path(&saved) } else { call };
        call.args(&["--", "true"]).run()?.succeeded()?;
        expect_contains("the user", &swapper.wait()?.stdout_text(), "swapped")?;
        // Now the pipe is there from the beginning.
        let finished = test.nyquist(&["stat", "-e", &probe, "true"]).run()?;
        expect_eq("the status", finished.code(), 2)?;
        expect_contains("stderr", &finished.stderr, "there is no such file")?;
    }
    Ok(())
}

/// The starts of a function's instructions, from its beginning, by objdump.
fn instructions(test: &Context<'_>, program: &Path, function: &str) -> anyhow::Result<Vec<u64>> {
    let call = test.program("objdump").args(&["-d", &format!("--disassemble={function}")]).path(program);
    let listing = call.run()?.succeeded()?.stdout_text();
    let address = |line: &str| {
        let (address, code) = line.split_once(":\t")?;
        u64::from_str_radix(address.trim(), 16).ok().filter(|_| !code.is_empty())
    };
    let found: Vec<_> = listing.lines().filter_map(address).collect();
    let first = found.first().copied().unwrap_or_default();
    Ok(found.iter().map(|address| address - first).collect())
}

fn inside_instruction(test: &Context<'_>) -> Verdict {
    need_probes()?;
    let program = test.workload("occurs");
    let starts = instructions(test, &program, "called_by_name")?;
    expect(starts.len() > 2, format_args!("objdump shows {starts:?}"))?;
    let path = program.display().to_string();
    for into in 0..=starts[starts.len() - 1] {
        let probe = format!("{path}:called_by_name+{into}");
        let finished = test.nyquist(&["stat", "-e", &probe, &path, "5", "1", "1"]).run()?;
        if starts.contains(&into) {
            finished.succeeded()?;
            continue;
        }
        expect_eq(&probe, finished.code(), 2)?;
        for part in ["it is inside an instruction", "hint: the nearest instructions begin at called_by_name"]
        {
            expect_contains(&probe, &finished.stderr, part)?;
        }
    }
    let finished = test.nyquist(&["stat", "-e", &format!("{path}:called_by_name+1%return"), "true"]).run()?;
    expect_contains("stderr", &finished.stderr, "a return has no offset")
}
