//! Runs programs as a user would, with a user, a terminal and arguments, and returns their outcome.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

pub(crate) use super::condition::PLAIN_USER;
use super::context::Context;
use crate::sys;

/// How long a condition may take before that counts as a failure.
const PATIENCE: Duration = Duration::from_mins(2);

/// How long a process may run. No test takes nearly as long.
const MAX_RUN_TIME: Duration = Duration::from_mins(10);

/// A program with its arguments, before it is run.
pub(crate) struct Invocation<'a> {
    context: &'a Context<'a>,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    user: Option<u32>,
    terminal: bool,
    stdout: Option<PathBuf>,
}

impl Context<'_> {
    /// A call of nyquist.
    pub(crate) fn nyquist(&self, arguments: &[&str]) -> Invocation<'_> {
        Invocation::new(self, self.nyquist_path()).args(arguments)
    }

    /// A call of another program.
    pub(crate) fn program(&self, program: impl AsRef<Path>) -> Invocation<'_> {
        Invocation::new(self, program.as_ref())
    }
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(context: &'a Context<'a>, program: &Path) -> Self {
        let args = vec![program.display().to_string()];
        let user = context.placement().user;
        Self { context, args, environment: Vec::new(), user, terminal: false, stdout: None }
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&word| word.to_owned()));
        self
    }

    pub(crate) fn path(mut self, path: &Path) -> Self {
        self.args.push(path.display().to_string());
        self
    }

    /// Puts another program with its arguments in front: `taskset -c 1 nyquist ...`.
    pub(crate) fn under(mut self, args: &[&str]) -> Self {
        self.args.splice(0..0, args.iter().map(|&word| word.to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Runs as a user without any privilege. If the tests run without privileges, the user does not change.
    pub(crate) fn by_plain_user(mut self) -> Self {
        self.user = sys::is_root().then_some(PLAIN_USER);
        self
    }

    /// Runs on a terminal of its own.
    pub(crate) fn on_terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// Writes the standard output to this path. The file must exist, and is not truncated.
    pub(crate) fn stdout_to(mut self, path: &Path) -> Self {
        self.stdout = Some(path.to_owned());
        self
    }

    /// The command line, as it is typed into a shell.
    pub(crate) fn line(&self) -> String {
        self.args.join(" ")
    }

    /// Runs the program to its end.
    pub(crate) fn run(self) -> Result<Finished> {
        self.start()?.wait()
    }

    /// Starts the program.
    pub(crate) fn start(self) -> Result<Running<'a>> {
        let args = [&self.context.placement().prefix()[..], &self.args].concat();
        let line = args.join(" ");
        let (out, err) = (self.context.fresh("stdout"), self.context.fresh("stderr"));
        let mut command = Command::new(&args[0]);
        command.args(&args[1..]).current_dir(self.context.path(""));
        self.set_environment(&mut command);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let terminal = if self.terminal {
            Some(Terminal::give_to(&mut command)?)
        } else {
            let stdout = self.stdout.as_deref().map(|path| File::options().write(true).open(path));
            command.stdin(Stdio::null()).process_group(0);
            command.stdout(stdout.unwrap_or_else(|| File::create(&out))?).stderr(File::create(&err)?);
            None
        };
        let began = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {line}"))?;
        Ok(Running { context: self.context, line, child, began, out, err, terminal })
    }

    /// Removes environment variables that affect nyquist, unless the test sets them.
    fn set_environment(&self, command: &mut Command) {
        for name in [
            "SSH_CONNECTION",
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "BROWSER",
            "PROFILER_URL",
            "SUDO_UID",
            "SUDO_GID",
            "XDG_CACHE_HOME",
            "XDG_STATE_HOME",
            "DEBUGINFOD_URLS",
            "DEBUGINFOD_CACHE_PATH",
            "_NT_SYMBOL_PATH",
            "NYQUIST_NO_CACHE",
            "NYQUIST_MAX_MEMORY",
        ] {
            command.env_remove(name);
        }
        command.env("HOME", self.context.path("")).env("CARGO_TERM_COLOR", "never").env("NO_COLOR", "1");
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        self.context.mark(command);
    }
}

/// A running program.
pub(crate) struct Running<'a> {
    context: &'a Context<'a>,
    line: String,
    child: Child,
    began: Instant,
    out: PathBuf,
    err: PathBuf,
    terminal: Option<Terminal>,
}

