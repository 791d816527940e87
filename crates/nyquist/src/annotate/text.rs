//! An annotated function as text: lines and instructions, side by side where there is room.

use super::annotated::Annotated;
use super::code::{Code, Instruction};
use super::listing::FileLines;
use crate::number::counted;
use crate::text::{Style, Text, cut, cut_name, one_line};
use nyquist_analysis::PlaceWeight;
use nyquist_symbols::short_source_path;
use std::cmp::Reverse;

/// From this width on instructions stand beside the lines, and not below them.
const SIDE_BY_SIDE: usize = 120;

/// The width of the two shares.
const SHARES: usize = 16;

/// A line of the text.
enum Row<'a> {
    /// A file or a symbol, above what is of it.
    Heading(String),
    /// Lines that are left out.
    Gap,
    /// A source line.
    Line { weight: PlaceWeight, label: String, text: &'a str, instructions: Vec<&'a Instruction> },
    /// Inlined code of which there is no source, with its own weight.
    Folded(u64, String),
    /// An instruction, with its place if that is another than the one before.
    Instruction(&'a Instruction, Option<String>),
}

/// The text.
pub(super) fn text(annotated: &Annotated<'_>) -> Text {
    let folds = |file: &&FileLines| file.is_inlined_and_missing() && !annotated.args.verbosity.verbose;
    let (folded, files): (Vec<_>, Vec<_>) = annotated.listing.files.iter().partition(folds);
    let rows = match (annotated.args.asm, annotated.args.hottest) {
        (true, hottest) => asm_rows(&annotated.listing.codes, hottest),
        (false, true) => hottest_rows(&files, &folded),
        (false, false) => source_rows(&files, &folded, annotated.args.context),
    };
    let mut text = heading(annotated);
    let limit = if annotated.args.limit == 0 { usize::MAX } else { annotated.args.limit };
    for row in rows.iter().take(limit) {
        text.push(annotated.render(row));
    }
    if rows.len() > limit {
        text.push(counted((rows.len() - limit) as u64, "more line"));
        text.push(" (--limit 0 shows all)\n");
    }
    text
}

/// The function, what it takes, and what is missing.
fn heading(annotated: &Annotated<'_>) -> Text {
    let lib = annotated.funcs.first().and_then(|&func| annotated.profile.func(func).lib);
    let lib = lib.map(|lib| format!("  {}", one_line(&annotated.profile.lib(lib).name))).unwrap_or_default();
    let weight = annotated.places.function;
    let share = |weight: u64| crate::number::percent(annotated.scale.share(weight));
    let time = |weight: u64| annotated.scale.amount(weight);
    let name = annotated.names.show(annotated.name());
    let with_inlined = annotated.places.with_inlined();
    let inlined = if with_inlined > weight.own {
        format!(", with what is inlined {} ({})", share(with_inlined), time(with_inlined))
    } else {
        String::new()
    };
    let mut text = Style::Bold.paint(&name, annotated.screen) + lib + "\n";
    text += format!(
        "self {} ({}){inlined}, total {} ({})\n",
        share(weight.own),
        time(weight.own),
        share(weight.total),
        time(weight.total)
    );
    annotated.listing.notes.iter().for_each(|note| text += format!("note: {}\n", one_line(note)));
    text
}

fn source_rows<'a>(files: &[&'a FileLines], folded: &[&FileLines], context: u32) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for file in files {
        rows.push(Row::Heading(short_source_path(&file.file).into_owned()));
        rows.extend(file.shown(context).into_iter().map(|line| match line {
            Some(line) => line_row(file, line, line.to_string()),
            None => Row::Gap,
        }));
    }
    rows.extend(folded_row(folded));
    rows
}

