//! The category of waiting, which exists only in the file. The front end can leave out its samples ("Include
//! idle samples").
//!
//! The front end uses the category of a sample's innermost frame. A function that waits may also run. So
//! frames in which threads waited have rows of their own, in the category `Idle`. The subcategory is the
//! frame's own category, which the reader restores ([`undo`]).

use std::io::Write;

use super::json::JsonWriter;
use super::raw::{RawFrames, RawIndex};
use super::raw_profile::RawProfile;
use crate::category::CategoryPair;
use crate::code::Frame;
use crate::id::CategoryId;
use crate::profile::Profile;

/// The name by which the front end recognises the category.
const IDLE: &str = "Idle";

/// The index of the category, after those of the profile.
#[derive(Clone, Copy)]
pub(super) struct IdleCategory(CategoryId);

impl IdleCategory {
    /// The category, if a thread waited at a known place. Profiles that already have such a category keep
    /// theirs.
    pub(super) fn of(profile: &Profile) -> Option<Self> {
        let categories = profile.categories();
        let has_own = categories.iter().any(|category| category.name == IDLE);
        // The front end stores categories in bytes.
        if has_own || categories.len() >= usize::from(u8::MAX) {
            return None;
        }
        let mut samples = profile.threads().iter().flat_map(|thread| thread.samples.iter());
        let waits = samples.any(|sample| sample.off_cpu && sample.stack.is_some());
        waits.then(|| Self(CategoryId::from_index(categories.len())))
    }

    /// Its index among the categories.
    pub(super) fn index(self) -> usize {
        self.0.index()
    }

    /// A frame in the idle category; `None` if its own category could not be restored.
    pub(super) fn frame(self, frame: &Frame) -> Option<Frame> {
        let subcategory = match frame.category {
            None => 0,
            Some(own) if own.subcategory == 0 => u16::try_from(own.category.index() + 1).ok()?,
            Some(_) => return None,
        };
        Some(Frame { category: Some(CategoryPair { category: self.0, subcategory }), ..*frame })
    }

    /// Writes the category. It has a subcategory for each other category.
    pub(super) fn write<W: Write>(json: &mut JsonWriter<W>, profile: &Profile) {
        json.object(|json| {
            json.key("name").string(IDLE);
            json.key("color").string("transparent");
            let names = profile.categories().iter().map(|category| category.name.as_str());
            json.column("subcategories", ["Other"].into_iter().chain(names), JsonWriter::string);
        });
    }
}

/// Restores the categories of waiting frames in a document with this program's idle category, and removes
/// that category.
pub(super) fn undo(raw: &mut RawProfile) {
    let Some(meta) = &mut raw.meta else { return };
    let last = meta.categories.len().checked_sub(1);
    let Some(idle) = last.filter(|_| meta.nyquist.idle_category == last) else { return };
    meta.categories.pop();
    undo_frames(&mut raw.shared.frame_table, idle);
    for thread in raw.threads.iter_mut().flatten() {
        undo_frames(&mut thread.frame_table, idle);
    }
}

fn undo_frames(frames: &mut RawFrames, idle: usize) {
    let (Some(categories), Some(subcategories)) = (&mut frames.category, &mut frames.subcategory) else {
        return;
    };
    for (category, subcategory) in categories.iter_mut().zip(subcategories) {
        if category.get().is_some_and(|category| category as usize == idle) {
            *category =
                subcategory.get().and_then(|own| own.checked_sub(1)).map_or(RawIndex::NONE, RawIndex::new);
            *subcategory = RawIndex::new(0);
        }
    }
}
