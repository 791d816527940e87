//! The lines and instructions of an annotated function that are shown, and their order.

use super::annotated::AnnotatedFunction;
use super::code::{Code, Instruction};
use super::listing::FileLines;
use crate::number::counted;
use nyquist_analysis::PlaceWeight;
use nyquist_symbols::short_source_path;
use std::cmp::Reverse;

/// A line of the text.
#[derive(Debug)]
pub(super) enum Row<'a> {
    /// A file or a symbol, above its lines or instructions.
    Heading(String),
    /// Lines that are left out.
    Gap,
    /// A source line.
    Line { weight: PlaceWeight, label: String, text: &'a str, instructions: Vec<&'a Instruction> },
    /// Inlined code without source, with its self weight.
    Folded(u64, String),
    /// An instruction, with its place if that differs from the place of the row before.
    Instruction(&'a Instruction, Option<String>),
}

/// The rows to show, and the number of lines and instructions that are left out.
pub(super) fn rows<'a>(annotated: &'a AnnotatedFunction<'_>) -> (Vec<Row<'a>>, u64) {
    let args = annotated.args;
    let folds = |file: &&FileLines| file.is_inlined_and_missing() && !args.read.verbosity.verbose;
    let (folded, files): (Vec<_>, Vec<_>) = annotated.listing.files.iter().partition(folds);
    let rows = match (args.asm, args.hottest) {
        (true, hottest) => asm_rows(&annotated.listing.codes, hottest),
        (false, true) => hottest_rows(&files, &folded),
        (false, false) => source_rows(&files, &folded, args.context),
    };
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    // In this order, those beyond the limit are the least hot ones.
    let context = if args.hottest { 0 } else { args.context };
    let (mut rows, left_out) = within(rows, limit, context);
    if !args.hottest {
        hide_repeated_places(&mut rows);
    }
    (rows, left_out)
}

fn source_rows<'a>(files: &[&'a FileLines], folded: &[&FileLines], context: u32) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for file in files {
        rows.push(Row::Heading(short_source_path(&file.file).into_owned()));
        rows.extend(file.shown_lines(context).into_iter().map(|line| match line {
            Some(line) => line_row(file, line, line.to_string()),
            None => Row::Gap,
        }));
    }
    rows.extend(folded_row(folded));
    rows
}

/// One row for all inlined code without source, because the standard library may have dozens of files.
fn folded_row<'a>(files: &[&FileLines]) -> Option<Row<'a>> {
    if files.is_empty() {
        return None;
    }
    let own = files.iter().map(|file| file.own_weight()).fold(0, u64::saturating_add);
    let lines = counted(files.iter().map(|file| file.weights.len() as u64).sum(), "line");
    let files = counted(files.len() as u64, "file");
    let text = format!("inlined: {lines} of {files} without source here (-v lists them)");
    Some(Row::Folded(own, text))
}

fn line_row(file: &FileLines, line: u32, label: String) -> Row<'_> {
    Row::Line {
        weight: file.weights.get(&line).copied().unwrap_or_default(),
        label,
        text: file.line_text(line),
        instructions: file.instructions.get(&line).into_iter().flatten().collect(),
    }
}

/// What the hottest lines and instructions are chosen by: the time in them with what they call. A line that
/// calls what takes the time is hotter than the function's closing brace.
pub(super) fn heat(weight: PlaceWeight) -> (u64, u64) {
    (weight.total, weight.own)
}

/// Only lines that have samples, those with the most first.
fn hottest_rows<'a>(files: &[&'a FileLines], folded: &[&FileLines]) -> Vec<Row<'a>> {
    let lines =
        files.iter().flat_map(|&file| file.weights.iter().map(move |(&line, &weight)| (file, line, weight)));
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|(_, line, weight)| (Reverse(heat(*weight)), *line));
    let label =
        |(file, line, _): &(&FileLines, u32, PlaceWeight)| format!("{}:{line}", base_name(&file.file));
    let width = lines.iter().map(|line| label(line).chars().count()).max().unwrap_or(0);
    lines
        .into_iter()
        .map(|line| {
            let label = format!("{:<width$}", label(&line));
            let mut row = line_row(line.0, line.1, label);
            if let Row::Line { instructions, .. } = &mut row {
                instructions.sort_by_key(|one| Reverse(heat(one.weight)));
            }
            row
        })
        .chain(folded_row(folded))
        .collect()
}

