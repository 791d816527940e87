//! Tests of profiles before the recording ends, and of what they no longer contain.

use super::*;

#[test]
fn a_snapshot_is_the_profile_so_far() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, None, &[1])));
    converter.push(at(5, sample(1, 1, None, &[2])));
    converter.advance(Timestamp(2 * MS));
    assert_eq!(folded(&converter.snapshot()), ["0x1 1"]);
    assert_eq!(folded(&converter.finish().profile), ["0x1 1", "0x2 1"]);
}

#[test]
fn evicting_forgets_old_samples_and_their_stacks() {
    for root in [0x100, 0x7fff_ffff_0100] {
        let mut converter = converter(true);
        for time in 1..10 {
            converter.push(at(time, sample(1, 1, None, &[time, root + 1])));
        }
        converter.advance(Timestamp(100 * MS));
        converter.evict(Timestamp(8 * MS));
        converter.push(at(100, sample(1, 1, None, &[3, root + 1])));
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), [8, 9, 3].map(|leaf| format!("{root:#x};{leaf:#x} 1")));
        assert_eq!(profile.stacks().len(), 4);
    }
}

#[test]
fn condensing_keeps_the_sums_of_what_is_old() {
    let mut converter = converter(true);
    for time in 1..10 {
        converter.push(at(time, sample(1, 1, None, &[time % 2, 0x101])));
    }
    converter.advance(Timestamp(100 * MS));
    converter.condense(Timestamp(7 * MS));
    assert_eq!(
        folded(&converter.snapshot()),
        ["0x100;0x1 1", "0x100;0x0 3", "0x100;0x1 2", "0x100;0x1 1", "0x100;0x0 1", "0x100;0x1 1"]
    );
}
