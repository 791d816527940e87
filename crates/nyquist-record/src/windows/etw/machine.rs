//! What a recording by events needs to know of the machine.

use std::os::windows::io::OwnedHandle;
use std::sync::Arc;

use crate::etw::EtwSystem;
use crate::suspend::ProcessFamily;
use crate::suspend::system::ListedProcess;
use crate::windows::listing::ProcessListing;
use crate::windows::process_has_ended;
use crate::windows::sys::timer::Flag;
use crate::windows::sys::{clock, process};

/// The machine, with the processes whose end ends the recording.
#[derive(Debug)]
pub(crate) struct WindowsMachine {
    pub(crate) stop: Arc<Flag>,
    /// While they are open, their numbers are not used again.
    pub(crate) named: Vec<(u32, OwnedHandle)>,
}

impl EtwSystem for WindowsMachine {
    fn now(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn family(&mut self) -> Vec<u32> {
        let mut listing = ProcessListing::default();
        listing.refresh();
        let listed: Vec<ListedProcess> = listing.processes().collect();
        let named = self.named.iter().map(|(pid, _)| *pid);
        let descendants = ProcessFamily::of(named.clone()).update(&listed, std::process::id());
        named.chain(descendants.into_iter().map(|process| process.pid)).collect()
    }

    fn have_named_ended(&mut self) -> bool {
        !self.named.is_empty() && self.named.iter().all(|(_, process)| process::has_ended(process))
    }

    fn lives(&mut self, pid: u32) -> bool {
        !process_has_ended(pid)
    }
}
