//! `POST symbolicate/v5`: addresses to names
//! (<https://tecken.readthedocs.io/en/latest/symbolication.html>, version 5, with the inlined frames that
//! <https://github.com/mstange/samply/blob/main/API.md> adds).

use std::collections::BTreeMap;

use nyquist_object::RelativeAddress;
use serde::{Deserialize, Serialize, Serializer};

use super::json::{self, Hex};
use crate::config::Limits;
use crate::reply::ApiError;
use crate::symbol_source::{AddressInfo, InlineFrame, LibKey, SymbolSource};

/// A list of jobs, or the fields of a single job. Both are in one struct, because an enum would make the
/// parser store the request a second time, in a form many times as large.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SymbolicateRequestBody {
    jobs: Option<Vec<SymbolicateJob>>,
    memory_map: Option<Vec<(String, String)>>,
    stacks: Option<Vec<AddressStack>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SymbolicateJob {
    /// Debug names and debug ids.
    memory_map: Vec<(String, String)>,
    stacks: Vec<AddressStack>,
}

/// Indexes into the memory map, and addresses. An address of more than 32 bits is in no lib. It gets such
/// a result, and the other addresses are still resolved.
type AddressStack = Vec<(u32, u64)>;

/// Handles a request body.
pub(crate) fn answer(body: &[u8], symbols: &dyn SymbolSource, limits: &Limits) -> Result<Vec<u8>, ApiError> {
    let jobs = json::parse::<SymbolicateRequestBody>(body)?.into_jobs()?;
    jobs.iter().enumerate().try_for_each(|(index, job)| job.check(index))?;
    json::write(
        &SymbolicateResponseBody { results: JobResults { jobs: &jobs, symbols } },
        limits.answer_bytes,
    )
}

impl SymbolicateRequestBody {
    fn into_jobs(self) -> Result<Vec<SymbolicateJob>, ApiError> {
        match (self.jobs, self.memory_map, self.stacks) {
            (Some(jobs), None, None) => Ok(jobs),
            (None, Some(memory_map), Some(stacks)) => Ok(vec![SymbolicateJob { memory_map, stacks }]),
            _ => Err(ApiError::bad_request("bad request: expected either jobs, or memoryMap and stacks")),
        }
    }
}

impl SymbolicateJob {
    /// Checks that every frame refers to a module of the job.
    fn check(&self, index: usize) -> Result<(), ApiError> {
        let modules = self.memory_map.len();
        match self.stacks.iter().flatten().find(|(module, _)| *module as usize >= modules) {
            Some((module, _)) => Err(ApiError::bad_request(format_args!(
                "bad request: a frame of job {index} is in module {module} of {modules}"
            ))),
            None => Ok(()),
        }
    }
}

/// The addresses of a job in one of its modules, and the results.
struct ModuleAddresses<'j> {
    name: &'j str,
    key: String,
    /// Ascending, without duplicates.
    addresses: Vec<RelativeAddress>,
    /// One for each address; `None` if the lib is unknown.
    answers: Option<Vec<Option<AddressInfo>>>,
}

impl ModuleAddresses<'_> {
    fn info(&self, address: u64) -> Option<&AddressInfo> {
        let address = RelativeAddress(u32::try_from(address).ok()?);
        let index = self.addresses.binary_search(&address).ok()?;
        self.answers.as_ref()?.get(index)?.as_ref()
    }
}

/// Looks up all addresses of a job, with one lookup per module.
fn look_up<'j>(job: &'j SymbolicateJob, symbols: &dyn SymbolSource) -> Vec<ModuleAddresses<'j>> {
    let mut requested = vec![Vec::new(); job.memory_map.len()];
    for (module, address) in job.stacks.iter().flatten() {
        if let (Some(addresses), Ok(address)) = (requested.get_mut(*module as usize), u32::try_from(*address))
        {
            addresses.push(RelativeAddress(address));
        }
    }
    job.memory_map
        .iter()
        .zip(requested)
        .map(|(names, addresses)| look_up_module(names, addresses, symbols))
        .collect()
}

fn look_up_module<'j>(
    (name, id): &'j (String, String),
    mut addresses: Vec<RelativeAddress>,
    symbols: &dyn SymbolSource,
) -> ModuleAddresses<'j> {
    addresses.sort_unstable();
    addresses.dedup();
    let lib = LibKey { debug_name: name.clone(), breakpad_id: id.clone() };
    let answers = symbols.symbolicate(&lib, &addresses);
    ModuleAddresses { name, key: lib.to_string(), addresses, answers }
}

#[derive(Serialize)]
struct SymbolicateResponseBody<'j> {
    results: JobResults<'j>,
}

/// The results. Each job is looked up when its result is written, so that the results of only one job at a
/// time are in memory.
struct JobResults<'j> {
    jobs: &'j [SymbolicateJob],
    symbols: &'j dyn SymbolSource,
}

impl Serialize for JobResults<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.jobs.iter().map(|job| JobAnswer::new(job, look_up(job, self.symbols))))
    }
}

#[derive(Serialize)]
struct JobAnswer<'j> {
    stacks: StackResults<'j>,
    found_modules: BTreeMap<String, bool>,
}

impl<'j> JobAnswer<'j> {
    fn new(job: &'j SymbolicateJob, modules: Vec<ModuleAddresses<'j>>) -> Self {
        let found_modules =
            modules.iter().map(|module| (module.key.clone(), module.answers.is_some())).collect();
        Self { stacks: StackResults { stacks: &job.stacks, modules }, found_modules }
    }
}

struct StackResults<'j> {
    stacks: &'j [AddressStack],
    modules: Vec<ModuleAddresses<'j>>,
}

impl Serialize for StackResults<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.stacks.iter().map(|stack| StackAnswer { stack, modules: &self.modules }))
    }
}

struct StackAnswer<'j> {
    stack: &'j AddressStack,
    modules: &'j [ModuleAddresses<'j>],
}

impl Serialize for StackAnswer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = self.stack.iter().enumerate();
        serializer.collect_seq(frames.filter_map(|(index, (module, address))| {
            Some(FrameAnswer::new(index, self.modules.get(*module as usize)?, *address))
        }))
    }
}

/// A frame. Unknown fields are left out, because the front end refuses a whole response with a null.
#[derive(Serialize)]
struct FrameAnswer<'j> {
    frame: usize,
    module: &'j str,
    module_offset: Hex,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    info: Option<InfoAnswer<'j>>,
}

#[derive(Serialize)]
struct InfoAnswer<'j> {
    function: &'j str,
    function_offset: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_size: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlines: Vec<InlineAnswer<'j>>,
}

#[derive(Serialize)]
struct InlineAnswer<'j> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl<'j> FrameAnswer<'j> {
    fn new(frame: usize, module: &'j ModuleAddresses<'j>, address: u64) -> Self {
        let info = module.info(address).map(InfoAnswer::from);
        Self { frame, module: module.name, module_offset: Hex(address), info }
    }
}

impl<'j> From<&'j AddressInfo> for InfoAnswer<'j> {
    fn from(info: &'j AddressInfo) -> Self {
        Self {
            function: &info.function,
            function_offset: info.function_offset.into(),
            function_size: info.function_size.map(Hex::from),
            file: info.file.as_deref(),
            line: info.line,
            inlines: info.inlines.iter().map(InlineAnswer::from).collect(),
        }
    }
}

impl<'j> From<&'j InlineFrame> for InlineAnswer<'j> {
    fn from(inline: &'j InlineFrame) -> Self {
        Self { function: inline.function.as_deref(), file: inline.file.as_deref(), line: inline.line }
    }
}
