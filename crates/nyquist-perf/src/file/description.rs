//! Records that describe a file's events and its recording, as the sections of a file's header do.

use super::events::EventTable;
use super::features::{Features, feature};
use super::tool::{self, tool_record};
use crate::{ByteOrder, Header};

/// Adds what a record says of the events or of the recording.
pub(super) fn add_description(
    (table, features): (&mut EventTable, &mut Features),
    header: Header,
    body: &[u8],
    order: ByteOrder,
) {
    match header.kind {
        tool_record::HEADER_ATTR => {
            if let Some((attr, ids)) = tool::attr(body, order) {
                table.add(attr, ids, order);
            }
        }
        tool_record::EVENT_UPDATE => {
            if let Some((id, name)) = tool::event_name(body, order) {
                table.rename(id, &name);
            }
        }
        tool_record::HEADER_BUILD_ID => features.add_build_id(header.misc, body, order),
        tool_record::HEADER_FEATURE => {
            if let Some((number, bytes)) = tool::feature(body, order) {
                features.add(number, bytes, order);
                if number == feature::EVENT_DESC {
                    table.name(&features.events);
                }
            }
        }
        _ => {}
    }
}
