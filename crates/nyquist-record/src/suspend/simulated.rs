//! A simulated system for tests: processes whose threads run, wait and end in a time that only the sampler
//! advances.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use nyquist_convert::event::{MappedFile, Registers};

use super::system::{
    ImageEnd, ListedImage, ListedProcess, ListedThread, LoadedModule, SamplingDenied, StoppedRegisters,
    System,
};

pub(super) const MS: u64 = 1_000_000;
/// How long a suspension takes, if nothing else is chosen.
const HELD_NS: u64 = 5_000;
/// The addresses of the program, of the library that makes system calls, and of stacks.
pub(super) const PROGRAM: Range<u64> = 0x1000..0x2000;
pub(super) const LIBRARY: Range<u64> = 0x5000..0x6000;
const STACK: Range<u64> = 0x10_0000..0x10_1000;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimActivity {
    /// It runs all the time.
    Runs,
    /// It waits in one place.
    Waits,
    /// It runs for a part of each period, and waits for the rest, in nanoseconds.
    Both { period: u64, runs: u64 },
}

#[derive(Clone, Debug)]
pub(super) struct SimThread {
    pub(super) activity: SimActivity,
    pub(super) began: u64,
    pub(super) ends: u64,
    pub(super) cpu_ns: u64,
    /// Its CPU time when it was last read, and what the finer clock says of the time between.
    read_ns: u64,
    estimated_run_ns: u64,
    is_suspended: bool,
    /// Whether the system refuses to suspend it, although it lives.
    pub(super) is_protected: bool,
    pub(super) suspensions: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SimProcess {
    pub(super) parent: u32,
    pub(super) begins: u64,
    pub(super) ends: Option<u64>,
    /// When it may not be sampled.
    pub(super) refused: Range<u64>,
    /// How often it was opened, or refused.
    pub(super) openings: u32,
    /// Whether it ends when one of its threads is suspended next.
    pub(super) ends_when_suspended: bool,
    /// When the system can list its images.
    pub(super) lists_images_from: u64,
    /// Its executable memory that is of no image.
    pub(super) made_code: Vec<Range<u64>>,
    /// Whether it states absurd stacks and images.
    pub(super) is_hostile: bool,
    /// When it executes another program. Its threads end and begin as they state.
    pub(super) executes: Option<u64>,
    /// How many programs it has executed.
    pub(super) executed: u32,
    pub(super) threads: BTreeMap<u32, SimThread>,
}

/// The state of the machine.
#[derive(Debug, Default)]
pub(super) struct SimMachine {
    pub(super) now: u64,
    /// The steps of the clocks of threads; 0 if they are exact.
    pub(super) step_ns: u64,
    /// The rate of another clock, which shows each run of a thread: 1 if it is right.
    pub(super) finer_clock: Option<f64>,
    /// How often its processes were listed, and how long that takes.
    pub(super) listings: u64,
    pub(super) listing_ns: u64,
    /// How long it takes to find made code.
    pub(super) made_code_ns: u64,
    pub(super) made_code_looks: u64,
    /// When its processes make code, and where.
    pub(super) makes_code: Option<(u64, Range<u64>)>,
    /// How long a suspension takes; a short time if it is 0.
    pub(super) held_ns: u64,
    pub(super) processes: BTreeMap<u32, SimProcess>,
}

/// The machine, which the test and the sampler share.
#[derive(Clone, Debug, Default)]
pub(super) struct SimSystem(pub(super) Rc<RefCell<SimMachine>>);

impl SimProcess {
    /// A process that begins and ends at these times, with threads that live as long.
    pub(super) fn new(parent: u32, life: Range<u64>, threads: &[(u32, SimActivity)]) -> Self {
        let thread = |activity| SimThread {
            activity,
            began: life.start,
            ends: life.end,
            cpu_ns: 0,
            read_ns: 0,
            estimated_run_ns: 0,
            is_suspended: false,
            is_protected: false,
            suspensions: 0,
        };
        Self {
            parent,
            begins: life.start,
            ends: Some(life.end),
            threads: threads.iter().map(|(tid, activity)| (*tid, thread(*activity))).collect(),
            ..Self::default()
        }
    }

    fn program(&self) -> &'static str {
        if self.executed > 0 { "second" } else { "program" }
    }

    /// Executes the other program if its time has come. Returns whether it has.
    fn execute(&mut self, now: u64) -> bool {
        let executes = self.executes.take_if(|time| now >= *time).is_some();
        self.executed += u32::from(executes);
        executes
    }

    fn lives(&self, now: u64) -> bool {
        now >= self.begins && self.ends.is_none_or(|end| now < end)
    }
}

fn refused(pid: u32) -> SamplingDenied {
    SamplingDenied::Refused { reason: format!("{pid} is refused"), advice: None }
}

impl SimThread {
    fn lives(&self, now: u64) -> bool {
        (self.began..self.ends).contains(&now)
    }

