//! `POST asm/v1`: the instructions of a function
//! (<https://github.com/mstange/samply/blob/main/API.md>, "/asm/v1").

use serde::{Deserialize, Serialize};

use super::json::{self, Hex};
use crate::config::Limits;
use crate::reply::ApiError;
use crate::symbol_source::{Assembly, AssemblyRequest, LibKey, SymbolSource};

/// A viewer also sends the binary's `name` and `codeId`. The profile has both, by the lib's key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AssemblyRequestBody {
    debug_name: String,
    debug_id: String,
    start_address: Hex,
    size: Hex,
    #[serde(default)]
    continue_until_function_end: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AssemblyResponseBody<'a> {
    start_address: Hex,
    size: Hex,
    arch: &'a str,
    syntax: [&'a str; 1],
    instructions: Vec<(u32, &'a str)>,
}

/// Handles a request body.
pub(crate) fn answer(body: &[u8], symbols: &dyn SymbolSource, limits: &Limits) -> Result<Vec<u8>, ApiError> {
    let request: AssemblyRequestBody = json::parse(body)?;
    let request = AssemblyRequest {
        start: request.start_address.to_address("startAddress")?,
        size: request.size.to_u32("size")?,
        continue_until_function_end: request.continue_until_function_end,
        lib: LibKey { debug_name: request.debug_name, breakpad_id: request.debug_id },
    };
    let assembly = symbols.assembly(&request).map_err(ApiError::unavailable)?;
    json::write(&AssemblyResponseBody::from(&assembly), limits.answer_bytes)
}

impl<'a> From<&'a Assembly> for AssemblyResponseBody<'a> {
    fn from(assembly: &'a Assembly) -> Self {
        Self {
            start_address: assembly.start.0.into(),
            size: assembly.size.into(),
            arch: &assembly.arch,
            syntax: [&assembly.syntax],
            instructions: assembly.instructions.iter().map(|one| (one.offset, &*one.text)).collect(),
        }
    }
}
