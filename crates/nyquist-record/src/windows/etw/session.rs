//! A session of the kernel's events: a system logger with a name of its own, beside those of other programs.

use std::hash::{BuildHasher as _, RandomState};
use std::io;

use nyquist_etw::Guid;
use nyquist_etw::kernel::classes::{PERF_INFO, THREAD};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY,
};
use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_TRACE_FLAG_CSWITCH, EVENT_TRACE_FLAG_DISPATCHER, EVENT_TRACE_FLAG_IMAGE_LOAD,
    EVENT_TRACE_FLAG_PROCESS, EVENT_TRACE_FLAG_PROFILE, EVENT_TRACE_FLAG_THREAD,
};

use crate::etw::{
    EtwDenied, EventDelivery, EventSink, SessionLosses, SessionSettings, StackWalk, TraceSession,
    interval_within, name_of, stale,
};
use crate::windows::listing::ProcessListing;
use crate::windows::sys::etw::consumer::Consumer;
use crate::windows::sys::etw::control::{self, NewSession, SessionHandle};
use crate::windows::sys::etw::is_wine;
use crate::windows::sys::privilege::{self, Privilege};
use crate::windows::sys::process::cpus;

/// A session that runs, or is to be started.
#[derive(Debug)]
pub(crate) struct KernelSession {
    name: String,
    handle: Option<SessionHandle>,
    /// The interval between samples of other programs, which is set again at the end.
    interval_before_ns: Option<u64>,
}

impl KernelSession {
    /// The session of this process.
    pub(crate) fn new() -> Self {
        Self { name: name_of(std::process::id()), handle: None, interval_before_ns: None }
    }
}

impl TraceSession for KernelSession {
    type Delivery = Consumer;

    fn start(&mut self, settings: &SessionSettings) -> Result<(), EtwDenied> {
        privilege::enable(Privilege::SystemProfile)
            .map_err(|_| if is_wine() { EtwDenied::Wine } else { EtwDenied::NotAdministrator })?;
        stop_stale();
        let (one, other) = (RandomState::new().hash_one(1), RandomState::new().hash_one(2));
        let session = NewSession {
            name: &self.name,
            id: u128::from(one) << 64 | u128::from(other),
            flags: flags(settings),
            cpus: cpus(),
        };
        let handle =
            control::start(&session).map_err(|source| denied("no session can be started", source))?;
        self.handle = Some(handle);
        Ok(())
    }

    fn events(&mut self, sink: EventSink) -> Result<Consumer, EtwDenied> {
        let opened = Consumer::open(&self.name, sink);
        opened.map_err(|source| {
            if is_wine() { EtwDenied::Wine } else { denied("the session's events cannot be read", source) }
        })
    }

    fn sample(&mut self, settings: &SessionSettings) -> Result<u64, EtwDenied> {
        let walks: Vec<_> = settings.stack_walks().into_iter().map(kind_of).collect();
        if let Some(handle) = self.handle {
            control::walk_stacks(handle, &walks)
                .map_err(|source| denied("the kernel walks no stacks", source))?;
        }
        let allowed = control::sources().ok().and_then(|sources| control::allowed_ns(&sources));
        let requested_ns = settings.interval_ns;
        let interval_ns =
            allowed.as_ref().map_or(requested_ns, |allowed| interval_within(requested_ns, allowed));
        self.interval_before_ns = control::interval_ns().ok();
        control::set_interval_ns(interval_ns).map_err(|source| match source.raw_os_error() {
            Some(code) if code as u32 == ERROR_ACCESS_DENIED => EtwDenied::NotAdministrator,
            _ => EtwDenied::Interval {
                requested_ns,
                least_ns: allowed.map(|allowed| *allowed.start()),
                source,
            },
        })?;
        Ok(interval_ns)
    }

    fn lost(&mut self) -> SessionLosses {
        self.handle.and_then(|handle| control::losses(handle).ok()).unwrap_or_default()
    }

    fn stop(&mut self) -> SessionLosses {
        if let Some(interval_ns) = self.interval_before_ns.take() {
            // Without it, later sessions of others have this one's interval.
            let _ = control::set_interval_ns(interval_ns);
        }
        self.handle.take().and_then(|handle| control::stop(handle).ok()).unwrap_or_default()
    }
}

impl Drop for KernelSession {
    fn drop(&mut self) {
        self.stop();
    }
}

impl EventDelivery for Consumer {
    fn run(self) -> Result<(), EtwDenied> {
        Self::run(self).map_err(|source| denied("the session's events are not delivered", source))
    }
}

/// Stops the sessions of recorders that have ended. A session that cannot be stopped does no harm to this one.
fn stop_stale() {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(|path| path.file_name()?.to_str());
    let mut listing = ProcessListing::default();
    listing.refresh();
    let running: Vec<(u32, String)> = listing.names().collect();
    let names = control::names().unwrap_or_default();
    for name in stale(names, (std::process::id(), own), &running) {
        let _ = control::stop_named(&name);
    }
}

/// The kernel's events.
fn flags(settings: &SessionSettings) -> u32 {
    let always = EVENT_TRACE_FLAG_PROFILE
        | EVENT_TRACE_FLAG_PROCESS
        | EVENT_TRACE_FLAG_THREAD
        | EVENT_TRACE_FLAG_IMAGE_LOAD;
    let waits = if settings.waits { EVENT_TRACE_FLAG_CSWITCH | EVENT_TRACE_FLAG_DISPATCHER } else { 0 };
    always | waits
}

/// The class and the type of a kind of event ("Event Tracing MOF Classes": `SampledProfile` and `CSwitch`).
fn kind_of(walk: StackWalk) -> (Guid, u8) {
    match walk {
        StackWalk::Sample => (PERF_INFO, 46),
        StackWalk::ContextSwitch => (THREAD, 36),
    }
}

fn denied(what: &'static str, source: io::Error) -> EtwDenied {
    match source.raw_os_error().map(|code| code as u32) {
        Some(ERROR_ACCESS_DENIED) => EtwDenied::NotAdministrator,
        Some(ERROR_NO_SYSTEM_RESOURCES | ERROR_NOT_ENOUGH_MEMORY) => EtwDenied::NoSession,
        _ => EtwDenied::System { what, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_requested_only_if_wanted() {
        let settings = SessionSettings { interval_ns: 1_000_000, waits: false };
        assert_eq!(flags(&settings) & EVENT_TRACE_FLAG_CSWITCH, 0);
        assert_ne!(flags(&SessionSettings { waits: true, ..settings }) & EVENT_TRACE_FLAG_CSWITCH, 0);
    }

    #[test]
    fn wine_and_plain_users_are_refused() {
        let mut session = KernelSession::new();
        let settings = SessionSettings { interval_ns: 1_000_000, waits: false };
        let started = session.start(&settings);
        let (sink, _sunk) = EventSink::new();
        match started.and_then(|()| session.events(sink)) {
            Ok(_) => assert!(!is_wine()),
            Err(EtwDenied::Wine) => assert!(is_wine()),
            Err(denied) => assert!(!is_wine(), "{denied}"),
        }
        session.stop();
    }
}
