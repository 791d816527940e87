//! Counts each thread of a command, and of the processes that it starts, by itself, from birth to end.
//!
//! The kernel has records for that (`inherit_stat`, `PERF_RECORD_READ` when a thread ends). But the ending
//! thread writes them into the rings of all CPUs, and a ring supports only one writer at a time. If threads
//! end at the same time, records vanish without a report (Linux 6.18). Each thread is therefore stopped
//! briefly when it is born, while its counters are opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use nyquist_convert::event::Pid;

use super::counted_threads::CountedThreads;
use super::error::CountError;
use super::thread_tracer::ThreadTracer;
use crate::linux::event_names::RequestedEvent;
use crate::linux::ptrace::OpenError;
use crate::linux::ptrace::privileges::Privileges;

/// The threads of a command, each counted by itself. Dropping it detaches from them.
#[derive(Debug)]
pub struct CommandThreads {
    stop: Arc<AtomicBool>,
    tracer: Option<JoinHandle<CountedThreads>>,
}

impl CommandThreads {
    /// Traces a process that is about to become the command, and counts from its exec on. `loses_privileges`
    /// is the command's file, if it is known that the command loses its file's privileges.
    pub fn trace(
        events: &[RequestedEvent],
        child: Pid,
        loses_privileges: Option<PathBuf>,
    ) -> Result<Self, CountError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, opened) = channel();
        let (events, stop_of_tracer) = (events.to_vec(), Arc::clone(&stop));
        let privileges = Privileges::new(loses_privileges);
        let run = move || match ThreadTracer::seize(events, child, privileges, stop_of_tracer) {
            Ok(tracer) => {
                let _ = sender.send(Ok(()));
                // When the thread ends, the kernel detaches it from all that it traces.
                tracer.run()
            }
            Err(error) => {
                let _ = sender.send(Err(error));
                CountedThreads::default()
            }
        };
        let tracer = std::thread::Builder::new().name("nyquist-stat".into()).spawn(run);
        let tracer =
            tracer.map_err(|source| OpenError::System { what: "no thread can be started", source })?;
        match opened.recv() {
            Ok(Err(error)) => Err(error),
            // If it has ended by itself, this is noticed at the end: nothing was counted.
            Ok(Ok(())) | Err(_) => Ok(Self { stop, tracer: Some(tracer) }),
        }
    }

    /// Reads the counters of the remaining threads, detaches from them, and returns the counts of all
    /// threads.
    pub fn finish(mut self) -> CountedThreads {
        self.join()
    }

    fn join(&mut self) -> CountedThreads {
        self.stop.store(true, Ordering::Relaxed);
        self.tracer.take().and_then(|tracer| tracer.join().ok()).unwrap_or_default()
    }
}

impl Drop for CommandThreads {
    fn drop(&mut self) {
        self.join();
    }
}
