//! Names of events: any text, and the notes of probes that programs are built with.

use nyquist_record::linux::event_names::{EventSources, parse, user_probes_in_notes};

/// Takes one input.
pub fn run(bytes: &[u8]) {
    user_probes_in_notes(bytes, Some(0x1000), true);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let nothing = EventSources::in_folders("/no/such/folder".into(), None);
    for sources in [nothing, EventSources::of_machine()] {
        if let Err(error) = parse(text, &sources) {
            assert!(text.get(error.at.clone()).is_some(), "the place of an error is a part of the text");
            error.hints();
        }
    }
}
