//! Opening processes to be sampled, and following them into the programs that they execute.

use std::cell::RefCell;
use std::sync::Arc;

use super::denied::{self, ProgramFacts};
use super::process_status::ProcessStatus;
use crate::suspend::system::SamplingDenied;

/// System calls that list processes and open their tasks, as a trait for tests.
pub(crate) trait TaskCalls {
    /// A process's task.
    type Task;
    /// A thread of a task.
    type Thread;

    /// What is known of a process; `None` if there is none.
    fn known(&self, pid: u32) -> Option<ProcessStatus>;
    /// The task of a process; `None` if the system refuses it, or the process has ended.
    fn task(&self, pid: u32) -> Option<Self::Task>;
    /// The threads of a task; `None` if it is gone.
    fn threads(&self, task: &Self::Task) -> Option<Vec<Self::Thread>>;
    /// What is known of a process that may not be sampled.
    fn facts(&self, pid: u32) -> ProgramFacts;
}

/// A process that is sampled.
#[derive(Debug)]
pub(crate) struct OpenedProcess<T> {
    pub(crate) pid: u32,
    began: u64,
    /// Its task. The process gets another one when it executes another program.
    task: RefCell<Arc<T>>,
    /// Whether its task has become another one since the last check, or why that one is refused.
    has_new_program: RefCell<Result<bool, SamplingDenied>>,
}

/// What is known of a process that lives.
pub(crate) fn live(tasks: &impl TaskCalls, pid: u32) -> Result<ProcessStatus, SamplingDenied> {
    tasks.known(pid).filter(|known| !known.has_ended).ok_or(SamplingDenied::Gone)
}

/// Opens a process. `own` is the number of this process.
pub(crate) fn open<S: TaskCalls>(
    tasks: &S,
    own: u32,
    pid: u32,
) -> Result<OpenedProcess<S::Task>, SamplingDenied> {
    if tasks.known(own).is_some_and(|own| own.is_translated) {
        return Err(denied::of_translated_nyquist());
    }
    let (began, task) = open_task(tasks, pid)?;
    Ok(OpenedProcess {
        pid,
        began,
        task: RefCell::new(Arc::new(task)),
        has_new_program: RefCell::new(Ok(false)),
    })
}

/// The task of a process, and when the process was started.
fn open_task<S: TaskCalls>(tasks: &S, pid: u32) -> Result<(u64, S::Task), SamplingDenied> {
    let known = live(tasks, pid)?;
    if known.is_translated || !known.has_64_bits {
        return Err(denied::of_other_code(pid, known.is_translated));
    }
    match tasks.task(pid) {
        Some(task) => Ok((known.began, task)),
        // It may have ended meanwhile, which is no refusal.
        None => live(tasks, pid).and_then(|_| Err(denied::of_process(pid, &tasks.facts(pid)))),
    }
}

impl<T> OpenedProcess<T> {
    pub(crate) fn task(&self) -> Arc<T> {
        Arc::clone(&self.task.borrow())
    }

    /// The threads of its task. If the task is gone and the process lives, the process executes another program,
    /// whose task is opened.
    pub(crate) fn threads<S: TaskCalls<Task = T>>(&self, tasks: &S) -> Vec<S::Thread> {
        if let Some(threads) = tasks.threads(&self.task()) {
            return threads;
        }
        match open_task(tasks, self.pid) {
            Ok((began, task)) if began == self.began => {
                let threads = tasks.threads(&task).unwrap_or_default();
                self.task.replace(Arc::new(task));
                *self.has_new_program.borrow_mut() = Ok(true);
                threads
            }
            Err(denied @ SamplingDenied::Refused { .. }) => {
                *self.has_new_program.borrow_mut() = Err(denied);
                Vec::new()
            }
            // It has ended.
            Ok(_) | Err(SamplingDenied::Gone) => Vec::new(),
        }
    }

    /// Whether its task was another one when its threads were last listed, or why that one is refused.
    pub(crate) fn take_new_program(&self) -> Result<bool, SamplingDenied> {
        self.has_new_program.replace(Ok(false))
    }