/// One row for all inlined code of which there is no source: the standard library may have dozens of files.
fn folded_row<'a>(files: &[&FileLines]) -> Option<Row<'a>> {
    if files.is_empty() {
        return None;
    }
    let own = files.iter().map(|file| file.own_weight()).sum();
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

/// Only lines that take time, those with the most first.
fn hottest_rows<'a>(files: &[&'a FileLines], folded: &[&FileLines]) -> Vec<Row<'a>> {
    let lines =
        files.iter().flat_map(|&file| file.weights.iter().map(move |(&line, &weight)| (file, line, weight)));
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|(_, line, weight)| (Reverse((weight.own, weight.total)), *line));
    let label =
        |(file, line, _): &(&FileLines, u32, PlaceWeight)| format!("{}:{line}", base_name(&file.file));
    let width = lines.iter().map(|line| label(line).chars().count()).max().unwrap_or(0);
    lines
        .into_iter()
        .map(|line| {
            let label = format!("{:<width$}", label(&line));
            let mut row = line_row(line.0, line.1, label);
            if let Row::Line { instructions, .. } = &mut row {
                instructions.sort_by_key(|one| Reverse((one.weight.own, one.weight.total)));
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
            instructions.sort_by_key(|one| Reverse((one.weight.own, one.weight.total)));
        }
        let mut before = None;
        for instruction in instructions {
            let place = instruction.place.as_ref().filter(|place| hottest || before != Some(*place));
            let label = place.map(|(file, line)| format!("{}:{line}", base_name(file)));
            before = instruction.place.as_ref();
            rows.push(Row::Instruction(instruction, label));
        }
    }
    rows
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Annotated<'_> {
    fn render(&self, row: &Row<'_>) -> Text {
        let screen = self.screen;
        match row {
            Row::Heading(text) => {
                let shares = "  SELF   TOTAL  ";
                let room = screen.width.map_or(usize::MAX, |width| width.saturating_sub(SHARES));
                let text = cut_name(&self.names.show(text), room, screen.unicode);
                Text::from("\n") + Style::Bold.paint(&format!("{shares}{text}"), screen) + "\n"
            }
            Row::Gap => Text::from(" ".repeat(SHARES)) + if screen.unicode { "⋮\n" } else { "...\n" },
            Row::Folded(own, text) => {
                let own = format!("{:>6}", self.scale.percent(*own));
                let room = screen.width.map_or(usize::MAX, |width| width.saturating_sub(SHARES));
                let text = Style::Dim.paint(&cut(text, room, screen.unicode), screen);
                Text::from(format!("\n{own}          ")) + text + "\n"
            }
            Row::Line { weight, label, text, instructions } => self.line(*weight, label, text, instructions),
            Row::Instruction(instruction, place) => {
                let place = place.as_deref().unwrap_or_default();
                let room = screen.width.map_or(usize::MAX, |width| width.saturating_sub(SHARES));
                // In a column where instructions are of usual length; behind a longer one at its end.
                let text = format!("{:<56}  {}", code_text(instruction), one_line(place));
                self.row(instruction.weight, cut(text.trim_end(), room, screen.unicode))
            }
        }
    }

    /// A source line, its instructions beside or below it.
    fn line(&self, weight: PlaceWeight, label: &str, text: &str, instructions: &[&Instruction]) -> Text {
        let room = self.screen.width.map_or(usize::MAX, |width| width.saturating_sub(SHARES));
        let source = format!("{:>5}  {text}", one_line(label));
        let width = self.screen.width.unwrap_or(0);
        if width >= SIDE_BY_SIDE && !self.args.source {
            return self.side_by_side(weight, &source, instructions, room);
        }
        let mut lines = self.row(weight, cut(&source, room, self.screen.unicode));
        for instruction in instructions {
            let text = format!("         {}", code_text(instruction));
            let text = cut(&text, room, self.screen.unicode);
            lines.push(self.row(instruction.weight, Style::Dim.paint(&text, self.screen)));
        }
        lines
    }

    fn side_by_side(
        &self,
        weight: PlaceWeight,
        source: &str,
        instructions: &[&Instruction],
        room: usize,
    ) -> Text {
        let half = room / 2;
        let left = cut(source, half, self.screen.unicode);
        let mut lines = Text::default();
        for index in 0..instructions.len().max(1) {
            let (weight, left) =
                if index == 0 { (weight, left.as_str()) } else { (PlaceWeight::default(), "") };
            let right = instructions.get(index).map_or_else(Text::default, |instruction| {
                let share = format!("{:>6}", self.scale.percent(instruction.weight.total));
                let code = cut(&code_text(instruction), room - half - 11, self.screen.unicode);
                let bar = if self.screen.unicode { '│' } else { '|' };
                let share =
                    Style::of_share(self.scale.share(instruction.weight.total)).paint(&share, self.screen);
                Style::Dim.paint(&bar.to_string(), self.screen) + " " + share + "  " + code
            });
            lines.push(self.row(weight, Text::from(format!("{left:<half$} ")) + right));
        }
        lines
    }

    /// A row: two shares and a text.
    fn row(&self, weight: PlaceWeight, text: impl Into<Text>) -> Text {
        let share = |weight: u64| {
            let style = Style::of_share(self.scale.share(weight));
            style.paint(&format!("{:>6}", self.scale.percent(weight)), self.screen)
        };
        let row = share(weight.own) + "  " + share(weight.total) + "  " + text;
        row.trim_end() + "\n"
    }
}

/// An instruction's address and text.
fn code_text(instruction: &Instruction) -> String {
    format!("{:>8x}  {}", instruction.address, one_line(&instruction.text))
}