impl Running<'_> {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to this process only, as `kill` does.
    pub(crate) fn signal(&self, signal: i32) -> Result<()> {
        sys::signal_process(self.child.id(), signal).with_context(|| format!("cannot signal {}", self.line))
    }

    /// Types Ctrl-C at its terminal, and waits until the terminal has shown it. The terminal shows it after
    /// sending the signal.
    pub(crate) fn press_ctrl_c(&mut self) -> Result<()> {
        let terminal = self.terminal.as_mut().context("it has no terminal")?;
        let echoes = |screen: &Screen| screen.text().matches("^C").count();
        let (screen, before) = (terminal.screen.clone(), echoes(&terminal.screen));
        terminal.person.write_all(b"\x03").context("cannot type at the terminal")?;
        self.wait_until("the terminal to show ^C", || echoes(&screen) > before)
    }

    /// Types a line at its terminal. The terminal keeps the line until the program reads it.
    pub(crate) fn type_line(&mut self, line: &str) -> Result<()> {
        let terminal = self.terminal.as_mut().context("it has no terminal")?;
        terminal.person.write_all(format!("{line}\n").as_bytes()).context("cannot type at the terminal")
    }

    /// Types keys at its terminal.
    pub(crate) fn press(&mut self, keys: &str) -> Result<()> {
        let terminal = self.terminal.as_mut().context("it has no terminal")?;
        terminal.person.write_all(keys.as_bytes()).context("cannot type at the terminal")
    }

    /// Its terminal's output so far.
    pub(crate) fn shown_so_far(&self) -> String {
        self.terminal.as_ref().map(|terminal| terminal.screen.text()).unwrap_or_default()
    }

    /// Waits until a text is on the screen of its terminal.
    pub(crate) fn wait_until_on_screen(&self, text: &str) -> Result<()> {
        let screen = || super::emulator::screen(&self.shown_so_far()).join("\n");
        let waited = self.wait_until(&format!("{text:?} on the screen"), || screen().contains(text));
        waited.with_context(|| format!("the screen shows:\n{}", screen()))
    }

    /// The settings of its terminal, for comparisons.
    pub(crate) fn terminal_settings(&self) -> String {
        let settings = self.terminal.as_ref().map(|terminal| sys::terminal_settings(&terminal.person));
        format!("{settings:?}")
    }

    /// The settings before the program was started.
    pub(crate) fn terminal_settings_before(&self) -> String {
        format!("{:?}", self.terminal.as_ref().map(|terminal| &terminal.settings_before))
    }

    /// Its standard error so far.
    pub(crate) fn stderr_so_far(&self) -> String {
        read_lossy(&self.err)
    }

    /// Its standard output so far.
    pub(crate) fn stdout_so_far(&self) -> String {
        read_lossy(&self.out)
    }

    /// Waits until a file exists.
    pub(crate) fn wait_for_file(&self, path: &Path) -> Result<()> {
        self.wait_until(&format!("{} to appear", path.display()), || path.exists())
    }

    /// Waits until its sampling events are open, which means that a recorder has attached itself.
    pub(crate) fn wait_until_sampling(&self) -> Result<()> {
        let folder = format!("/proc/{}/fd", self.child.id());
        self.wait_until("perf events to be open", || {
            let descriptors = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
            targets.any(|target| target.to_string_lossy().contains("[perf_event]"))
        })
    }

    /// Waits until it prints that it samples. From then on, nothing is missed.
    pub(crate) fn wait_until_recording(&self) -> Result<()> {
        let says = |text: &str| text.contains("Sampling");
        self.wait_until("the recording to begin", || {
            says(&self.stderr_so_far()) || says(&self.shown_so_far())
        })
    }

    /// Waits until a condition holds. It is an error if [`PATIENCE`] or the process ends first.
    pub(crate) fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
        /// What it has written last is read by other threads, which may come later.
        const TO_BE_READ: Duration = Duration::from_secs(2);
        let mut end = Instant::now() + PATIENCE;
        let mut has_ended = false;
        while !holds() {
            if !has_ended && self.has_ended() {
                (has_ended, end) = (true, Instant::now() + TO_BE_READ);
            }
            if has_ended && Instant::now() > end {
                bail!("{} ended before {what}; stderr: {}", self.line, self.stderr_so_far());
            }
            if Instant::now() > end {
                bail!("waited in vain for {what}: {}", self.line);
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Whether all of its threads have ended. The first thread may end before the others.
    fn has_ended(&self) -> bool {
        let folder = format!("/proc/{}", self.child.id());
        let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
        let first_has_ended = stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
        first_has_ended && fs::read_dir(format!("{folder}/task")).map_or(0, Iterator::count) <= 1
    }

    /// Waits for its end. If it runs longer than [`MAX_RUN_TIME`], it is killed, and that is an error.
    pub(crate) fn wait(mut self) -> Result<Finished> {
        let status = wait_within(&mut self.child, MAX_RUN_TIME);
        let status = status.with_context(|| format!("cannot wait for {}", self.line))?;
        let took = self.began.elapsed();
        let (stdout, stderr) = match self.terminal {
            Some(terminal) => (Vec::new(), terminal.shown()),
            None => (fs::read(&self.out).unwrap_or_default(), read_lossy(&self.err)),
        };
        let finished = Finished { line: self.line, status, stdout, stderr, took };
        self.context.remember(finished.summary());
        Ok(finished)
    }
}

/// Waits for a process, and kills it if it takes longer than this.
fn wait_within(child: &mut Child, longest: Duration) -> Result<ExitStatus> {
    const SIGKILL: i32 = 9;
    let pid = child.id();
    thread::scope(|scope| {
        let (running, has_ended) = mpsc::channel::<()>();
        let watch = scope.spawn(move || {
            let is_late = has_ended.recv_timeout(longest) == Err(RecvTimeoutError::Timeout);
            if is_late {
                let _ = sys::signal_process(pid, SIGKILL);
            }
            is_late
        });
        let status = child.wait()?;
        drop(running);
        let was_killed = watch.join().unwrap_or(false);
        ensure!(!was_killed, "it ran for more than {} s", longest.as_secs());
        Ok(status)
    })
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The user's side of a terminal.
struct Terminal {
    person: File,
    screen: Screen,
    reader: JoinHandle<()>,
    settings_before: io::Result<[u32; 4]>,
}

/// A terminal's output so far.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn show(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Terminal {
    /// Gives a command a new terminal.
    fn give_to(command: &mut Command) -> Result<Self> {
        let (person, program) = sys::open_terminal().context("cannot open a terminal")?;
        command.stdin(program.try_clone()?).stdout(program.try_clone()?).stderr(program);
        sys::control_terminal(command);
        let mut output = person.try_clone()?;
        let screen = Screen::default();
        let shown = screen.clone();
        let reader = thread::spawn(move || {
            let mut part = [0; 4096];
            // When the last program closes the terminal, this read fails with EIO.
            while let Ok(count @ 1..) = output.read(&mut part) {
                shown.show(&part[..count]);
            }
        });
        let settings_before = sys::terminal_settings(&person);
        Ok(Self { person, screen, reader, settings_before })
    }

    /// All output, which is complete when every program has closed the terminal.
    fn shown(self) -> String {
        drop(self.reader.join());
        self.screen.text()
    }
}

/// The outcome of a program.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// The command line.
    pub line: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error; on a terminal, all of its output.
    pub stderr: String,
    /// How long it ran.
    pub took: Duration,
}

impl Finished {
    /// The exit code, as a shell shows it: 128 + N for a signal.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
    }

    /// The standard output as text.
    pub(crate) fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Fails unless the exit code is 0.
    pub(crate) fn succeeded(self) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        bail!("{} ended with {}", self.line, self.status)
    }

    /// The command line, the status and the end of the standard error.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("$ {}\n  {} after {:.2} s\n", self.line, self.status, self.took.as_secs_f64());
        let lines: Vec<&str> = self.stderr.lines().collect();
        for line in &lines[lines.len().saturating_sub(15)..] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  | {}", line.trim_end());
        }
        text
    }
}
