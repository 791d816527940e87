//! What recording costs programs that enter the kernel often: the CPU time of everything together, for root and
//! for a plain user, launched and attached to, beside perf and samply.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::attach::events;
use super::record::describe;
use super::recorder;
use super::spread::Spread;
use crate::live::harness::paranoid::Paranoid;
use crate::steps::{cargo, succeeds};
use crate::sys::{children_cpu_seconds, signal_process};
use crate::workloads;

/// Becomes a user without privileges.
const PLAIN_USER: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
/// Everything runs on one CPU, so that the kernel switches between the threads.
const ONE_CPU: [&str; 3] = ["taskset", "-c", "0"];
/// The setting that most machines have, at which plain users may not record the kernel.
const USUAL_PARANOID: i32 = 2;
/// How long a run may take.
const LIMIT: Duration = Duration::from_mins(2);
/// Attaching counts as complete when no event was opened for this time.
const SETTLED: Duration = Duration::from_millis(500);

/// The programs, and how often they are measured.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measures this program and does not build one
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// How often each is measured
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// How many percent of the usual steps each program makes
    #[arg(long, default_value_t = 100)]
    percent: u32,
}

/// A way to run a program.
struct Way {
    name: &'static str,
    is_plain: bool,
    attaches: bool,
    /// The recorder's words before the command or the pid; none without a recorder.
    args: Vec<OsString>,
    /// The setting of perf_event_paranoid.
    paranoid: i32,
}

/// The folder of a measurement, which every user may write to.
struct Overhead {
    folder: PathBuf,
    steps: PathBuf,
    /// The program of Python's queue.
    script: PathBuf,
}

