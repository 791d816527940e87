//! Tables of Instruments from `xctrace export`: `time-profile`, `time-sample` and `cpu-profile`.
//!
//! Each row has an element for each column. A later `ref` can refer to any element with an `id`.

use nyquist_profile::{FrameId, LibId, StackId, ThreadIndex};
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader as XmlReader, XmlVersion};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};

const FORMAT: &str = "an export of Instruments";

/// Reads an exported table. Rows have their stated weight in ns (with `cycle-weight`, each counts as one
/// sample). Rows of threads that do not run are left out.
///
/// # Errors
/// If there is no row with a backtrace in it.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut importer = Importer::new("Instruments", "Instruments");
    let mut reader = InstrumentsReader::default();
    let mut xml = XmlReader::from_str(&text);
    xml.config_mut().expand_empty_elements = true;
    let is_whole = loop {
        match xml.read_event() {
            Ok(Event::Start(element)) => reader.start(&element),
            Ok(Event::End(_)) => reader.end(&mut importer),
            Ok(Event::Text(text)) => reader.text(&text),
            Ok(Event::CData(text)) => reader.text(&text),
            Ok(Event::GeneralRef(entity)) => reader.text(&resolved(&entity)),
            Ok(Event::Eof) => break true,
            Ok(_) => {}
            Err(_) => break false,
        }
    };
    if reader.rows == 0 {
        let problem = "it has no rows with backtraces: export the table time-profile";
        return Err(ReadError::Malformed { format: FORMAT, problem: problem.into() });
    }
    if !is_whole || !reader.open.is_empty() {
        importer.note(Note::Cut { place: format!("byte {}", xml.buffer_position()) });
    }
    importer.note_left_out(reader.not_running, "samples of threads that were not running");
    importer.note_left_out(reader.incomplete, "rows without a time, a thread or a backtrace");
    Ok(importer.finish(None))
}

/// An element that has begun.
#[derive(Default)]
struct OpenElement {
    name: String,
    id: Option<u64>,
    /// Its value: that of the element which its `ref` names.
    value: Option<ElementValue>,
    /// The used attributes, such as `name` and `fmt`.
    attributes: FxHashMap<&'static str, String>,
    text: String,
    children: Vec<(String, ElementValue)>,
}

/// The attributes that are used, of all elements.
const ATTRIBUTES: [&str; 7] = ["name", "fmt", "addr", "load-addr", "path", "UUID", "line"];

/// The value of an element that has ended.
#[derive(Clone, Debug)]
enum ElementValue {
    Text(std::rc::Rc<str>),
    Process {
        pid: std::rc::Rc<str>,
        name: std::rc::Rc<str>,
    },
    Thread(ThreadIndex),
    Lib {
        lib: LibId,
        load_address: u64,
    },
    Source {
        file: std::rc::Rc<str>,
        line: Option<u32>,
    },
    Frame(FrameId),
    /// A backtrace may be empty.
    Stack(Option<StackId>),
}

#[derive(Default)]
struct InstrumentsReader {
    open: Vec<OpenElement>,
    by_id: FxHashMap<u64, ElementValue>,
    rows: u64,
    incomplete: u64,
    not_running: u64,
}

