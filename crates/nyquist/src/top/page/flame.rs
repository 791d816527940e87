//! The flame graph, of the last seconds or of the whole recording.

use super::context::PageContext;
use super::types::Page;
use crate::flame_screen::FlameBoxes;

pub(super) fn page(context: &PageContext<'_>) -> Page {
    let view = context.view(context.question.period);
    let flame = FlameBoxes::of(view, context.question.is_inverted, context.names);
    Page {
        flame: Some(flame).filter(|flame| !flame.is_empty()),
        empty: context.nothing("Nothing was sampled in that time"),
        ..Page::default()
    }
}
