//! Starting, waiting for and signalling a process.
//!
//! Between fork and exec, the child of a program with threads may call only async-signal-safe functions
//! (signal-safety(7)). Everything it needs is prepared before, and it neither allocates nor locks.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use super::check;
use super::limits::Limit;

/// The interpreter of a script that does not name one, as for execvp(3) and every shell.
const SHELL: &CStr = c"/bin/sh";

/// The stack of the child's thread that calls exec.
const THREAD_STACK_BYTES: usize = 64 << 10;

/// Everything that the child needs, prepared before the fork.
pub(crate) struct LaunchPlan {
    /// The files to try, in this order.
    pub(crate) candidates: Vec<CString>,
    pub(crate) args: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) run_as: Option<UserIds>,
    pub(crate) descriptors: Option<Limit>,
    /// The descriptors for its standard input, output and error, if these differ from this process's. They
    /// must be above 2.
    pub(crate) streams: Option<[RawFd; 3]>,
}

/// The user that the child becomes.
pub(crate) struct UserIds {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

/// The two ends of a pipe.
struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

fn pipe() -> io::Result<Pipe> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors that the call writes.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel has just returned these descriptors, and nothing else uses them.
    unsafe { Ok(Pipe { reader: OwnedFd::from_raw_fd(ends[0]), writer: OwnedFd::from_raw_fd(ends[1]) }) }
}

/// A child that waits for permission to call exec.
#[derive(Debug)]
pub(crate) struct WaitingChild {
    pub(crate) pid: u32,
    go: File,
    failure: File,
}

/// The step that failed before the child became the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Credentials,
    Exec,
}

/// Forks a child that waits.
pub(crate) fn fork(plan: &LaunchPlan) -> io::Result<WaitingChild> {
    let (go, failure) = (pipe()?, pipe()?);
    let args = pointers(&plan.args);
    let env = pointers(&plan.env);
    let mut script = script_arguments(&args);
    let mut stack = vec![0; THREAD_STACK_BYTES];
    let blocked = block_all_signals()?;
    // SAFETY: the child calls only `child`, which uses only async-signal-safe functions and never returns.
    let pid = unsafe { libc::fork() };
    let error = io::Error::last_os_error();
    if pid == 0 {
        let failure = failure.writer.as_raw_fd();
        let state = ChildState { plan, args: &args, script: &mut script, env: &env, failure };
        // SAFETY: this is the child of a fork, its arrays of pointers end in null and point to live strings,
        // and the descriptors are the open ends of its pipes.
        unsafe { child(state, [go.reader.as_raw_fd(), go.writer.as_raw_fd()], &mut stack) }
    }
    set_signal_mask(&blocked);
    if pid < 0 {
        return Err(error);
    }
    Ok(WaitingChild { pid: pid as u32, go: File::from(go.writer), failure: File::from(failure.reader) })
}

/// The thread of the child that calls exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExecBy {
    /// Its only thread.
    FirstThread = 1,
    /// A thread that the first one creates, and which takes over its number.
    NewThread = 2,
}

impl WaitingChild {
    /// Lets the child call exec, and waits until it has done so; `Err` with the inner value if it failed.
    pub(crate) fn start(mut self, by: ExecBy) -> io::Result<Result<(), (Stage, io::Error)>> {
        // A child that was killed meanwhile has closed its end of the pipe. A wait for it returns how it
        // ended.
        if let Err(error) = self.go.write_all(&[by as u8])
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(error);
        }
        let mut answer = Vec::with_capacity(8);
        self.failure.read_to_end(&mut answer)?;
        let Some(([stage, ..], [a, b, c, d])) = answer
            .split_first_chunk::<4>()
            .and_then(|(stage, rest)| Some((*stage, *rest.first_chunk::<4>()?)))
        else {
            return Ok(Ok(()));
        };
        let stage = if stage == 0 { Stage::Credentials } else { Stage::Exec };
        Ok(Err((stage, io::Error::from_raw_os_error(i32::from_ne_bytes([a, b, c, d])))))
    }
}

