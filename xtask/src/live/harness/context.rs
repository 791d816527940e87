//! The context of a test: a folder of its own, the programs, and functions to run and to end them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::condition::{Applied, Condition, Placement};
use super::expect::Stop;
use super::plan::Plan;
use crate::sys;

/// An environment variable that marks every process of a test, so that none is left behind.
const MARK: &str = "NYQUIST_LIVE_TEST";

/// How long the test waits for the end of killed processes. It gives up on a process that the kernel never
/// ends.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(10);

/// What all tests share: copies of the programs that any user may run.
pub(crate) struct Shared {
    /// A folder outside of the repository, which a plain user may enter.
    folder: PathBuf,
    /// The program under test.
    nyquist: PathBuf,
    /// The number of tests so far, which numbers them.
    count: AtomicU32,
    /// Whether a test has failed, so that its files are kept.
    retained: AtomicBool,
}

impl Shared {
    pub(crate) fn prepare(plan: &Plan) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("nyquist-live-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        open_to_all(&folder)?;
        let nyquist = folder.join("nyquist");
        fs::copy(&plan.nyquist, &nyquist)
            .with_context(|| format!("cannot copy {}", plan.nyquist.display()))?;
        // `cargo nyquist` needs this program, which is installed beside nyquist.
        let cargo_nyquist = plan.nyquist.with_file_name("cargo-nyquist");
        fs::copy(&cargo_nyquist, folder.join("cargo-nyquist"))
            .with_context(|| format!("cannot copy {}", cargo_nyquist.display()))?;
        let copied =
            Command::new("cp").arg("-a").arg(&plan.workloads).arg(folder.join("workloads")).status()?;
        if !copied.success() {
            bail!("cannot copy the workloads to {}", folder.display());
        }
        open_to_all(&folder.join("workloads"))?;
        Ok(Self { folder, nyquist, count: AtomicU32::new(0), retained: AtomicBool::new(false) })
    }
}

impl Drop for Shared {
    /// Keeps the files if a test has failed, together with the programs that made them.
    fn drop(&mut self) {
        if !self.retained.load(Ordering::Relaxed) {
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

/// The context of one test.
pub(crate) struct Context<'a> {
    shared: &'a Shared,
    /// The test's own folder, which any user may write to.
    folder: PathBuf,
    /// The value of `MARK` in all processes of the test.
    mark: String,
    /// The commands that were run and how they ended, for the report of a failure.
    history: Mutex<Vec<String>>,
    /// The number of files so far, which numbers them.
    files: AtomicU32,
    /// How its programs run.
    placement: Placement,
}

impl<'a> Context<'a> {
    pub(crate) fn new(shared: &'a Shared, name: &str, condition: Condition) -> Result<Self, Stop> {
        let number = shared.count.fetch_add(1, Ordering::Relaxed);
        let placement = Placement::of(condition, number)?;
        let first = shared.folder.join(name.replace("::", "-"));
        // The folders of earlier attempts are kept.
        let again = (2..).map(|attempt| first.with_extension(format!("attempt-{attempt}")));
        let folder = std::iter::once(first.clone()).chain(again).find(|folder| !folder.exists());
        let folder = folder.context("a folder is free")?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
        let mark = format!("{}-{number}", std::process::id());
        Ok(Self { shared, folder, mark, history: Mutex::default(), files: AtomicU32::new(0), placement })
    }

    /// How the test's programs run.
    pub(crate) fn placement(&self) -> Placement {
        self.placement
    }

    /// Makes the condition of the test hold until the result is dropped.
    pub(crate) fn apply_condition(&self) -> Result<Applied> {
        self.placement.apply(|command| self.mark(command))
    }

    /// A path in the test's own folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A path in the test's own folder that was not used before.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}-{name}", self.files.fetch_add(1, Ordering::Relaxed)))
    }

    /// The path of a built workload.
    pub(crate) fn workload(&self, name: &str) -> PathBuf {
        self.shared.folder.join("workloads").join(name)
    }

    /// The path of the program under test, for command lines of other programs.
    pub(crate) fn nyquist_path(&self) -> &Path {
        &self.shared.nyquist
    }

    /// Marks a command as part of this test.
    pub(crate) fn mark(&self, command: &mut Command) {
        command.env(MARK, &self.mark);
    }

    /// Remembers the summary of a command for the report of a failure.
    pub(crate) fn remember(&self, summary: String) {
        if let Ok(mut history) = self.history.lock() {
            history.push(summary);
        }
    }

    /// The last commands that were run.
    pub(crate) fn history(&self) -> String {
        let history = self.history.lock().map(|history| history.clone()).unwrap_or_default();
        history[history.len().saturating_sub(4)..].concat()
    }

    /// Keeps the files of the test after the run.
    pub(crate) fn keep(&self) {
        self.shared.retained.store(true, Ordering::Relaxed);
    }

    /// A text in which variables replace the long folder names. Its last line sets them, so that its commands
    /// can be pasted.
    pub(crate) fn shortened(&self, text: &str) -> String {
        let own = self.folder.display().to_string();
        let all = self.shared.folder.display().to_string();
        let own_after_all = own.replacen(&all, "$ALL", 1);
        format!(
            "{}\nfiles kept: ALL={all} OWN={own_after_all}",
            text.replace(&own, "$OWN").replace(&all, "$ALL")
        )
    }

    /// Removes the files of a test that has not failed.
    pub(crate) fn clear(&self) {
        drop(fs::remove_dir_all(&self.folder));
    }

    /// The processes that the test has started, in any group or session.
    fn processes(&self) -> impl Iterator<Item = u32> + use<> {
        let expected = format!("{MARK}={}", self.mark).into_bytes();
        let is_own =
            move |pid: &u32| environment_of(*pid).split(|byte| *byte == 0).any(|own| own == expected);
        numbers_in("/proc").filter(is_own)
    }

    /// A process of the test that runs this program.
    pub(crate) fn process_of(&self, program: &Path) -> Option<u32> {
        let runs = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        self.processes().find(runs)
    }

    /// Kills all processes that the test has started, in any group or session, and waits for their end. The
    /// next test also searches for processes.
    pub(crate) fn kill_all(&self) {
        let late = Instant::now() + MAX_EXIT_WAIT;
        loop {
            let left: Vec<u32> = self.processes().collect();
            if left.is_empty() || Instant::now() > late {
                return;
            }
            // If a process has ended meanwhile, the signal fails, which does no harm.
            for pid in left {
                drop(sys::signal_process(pid, libc::SIGKILL));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The environment of a process. It is read from a thread that has not ended, because the first thread may
/// have.
fn environment_of(pid: u32) -> Vec<u8> {
    let of_thread = |tid| fs::read(format!("/proc/{pid}/task/{tid}/environ")).unwrap_or_default();
    let first = of_thread(pid);
    if !first.is_empty() {
        return first;
    }
    let others = numbers_in(&format!("/proc/{pid}/task"));
    others.map(of_thread).find(|environment| !environment.is_empty()).unwrap_or_default()
}

/// The numbers of the processes or threads in a folder of `/proc`.
fn numbers_in(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Lets any user enter and read a folder.
fn open_to_all(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot change the mode of {}", folder.display()))
}
