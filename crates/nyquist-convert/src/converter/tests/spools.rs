//! Conversions that are written to spools, and recovered.

use super::*;
use crate::spool::recover::recover;
use crate::spool::tap::SpoolTap;
use nyquist_spool::{Batch, RecoveredTables};

fn events() -> Vec<Event> {
    let mut events = vec![at(0, name(1, 1, "sh", true))];
    for time in 1..=20 {
        events.push(at(time, sample(1, 1, Some(time), &[time % 3, 0x101])));
    }
    events.push(at(21, name(1, 1, "app", true)));
    events.push(at(22, fork(2, 2, 1)));
    events.push(at(23, name(2, 2, "worker", false)));
    for time in 24..=40 {
        events.push(at(time, sample(1 + (time as u32) % 2, 1 + (time as u32) % 2, None, &[time % 5, 0x201])));
    }
    events.push(at(41, exit(2, 2)));
    events.push(at(42, sample(1, 1, None, &[7, 0x101])));
    events
}

/// The profile that the batches give.
fn recovered(batches: &[Batch]) -> Profile {
    let mut tables = RecoveredTables::default();
    for record in batches.iter().flat_map(Batch::records) {
        tables.take(record, 0);
    }
    let spool = tables.finish().unwrap();
    assert_eq!(spool.refused, 0);
    recover(spool, true).profile
}

#[test]
fn what_is_recovered_is_the_profile_so_far() {
    let (mut converter, mut tap, mut batches) = (converter(true), SpoolTap::default(), Vec::new());
    for (number, event) in events().into_iter().enumerate() {
        let until = Timestamp(event.time.0 + 1);
        converter.push(event);
        converter.advance(until);
        if number % 4 == 3 {
            tap.want_names();
            batches.push(converter.spool(&mut tap, Timestamp(0)));
            assert!(recovered(&batches) == converter.snapshot(), "after event {number}");
        }
    }
    let sizes: Vec<_> = batches.iter().map(Batch::size).collect();
    // Each batch has what is new, and no more.
    assert!(sizes.iter().all(|size| *size < 900), "{sizes:?}");
}

#[test]
fn new_threads_have_names_at_once() {
    let (mut converter, mut tap, mut batches) = (converter(true), SpoolTap::default(), Vec::new());
    for time in 1..200 {
        converter.push(at(time, name(1, time as u32, "named", false)));
        converter.push(at(time, sample(1, time as u32, None, &[0x101])));
        converter.advance(Timestamp(time * MS + 1));
        batches.push(converter.spool(&mut tap, Timestamp(0)));
    }
    let profile = recovered(&batches);
    assert_eq!(profile.threads().len(), 199);
    assert!(profile.threads().iter().all(|thread| thread.name == "named"));
}

#[test]
fn tables_that_were_made_anew_are_written_anew() {
    let (mut converter, mut tap) = (converter(true), SpoolTap::default());
    for event in events() {
        converter.push(event);
    }
    converter.advance(Timestamp(100 * MS));
    let before = converter.spool(&mut tap, Timestamp(0));
    assert_eq!(tap.epoch(), 0);
    converter.evict(Timestamp(30 * MS));
    let after = converter.spool(&mut tap, Timestamp(0));
    assert_eq!(tap.epoch(), 1);
    assert!(recovered(&[after]) == converter.snapshot());
    assert!(recovered(&[before]) != converter.snapshot());
}