    /// Whether it has ended. Its number may be another process's by now.
    pub(crate) fn has_ended(&self, tasks: &impl TaskCalls) -> bool {
        !live(tasks, self.pid).is_ok_and(|known| known.began == self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const OWN: u32 = 1;
    const PID: u32 = 7;

    /// A system with one process beside this one. Its task is the number of the program that it executes.
    struct SimulatedTasks {
        status: Cell<Option<ProcessStatus>>,
        own: ProcessStatus,
        /// Its program, and whether that may be sampled.
        program: Cell<u32>,
        is_granted: Cell<bool>,
        /// Whether it ends when its task is requested.
        ends: bool,
    }

    fn status() -> ProcessStatus {
        ProcessStatus { began: 5, parent: 1, has_ended: false, has_64_bits: true, is_translated: false }
    }

    fn simulated() -> SimulatedTasks {
        let (status, own) = (Cell::new(Some(status())), status());
        SimulatedTasks { status, own, program: Cell::new(1), is_granted: Cell::new(true), ends: false }
    }

    impl TaskCalls for SimulatedTasks {
        type Task = u32;
        type Thread = u32;

        fn known(&self, pid: u32) -> Option<ProcessStatus> {
            if pid == OWN { Some(self.own) } else { self.status.get() }
        }

        fn task(&self, _: u32) -> Option<u32> {
            if self.ends {
                self.status.set(self.status.get().map(|it| ProcessStatus { has_ended: true, ..it }));
            }
            (self.is_granted.get() && !self.ends).then(|| self.program.get())
        }

        fn threads(&self, task: &u32) -> Option<Vec<u32>> {
            let is_its = self.status.get().is_some_and(|it| !it.has_ended) && *task == self.program.get();
            is_its.then(|| vec![task * 100])
        }

        fn facts(&self, _: u32) -> ProgramFacts {
            ProgramFacts { path: Some("/bin/sh".to_owned()), ..ProgramFacts::default() }
        }
    }

    fn reason<T: std::fmt::Debug>(result: Result<T, SamplingDenied>) -> String {
        let Err(SamplingDenied::Refused { reason, .. }) = result else { panic!("{result:?}") };
        reason
    }

    fn open_it(system: &SimulatedTasks) -> Result<OpenedProcess<u32>, SamplingDenied> {
        open(system, OWN, PID)
    }

    #[test]
    fn system_processes_are_refused_with_a_name() {
        let system = simulated();
        system.is_granted.set(false);
        let reason = reason(open_it(&system));
        assert!(reason.contains("process 7") && reason.contains("SIP") && reason.contains("/bin/sh"));
    }

    #[test]
    fn a_process_that_ends_meanwhile_is_gone() {
        let system = SimulatedTasks { ends: true, ..simulated() };
        assert_eq!(open_it(&system).map(drop), Err(SamplingDenied::Gone), "it is not refused");
        system.status.set(None);
        assert_eq!(open_it(&system).map(drop), Err(SamplingDenied::Gone));
    }

    #[test]
    fn other_code_is_not_opened() {
        let system = simulated();
        system.status.set(Some(ProcessStatus { is_translated: true, ..status() }));
        assert!(reason(open_it(&system)).contains("process 7 runs under Rosetta"));
        system.status.set(Some(ProcessStatus { has_64_bits: false, ..status() }));
        assert!(reason(open_it(&system)).contains("32-bit"));
        let system = SimulatedTasks { own: ProcessStatus { is_translated: true, ..status() }, ..simulated() };
        assert!(reason(open_it(&system)).contains("this nyquist"));
    }

    #[test]
    fn another_program_is_opened_once() {
        let system = simulated();
        let opened = open_it(&system).unwrap();
        assert_eq!((opened.threads(&system), opened.take_new_program()), (vec![100], Ok(false)));
        system.program.set(2);
        assert_eq!((opened.threads(&system), opened.take_new_program()), (vec![200], Ok(true)));
        assert_eq!((opened.threads(&system), opened.take_new_program()), (vec![200], Ok(false)));
        assert_eq!(*opened.task(), 2);
    }

    #[test]
    fn another_program_may_be_refused() {
        let system = simulated();
        let opened = open_it(&system).unwrap();
        system.program.set(2);
        system.is_granted.set(false);
        assert!(opened.threads(&system).is_empty());
        assert!(reason(opened.take_new_program()).contains("/bin/sh"));
        assert!(!opened.has_ended(&system));
    }

    #[test]
    fn a_reused_number_is_not_followed() {
        let system = simulated();
        let opened = open_it(&system).unwrap();
        assert!(!opened.has_ended(&system));
        system.program.set(2);
        system.status.set(Some(ProcessStatus { began: 6, ..status() }));
        assert_eq!((opened.threads(&system), opened.take_new_program()), (vec![], Ok(false)));
        assert!(opened.has_ended(&system) && *opened.task() == 1);
    }
}
