//! The signals with which users and wrapper programs end a recording, as values that a thread waits for.

use super::identity::give_up_capabilities;
use super::sys::signals;
use std::process::{Child, Command};
use std::{io, thread};

pub use crate::request::{EndRequest, EndSignal, KILL};

/// Runs a program's work on a thread with a stack of this size, even if `ulimit -s` makes the main stack
/// small. The calling thread blocks all signals from then on, so that the signal masks of the work decide
/// which thread gets them. It only waits, so it gives up the capabilities that an ordinary user has from the
/// program's file. Those of the work end when the work gives them up.
pub fn on_own_stack<T: Send>(stack_bytes: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let mask = signals::Mask::block_all()?;
    let worked: io::Result<_> = thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(stack_bytes).spawn_scoped(scope, move || {
            mask.set();
            work()
        });
        let worker = worker?;
        // It does nothing, with or without them.
        let _ = give_up_capabilities();
        Ok(worker.join())
    });
    match worked {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            mask.set();
            Err(error)
        }
    }
}

/// Starts a process in which all signals are blocked. It is created in the group of the terminal's job: Ctrl-Z would
/// stop it before exec, and this process, which waits for exec (`vfork`), could not stop, so that the shell would wait
/// for it.
///
/// # Errors
/// If the process cannot be started.
pub fn spawn_with_signals_blocked(command: &mut Command) -> io::Result<Child> {
    let mask = signals::Mask::block_all()?;
    let child = command.spawn();
    mask.set();
    child
}

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail with `EFBIG`, instead of ending this
/// process (`SIGXFSZ`). Programs started by this process are not affected.
pub fn outlive_file_size_limit() {
    signals::outlive(libc::SIGXFSZ);
}

/// Receives the requests to end. These signals no longer end the process.
#[derive(Debug)]
pub struct Requests {
    descriptor: signals::Descriptor,
}

impl Requests {
    /// Takes over the signals for the calling thread and the threads that it starts from now on; call it
    /// before there are others. A signal that was ignored when the program began (`nohup`) stays ignored.
    pub fn take_over() -> io::Result<Self> {
        let all = [EndSignal::Interrupt, EndSignal::Terminate, EndSignal::HangUp, EndSignal::Quit];
        let numbers = all.map(EndSignal::number);
        let requested: Vec<_> = numbers.into_iter().filter(|&number| !signals::is_ignored(number)).collect();
        Ok(Self { descriptor: signals::Descriptor::new(&requested)? })
    }

    /// Waits until a request can be taken. May return early.
    pub fn wait(&self) -> io::Result<()> {
        self.descriptor.wait()
    }

    /// Takes the next request, if one has come.
    pub fn take(&self) -> io::Result<Option<EndRequest>> {
        while let Some(received) = self.descriptor.read()? {
            if let Some(signal) = EndSignal::of(received.number) {
                return Ok(Some(EndRequest { signal, typed: received.by_kernel }));
            }
        }
        Ok(None)
    }
}

/// Receives `SIGUSR1`, which asks a recording to save what it has. It no longer ends the process.
#[derive(Debug)]
pub struct SaveRequests {
    descriptor: signals::Descriptor,
}

impl SaveRequests {
    /// Takes over the signal for the calling thread and the threads that it starts from now on; call it before there
    /// are others.
    ///
    /// # Errors
    /// If the kernel gives no descriptor.
    pub fn take_over() -> io::Result<Self> {
        Ok(Self { descriptor: signals::Descriptor::new(&[libc::SIGUSR1])? })
    }

    /// Whether the signal has come since the last call. Does not wait.
    pub fn take(&self) -> bool {
        let mut has_come = false;
        while let Ok(Some(_)) = self.descriptor.read() {
            has_come = true;
        }
        has_come
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mask of this thread is the one from before, and what is started blocks Ctrl-Z.
    #[test]
    fn ctrl_z_stops_nothing_before_exec() {
        const SIGTSTP_BIT: u64 = 1 << (libc::SIGTSTP - 1);
        let blocked = |process: &str| -> u64 {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap()
        };
        let before = blocked("thread-self");
        let mut child = spawn_with_signals_blocked(Command::new("sleep").arg("1000")).unwrap();
        let in_child = blocked(&child.id().to_string());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(blocked("thread-self"), before);
        assert_ne!(in_child & SIGTSTP_BIT, 0, "{in_child:#x}");
    }

    #[test]
    fn work_has_the_stack_that_it_asks_for() {
        /// Uses this many times 8 kB of stack.
        fn deep(levels: usize) -> u64 {
            let page = std::hint::black_box([1_u8; 1 << 13]);
            let below = if levels == 0 { 0 } else { deep(levels - 1) };
            below + u64::from(page[levels % page.len()])
        }
        // Test threads have 2 MB.
        assert_eq!(on_own_stack(16 << 20, || deep(1024)).unwrap(), 1025);
    }
}
