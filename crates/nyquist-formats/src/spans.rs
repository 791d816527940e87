//! Makes samples from frames that open and close, as in tracing formats. Each interval of time with the same
//! stack becomes one sample.

use nyquist_profile::{FrameId, StackId, ThreadIndex};

use crate::import::Importer;

/// The frames that are open on a thread.
pub(crate) struct Spans {
    thread: ThreadIndex,
    /// The stack with each open frame, the innermost last, and whether it is of waiting.
    open: Vec<(StackId, bool)>,
    /// The end of the samples so far.
    time: u64,
}

impl Spans {
    pub(crate) fn new(thread: ThreadIndex) -> Self {
        Self { thread, open: Vec::new(), time: 0 }
    }

    /// Opens a frame in the innermost open one.
    pub(crate) fn open(&mut self, importer: &mut Importer, time: u64, frame: FrameId, off_cpu: bool) {
        self.pass(importer, time);
        let prefix = self.open.last().map(|&(stack, _)| stack);
        self.open.push((importer.stack(prefix, frame), off_cpu));
    }

    /// Closes the innermost frame, if one is open.
    pub(crate) fn close(&mut self, importer: &mut Importer, time: u64) {
        self.pass(importer, time);
        self.open.pop();
    }

    /// Closes all frames that are still open.
    pub(crate) fn end(mut self, importer: &mut Importer, time: u64) {
        self.pass(importer, time);
    }

    /// Makes a sample of the time since the last change. A time that goes backwards is replaced by the last
    /// one.
    fn pass(&mut self, importer: &mut Importer, time: u64) {
        let time = time.max(self.time);
        if let Some(&(stack, off_cpu)) = self.open.last()
            && time > self.time
        {
            importer.span(self.thread, self.time, (Some(stack), off_cpu), time - self.time);
        }
        self.time = time;
    }
}
