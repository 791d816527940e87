//! `cargo xtask test`: runs every check in order, and prints all skips and the counts at the end.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::rotation::Turn;
use crate::steps::{cargo, counting_step, step, succeeds, succeeds_seen};
use crate::tally::{AllowedSkips, Tally};
use crate::{
    builds, dist, docs, fuzz, instructions, live, oracle, packages, packaging, platforms, workloads,
};

/// The options of the run.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Options {
    /// Only format, lints, unit tests and the short live recordings
    #[arg(long)]
    quick: bool,
    /// Everything: also what runs in turns, and tests of things that may change any day
    #[arg(long, conflicts_with = "quick")]
    all: bool,
    /// The turn of the checks that runs take turns at, in place of the commit's
    #[arg(long, value_name = "1-5", conflicts_with_all = ["quick", "all"])]
    turn: Option<usize>,
    /// Fails on a skip that is not in xtask/skips.txt, as CI does (CI=true)
    #[arg(long)]
    deny_skips: bool,
    /// Tests this program and does not build one
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// Installs the packages that the tests need and that are missing, as root on Debian
    #[arg(long)]
    install: bool,
    /// Lists the live tests and ends
    #[arg(long)]
    list: bool,
    /// Only the steps and live tests whose name contains one of these
    filter: Vec<String>,
}

impl Options {
    fn wants(&self, step: &str, left_out: &[&str]) -> bool {
        let is_named = self.filter.iter().any(|word| step.contains(word.as_str()));
        is_named || (self.filter.is_empty() && !left_out.contains(&step))
    }

    /// The steps and the topics of live tests that run.
    fn users(&self, left_out: &[&str]) -> Vec<&'static str> {
        let runs = |name, in_quick| self.wants(name, left_out) && (in_quick || !self.quick);
        let steps = STEPS.iter().filter(|(name, in_quick, _)| runs(name, *in_quick)).map(|(name, ..)| *name);
        steps.chain(live::topics(&self.filter, self.quick, left_out)).collect()
    }

    /// Whether the live tests are of the program as it is shipped.
    fn tests_shipped(&self, left_out: &[&str]) -> bool {
        self.all || (self.filter.is_empty() && !self.quick && !left_out.contains(&"shipped"))
    }

    /// The steps and topics that other turns run. Prints them if there are any.
    fn left_out(&self) -> Result<Vec<&'static str>> {
        if self.all || self.quick || !self.filter.is_empty() {
            return Ok(Vec::new());
        }
        let turn = match self.turn {
            Some(number) => Turn::numbered(number).context("--turn: there is no such turn")?,
            None => Turn::of_commit(),
        };
        println!("{}", turn.description());
        Ok(turn.left_out())
    }
}

/// Runs the checks. Returns whether none failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if options.list {
        live::list();
        return Ok(true);
    }
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let allowed = AllowedSkips::read()?;
    let mut tally = Tally::default();
    let left_out = options.left_out()?;
    packages::set_installing(options.install);
    packages::prepare(&options.users(&left_out))?;
    for (name, in_quick, check) in STEPS {
        if options.wants(name, &left_out) && (*in_quick || !options.quick) {
            step(&mut tally, name, |tally| check(tally, ci));
        }
    }
    if live::requested(&options.filter) {
        counting_step(&mut tally, "live", |tally| run_live(options, left_out.clone(), tally));
    }
    if options.wants("commands", &left_out) && !options.quick {
        step(&mut tally, "commands", docs::run_commands);
    }
    if ci || options.deny_skips {
        tally.deny_skips(&allowed);
    }
    println!();
    Ok(tally.print())
}

type Check = fn(&mut Tally, bool) -> Result<bool>;

/// The steps in order: the name, whether `--quick` runs it, and its function, whose argument says whether
/// this is CI.
const STEPS: &[(&str, bool, Check)] = &[
    ("format", true, |_, _| succeeds(cargo(&["fmt", "--all", "--check"]))),
    ("lints", true, |_, _| lints()),
    ("unit", true, |tally, _| unit_tests(tally)),
    ("schema", false, |_, _| {
        succeeds(cargo(&["test", "--quiet", "-p", "nyquist-analysis", "--features", "schema"]))
    }),
    ("docs", false, |_, _| documentation()),
    ("package", false, |_, ci| packaging::run(ci)),
    ("release", false, |tally, _| dist::check_packaging(tally)),
    ("oracle", false, |tally, _| oracle::run(tally)),
    ("instructions", false, |tally, _| instructions::run(tally)),
    ("fuzz", false, |_, _| fuzz::check()),
    ("platforms-windows", false, |tally, _| platforms::windows(tally)),
    ("windows-lints", false, |tally, _| platforms::windows_lints(tally)),
    ("macos-lints", false, |tally, _| platforms::macos_lints(tally)),
    ("platforms-macos", false, |tally, _| platforms::macos(tally)),
];

/// Whether there is a step of this name.
#[cfg(test)]
pub(crate) fn is_step(name: &str) -> bool {
    STEPS.iter().any(|(step, ..)| *step == name)
}

/// The optional features of `nyquist-symbols`, and none of them.
const FEATURES_OF_SYMBOLS: [&str; 6] = [
    "--features=",
    "--features=disassembly",
    "--features=kernel",
    "--features=pdb",
    "--features=source-files",
    "--features=swift",
];

/// Whether a check passes for each feature without the others.
fn each_alone(features: &[&str], check: impl Fn(&str) -> Result<bool>) -> Result<bool> {
    for feature in features {
        if !check(feature)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Lints everything, and what is built without optional features.
fn lints() -> Result<bool> {
    let clippy = |scope: &[&str]| {
        succeeds(cargo(&[&["clippy"], scope, &["--quiet", "--", "-D", "warnings"]].concat()))
    };
    Ok(clippy(&["--workspace", "--all-targets"])?
        && clippy(&["--package=nyquist-analysis", "--features=schema", "--all-targets"])?
        && each_alone(&FEATURES_OF_SYMBOLS, |features| {
            clippy(&["--package=nyquist-symbols", "--no-default-features", features])
        })?)
}

fn unit_tests(tally: &mut Tally) -> Result<bool> {
    succeeds_seen(cargo(&["test", "--workspace", "--no-fail-fast", "--quiet"]), |line| {
        if let Some(count) = ignored(line) {
            tally.skip("unit", format!("{count} tests are marked #[ignore]"));
        }
    })
}

/// The number of ignored tests in libtest's summary line, if there are any.
fn ignored(line: &str) -> Option<u32> {
    let (_, rest) = line.strip_prefix("test result:")?.split_once("failed; ")?;
    rest.split_once(" ignored")?.0.parse().ok().filter(|count| *count > 0)
}

fn documentation() -> Result<bool> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    succeeds(command)
}

fn run_live(options: &Options, left_out: Vec<&'static str>, tally: &mut Tally) -> Result<bool> {
    let nyquist = match &options.nyquist {
        Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?,
        None if options.tests_shipped(&left_out) => builds::release()?,
        None => builds::development()?,
    };
    let workloads = workloads::build_all()?;
    let (quick, all, filter) = (options.quick, options.all, options.filter.clone());
    live::run(&live::Plan { nyquist, workloads, quick, filter, left_out, all }, tally)
}

#[cfg(test)]
mod tests {
    use super::ignored;

    #[test]
    fn ignored_tests_are_seen_in_libtests_summary() {
        let line =
            "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(ignored(line), Some(2));
        assert_eq!(ignored(&line.replace("2 ignored", "0 ignored")), None);
        assert_eq!(ignored("running 5 tests"), None);
    }
}
