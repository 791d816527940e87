//! The code ranges of an entry.

use super::attribute::AttributeValue;
use gimli::constants;

/// The attributes by which an entry states its code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PcAttributes {
    pub(crate) low: Option<AttributeValue>,
    pub(crate) high: Option<AttributeValue>,
    pub(crate) ranges: Option<AttributeValue>,
}

impl PcAttributes {
    /// Records an attribute.
    pub(crate) fn take(&mut self, name: constants::DwAt, value: AttributeValue) {
        match name {
            constants::DW_AT_low_pc => self.low = Some(value),
            constants::DW_AT_high_pc => self.high = Some(value),
            constants::DW_AT_ranges => self.ranges = Some(value),
            _ => {}
        }
    }
}
