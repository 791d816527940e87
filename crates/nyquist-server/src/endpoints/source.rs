//! `POST source/v1`: the text of a source file
//! (<https://github.com/mstange/samply/blob/main/API.md>, "/source/v1").

use serde::{Deserialize, Serialize};

use super::json::{self, Hex};
use crate::config::Limits;
use crate::reply::ApiError;
use crate::symbol_source::{LibKey, SourceRequest, SymbolSource};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SourceRequestBody {
    debug_name: String,
    debug_id: String,
    module_offset: Hex,
    file: String,
}

/// The two dates are part of the format. They are unknown here, which null means in the format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceResponseBody<'a> {
    symbols_last_modified: Option<&'a str>,
    source_last_modified: Option<&'a str>,
    file: &'a str,
    source: &'a str,
}

/// Handles a request body.
pub(crate) fn answer(body: &[u8], symbols: &dyn SymbolSource, limits: &Limits) -> Result<Vec<u8>, ApiError> {
    let request: SourceRequestBody = json::parse(body)?;
    let request = SourceRequest {
        lib: LibKey { debug_name: request.debug_name, breakpad_id: request.debug_id },
        address: request.module_offset.to_address("moduleOffset")?,
        file: request.file,
    };
    let source = symbols.source(&request).map_err(ApiError::unavailable)?;
    let answer = SourceResponseBody {
        symbols_last_modified: None,
        source_last_modified: None,
        file: &request.file,
        source: &source,
    };
    json::write(&answer, limits.answer_bytes)
}
