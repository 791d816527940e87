//! The stack of a sample: lines of frames, of which most are repeated.

use nyquist_profile::{FrameId, LibId, StackId};
use rustc_hash::FxHashMap;

use super::UNKNOWN;
use super::line::{FrameLine, parse_frame, parse_frame_line, parse_source_line};
use crate::import::{CodePosition, Importer};

/// The frames of the current sample, and those of all lines so far.
#[derive(Default)]
pub(super) struct ScriptStack {
    /// The current frames, innermost first: each with the number of its line, and the source line below it.
    frames: Vec<(usize, Option<(String, u32)>)>,
    lines: Vec<ScriptFrame>,
    numbers: FxHashMap<Box<str>, usize>,
    libs: FxHashMap<Box<str>, LibId>,
}

/// The frame of a line.
struct ScriptFrame {
    address: u64,
    symbol: String,
    dso: Option<Box<str>>,
    is_inlined: bool,
    /// The frame in the profile, if nothing but its line determines it.
    frame: Option<FrameId>,
}

impl ScriptFrame {
    fn new(line: &FrameLine<'_>) -> Self {
        Self {
            address: line.address,
            symbol: line.symbol.to_owned(),
            dso: line.dso.map(Into::into),
            is_inlined: line.is_inlined,
            frame: None,
        }
    }

    fn name(&self) -> String {
        match (&*self.symbol, self.address) {
            ("", 0) => UNKNOWN.into(),
            ("", address) => format!("{address:#x}"),
            (symbol, _) => symbol.to_owned(),
        }
    }

    fn is_kernel(&self) -> bool {
        let dso = self.dso.as_deref().unwrap_or_default();
        let in_upper_half = self.address >= 0xffff_8000_0000_0000;
        let is_module = [".ko", ".ko.xz", ".ko.gz", ".ko.zst"].iter().any(|end| dso.ends_with(end));
        dso.starts_with("[kernel") || dso.starts_with("[guest.kernel") || is_module || in_upper_half
    }
}

impl ScriptStack {
    /// Adds the frame of a line of its own. Returns whether it is one.
    pub(super) fn add_line(&mut self, line: &str) -> bool {
        match self.numbers.get(line) {
            Some(&number) => {
                self.frames.push((number, None));
                true
            }
            None => parse_frame_line(line).is_some_and(|frame| self.add_new(line, &frame)),
        }
    }

    /// Adds the frame of a text, if it is one.
    pub(super) fn add(&mut self, text: &str) {
        if let Some(frame) = parse_frame(text) {
            self.add_new(text, &frame);
        }
    }

    fn add_new(&mut self, text: &str, frame: &FrameLine<'_>) -> bool {
        let number = *self.numbers.entry(text.into()).or_insert(self.lines.len());
        if number == self.lines.len() {
            self.lines.push(ScriptFrame::new(frame));
        }
        self.frames.push((number, None));
        true
    }

    /// Adds the source line of the last frame. Returns whether it is one.
    pub(super) fn add_source_line(&mut self, line: &str) -> bool {
        let Some(((_, source), (file, line))) = self.frames.last_mut().zip(parse_source_line(line)) else {
            return false;
        };
        *source = Some((file.to_owned(), line));
        true
    }

    /// The stack of the frames so far, which are removed. Inlined functions have no lib, so that of the function
    /// around them is used.
    pub(super) fn take(&mut self, importer: &mut Importer) -> Option<StackId> {
        let mut stack = None;
        let (mut lib, mut inline_depth) = (None, 0_u16);
        let frames = std::mem::take(&mut self.frames);
        for (number, source) in frames.iter().rev() {
            let line = &self.lines[*number];
            if line.is_inlined {
                inline_depth = inline_depth.saturating_add(1);
            } else {
                inline_depth = 0;
                lib = line
                    .dso
                    .as_deref()
                    .map(|dso| self.libs.get(dso).copied().unwrap_or_else(|| importer.lib(dso, None)));
            }
            let known = line.frame.filter(|_| source.is_none());
            let frame =
                known.unwrap_or_else(|| self.frame(importer, *number, source.as_ref(), (lib, inline_depth)));
            stack = Some(importer.stack(stack, frame));
        }
        self.frames = frames;
        self.frames.clear();
        stack
    }

    /// The frame of a line, in a lib and inlined so often.
    fn frame(
        &mut self,
        importer: &mut Importer,
        number: usize,
        source: Option<&(String, u32)>,
        (lib, inline_depth): (Option<LibId>, u16),
    ) -> FrameId {
        let line = &mut self.lines[number];
        if let Some((dso, lib)) = line.dso.as_ref().zip(lib) {
            self.libs.entry(dso.clone()).or_insert(lib);
        }
        let frame = importer.frame(&CodePosition {
            name: &line.name(),
            lib,
            file: source.map(|(file, _)| file.as_str()),
            line: source.map(|&(_, line)| line),
            address: u32::try_from(line.address).ok(),
            inline_depth,
            is_kernel: line.is_kernel(),
            ..CodePosition::default()
        });
        if !line.is_inlined && source.is_none() {
            line.frame = Some(frame);
        }
        frame
    }
}
