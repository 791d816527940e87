//! An annotated function as JSON.

use super::annotated::AnnotatedFunction;
use super::code::{Code, Instruction};
use super::listing::FileLines;
use super::rows::heat;
use nyquist_analysis::PlaceWeight;
use serde_json::{Value, json};

/// The object that `docs/report-json.md` describes.
pub(super) fn json(annotated: &AnnotatedFunction<'_>) -> Value {
    let weight = annotated.places.function;
    let func = annotated.funcs.first().map(|&func| annotated.profile.func(func));
    let lib = func.and_then(|func| func.lib).map(|lib| annotated.profile.lib(lib).name.as_str());
    json!({
        "schema": "nyquist-annotate/1",
        "handle": annotated.funcs.first().map(|func| format!("f-{}", func.index())),
        "function": annotated.name(),
        "lib": lib,
        "inlined_into": annotated.inlined_into(),
        "interval_ns": annotated.scale.interval_ns,
        "weight": annotated.scale.total,
        "self": weight.own,
        "total": weight.total,
        "self_share": annotated.scale.share(weight.own),
        "total_share": annotated.scale.share(weight.total),
        "files": annotated.listing.files.iter().map(|file| file_json(annotated, file)).collect::<Vec<_>>(),
        "code": annotated.listing.codes.iter().map(code_json).collect::<Vec<_>>(),
        "notes": annotated.listing.notes,
    })
}

fn file_json(annotated: &AnnotatedFunction<'_>, file: &FileLines) -> Value {
    let mut lines: Vec<_> = file.weights.iter().collect();
    if annotated.args.hottest {
        lines.sort_by_key(|(_, weight)| std::cmp::Reverse(heat(**weight)));
    }
    let line = |(line, weight): (&u32, &PlaceWeight)| {
        json!({
            "line": line,
            "source": file.text.as_ref().and_then(|text| text.line(*line)),
            "self": weight.own,
            "total": weight.total,
        })
    };
    json!({
        "file": file.file,
        "found": file.text.is_some(),
        "lines": lines.into_iter().map(line).collect::<Vec<_>>(),
    })
}

fn code_json(code: &Code) -> Value {
    let instruction = |one: &Instruction| {
        json!({
            "address": one.address,
            "instruction": one.text,
            "file": one.place.as_ref().map(|(file, _)| file),
            "line": one.place.as_ref().map(|(_, line)| line),
            "self": one.weight.own,
            "total": one.weight.total,
        })
    };
    json!({
        "symbol": code.name,
        "other_names": code.other_names,
        "lib": code.lib,
        "instructions": code.instructions.iter().map(instruction).collect::<Vec<_>>(),
    })
}
