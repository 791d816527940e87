//! `source`: the lines of a function's file and the function's instructions, with the weight of each.

use std::collections::HashMap;

use nyquist_analysis::schema::{LineRow, Whole};
use nyquist_analysis::{Amount, CodeSelection};
use nyquist_object::RelativeAddress;
use nyquist_profile::{FuncId, Lib, NativeSymbolId};
use nyquist_server::{AssemblyRequest, LibKey, SourceRequest, ViewerError};
use serde::Serialize;

use super::code_places::{CodePlaces, InlinedPlace};
use super::context::QueryContext;
use crate::function_table::FunctionTable;
use crate::selection::function;

/// The number of bytes that are disassembled if the size of a function is not known.
const UNKNOWN_SIZE: u32 = 256;

/// The maximum number of bytes that are disassembled.
const MAX_CODE_BYTES: u32 = 1 << 20;

#[derive(Debug, Serialize)]
pub(super) struct SourceAnswer<'a> {
    function: usize,
    functions: FunctionTable<'a>,
    #[serde(flatten)]
    whole: Whole,
    file: Option<String>,
    text: Option<String>,
    message: Option<String>,
    /// The lines of the file, in order.
    lines: Vec<LineRow<'a>>,
    assembly: Instructions,
}

/// Address, text, self weight, total weight, line, and the number of the inlined code's place.
type InstructionRow = (u32, String, u64, u64, Option<u32>, Option<usize>);

#[derive(Debug, Default, Serialize)]
struct Instructions {
    message: Option<String>,
    #[serde(rename = "instructions")]
    rows: Vec<InstructionRow>,
    /// The places of inlined code: function, file, line.
    places: Vec<InlinedPlace>,
}

pub(super) fn answer<'a>(context: &QueryContext<'_, 'a>) -> Result<SourceAnswer<'a>, ViewerError> {
    let func = function(context.parameters.required("function")?, context.view.profile())?;
    let mut functions = FunctionTable::with_places();
    let mut listing = SourceAnswer {
        function: context.number(&mut functions, func),
        functions,
        whole: context.rows().whole(),
        file: None,
        text: None,
        message: None,
        lines: Vec::new(),
        assembly: Instructions::default(),
    };
    fill_lines(context, func, &mut listing);
    listing.assembly = instructions(context, func);
    Ok(listing)
}

/// The lines of the file in which the function has most of its time; without samples, of the file that
/// defines it.
fn fill_lines<'a>(context: &QueryContext<'_, 'a>, func: FuncId, listing: &mut SourceAnswer<'a>) {
    let lines = context.view.lines(CodeSelection::Function(func));
    let mut by_file: HashMap<&str, Amount> = HashMap::new();
    for line in &lines {
        if let Some(file) = line.file {
            *by_file.entry(file).or_default() += line.total;
        }
    }
    let heaviest = by_file.into_iter().max_by_key(|(file, amount)| (*amount, std::cmp::Reverse(*file)));
    let file = heaviest.map(|(file, _)| file).or_else(|| context.view.function(func).file);
    let Some(file) = file else {
        listing.message = Some("The debug info names no file of this function.".to_owned());
        return;
    };
    let rows = context.rows();
    let of_file = lines.iter().filter(|line| line.file == Some(file) && line.line.is_some());
    listing.lines = of_file.map(|line| rows.line(line)).collect();
    listing.lines.sort_by_key(|line| line.line);
    listing.file = Some(file.to_owned());
    match text(context, func, file) {
        Ok(text) => listing.text = Some(text),
        Err(message) => listing.message = Some(message),
    }
}

