//! Additional events: their attributes, the CPUs on which they are opened, and the reasons for
//! failures.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use super::attr::{CommonAttr, MIN_STACK_COPY, Reach, base_attr};
use super::open_error::{EventDenied, OpenError};
use crate::linux::event_names::Selector;
use crate::linux::recorded_event::{Pacing, RecordedEvent};
use crate::linux::sys::event::{self, Subject, perf_event_attr};
use crate::linux::thread_events;

/// The largest stack copy in each sample: there can be hundreds of thousands per second.
const MAX_STACK_COPY: u32 = 8 << 10;

/// The same for events with a limited rate.
const MAX_RATE_LIMITED_STACK_COPY: u32 = 32 << 10;

/// The parameters for opening additional events on a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenParameters {
    pub(crate) common: CommonAttr,
    pub(crate) cpu: u32,
    /// The size of the stack copies in the clock's samples.
    pub(crate) stack_bytes: u32,
    /// The fill level of the ring in bytes at which its reader is woken.
    pub(crate) wake_at: u32,
}

impl OpenParameters {
    /// Opens an event: once for each of its selectors. Skips a selector whose unit does not count on this
    /// CPU.
    pub(crate) fn open(
        &self,
        recorded: &RecordedEvent,
        subject: Subject<'_>,
    ) -> Result<Vec<OwnedFd>, OpenError> {
        let is_thread = matches!(self.common.reach, Reach::Thread { .. });
        let fail = |source| event_error(recorded, self.common, source);
        if recorded.event.is_tracepoint() && !self.common.features.kernel {
            return Err(fail(io::Error::from_raw_os_error(libc::EACCES)));
        }
        let mut opened = Vec::new();
        for selector in &recorded.event.selectors {
            if selector.cpus.as_ref().is_some_and(|cpus| !cpus.contains(&self.cpu)) {
                continue;
            }
            let mut attr = self.attr(recorded, selector);
            let mut subject = subject;
            if is_thread && selector.probe.is_some() {
                // The kernel refuses the forks of threads with such an event if it is inherited (Linux 6.18:
                // `perf_uprobe_init` searches for the file's path in the memory of the forking process). The
                // converter drops samples of other processes.
                attr.set_inherit(0);
                attr.set_enable_on_exec(0);
                subject = Subject::Everyone;
            }
            let path = selector.path_for_kernel().map_err(fail)?;
            let event =
                thread_events::open_counter(attr, subject, Some(self.cpu), path.as_deref()).map_err(fail)?;
            if let Some(filter) = &recorded.filter {
                set_filter(&event, recorded, filter)?;
            }
            opened.push(event);
        }
        Ok(opened)
    }

    fn attr(&self, recorded: &RecordedEvent, selector: &Selector) -> perf_event_attr {
        let modifiers = recorded.event.modifiers;
        let mut attr = base_attr(self.common);
        attr.type_ = selector.kind;
        attr.config = selector.config[0];
        attr.__bindgen_anon_3.config1 = selector.config[1];
        attr.__bindgen_anon_4.config2 = selector.config[2];
        let counts = self.common.has_additional_event_counts();
        match recorded.pacing(counts) {
            Pacing::Fixed(period) => attr.__bindgen_anon_1.sample_period = period,
            Pacing::ByReader(_) => attr.__bindgen_anon_1.sample_period = 1,
            Pacing::ByKernel(rate_hz) => {
                attr.set_freq(1);
                attr.__bindgen_anon_1.sample_freq = rate_hz;
            }
        }
        attr.set_exclude_user(u64::from(modifiers.exclude_user));
        attr.set_exclude_kernel(attr.exclude_kernel() | u64::from(modifiers.exclude_kernel));
        attr.set_exclude_hv(attr.exclude_hv() | u64::from(modifiers.exclude_hypervisor));
        attr.set_exclude_host(u64::from(modifiers.exclude_host));
        attr.set_exclude_guest(u64::from(modifiers.exclude_guest));
        attr.set_precise_ip(modifiers.precise.into());
        attr.sample_type = recorded.sample_fields(counts).format(self.common.format()).sample_type.0;
        let most = if recorded.is_optional() { MAX_RATE_LIMITED_STACK_COPY } else { MAX_STACK_COPY };
        attr.sample_stack_user = self.stack_bytes.clamp(MIN_STACK_COPY, most);
        attr.__bindgen_anon_2.wakeup_watermark = self.wake_at;
        attr
    }
}

fn set_filter(event: &OwnedFd, recorded: &RecordedEvent, filter: &str) -> Result<(), OpenError> {
    let refused = |source| OpenError::Filter {
        event: recorded.event.name.clone(),
        filter: filter.to_owned(),
        fields: recorded.fields().map(str::to_owned).collect(),
        source,
    };
    let text = CString::new(filter).map_err(|_| refused(io::ErrorKind::InvalidInput.into()))?;
    event::set_filter(event.as_fd(), &text).map_err(refused)
}

/// Converts the kernel's refusal of an event into an error.
fn event_error(recorded: &RecordedEvent, common: CommonAttr, source: io::Error) -> OpenError {
    let event = recorded.event.name.clone();
    let denied = match source.raw_os_error().unwrap_or(0) {
        libc::EACCES | libc::EPERM if recorded.event.is_tracepoint() => EventDenied::TracepointNotPermitted,
        libc::EACCES | libc::EPERM if recorded.event.is_probe() => EventDenied::ProbeNotPermitted,
        libc::EACCES | libc::EPERM => EventDenied::NotPermitted { user_only: !common.features.kernel },
        // The layout of samples is not the reason, because the kernel has accepted it for the clock.
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP | libc::EINVAL
            if recorded.event.selectors.iter().any(|selector| selector.cpus.is_some())
                && common.reach != Reach::Cpu =>
        {
            EventDenied::WholeMachineOnly
        }
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP | libc::EINVAL => {
            EventDenied::NotSupported
        }
        libc::EMFILE | libc::ENFILE => EventDenied::Descriptors,
        _ => EventDenied::Other,
    };
    OpenError::Event { event, denied, source }
}
