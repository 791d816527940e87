//! Waiting for a point in time or for the requested end, whichever comes first.

use std::io;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::ptr;

use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateEventW, CreateWaitableTimerExW, INFINITE, SetEvent,
    SetWaitableTimer, TIMER_ALL_ACCESS, WaitForMultipleObjects, WaitForSingleObject,
};

use super::{check, owned};

/// Something that one thread sets and others wait for. It stays set.
#[derive(Debug)]
pub(crate) struct Flag(OwnedHandle);

impl Flag {
    /// One that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: null pointers mean the default security and no name.
        owned(unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) }).map(Self)
    }

    /// Sets it.
    pub(crate) fn set(&self) {
        // SAFETY: the handle is open. The call fails for no valid event.
        unsafe { SetEvent(self.0.as_raw_handle()) };
    }

    /// Whether it is set.
    pub(crate) fn is_set(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), 0) == WAIT_OBJECT_0 }
    }
}

/// A timer with the best resolution that the system has.
#[derive(Debug)]
pub(crate) struct Timer(OwnedHandle);

impl Timer {
    /// A timer. Systems before Windows 10 version 1803 have none of high resolution.
    pub(crate) fn new() -> io::Result<Self> {
        let with = |flags| {
            // SAFETY: null pointers mean the default security and no name.
            owned(unsafe { CreateWaitableTimerExW(ptr::null(), ptr::null(), flags, TIMER_ALL_ACCESS) })
        };
        with(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION).or_else(|_| with(0)).map(Self)
    }

    /// Waits for a time span in nanoseconds, or until the flag is set. Returns whether the flag is set.
    pub(crate) fn wait(&self, span_ns: u64, flag: &Flag) -> bool {
        // Negative times are relative, in units of 100 ns.
        let due = -i64::try_from(span_ns / 100).unwrap_or(i64::MAX).max(1);
        // SAFETY: `due` lives through the call, and there is no function to be called at the time.
        let set = check(unsafe {
            SetWaitableTimer(self.0.as_raw_handle(), &raw const due, 0, None, ptr::null(), 0)
        });
        if set.is_err() {
            return flag.is_set();
        }
        let both = [flag.0.as_raw_handle(), self.0.as_raw_handle()];
        // SAFETY: both handles are open, and the array lives through the call.
        unsafe { WaitForMultipleObjects(2, both.as_ptr(), 0, INFINITE) == WAIT_OBJECT_0 }
    }
}