fn text(context: &QueryContext<'_, '_>, func: FuncId, file: &str) -> Result<String, String> {
    let profile = context.view.profile();
    let place = profile.frames().iter().filter(|frame| frame.func == func).find_map(|frame| {
        let address = frame.address?;
        Some((profile.func(func).lib?, address))
    });
    let Some((lib, address)) = place else {
        return Err("The profile does not say which lib this function is in.".to_owned());
    };
    let lib = key(profile.lib(lib));
    let request = SourceRequest { lib, address: RelativeAddress(address), file: file.to_owned() };
    context.symbols.source(&request).map_err(|error| error.to_string())
}

fn instructions(context: &QueryContext<'_, '_>, func: FuncId) -> Instructions {
    let profile = context.view.profile();
    let Some(symbol) = busiest_symbol(context, func) else {
        let message = "The profile does not say which machine code this function is in.".to_owned();
        return Instructions { message: Some(message), ..Instructions::default() };
    };
    let symbol = profile.native_symbol(symbol);
    let request = AssemblyRequest {
        lib: key(profile.lib(symbol.lib)),
        start: RelativeAddress(symbol.address),
        size: symbol.size.unwrap_or(UNKNOWN_SIZE).min(MAX_CODE_BYTES),
        continue_until_function_end: symbol.size.is_none(),
    };
    let assembly = match context.symbols.assembly(&request) {
        Ok(assembly) => assembly,
        Err(error) => return Instructions { message: Some(error.to_string()), ..Instructions::default() },
    };
    let rows = context.view.instructions(CodeSelection::Function(func));
    let amounts: HashMap<u32, (u64, u64)> = rows
        .into_iter()
        .filter(|row| row.lib == symbol.lib)
        .map(|row| (row.address, (row.self_amount.weight, row.total.weight)))
        .collect();
    let ends: Vec<u32> =
        assembly.instructions.iter().map(|one| assembly.start.0.saturating_add(one.offset)).collect();
    let places = CodePlaces::of(context, func, &request.lib, &ends);
    let mut listed = Vec::with_capacity(ends.len());
    for (position, one) in assembly.instructions.into_iter().enumerate() {
        let address = ends[position];
        let end = ends.get(position + 1).copied().unwrap_or(address.saturating_add(16));
        // The address of a caller is a return address less one, which is within the call.
        let within = (address..end).filter_map(|address| amounts.get(&address));
        let (own, total) = within.fold((0, 0), sum);
        listed.push((address, one.text, own, total, places.line(address..end), places.inlined(address)));
    }
    Instructions { message: None, rows: listed, places: places.into_places() }
}

fn sum(a: (u64, u64), b: &(u64, u64)) -> (u64, u64) {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

/// The symbol whose code has most of a function's time.
fn busiest_symbol(context: &QueryContext<'_, '_>, func: FuncId) -> Option<NativeSymbolId> {
    let profile = context.view.profile();
    let rows = context.view.instructions(CodeSelection::Function(func));
    let mut symbol_of: HashMap<(usize, u32), NativeSymbolId> = HashMap::new();
    for frame in profile.frames().iter().filter(|frame| frame.func == func) {
        if let (Some(lib), Some(address), Some(symbol)) =
            (profile.func(func).lib, frame.address, frame.native_symbol)
        {
            symbol_of.insert((lib.index(), address), symbol);
        }
    }
    let mut totals: HashMap<NativeSymbolId, (u64, u64)> = HashMap::new();
    for row in &rows {
        if let Some(symbol) = symbol_of.get(&(row.lib.index(), row.address)) {
            let sums = totals.entry(*symbol).or_default();
            *sums = sum(*sums, &(row.self_amount.weight, row.total.weight));
        }
    }
    let busiest = totals.into_iter().max_by_key(|(symbol, sums)| (*sums, std::cmp::Reverse(symbol.index())));
    busiest.map(|(symbol, _)| symbol).or_else(|| symbol_of.into_values().min_by_key(|symbol| symbol.index()))
}

pub(super) fn key(lib: &Lib) -> LibKey {
    LibKey { debug_name: lib.debug_name.clone(), breakpad_id: lib.breakpad_id.clone() }
}
