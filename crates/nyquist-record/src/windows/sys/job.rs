//! A job whose process ends with this program, until it is released.

use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::{io, mem, ptr};

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_BREAKAWAY_OK,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectExtendedLimitInformation, SetInformationJobObject,
};

use super::{check, owned};

/// A process in a job. If this program ends, however that happens, the system closes the job and ends the process.
#[derive(Debug)]
pub(crate) struct KillOnCloseJob(OwnedHandle);

impl KillOnCloseJob {
    /// Ties a process to this program.
    pub(crate) fn on(process: &OwnedHandle) -> io::Result<Self> {
        // SAFETY: null pointers mean the default security and no name.
        let job = Self(owned(unsafe { CreateJobObjectW(ptr::null(), ptr::null()) })?);
        job.limit(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(job.0.as_raw_handle(), process.as_raw_handle()) })?;
        Ok(job)
    }

    /// Lets the process live on. It stays in the job, which has no limits any more, and which processes may leave
    /// that are started so (`CREATE_BREAKAWAY_FROM_JOB`).
    pub(crate) fn release(self) -> io::Result<()> {
        self.limit(JOB_OBJECT_LIMIT_BREAKAWAY_OK)
    }

    fn limit(&self, flags: u32) -> io::Result<()> {
        // SAFETY: the structure is plain numbers, for which zeros are valid.
        let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { mem::zeroed() };
        limits.BasicLimitInformation.LimitFlags = flags;
        // SAFETY: the handle is open; the structure has the size that is passed, and lives through the call.
        check(unsafe {
            SetInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_val(&limits) as u32,
            )
        })
    }
}
