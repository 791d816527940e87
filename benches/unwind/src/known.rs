//! The checked-in list of known differences.
