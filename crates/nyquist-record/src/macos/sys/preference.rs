//! The priority of our own threads, and the number of CPUs.

use std::ffi::{c_int, c_uint};

/// `QOS_CLASS_USER_INTERACTIVE` (`sys/qos.h`): the timers of such a thread are not put off to save energy.
const USER_INTERACTIVE: c_uint = 0x21;

unsafe extern "C" {
    /// The class of the calling thread (`pthread/qos.h`).
    safe fn qos_class_self() -> c_uint;
    /// Sets the class of the calling thread and its place in that class.
    safe fn pthread_set_qos_class_self_np(class: c_uint, relative_priority: c_int) -> c_int;
}

/// Gives a thread a higher CPU priority until it is dropped. Threads that read or convert samples need it:
/// beside many busy threads they would fall behind, and samples would be lost.
#[derive(Debug)]
pub struct Preference {
    before: c_uint,
}

impl Preference {
    /// Gives the calling thread more CPU time than others.
    #[must_use]
    pub fn of_this_thread() -> Self {
        let before = qos_class_self();
        // If it fails, the thread stays as it is.
        pthread_set_qos_class_self_np(USER_INTERACTIVE, 0);
        Self { before }
    }

    /// Gives the calling thread a CPU as soon as it is woken. It must sleep most of the time.
    #[must_use]
    pub fn at_once() -> Self {
        Self::of_this_thread()
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // A thread that had no class keeps the new one: the call refuses to take a class away.
        pthread_set_qos_class_self_np(self.before, 0);
    }
}

/// The number of CPUs.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
