//! x
use super::harness::Test;
pub(super) const TESTS: &[Test] = &[];