impl InstrumentsReader {
    fn start(&mut self, element: &BytesStart<'_>) {
        let text = |key| {
            let attribute = element.try_get_attribute(key).ok()??;
            Some(attribute.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
        };
        let number = |key| text(key).and_then(|text: String| text.parse::<u64>().ok());
        let value = number("ref").and_then(|id| self.by_id.get(&id).cloned());
        let retained = ATTRIBUTES.iter().filter_map(|&key| Some((key, text(key)?)));
        self.open.push(OpenElement {
            name: element.name().as_ref().to_owned(),
            id: number("id"),
            value,
            attributes: retained.collect(),
            ..OpenElement::default()
        });
    }

    fn text(&mut self, text: &str) {
        if let Some(open) = self.open.last_mut()
            && open.text.len() < MAX_TEXT
        {
            open.text.push_str(text);
        }
    }

    fn end(&mut self, importer: &mut Importer) {
        let Some(mut element) = self.open.pop() else { return };
        let value = match element.value.take() {
            Some(value) => Some(value),
            None => self.value(importer, &element),
        };
        let Some(value) = value else { return };
        if let Some(id) = element.id {
            self.by_id.insert(id, value.clone());
        }
        if let Some(parent) = self.open.last_mut() {
            parent.children.push((element.name, value));
        }
    }

    /// The value of an element that has ended. Rows and the elements around them have none.
    fn value(&mut self, importer: &mut Importer, element: &OpenElement) -> Option<ElementValue> {
        match element.name.as_str() {
            "row" => {
                self.end_row(importer, element);
                None
            }
            "node" | "trace-query-result" | "schema" | "col" => None,
            "process" => Some(process(element)),
            "thread" => Some(thread(importer, element)),
            "binary" => Some(lib(importer, element)),
            "source" => Some(source(element)),
            "frame" => Some(frame(importer, element)),
            "backtrace" => Some(stack(importer, element)),
            // Newer versions wrap backtraces.
            "tagged-backtrace" => element.find("backtrace").cloned(),
            _ => Some(ElementValue::Text(element.text.trim().into())),
        }
    }

    fn end_row(&mut self, importer: &mut Importer, row: &OpenElement) {
        let number = |names: &[&str]| {
            names.iter().find_map(|name| match row.find(name)? {
                ElementValue::Text(text) => text.parse::<u64>().ok(),
                _ => None,
            })
        };
        let time = number(&["sample-time", "event-time", "start-time"]);
        let thread = match row.find("thread") {
            Some(&ElementValue::Thread(thread)) => Some(thread),
            _ => None,
        };
        let taken = row.children.iter().find_map(|(_, value)| match value {
            ElementValue::Stack(stack) => Some(*stack),
            _ => None,
        });
        // A column without a value: the thread ran, but its stack was not taken.
        let stack = taken.or_else(|| row.find("sentinel").map(|_| None));
        let (Some(time), Some(thread), Some(stack)) = (time, thread, stack) else {
            self.incomplete += 1;
            return;
        };
        self.rows += 1;
        let runs = match row.find("thread-state") {
            Some(ElementValue::Text(state)) => matches!(&**state, "Running" | ""),
            _ => true,
        };
        if runs {
            importer.sample(thread, time, stack, number(&["weight"]).unwrap_or(MILLISECOND));
        } else {
            self.not_running += 1;
        }
    }
}

/// The text of an entity. An unknown entity stays unchanged.
fn resolved(entity: &BytesRef<'_>) -> String {
    match entity.resolve_char_ref() {
        Ok(Some(char)) => char.to_string(),
        _ => resolve_predefined_entity(entity).map_or_else(|| format!("&{};", &**entity), str::to_owned),
    }
}

/// No text that is used is longer.
const MAX_TEXT: usize = 1 << 16;

impl OpenElement {
    fn find(&self, name: &str) -> Option<&ElementValue> {
        self.children.iter().find(|(child, _)| child == name).map(|(_, value)| value)
    }

    fn find_text(&self, name: &str) -> &str {
        match self.find(name) {
            Some(ElementValue::Text(text)) => text,
            _ => "",
        }
    }

    fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    fn hex_attribute(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.attribute(name).strip_prefix("0x")?, 16).ok()
    }
}

/// `app (123)`, with its pid as a child.
fn process(element: &OpenElement) -> ElementValue {
    let shown = element.attribute("fmt");
    let name = shown.rsplit_once(" (").map_or(shown, |(name, _)| name);
    ElementValue::Process { pid: element.find_text("pid").into(), name: name.into() }
}

/// `worker 0x1f (app, pid: 123)`, with its tid and process as children.
fn thread(importer: &mut Importer, element: &OpenElement) -> ElementValue {
    let shown = element.attribute("fmt");
    let name = shown.split_once(" 0x").map_or(shown, |(name, _)| name).trim();
    let (pid, process) = match element.find("process") {
        Some(ElementValue::Process { pid, name }) => (&**pid, &**name),
        _ => ("0", ""),
    };
    ElementValue::Thread(importer.thread(ThreadName {
        pid,
        process,
        tid: element.find_text("tid"),
        thread: name,
    }))
}

fn lib(importer: &mut Importer, element: &OpenElement) -> ElementValue {
    let path = element.attribute("path");
    let path = if path.is_empty() { element.attribute("name") } else { path };
    let lib = importer.lib(path, Some(element.attribute("UUID")));
    ElementValue::Lib { lib, load_address: element.hex_attribute("load-addr").unwrap_or(0) }
}

fn source(element: &OpenElement) -> ElementValue {
    ElementValue::Source {
        file: element.find_text("path").into(),
        line: element.attribute("line").parse().ok(),
    }
}

