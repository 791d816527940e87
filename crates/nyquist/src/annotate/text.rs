//! An annotated function as text: lines and instructions, side by side if the terminal is wide enough.

use super::annotated::AnnotatedFunction;
use super::code::Instruction;
use super::rows::{Row, rows};
use crate::number::counted;
use crate::text::{Style, Text, cut, cut_name, one_line};
use nyquist_analysis::PlaceWeight;

/// From this width on, instructions are beside the lines instead of below them.
const SIDE_BY_SIDE: usize = 120;

/// The width of the two shares.
const SHARES: usize = 16;

/// The text.
pub(super) fn text(annotated: &AnnotatedFunction<'_>) -> Text {
    let (rows, left_out) = rows(annotated);
    let mut text = heading(annotated);
    for row in &rows {
        text.push(annotated.render(row));
    }
    if left_out > 0 {
        text.push(counted(left_out, "more line"));
        text.push(" (--limit 0 shows all)\n");
    }
    text
}

/// The function, its weight, and notes about missing parts.
fn heading(annotated: &AnnotatedFunction<'_>) -> Text {
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
    text += compiled_into(annotated);
    annotated.listing.notes.iter().for_each(|note| text += format!("note: {}\n", one_line(note)));
    text
}

/// The line about the compiled functions that hold an inlined function.
fn compiled_into(annotated: &AnnotatedFunction<'_>) -> String {
    /// The most functions that are named.
    const NAMED: usize = 3;
    let into = annotated.inlined_into();
    let more = into.len().saturating_sub(NAMED);
    let named = into.iter().take(NAMED).map(|name| annotated.names.show(name));
    let named: Vec<_> = named.chain((more > 0).then(|| format!("{more} more"))).collect();
    if named.is_empty() { String::new() } else { format!("inlined into {}\n", named.join(", ")) }
}

impl AnnotatedFunction<'_> {
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
                // The place is in a fixed column, or directly after a longer instruction.
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
