//! An annotated function as JSON.

use super::annotated::AnnotatedFunction;
use super::code::{Code, Instruction};
use super::listing::FileLines;
use super::rows::heat;
use nyquist_analysis::PlaceWeight;
use nyquist_analysis::schema::{Amounts, InstructionRow, SourceLineRow, Whole};
use serde::Serialize;
use std::borrow::Cow;

/// What `annotate --json` prints.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    schema: &'static str,
    handle: Option<String>,
    function: &'a str,
    lib: Option<&'a str>,
    inlined_into: Vec<&'a str>,
    #[serde(flatten)]
    whole: Whole,
    #[serde(flatten)]
    amounts: Amounts,
    files: Vec<FileAnswer<'a>>,
    code: Vec<CodeAnswer<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct FileAnswer<'a> {
    file: &'a str,
    found: bool,
    lines: Vec<SourceLineRow<'a>>,
}

#[derive(Serialize)]
struct CodeAnswer<'a> {
    symbol: &'a str,
    other_names: &'a [String],
    lib: &'a str,
    instructions: Vec<InstructionRow<'a>>,
}

/// The object that `docs/report-json.md` describes.
pub(super) fn answer<'a>(annotated: &'a AnnotatedFunction<'_>) -> Answer<'a> {
    let weight = annotated.places.function;
    let func = annotated.funcs.first().map(|&func| annotated.profile.func(func));
    let lib = func.and_then(|func| func.lib).map(|lib| annotated.profile.lib(lib).name.as_str());
    let listing = &annotated.listing;
    Answer {
        schema: "nyquist-annotate/1",
        handle: annotated.funcs.first().map(|func| format!("f-{}", func.index())),
        function: annotated.name(),
        lib,
        inlined_into: annotated.inlined_into(),
        whole: annotated.whole,
        amounts: annotated.whole.amounts(weight.own, weight.total),
        files: listing.files.iter().map(|file| file_answer(annotated, file)).collect(),
        code: listing.codes.iter().map(|code| code_answer(annotated.whole, code)).collect(),
        notes: &listing.notes,
    }
}

fn file_answer<'a>(annotated: &AnnotatedFunction<'_>, file: &'a FileLines) -> FileAnswer<'a> {
    let mut lines: Vec<_> = file.weights.iter().collect();
    if annotated.args.hottest {
        lines.sort_by_key(|(_, weight)| std::cmp::Reverse(heat(**weight)));
    }
    let line = |(&line, weight): (&u32, &PlaceWeight)| SourceLineRow {
        file: Cow::Borrowed(&file.file),
        line,
        source: file.text.as_ref().and_then(|text| text.line(line)).map(Cow::Borrowed),
        amounts: annotated.whole.amounts(weight.own, weight.total),
    };
    FileAnswer { file: &file.file, found: file.text.is_some(), lines: lines.into_iter().map(line).collect() }
}

fn code_answer(whole: Whole, code: &Code) -> CodeAnswer<'_> {
    let instruction = |one: &Instruction| InstructionRow {
        address: one.address,
        instruction: Cow::Owned(one.text.clone()),
        file: one.place.as_ref().map(|(file, _)| Cow::Owned(file.clone())),
        line: one.place.as_ref().map(|(_, line)| *line),
        amounts: whole.amounts(one.weight.own, one.weight.total),
    };
    CodeAnswer {
        symbol: &code.name,
        other_names: &code.other_names,
        lib: &code.lib,
        instructions: code.instructions.iter().map(instruction).collect(),
    }
}
