//! The order stage: events of several sources, each in its own order, become one sequence by time.

use crate::event::{Event, Timestamp};

/// Holds events back until no older ones can come.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Events in the order of arrival. An event is `None` once it has been released, while others are still
    /// being released.
    waiting: Vec<Option<Event>>,
    /// The time and the index of each event. These are sorted instead of the events, which are ten times as
    /// large.
    by_time: Vec<(Timestamp, u32)>,
    released: Timestamp,
    /// The time of the oldest waiting event; `None` if no event waits.
    oldest: Option<Timestamp>,
    late: u64,
}

impl Order {
    /// Adds an event.
    pub(crate) fn push(&mut self, event: Event) {
        // Totals have no time, so they have no place in the order.
        if event.time < self.released && event.time != Timestamp(0) {
            self.late += 1;
        }
        self.oldest = Some(self.oldest.map_or(event.time, |oldest| oldest.min(event.time)));
        self.waiting.push(Some(event));
    }

    /// Releases all events older than `complete_before`, by time. The caller guarantees that it has pushed
    /// all of them. Events of the same time keep the order in which they came.
    ///
    /// Sorting the waiting events costs O(n log n) at worst, and O(n) for the few sorted runs that ring
    /// buffers deliver.
    pub(crate) fn release(&mut self, complete_before: Timestamp, mut take: impl FnMut(Event)) {
        self.released = self.released.max(complete_before);
        // Of many buffers that come at once, only the last one completes more time.
        if self.oldest.is_none_or(|oldest| oldest >= complete_before) {
            return;
        }
        self.by_time.clear();
        let is_ready = |event: &Event| event.time < complete_before;
        let places = (0..).zip(self.waiting.iter().flatten()).filter(|(_, event)| is_ready(event));
        self.by_time.extend(places.map(|(place, event)| (event.time, place)));
        self.by_time.sort_by_key(|(time, _)| *time);
        for (_, place) in &self.by_time {
            if let Some(event) = self.waiting.get_mut(*place as usize).and_then(Option::take) {
                take(event);
            }
        }
        // The next events use the memory of the removed ones.
        self.waiting.retain(Option::is_some);
        self.oldest = self.waiting.iter().flatten().map(|event| event.time).min();
    }

    /// How many events came after younger events had been released. They are released immediately.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;

    fn event(time: u64, records: u64) -> Event {
        Event { time: Timestamp(time), cpu: None, kind: EventKind::Lost { records } }
    }

    fn released(order: &mut Order, complete_before: u64) -> Vec<Event> {
        let mut events = Vec::new();
        order.release(Timestamp(complete_before), |event| events.push(event));
        events
    }

    fn times(order: &mut Order, complete_before: u64) -> Vec<u64> {
        released(order, complete_before).iter().map(|event| event.time.0).collect()
    }

    #[test]
    fn two_sources_become_one_sequence() {
        let mut order = Order::default();
        for time in [1, 4, 7, 2, 3, 9] {
            order.push(event(time, 0));
        }
        assert_eq!(times(&mut order, 7), [1, 2, 3, 4]);
        assert_eq!(order.waiting.len(), 2);
        order.push(event(8, 0));
        assert_eq!(times(&mut order, u64::MAX), [7, 8, 9]);
        assert_eq!(order.late(), 0);
    }

    #[test]
    fn events_of_one_time_keep_their_order() {
        let mut order = Order::default();
        for records in 0..4 {
            order.push(event(5, records));
        }
        let kinds: Vec<_> = released(&mut order, 6).into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [0, 1, 2, 3].map(|records| EventKind::Lost { records }));
    }

    #[test]
    fn a_late_event_is_counted_and_not_lost() {
        let mut order = Order::default();
        order.push(event(5, 0));
        assert_eq!(times(&mut order, 6), [5]);
        order.push(event(3, 0));
        assert_eq!(times(&mut order, 6), [3]);
        assert_eq!(order.late(), 1);
    }
}
