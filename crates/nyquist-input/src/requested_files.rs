//! The build ids of the files in a recording.

use nyquist_object::BuildId;
use nyquist_perf::abi::record;
use nyquist_perf::file::{FileBuildId, FileReader, RecordingItem};
use nyquist_perf::{MappedIdentity, RecordBody, RecordFormat, parse_record};
use std::collections::BTreeSet;

/// The most build ids. A recording of a whole machine has some thousand files.
const MAX_FILES: usize = 50_000;

/// The build ids of the files in a recording: those in its list or, if it has none, those of its mappings, for
/// which the recording is read once more.
pub(crate) fn requested_files(reader: &FileReader) -> BTreeSet<BuildId> {
    let listed = ids(&reader.features().build_ids);
    if !listed.is_empty() {
        return listed;
    }
    let Some(mut again) = reader.again() else { return listed };
    let format = RecordFormat { byte_order: again.byte_order(), ..RecordFormat::default() };
    let mut found = BTreeSet::new();
    while let Some(item) = again.read_next() {
        if let RecordingItem::Record(record) = item
            && record.header.kind == record::MMAP2
            && found.len() < MAX_FILES
        {
            found.extend(id_of_mapping(record.bytes, &format));
        }
    }
    // In a stream, the list is between the records.
    found.extend(ids(&again.features().build_ids));
    found
}

fn ids(listed: &[FileBuildId]) -> BTreeSet<BuildId> {
    listed.iter().filter_map(|file| BuildId::new(&file.build_id)).take(MAX_FILES).collect()
}

fn id_of_mapping(bytes: &[u8], format: &RecordFormat) -> Option<BuildId> {
    match parse_record(bytes, format).ok()?.body {
        RecordBody::Mmap(mapping) => match mapping.identity {
            MappedIdentity::BuildId(id) => BuildId::new(id),
            _ => None,
        },
        _ => None,
    }
}