fn asm_rows(codes: &[Code], hottest: bool) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for code in codes {
        rows.push(Row::Heading(format!("{}  {}", code.name, code.lib)));
        let mut instructions: Vec<_> = code.instructions.iter().collect();
        if hottest {
            instructions.retain(|one| one.weight.total > 0);
            instructions.sort_by_key(|one| Reverse(heat(one.weight)));
        }
        let row = |instruction| Row::Instruction(instruction, place_label(instruction));
        rows.extend(instructions.into_iter().map(row));
    }
    rows
}

/// The source file and line of an instruction.
fn place_label(instruction: &Instruction) -> Option<String> {
    let (file, line) = instruction.place.as_ref()?;
    Some(format!("{}:{line}", base_name(file)))
}

/// Removes places that equal the place of the row before.
fn hide_repeated_places(rows: &mut [Row<'_>]) {
    let mut before = None;
    for row in rows {
        let Row::Instruction(instruction, label) = row else {
            before = None;
            continue;
        };
        if before == Some(&instruction.place) {
            *label = None;
        }
        before = Some(&instruction.place);
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Reduces the rows to `limit` lines and instructions. It keeps those that have samples, each with its
/// context, in their order; if these are too many, the hottest of them. Returns the number of rows left
/// out.
fn within(rows: Vec<Row<'_>>, limit: usize, context: u32) -> (Vec<Row<'_>>, u64) {
    let lines = rows.iter().filter(|row| row.weight().is_some()).count();
    if lines <= limit {
        return (rows, 0);
    }
    let retained = hottest_with_context(&rows, limit, context);
    let left_out = lines - retained.iter().filter(|retained| **retained).count();
    let mut shown = Vec::new();
    let (mut heading, mut is_cut) = (None, false);
    for (row, is_kept) in rows.into_iter().zip(retained) {
        match row {
            Row::Heading(_) => heading = Some(row),
            Row::Folded(..) if is_kept => {
                heading = None;
                shown.push(row);
            }
            _ if !is_kept => is_cut = true,
            _ => {
                let heading = heading.take();
                let above = if is_cut && heading.is_none() { Some(Row::Gap) } else { heading };
                shown.extend(above);
                shown.push(row);
                is_cut = false;
            }
        }
    }
    (shown, left_out as u64)
}

/// The rows to keep within `limit` lines and instructions; without samples, the first ones.
fn hottest_with_context(rows: &[Row<'_>], limit: usize, context: u32) -> Vec<bool> {
    let mut retained = vec![false; rows.len()];
    let mut room = limit;
    let mut keep = |index: usize| {
        if room > 0 && !std::mem::replace(&mut retained[index], true) {
            room -= 1;
        }
    };
    let weights = rows.iter().enumerate().filter_map(|(index, row)| Some((index, row.weight()?)));
    let mut order: Vec<_> = weights.collect();
    if order.iter().any(|(_, weight)| weight.total > 0) {
        order.retain(|(_, weight)| weight.total > 0);
    }
    // Rows of the same weight keep their order.
    order.sort_by_key(|(_, weight)| Reverse(heat(*weight)));
    for (index, _) in order.into_iter().take(limit) {
        keep(index);
        around(rows, index, context).into_iter().for_each(&mut keep);
    }
    retained
}

/// The rows around one, the nearest first.
fn around(rows: &[Row<'_>], index: usize, context: u32) -> Vec<usize> {
    let is_line = |&other: &usize| matches!(rows.get(other), Some(Row::Line { .. } | Row::Instruction(..)));
    let before: Vec<_> = (0..index).rev().take(context as usize).take_while(is_line).collect();
    let after: Vec<_> = (index + 1..rows.len()).take(context as usize).take_while(is_line).collect();
    let pairs = (0..before.len().max(after.len())).map(|nth| [before.get(nth), after.get(nth)]);
    pairs.flatten().flatten().copied().collect()
}

impl Row<'_> {
    /// The weight of a line or an instruction; `None` for other rows.
    fn weight(&self) -> Option<PlaceWeight> {
        match *self {
            Self::Heading(_) | Self::Gap => None,
            Self::Line { weight, .. } => Some(weight),
            Self::Folded(own, _) => Some(PlaceWeight { own, total: own }),
            Self::Instruction(instruction, _) => Some(instruction.weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions of one function. Those at `hot` have these samples.
    fn code(count: u32, hot: &[(u32, u64)]) -> Code {
        let weight = |at: u32| hot.iter().find(|(hot, _)| *hot == at).map_or(0, |(_, weight)| *weight);
        let instruction = |address: u32| Instruction {
            address,
            text: "nop".to_owned(),
            place: Some(("/src/a.c".to_owned(), 1 + address / 100)),
            weight: PlaceWeight { own: weight(address), total: weight(address) },
        };
        Code {
            name: "f".to_owned(),
            other_names: Vec::new(),
            lib: "a".to_owned(),
            instructions: (0..count).map(instruction).collect(),
        }
    }

    /// What is shown: headings, gaps, and the addresses of instructions.
    fn shown(rows: &[Row<'_>]) -> String {
        let texts = rows.iter().map(|row| match row {
            Row::Heading(_) => "heading".to_owned(),
            Row::Gap => "...".to_owned(),
            Row::Instruction(instruction, _) => instruction.address.to_string(),
            Row::Line { label, .. } => label.trim().to_owned(),
            Row::Folded(..) => "folded".to_owned(),
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_large_functions_hot_instructions_are_shown() {
        let hot = [code(10_000, &[(5_000, 7), (5_003, 1), (9_000, 2)])];
        let (rows, more) = within(asm_rows(&hot, false), 400, 1);
        let expected = "heading 4999 5000 5001 5002 5003 5004 ... 8999 9000 9001";
        assert_eq!((&*shown(&rows), more), (expected, 9_991));
        let (rows, more) = within(asm_rows(&hot, false), usize::MAX, 1);
        assert_eq!((rows.len(), more), (10_001, 0), "a limit of 0 shows all");
        assert_eq!(shown(&asm_rows(&hot, true)), "heading 5000 9000 5003");
        let cold = [code(9, &[])];
        let (rows, more) = within(asm_rows(&cold, false), 2, 1);
        assert_eq!((&*shown(&rows), more), ("heading 0 1", 7));
    }

    #[test]
    fn the_hottest_rows_stay_within_the_limit() {
        let codes = [code(1_000, &[(10, 1), (500, 9), (900, 3)]), code(100, &[(5, 4)])];
        for (limit, expected) in [
            (1, "heading 500"),
            (2, "heading 499 500"),
            (4, "heading 499 500 501 heading 5"),
            (7, "heading 499 500 501 ... 900 heading 4 5 6"),
            (12, "heading 9 10 11 ... 499 500 501 ... 899 900 901 heading 4 5 6"),
        ] {
            let (rows, more) = within(asm_rows(&codes, false), limit, 1);
            assert_eq!((&*shown(&rows), more), (expected, 1_100 - limit as u64), "{limit}");
        }
        let (rows, more) = within(asm_rows(&codes, true), 2, 0);
        assert_eq!((&*shown(&rows), more), ("heading 500 heading 5", 2));
    }

    #[test]
    fn the_hottest_lines_stay_within_the_limit() {
        let weights = [(5, 1), (50, 9), (51, 2)].map(|(line, own)| (line, PlaceWeight { own, total: own }));
        let file = FileLines { weights: weights.into_iter().collect(), ..FileLines::default() };
        let missing =
            FileLines { weights: [(7, weights[1].1)].into_iter().collect(), ..FileLines::default() };
        let rows = source_rows(&[&file], &[&missing], 3);
        let (rows, more) = within(rows, 3, 3);
        assert_eq!((&*shown(&rows), more), ("heading 50 51 folded", 1));
    }

    #[test]
    fn a_line_that_calls_is_hotter_than_the_last() {
        let weights = [(13, (3, 3)), (9, (0, 497)), (10, (0, 298))];
        let weights = weights.map(|(line, (own, total))| (line, PlaceWeight { own, total }));
        let file = FileLines { weights: weights.into_iter().collect(), ..FileLines::default() };
        assert_eq!(shown(&hottest_rows(&[&file], &[])), ":9 :10 :13");
    }

    #[test]
    fn a_place_is_named_again_behind_a_gap() {
        let codes = [code(1_000, &[(10, 1), (20, 9)])];
        let (mut rows, _) = within(asm_rows(&codes, false), 400, 1);
        hide_repeated_places(&mut rows);
        let labels = rows.iter().map(|row| matches!(row, Row::Instruction(_, Some(_))));
        let labels: Vec<_> = labels.collect();
        assert_eq!(labels, [false, true, false, false, false, true, false, false]);
    }
}