    /// How long it has run from its beginning until a time, if nothing has suspended it.
    fn run_before(&self, time: u64) -> u64 {
        let lived = time.saturating_sub(self.began);
        match self.activity {
            SimActivity::Runs => lived,
            SimActivity::Waits => 0,
            SimActivity::Both { period, runs } => lived / period * runs + (lived % period).min(runs),
        }
    }

    fn runs(&self, now: u64) -> bool {
        match self.activity {
            SimActivity::Runs => true,
            SimActivity::Waits => false,
            SimActivity::Both { period, runs } => (now - self.began) % period < runs,
        }
    }
}

/// What is in both ranges; empty, or with its end before its start, if that is nothing.
fn both(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

impl SimMachine {
    /// Lets all threads live on until a time.
    fn advance(&mut self, to: u64) {
        let span = self.now..to.max(self.now);
        for process in self.processes.values_mut() {
            let life = process.begins..process.ends.unwrap_or(u64::MAX);
            for thread in process.threads.values_mut().filter(|thread| !thread.is_suspended) {
                let lived = both(&both(&span, &life), &(thread.began..thread.ends));
                thread.cpu_ns +=
                    thread.run_before(lived.end.max(lived.start)) - thread.run_before(lived.start);
            }
        }
        self.now = span.end;
    }

    pub(super) fn thread(&mut self, tid: u32) -> Option<&mut SimThread> {
        self.processes.values_mut().find_map(|process| process.threads.get_mut(&tid))
    }

    /// The process of a thread, if both live.
    fn live(&mut self, tid: u32) -> Option<(&mut SimProcess, u64)> {
        let now = self.now;
        let has = |process: &&mut SimProcess| {
            process.lives(now) && process.threads.get(&tid).is_some_and(|thread| thread.lives(now))
        };
        self.processes.values_mut().find(has).map(|process| (process, now))
    }
}

pub(super) struct SimRegisters {
    ip: u64,
    counter: u64,
}

impl StoppedRegisters for SimRegisters {
    fn instruction_pointer(&self) -> u64 {
        self.ip
    }

    fn stack_pointer(&self) -> u64 {
        STACK.end - 0x100
    }

    fn event_registers(&self) -> Registers {
        let mut values = [0; 17];
        (values[0], values[7], values[16]) = (self.counter, self.stack_pointer(), self.ip);
        Registers::X86_64(values)
    }
}

impl System for SimSystem {
    type Process = u32;
    type Thread = u32;
    type Registers = SimRegisters;

    fn now(&self) -> u64 {
        self.0.borrow().now
    }

    fn wait_until(&mut self, time_ns: u64) -> bool {
        self.0.borrow_mut().advance(time_ns);
        false
    }

    fn list_processes(&mut self, out: &mut Vec<ListedProcess>) -> bool {
        let mut machine = self.0.borrow_mut();
        machine.listings += 1;
        let listed_at = machine.now + machine.listing_ns;
        machine.advance(listed_at);
        let live = machine.processes.iter().filter(|(_, process)| process.lives(machine.now));
        out.extend(live.map(|(pid, process)| ListedProcess {
            pid: *pid,
            parent: process.parent,
            began: process.begins,
        }));
        true
    }

    fn list_threads(&mut self, pid: u32, _: &u32, out: &mut Vec<ListedThread>) {
        let machine = self.0.borrow();
        let Some(process) = machine.processes.get(&pid) else { return };
        let live = process.threads.iter().filter(|(_, thread)| thread.lives(machine.now));
        out.extend(live.map(|(tid, thread)| ListedThread {
            tid: *tid,
            began: thread.began,
            turns: 0,
            is_active: false,
        }));
    }

    fn has_new_program(&mut self, pid: &u32) -> Result<bool, SamplingDenied> {
        let mut machine = self.0.borrow_mut();
        let now = machine.now;
        let Some(process) = machine.processes.get_mut(pid) else { return Ok(false) };
        let executes = process.execute(now);
        if process.refused.contains(&now) { Err(refused(*pid)) } else { Ok(executes) }
    }

    fn program_stamp(&mut self, pid: u32) -> Option<u64> {
        let mut machine = self.0.borrow_mut();
        let now = machine.now;
        let process = machine.processes.get_mut(&pid)?;
        process.execute(now);
        Some(process.executed.into())
    }

    fn open_process(&mut self, pid: u32) -> Result<u32, SamplingDenied> {
        let mut machine = self.0.borrow_mut();
        let now = machine.now;
        let process = machine.processes.get_mut(&pid).filter(|process| process.lives(now));
        let process = process.ok_or(SamplingDenied::Gone)?;
        process.openings += 1;
        if process.refused.contains(&now) { Err(refused(pid)) } else { Ok(pid) }
    }

    fn process_name(&mut self, process: &u32) -> Option<String> {
        let program = self.0.borrow().processes.get(process)?.program();
        Some(format!("{program}-{process}.exe"))
    }

    fn has_ended(&mut self, process: &u32) -> bool {
        let machine = self.0.borrow();
        !machine.processes.get(process).is_some_and(|it| it.lives(machine.now))
    }

    fn modules(
        &mut self,
        process: &u32,
        known: &dyn Fn(ListedImage) -> bool,
    ) -> Option<(Vec<ListedImage>, Vec<LoadedModule>)> {
        let machine = self.0.borrow();
        let it = machine.processes.get(process).filter(|it| machine.now >= it.lists_images_from)?;
        let (is_hostile, program) = (it.is_hostile, it.program());
        let module = |range: &Range<u64>| LoadedModule {
            listed: ListedImage { start: range.start, stamp: 0 },
            len: if is_hostile { u64::MAX } else { range.end - range.start },
            path: format!(r"C:\{program}\{:x}", range.start),
            identity: MappedFile::Unknown,
            makes_calls: *range == LIBRARY,
        };
        let all = [PROGRAM, LIBRARY].map(|range| module(&range));
        let listed = all.iter().map(|module| module.listed).collect();
        Some((listed, all.into_iter().filter(|module| !known(module.listed)).collect()))
    }

    fn made_code(&mut self, process: &u32, _: ImageEnd<'_>) -> Vec<Range<u64>> {
        let mut machine = self.0.borrow_mut();
        machine.made_code_looks += 1;
        let listed_at = machine.now + machine.made_code_ns;
        machine.advance(listed_at);
        let made =
            machine.makes_code.iter().filter(|(at, _)| machine.now >= *at).map(|(_, range)| range.clone());
        let made: Vec<_> = made.collect();
        let always = machine.processes.get(process).map(|it| it.made_code.clone());
        always.into_iter().flatten().chain(made).collect()
    }

    fn open_thread(&mut self, _: &u32, tid: u32) -> Option<u32> {
        self.0.borrow_mut().live(tid).map(|_| tid)
    }

    fn thread_name(&mut self, thread: &u32) -> Option<String> {
        Some(format!("thread-{thread}"))
    }

    fn cpu_time_ns(&mut self, thread: &u32) -> Option<u64> {
        let mut machine = self.0.borrow_mut();
        let (step, rate) = (machine.step_ns.max(1), machine.finer_clock.unwrap_or_default());
        machine.thread(*thread).map(|thread| {
            let ran = thread.cpu_ns - std::mem::replace(&mut thread.read_ns, thread.cpu_ns);
            thread.estimated_run_ns = (ran as f64 * rate) as u64;
            thread.cpu_ns / step * step
        })
    }

    fn estimated_run_ns(&self, thread: &u32) -> Option<u64> {
        let mut machine = self.0.borrow_mut();
        machine.finer_clock?;
        machine.thread(*thread).map(|thread| thread.estimated_run_ns)
    }

    fn cpu_clock_step_ns(&self) -> u64 {
        self.0.borrow().step_ns
    }

    fn stack(&mut self, process: &u32, _: &u32, _: u64) -> Option<Range<u64>> {
        let is_hostile = self.0.borrow().processes.get(process)?.is_hostile;
        Some(if is_hostile { 0..u64::MAX } else { STACK })
    }

    fn suspend(&mut self, thread: &u32) -> bool {
        let mut machine = self.0.borrow_mut();
        let Some((process, now)) = machine.live(*thread) else { return false };
        if process.threads.get(thread).is_some_and(|thread| thread.is_protected) {
            return false;
        }
        if process.ends_when_suspended {
            process.ends = Some(now);
        }
        if let Some(thread) = process.threads.get_mut(thread) {
            assert!(!thread.is_suspended, "it is suspended already");
            thread.is_suspended = true;
            thread.suspensions += 1;
        }
        let held_ns = if machine.held_ns == 0 { HELD_NS } else { machine.held_ns };
        machine.advance(now + held_ns);
        true
    }

    fn registers(&mut self, thread: &u32) -> Option<SimRegisters> {
        let mut machine = self.0.borrow_mut();
        let machine_made =
            machine.makes_code.clone().filter(|(at, _)| machine.now >= *at).map(|(_, range)| range);
        let (process, now) = machine.live(*thread)?;
        let thread = process.threads.get(thread)?;
        assert!(thread.is_suspended, "it runs");
        let made = machine_made.or_else(|| process.made_code.first().cloned());
        let of_program = made.map_or(PROGRAM.start, |range| range.start);
        let ip = if thread.runs(now) { of_program } else { LIBRARY.start };
        Some(SimRegisters { ip: ip + 0x10, counter: thread.cpu_ns })
    }

    fn read_memory(&mut self, process: &u32, _: u64, out: &mut [u8]) -> usize {
        if self.has_ended(process) { 0 } else { out.len() }
    }

    fn resume(&mut self, thread: &u32) {
        if let Some(thread) = self.0.borrow_mut().thread(*thread) {
            thread.is_suspended = false;
        }
    }

    fn is_at_call(&mut self, _: &u32, _: u64) -> bool {
        true
    }
}
