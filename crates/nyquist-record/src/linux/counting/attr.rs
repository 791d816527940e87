//! The attributes for counting an event.

use perf_event_open_sys::bindings::{
    PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE,
    PERF_TYPE_RAW,
};

use crate::linux::event_names::{RequestedEvent, Selector};
use crate::linux::sys::event::perf_event_attr;

/// The reach of the events of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Whether the thread's descendants are counted too.
    pub(super) inherits: bool,
    /// Whether counting begins when the process calls exec.
    pub(super) from_exec: bool,
}

/// The restrictions of an event that the kernel demands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventRestrictions {
    /// Excludes the kernel.
    pub(super) user_only: bool,
    /// Does not mention guests, because not every counting unit can distinguish them.
    pub(super) no_guests: bool,
}

impl EventRestrictions {
    /// The additional restriction to try after the kernel has refused an event. `None` if none would help.
    pub(super) fn after(self, errno: i32, event: &RequestedEvent) -> Option<Self> {
        match errno {
            libc::EACCES | libc::EPERM if !self.user_only && !event.modifiers.exclude_kernel => {
                Some(Self { user_only: true, ..self })
            }
            libc::EINVAL | libc::EOPNOTSUPP if !self.no_guests => Some(Self { no_guests: true, ..self }),
            _ => None,
        }
    }
}

/// The attributes for counting an event.
pub(super) fn counting(
    event: &RequestedEvent,
    selector: &Selector,
    reach: Reach,
    less: EventRestrictions,
) -> perf_event_attr {
    let modifiers = event.modifiers;
    let mut attr = perf_event_attr {
        type_: selector.kind,
        config: selector.config[0],
        read_format: u64::from(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING),
        ..perf_event_attr::default()
    };
    attr.__bindgen_anon_3.config1 = selector.config[1];
    attr.__bindgen_anon_4.config2 = selector.config[2];
    attr.set_disabled(1);
    attr.set_inherit(u64::from(reach.inherits));
    attr.set_enable_on_exec(u64::from(reach.from_exec));
    attr.set_exclude_user(u64::from(modifiers.exclude_user));
    attr.set_exclude_kernel(u64::from(modifiers.exclude_kernel || less.user_only));
    attr.set_exclude_hv(u64::from(modifiers.exclude_hypervisor || less.user_only));
    let of_cpu = [PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_RAW].contains(&selector.kind);
    let names_guests = modifiers.exclude_host || modifiers.exclude_guest;
    if !less.no_guests {
        attr.set_exclude_host(u64::from(modifiers.exclude_host));
        // As in perf: what a virtual machine executes in its guest does not belong to the program.
        attr.set_exclude_guest(u64::from(modifiers.exclude_guest || of_cpu && !names_guests));
    }
    attr
}
