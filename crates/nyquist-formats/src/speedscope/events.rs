//! Writes samples with exact times as frames that open and close, because a list of samples cannot express
//! the time between them.

use std::io::{self, Write};

use nyquist_profile::Sample;

use crate::json::separate;

/// Writes the events of samples in the order of time. `frames` has the frames of each from the outermost on.
/// Frames that a sample shares with an immediately preceding one stay open. O(samples × depth).
pub(super) fn write_events(
    out: &mut impl Write,
    samples: impl Iterator<Item = Sample>,
    interval: u64,
    frames: impl Fn(&Sample) -> Vec<usize>,
) -> io::Result<()> {
    let mut events = EventWriter { out, count: 0, open: Vec::new(), time: 0 };
    for sample in samples {
        let next = frames(&sample);
        let start = sample.start(interval).max(events.time);
        let is_next = start == events.time;
        let same = events.open.iter().zip(&next).take_while(|(open, next)| is_next && open == next).count();
        events.close(same)?;
        events.time = start;
        events.open(&next[same..])?;
        events.time = sample.time.max(start);
    }
    events.close(0)
}

struct EventWriter<'a, Out> {
    out: &'a mut Out,
    count: usize,
    open: Vec<usize>,
    /// The time of the next event.
    time: u64,
}

impl<Out: Write> EventWriter<'_, Out> {
    fn open(&mut self, frames: &[usize]) -> io::Result<()> {
        for &frame in frames {
            self.event('O', frame)?;
            self.open.push(frame);
        }
        Ok(())
    }

    /// Closes the innermost frames, and keeps `kept` outermost ones.
    fn close(&mut self, retained: usize) -> io::Result<()> {
        while self.open.len() > retained
            && let Some(frame) = self.open.pop()
        {
            self.event('C', frame)?;
        }
        Ok(())
    }

    fn event(&mut self, kind: char, frame: usize) -> io::Result<()> {
        separate(self.out, self.count)?;
        self.count += 1;
        write!(self.out, "{{\"type\":\"{kind}\",\"at\":{},\"frame\":{}}}", self.time, frame)
    }
}
