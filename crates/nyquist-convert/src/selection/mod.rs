//! What is requested of a recording: the requested processes, and the samples that the user
//! selects.

pub(crate) mod event_selection;
pub(crate) mod name_pattern;
pub(crate) mod process_filter;
pub(crate) mod sample_selection;
