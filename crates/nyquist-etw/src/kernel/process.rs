//! Processes: the class `Process` (MOF `Process_TypeGroup1` of the versions 0 to 4; later ones add fields at
//! the end).

use super::change::ObjectChange;
use crate::{Event, PayloadError, fields::EventFields};

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// What it did.
    pub change: ObjectChange,
    /// The process.
    pub pid: u32,
    /// The process that began it.
    pub parent: u32,
    /// The session of the user that it belongs to, or `None` if the event is too old to have it.
    pub session: Option<u32>,
    /// The name of its program's file, without folder. The name can be cut.
    pub image_name: String,
    /// Its command line; empty if the event is too old to have it.
    pub command_line: String,
}

pub(super) fn decode(event: &Event<'_>) -> Result<Option<Process>, PayloadError> {
    let Some(change) = ObjectChange::of(event.opcode) else { return Ok(None) };
    let mut fields = EventFields::of(event, "Process");
    let process =
        if event.version == 0 { oldest(change, fields)? } else { process(change, event, &mut fields)? };
    Ok(Some(process))
}

/// Version 0, whose numbers are as wide as pointers.
fn oldest(change: ObjectChange, mut fields: EventFields<'_>) -> Result<Process, PayloadError> {
    let pid = fields.pointer("process")? as u32;
    let parent = fields.pointer("parent")? as u32;
    skip_user(&mut fields)?;
    let image_name = fields.text();
    Ok(Process { change, pid, parent, session: None, image_name, command_line: String::new() })
}

fn process(
    change: ObjectChange,
    event: &Event<'_>,
    fields: &mut EventFields<'_>,
) -> Result<Process, PayloadError> {
    // In version 1 the first field has another meaning, and the same size.
    fields.skip_pointers(1, "key")?;
    let pid = fields.u32("process")?;
    let parent = fields.u32("parent")?;
    let session = Some(fields.u32("session")?);
    fields.skip(4, "exit status")?;
    if event.version >= 3 {
        fields.skip_pointers(1, "directory table")?;
    }
    if event.version >= 4 {
        fields.skip(4, "flags")?;
    }
    skip_user(fields)?;
    let image_name = fields.text();
    let command_line = if event.version >= 2 { fields.utf16() } else { String::new() };
    Ok(Process { change, pid, parent, session, image_name, command_line })
}

/// Skips the user: a zero of 4 bytes, or `TOKEN_USER` (two fields as wide as pointers) and a `SID` (MS-DTYP
/// 2.4.2.2: 8 bytes, of which the second one is the number of sub-authorities of 4 bytes each).
fn skip_user(fields: &mut EventFields<'_>) -> Result<(), PayloadError> {
    let mut user = *fields;
    if user.u32("user")? == 0 {
        *fields = user;
        return Ok(());
    }
    fields.skip_pointers(2, "user")?;
    fields.skip(1, "user")?;
    let authorities = fields.u8("user")?;
    fields.skip(6 + 4 * usize::from(authorities), "user")
}
