//! The requests for the files of a profile's libs.

use nyquist_convert::SavedCode;
use nyquist_object::{DebugId, ModuleId};
use nyquist_profile::Lib;
use nyquist_symbols::ModuleRequest;
use nyquist_system::files_of_lossy_path;
use std::path::PathBuf;

/// The request for a lib's files, by the identity in a saved profile.
pub fn module_request(lib: &Lib) -> ModuleRequest {
    // No file contains code generated at run time, so no server is queried.
    if SavedCode::is_of(lib) {
        return ModuleRequest::default();
    }
    let debug_id = DebugId::from_breakpad(&lib.breakpad_id);
    ModuleRequest {
        path: PathBuf::from(&lib.path),
        id: lib.code_id.as_deref().and_then(|code_id| ModuleId::from_profile(code_id, debug_id)),
        debug_id,
        debug_name: lib.debug_name.clone(),
        alternatives: files_of_lossy_path(&lib.path),
        ..ModuleRequest::default()
    }
}