fn frame(importer: &mut Importer, element: &OpenElement) -> ElementValue {
    let (lib, load_address) = match element.find("binary") {
        Some(&ElementValue::Lib { lib, load_address }) => (Some(lib), load_address),
        _ => (None, 0),
    };
    let (file, line) = match element.find("source") {
        Some(ElementValue::Source { file, line }) => (Some(&**file), *line),
        _ => (None, None),
    };
    let address = element.hex_attribute("addr").and_then(|address| address.checked_sub(load_address));
    let is_kernel = lib.is_some_and(|lib| importer.builder().profile().lib(lib).name.starts_with("kernel"));
    ElementValue::Frame(importer.frame(&CodePosition {
        name: element.attribute("name"),
        lib,
        file,
        line,
        address: address.and_then(|address| u32::try_from(address).ok()),
        is_kernel,
        ..CodePosition::default()
    }))
}

/// Its frames are listed from the innermost on.
fn stack(importer: &mut Importer, element: &OpenElement) -> ElementValue {
    let mut stack = None;
    for (_, value) in element.children.iter().rev() {
        if let &ElementValue::Frame(frame) = value {
            stack = Some(importer.stack(stack, frame));
        }
    }
    ElementValue::Stack(stack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    /// Three rows in the format of `xctrace export`.
    const TABLE: &str = r#"<?xml version="1.0"?>
<trace-query-result>
<node xpath='//trace-toc[1]/run[1]/data[1]/table[11]'><schema name="time-profile"><col><mnemonic>time</mnemonic></col></schema>
<row><sample-time id="1" fmt="00:00.052">52000000</sample-time><thread id="2" fmt="worker 0x3c (app, pid: 21)"><tid id="3" fmt="0x3c">60</tid><process id="4" fmt="app (21)"><pid id="5" fmt="21">21</pid></process></thread><process ref="4"/><core id="7" fmt="CPU 6">6</core><thread-state id="8" fmt="Running">Running</thread-state><weight id="9" fmt="1.00 ms">1000000</weight><backtrace id="10"><frame id="11" name="a&lt;b&gt;" addr="0x104415f39"><binary id="30" name="app" UUID="7C0F" arch="arm64" load-addr="0x104414000" path="/bin/app"/><source line="24"><path id="31">/src/a&amp;b&#46;rs</path></source></frame><frame id="12" name="main" addr="0x104415000"><binary ref="30"/></frame></backtrace></row>
<row><sample-time id="13" fmt="x">53000000</sample-time><thread ref="2"/><process ref="4"/><thread-state ref="8"/><weight ref="9"/><tagged-backtrace id="14"><backtrace id="15"><frame ref="12"/></backtrace></tagged-backtrace></row>
<row><sample-time id="16" fmt="x">54000000</sample-time><thread ref="2"/><thread-state ref="8"/><weight ref="9"/><backtrace ref="10"/></row>
<row><sample-time id="17" fmt="x">55000000</sample-time><thread ref="2"/><thread-state id="18" fmt="Blocked">Blocked</thread-state><weight ref="9"/><backtrace ref="10"/></row>
<row><sample-time id="19" fmt="x">56000000</sample-time><thread ref="2"/><weight ref="9"/><sentinel/></row>
</node></trace-query-result>
"#;

    #[test]
    fn rows_are_samples_and_references_are_followed() {
        let read = read(TABLE.as_bytes()).unwrap();
        assert_eq!(stacks_of(&read.profile), [" 1", "main 1", "main;a<b> 2"]);
        assert_eq!(read.profile.meta().interval, 1_000_000);
        let thread = &read.profile.threads()[0];
        assert_eq!((thread.tid.as_str(), thread.name.as_str()), ("60", "worker"));
        let process = read.profile.process(thread.process);
        assert_eq!((process.pid.as_str(), process.name.as_str()), ("21", "app"));
        let frame = read.profile.frames().iter().find(|frame| frame.line == Some(24)).unwrap();
        assert_eq!(frame.address, Some(0x1f39));
        let func = read.profile.func(frame.func);
        assert_eq!(read.profile.lib(func.lib.unwrap()).path, "/bin/app");
        let file = read.profile.source(func.source.unwrap()).filename;
        assert_eq!(read.profile.string(file), "/src/a&b.rs");
        assert_eq!(read.notes.len(), 1, "{:?}", read.notes);
    }

    #[test]
    fn what_comes_before_a_cut_is_kept() {
        let cut = TABLE.find("<row><sample-time id=\"16\"").unwrap() + 30;
        let read = read(&TABLE.as_bytes()[..cut]).unwrap();
        assert_eq!(stacks_of(&read.profile), ["main 1", "main;a<b> 1"]);
        assert!(matches!(read.notes[0], Note::Cut { .. }));
        assert!(super::read(b"<trace-query-result></trace-query-result>").is_err());
    }

    #[test]
    fn nesting_without_end_does_no_harm() {
        assert!(read("<a>".repeat(100_000).as_bytes()).is_err());
    }
}