/// Measures and prints the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => path.canonicalize().context("no such program")?,
        None => {
            ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
            crate::paths::target().join("release/nyquist")
        }
    };
    ensure!(crate::sys::is_root(), "measuring root and a plain user needs root: use sudo");
    let workloads = workloads::build_all()?;
    let folder = std::env::temp_dir().join(format!("nyquist-overhead-{}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777))?;
    let programs = [nyquist, workloads.join("steps"), crate::paths::root().join("workloads/queued.py")];
    let [nyquist, steps, script] = programs.map(|program| copied(&program, &folder));
    let (nyquist, steps, script) = (nyquist?, steps?, script?);
    describe(&recorder::all(&nyquist))?;
    let overhead = Overhead { folder: folder.clone(), steps, script };
    let measured = overhead.table(options, &ways(&nyquist, &folder));
    fs::remove_dir_all(&folder)?;
    measured
}

/// The programs are copied to where every user may execute them.
fn copied(program: &Path, folder: &Path) -> Result<PathBuf> {
    let to = folder.join(program.file_name().context("not a program")?);
    fs::copy(program, &to).with_context(|| format!("cannot copy {}", program.display()))?;
    Ok(to)
}

/// The kind of steps that are not made by the program of the others.
const PYTHON: &str = "python";

/// The kinds of steps, and how many of each take a few tenths of a second.
const STEPS: [(&str, &str, u32); 7] = [
    ("two threads with a queue", "queue", 60_000),
    ("Python's queue", PYTHON, 30_000),
    ("two threads with pipes", "pipe", 60_000),
    ("creating threads", "threads", 20_000),
    ("creating processes", "processes", 1000),
    ("mapping a file", "mappings", 100_000),
    ("reading a file", "reads", 500_000),
];

fn ways(nyquist: &Path, folder: &Path) -> Vec<Way> {
    let way = |name, is_plain, attaches, args: Vec<OsString>| Way {
        name,
        is_plain,
        attaches,
        args,
        paranoid: USUAL_PARANOID,
    };
    let recording = |is_plain: bool, options: &[&str]| {
        let output = if is_plain { "plain.json.gz" } else { "root.json.gz" };
        let mut args: Vec<OsString> = vec![nyquist.into()];
        args.extend(["record", "-q", "--save-only"].iter().chain(options).map(OsString::from));
        args.extend(["-o".into(), folder.join(output).into()]);
        args
    };
    let perf = |is_plain: bool, options: &[&str]| {
        let output = folder.join(if is_plain { "plain.data" } else { "root.data" });
        let args = ["perf", "record", "-q", "-F", "1000", "-e", "cpu-clock", "--call-graph", "dwarf"];
        let args = args.iter().chain(options).map(OsString::from);
        args.chain(["-o".into(), output.into()]).collect::<Vec<OsString>>()
    };
    let mut ways = vec![
        way("unrecorded", false, false, Vec::new()),
        way("nyquist, root", false, false, recording(false, &[])),
        way("nyquist, root, -p", false, true, recording(false, &[])),
        way("nyquist, root, --off-cpu", false, false, recording(false, &["--off-cpu"])),
        way("nyquist, plain user", true, false, recording(true, &[])),
        way("nyquist, plain user, -p", true, true, recording(true, &[])),
        way("nyquist, plain user, --off-cpu", true, false, recording(true, &["--off-cpu"])),
        way("nyquist, ptrace", true, false, recording(true, &["--backend", "ptrace"])),
        way("perf dwarf, root", false, false, perf(false, &[])),
        way("perf dwarf, root, -p", false, true, perf(false, &[])),
        way("perf dwarf, plain user", true, false, perf(true, &[])),
        way("perf dwarf, plain user, -p", true, true, perf(true, &[])),
        way("perf dwarf, plain user, --switch-events", true, false, perf(true, &["--switch-events"])),
    ];
    if let Some(samply) = recorder::samply() {
        ways.extend(samply_ways(&samply, folder));
    }
    ways
}

/// samply records nothing at the usual setting.
fn samply_ways(samply: &Path, folder: &Path) -> [Way; 2] {
    [("samply, root", false), ("samply, root, -p", true)].map(|(name, attaches)| {
        let mut args: Vec<OsString> = vec![samply.into()];
        args.extend(["record", "--save-only", "--no-open", "-r", "1000", "-o"].map(OsString::from));
        args.push(folder.join("samply.json.gz").into());
        Way { name, is_plain: false, attaches, args, paranoid: 1 }
    })
}

impl Overhead {
    fn table(&self, options: &Options, ways: &[Way]) -> Result<()> {
        println!("\n## Overhead: CPU seconds of the program and the recorder together, on one CPU\n");
        println!("| recorder | {} |", STEPS.map(|(name, ..)| name).join(" | "));
        println!("|---|{}", "---|".repeat(STEPS.len()));
        let mut cells = vec![vec![Vec::new(); STEPS.len()]; ways.len()];
        for round in 1..=options.rounds {
            for (at, (name, kind, count)) in STEPS.into_iter().enumerate() {
                let count = (u64::from(count) * u64::from(options.percent) / 100).max(1);
                for (way, row) in ways.iter().zip(&mut cells) {
                    eprintln!("round {round}, {name}: {}", way.name);
                    let paranoid = Paranoid::hold(way.paranoid)?;
                    row[at].push(self.measure(way, kind, count).map_err(|error| format!("{error:#}")));
                    drop(paranoid);
                }
            }
        }
        for (way, row) in ways.iter().zip(cells) {
            let row: Vec<String> = row.into_iter().map(cell).collect();
            println!("| {} | {} |", way.name, row.join(" | "));
        }
        Ok(())
    }

    /// The CPU time of a program and its recorder, in seconds.
    fn measure(&self, way: &Way, kind: &str, count: u64) -> Result<f64> {
        let before = children_cpu_seconds()?;
        let is_python = kind == PYTHON;
        let mut program: Vec<OsString> = if is_python {
            vec!["python3".into(), self.script.clone().into()]
        } else {
            vec![self.steps.clone().into()]
        };
        program.extend(way.attaches.then(|| "wait".into()));
        program.extend((!is_python).then(|| kind.into()));
        program.push(count.to_string().into());
        if way.attaches {
            self.attached(way, &program)?;
        } else {
            let separator = (!way.args.is_empty()).then(|| "--".into());
            let args: Vec<OsString> = way.args.iter().cloned().chain(separator).chain(program).collect();
            wait(&mut self.start(way, &args, Stdio::null())?)?;
        }
        Ok(children_cpu_seconds()? - before)
    }

    /// Attaches to a program before it begins.
    fn attached(&self, way: &Way, program: &[OsString]) -> Result<()> {
        let mut program = self.start(way, program, Stdio::piped())?;
        let pid = program.id().to_string();
        let args: Vec<OsString> = way.args.iter().cloned().chain(["-p".into(), pid.into()]).collect();
        let mut recorder = self.start(way, &args, Stdio::null())?;
        let ready = await_events(&mut recorder);
        // The end of its input lets it begin.
        drop(program.stdin.take());
        wait(&mut program)?;
        // Some recorders do not end with the process.
        if ready.is_ok() && recorder.try_wait()?.is_none() {
            sleep(Duration::from_millis(100));
            let _ = signal_process(recorder.id(), libc::SIGINT);
        }
        let ended = wait(&mut recorder);
        // perf ends by the signal that ended its recording.
        ready.and(ended.or_else(|error| if way.args[0] == "perf" { Ok(()) } else { Err(error) }))
    }

    fn start(&self, way: &Way, args: &[OsString], input: Stdio) -> Result<Child> {
        let user = PLAIN_USER.into_iter().filter(|_| way.is_plain);
        let args: Vec<OsString> =
            ONE_CPU.into_iter().chain(user).map(OsString::from).chain(args.iter().cloned()).collect();
        let log = fs::File::create(self.folder.join("errors.log"))?;
        let mut command = Command::new(&args[0]);
        command.args(&args[1..]).current_dir(&self.folder).stdin(input).stdout(Stdio::null()).stderr(log);
        command.spawn().with_context(|| format!("cannot start {}", args[0].to_string_lossy()))
    }
}

/// Waits until a recorder has opened all its events.
fn await_events(recorder: &mut Child) -> Result<()> {
    let (began, mut had, mut changed) = (Instant::now(), 0, Instant::now());
    loop {
        let has = events(recorder.id());
        if has != had {
            (had, changed) = (has, Instant::now());
        }
        if has > 0 && changed.elapsed() > SETTLED {
            return Ok(());
        }
        ensure!(recorder.try_wait()?.is_none(), "the recorder has ended early");
        ensure!(began.elapsed() < LIMIT, "not attached");
        sleep(Duration::from_millis(20));
    }
}

fn wait(child: &mut Child) -> Result<()> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "{status}");
            return Ok(());
        }
        if began.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("not done after {} s", LIMIT.as_secs());
        }
        sleep(Duration::from_millis(5));
    }
}

/// The median of all rounds, or why one has failed.
fn cell(rounds: Vec<Result<f64, String>>) -> String {
    match rounds.into_iter().collect::<Result<Vec<f64>, String>>() {
        Ok(seconds) => Spread::of(seconds).map_or_else(|| "–".to_owned(), |spread| format!("{spread:.2}")),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_failed_round_is_not_left_out() {
        assert_eq!(cell(vec![Ok(0.5), Ok(0.25), Ok(1.0)]), "0.50 (0.25–1.00)");
        assert_eq!(cell(vec![Ok(0.5), Err("ended with 1".into())]), "ended with 1");
    }
}