/// The arguments of the shell for a script. The second is the script's path, which is still empty.
fn script_arguments(args: &[*const libc::c_char]) -> Vec<*const libc::c_char> {
    [SHELL.as_ptr(), ptr::null()].into_iter().chain(args.iter().skip(1).copied()).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn block_all_signals() -> io::Result<libc::sigset_t> {
    // SAFETY: a sigset_t is plain bits, for which zeros are valid; both sets outlive the calls.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
            0 => Ok(before),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

fn set_signal_mask(mask: &libc::sigset_t) {
    // SAFETY: `mask` is a set that the kernel returned.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// What the child's code needs from the fork on. The arrays of pointers end in null.
struct ChildState<'a> {
    plan: &'a LaunchPlan,
    args: &'a [*const libc::c_char],
    script: &'a mut [*const libc::c_char],
    env: &'a [*const libc::c_char],
    /// The pipe that reports a failure.
    failure: RawFd,
}

/// The child's code from fork to exec.
///
/// # Safety
/// To be called in the child of a fork only. `stack` must be unused memory.
unsafe fn child(mut state: ChildState<'_>, [go_reader, go_writer]: [RawFd; 2], stack: &mut [u8]) -> ! {
    // SAFETY: the functions called are async-signal-safe. The new thread has a stack of its own, and all that
    // it uses lives on, because this thread waits until exec ends it.
    unsafe {
        libc::close(go_writer);
        restore_signals();
        if wait_for_leave(go_reader) == ExecBy::NewThread as u8 {
            let flags = libc::CLONE_VM
                | libc::CLONE_FS
                | libc::CLONE_FILES
                | libc::CLONE_SIGHAND
                | libc::CLONE_THREAD
                | libc::CLONE_SYSVSEM;
            let top = stack.as_mut_ptr_range().end.map_addr(|end| end & !0xf).cast();
            if libc::clone(become_command_on_thread, top, flags, (&raw mut state).cast()) > 0 {
                loop {
                    libc::pause();
                }
            }
        }
        become_command(&mut state)
    }
}

/// The code of the thread that calls exec for the first one.
extern "C" fn become_command_on_thread(state: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `child` passes a state that outlives this thread, and does not use it any more.
    unsafe { become_command(&mut *state.cast()) }
}

/// Makes this process the command.
///
/// # Safety
/// To be called in the child of a fork only.
unsafe fn become_command(state: &mut ChildState<'_>) -> ! {
    let ChildState { plan, args, script, env, failure } = state;
    // SAFETY: the functions called are async-signal-safe, and the arrays end in null.
    unsafe {
        if let Some(limit) = plan.descriptors {
            let limit = libc::rlimit { rlim_cur: limit.soft, rlim_max: limit.hard };
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
        for (stream, descriptor) in (0..).zip(plan.streams.into_iter().flatten()) {
            if libc::dup2(descriptor, stream) < 0 {
                fail(*failure, 1, *libc::__errno_location());
            }
        }
        if let Some(ids) = &plan.run_as
            && become_user(ids) < 0
        {
            fail(*failure, 0, *libc::__errno_location());
        }
        fail(*failure, 1, exec(&plan.candidates, args, script, env))
    }
}

/// Restores the default action of every signal, except those that were ignored before this program began
/// (nohup's). Rust's runtime itself ignores only SIGPIPE. No handler of the parent may run in the child,
/// because the child shares its descriptors.
///
/// # Safety
/// To be called in the child of a fork only.
unsafe fn restore_signals() {
    // SAFETY: zeros are a valid sigaction and sigset_t; both calls are async-signal-safe. Numbers that are
    // not signals, or whose action cannot be changed, return an error that needs no handling.
    unsafe {
        for number in 1..=64 {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(number, ptr::null(), &raw mut action) == 0;
            if known && (action.sa_sigaction != libc::SIG_IGN || number == libc::SIGPIPE) {
                action = std::mem::zeroed();
                libc::sigaction(number, &raw const action, ptr::null_mut());
            }
        }
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Waits for the parent's byte and returns it. If the parent has closed the pipe or died, the child ends.
///
/// # Safety
/// To be called in the child of a fork only.
unsafe fn wait_for_leave(go: RawFd) -> u8 {
    let mut byte = 0_u8;
    // SAFETY: `byte` has room for the one byte; read, errno and _exit are async-signal-safe.
    unsafe {
        loop {
            match libc::read(go, (&raw mut byte).cast(), 1) {
                1 => return byte,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(127),
            }
        }
    }
}

/// Changes to another user; returns -1 on failure. The raw calls change only the calling thread, and the
/// child has only one. libc's wrappers would search for threads that do not exist in it.
///
/// # Safety
/// To be called in the child of a fork only.
unsafe fn become_user(ids: &UserIds) -> libc::c_long {
    // SAFETY: the pointer and the count are those of the live list of groups.
    unsafe {
        if libc::syscall(libc::SYS_setgroups, ids.groups.len(), ids.groups.as_ptr()) < 0 {
            return -1;
        }
        if libc::syscall(libc::SYS_setresgid, ids.gid, ids.gid, ids.gid) < 0 {
            return -1;
        }
        libc::syscall(libc::SYS_setresuid, ids.uid, ids.uid, ids.uid)
    }
}

/// Tries the candidates in turn, as a shell searches PATH: it remembers a file that exists but may not be
/// executed, and the search continues. Returns the errno only if none could be executed.
///
/// # Safety
/// To be called in the child of a fork only. `args`, `script` and `env` must end in null.
unsafe fn exec(
    candidates: &[CString],
    args: &[*const libc::c_char],
    script: &mut [*const libc::c_char],
    env: &[*const libc::c_char],
) -> libc::c_int {
    let mut found = libc::ENOENT;
    for candidate in candidates {
        // SAFETY: the strings and the arrays are live and end as execve requires.
        let mut errno = unsafe {
            libc::execve(candidate.as_ptr(), args.as_ptr(), env.as_ptr());
            *libc::__errno_location()
        };
        // SAFETY: this is the child of a fork.
        let is_script = errno == libc::ENOEXEC && unsafe { is_text(candidate) };
        if is_script && let Some(place) = script.get_mut(1) {
            *place = candidate.as_ptr();
            // SAFETY: as above, and the script's path is filled in.
            errno = unsafe {
                libc::execve(SHELL.as_ptr(), script.as_ptr(), env.as_ptr());
                *libc::__errno_location()
            };
        }
        match errno {
            libc::ENOENT => {}
            libc::ENOTDIR if candidates.len() > 1 => {}
            libc::EACCES => found = errno,
            _ => return errno,
        }
    }
    found
}

/// Whether a file begins as text (without a zero byte), and not as a program for another machine.
///
/// # Safety
/// To be called in the child of a fork only.
unsafe fn is_text(path: &CStr) -> bool {
    let mut bytes = [0_u8; 80];
    // SAFETY: the path ends in a zero and `bytes` has room for what is read; open, read and close are
    // async-signal-safe.
    let len = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let len = libc::read(file, bytes.as_mut_ptr().cast(), bytes.len());
        libc::close(file);
        len
    };
    usize::try_from(len).ok().and_then(|len| bytes.get(..len)).is_some_and(|bytes| !bytes.contains(&0))
}

/// Reports to the parent what failed, and exits.
///
/// # Safety
/// To be called in the child of a fork only.
unsafe fn fail(pipe: RawFd, stage: u8, errno: libc::c_int) -> ! {
    let [a, b, c, d] = errno.to_ne_bytes();
    let message = [stage, 0, 0, 0, a, b, c, d];
    // SAFETY: the pointer and the length are those of `message`; write and _exit are async-signal-safe.
    unsafe {
        libc::write(pipe, message.as_ptr().cast(), message.len());
        libc::_exit(127)
    }
}

/// The process group of a process, which receives the signals of the terminal; `None` if there is no such
/// process.
pub(crate) fn group_of(pid: u32) -> Option<i32> {
    // SAFETY: getpgid takes a plain number.
    check(unsafe { libc::getpgid(pid as libc::pid_t) }).ok()
}

/// Waits until a child has ended, without reaping it.
pub(crate) fn await_end(pid: u32) -> io::Result<()> {
    loop {
        // SAFETY: a siginfo_t is plain bits, for which zeros are valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: `info` is a live siginfo_t that the call writes to.
        match check(unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, options) }) {
            Ok(_) if matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) => {
                return Ok(());
            }
            // Another thread of this process traces the child, has stopped it, and will resume it.
            Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reaps a child. Returns its wait status, and the resources that it and the children that it waited for
/// used.
pub(crate) fn wait(pid: u32) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: a rusage is plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values that the call writes to.
        match check(unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) }) {
            Ok(_) => return Ok((status, usage)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends a signal to a process by its pid.
pub(crate) fn signal(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    check(unsafe { libc::kill(pid as libc::pid_t, signal) }).map(|_| ())
}

/// Gives a thread a higher CPU priority, if this process may do so, until it is dropped. Threads that read or
/// convert samples need it: beside hundreds of busy threads they would fall behind, and samples would be
/// lost.
#[derive(Debug)]
pub struct Preference {
    thread: libc::pid_t,
    niceness: libc::c_int,
    real_time: bool,
}

impl Preference {
    /// Gives the calling thread more CPU time than others.
    #[must_use]
    pub fn of_this_thread() -> Self {
        const NICENESS: libc::c_int = -15;
        // SAFETY: the calls take no pointers; on Linux, a thread's id identifies that thread only.
        unsafe {
            let thread = libc::gettid();
            let niceness = libc::getpriority(libc::PRIO_PROCESS, thread as libc::id_t);
            libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, NICENESS);
            Self { thread, niceness, real_time: false }
        }
    }

    /// Gives the calling thread a CPU as soon as it is woken, before all threads without a real-time
    /// priority. It must sleep most of the time. Without a real-time priority, it waits up to 100 ms for a
    /// CPU beside hundreds of busy threads, even with a high share of CPU time.
    #[must_use]
    pub fn at_once() -> Self {
        let mut preference = Self::of_this_thread();
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        preference.real_time = preference.schedule(policy, MIN_REAL_TIME_PRIORITY).is_ok();
        preference
    }

    /// Whether the thread has a real-time priority; the system may not permit it.
    pub(crate) fn is_real_time(&self) -> bool {
        self.real_time
    }

    /// If this process lacks the permission, nothing changes.
    fn schedule(&self, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
        // SAFETY: a `sched_param` is plain numbers, for which zeros are valid.
        let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
        param.sched_priority = priority;
        // SAFETY: `param` lives through the call, which only reads it.
        check(unsafe { libc::sched_setscheduler(self.thread, policy, &raw const param) }).map(|_| ())
    }
}

/// The lowest of the real-time priorities (sched(7)).
const MIN_REAL_TIME_PRIORITY: libc::c_int = 1;

impl Drop for Preference {
    fn drop(&mut self) {
        // A process that may not give the priority up within RLIMIT_RTPRIO keeps it until the thread ends. A
        // policy that the user has chosen for the recorder stays.
        if self.real_time {
            let _ = self.schedule(libc::SCHED_OTHER, 0);
        }
        // SAFETY: the call takes no pointers.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, self.thread as libc::id_t, self.niceness) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_was_chosen_stays() {
        let policy = std::thread::spawn(|| {
            let preference = Preference::of_this_thread();
            preference.schedule(libc::SCHED_BATCH, 0).unwrap();
            drop(preference);
            // SAFETY: the call takes no pointers.
            unsafe { libc::sched_getscheduler(0) }
        });
        assert_eq!(policy.join().unwrap(), libc::SCHED_BATCH);
    }
}
