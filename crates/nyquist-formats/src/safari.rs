//! Timelines that Safari's Web Inspector exports: the stacks of its JavaScript sampler.
//!
//! The members are those of `TimelineRecording.js` and `ScriptProfiler.json` in WebKit's sources.

use nyquist_profile::{FuncKind, Measure, Unit};
use serde::Deserialize;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::json::{nanoseconds, position};

const FORMAT: &str = "a timeline of Safari";

#[derive(Deserialize)]
struct TimelineFile {
    recording: Recording,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recording {
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    sample_stack_traces: Vec<SampledStack>,
    /// In s.
    #[serde(default)]
    sample_durations: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SampledStack {
    /// In s.
    timestamp: f64,
    /// The innermost first.
    #[serde(default)]
    stack_frames: Vec<StackFrame>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StackFrame {
    name: String,
    url: String,
    /// Where the function begins.
    line: Option<f64>,
    /// What is executed in it.
    expression_location: Option<ExpressionLocation>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct ExpressionLocation {
    line: Option<f64>,
    column: Option<f64>,
}

/// Reads the samples. Each stands for the duration that the file states for it, which ended at its time. Safari samples
/// by the wall clock while JavaScript runs.
///
/// # Errors
/// If it is no such JSON, or has no samples.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let file: TimelineFile =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let Recording { display_name, sample_stack_traces, sample_durations } = file.recording;
    if sample_stack_traces.is_empty() {
        let text = format!("it is {FORMAT} without samples: record with the timeline `JavaScript & Events`");
        return Err(ReadError::Unsupported(text));
    }
    let mut importer = Importer::new("JavaScript", &format!("Safari: {display_name}"));
    importer.meta_mut().measure = Measure { name: "wall time".into(), unit: Unit::Time };
    let name = ThreadName { pid: "0", process: "Safari", tid: "0", thread: "JavaScript" };
    let thread = importer.thread(name);
    let missing = sample_stack_traces.len().saturating_sub(sample_durations.len());
    for (sample, duration) in sample_stack_traces.iter().zip(sample_durations) {
        let mut stack = None;
        for code in sample.stack_frames.iter().rev() {
            let frame = importer.frame(&code_position(code));
            stack = Some(importer.stack(stack, frame));
        }
        let time = nanoseconds(sample.timestamp, 1e9);
        importer.sample(thread, time, stack, nanoseconds(duration, 1e9));
    }
    importer.note_left_out(missing as u64, "samples without a duration");
    Ok(importer.finish(None))
}

fn code_position(code: &StackFrame) -> CodePosition<'_> {
    // -1 is no line: the program itself, and the engine's own functions.
    let start_line = position(code.line);
    let executed = code.expression_location.unwrap_or_default();
    CodePosition {
        name: if code.name.is_empty() { "(anonymous)" } else { &code.name },
        file: Some(&code.url),
        start_line,
        line: position(executed.line).or(start_line),
        column: position(executed.column),
        kind: if code.url.is_empty() { FuncKind::Native } else { FuncKind::JavaScript },
        ..CodePosition::default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Note;
    use crate::test_profile::stacks_of;

    pub(crate) const FILE: &str = r#"{"version":1,"recording":{"displayName":"Recording 1","startTime":4.1,"endTime":6.6,
        "records":[{"type":"timeline-record-type-script"}],"markers":[],
        "sampleStackTraces":[
            {"timestamp":4.5,"stackFrames":[{"sourceID":"7","name":"work","line":2,"column":10,"url":"file:///a.js",
                "expressionLocation":{"line":34,"column":13}},{"name":"","line":1,"url":"file:///a.js"}]},
            {"timestamp":4.502,"stackFrames":[{"name":"(program)","line":-1,"column":-1,"url":""}]},
            {"timestamp":4.503,"stackFrames":[]}],
        "sampleDurations":[0.001,0.0015]},"overview":{}}"#;

    #[test]
    fn samples_have_the_stated_durations() {
        let read = read(FILE.as_bytes()).unwrap();
        let profile = &read.profile;
        assert_eq!(profile.meta().interval, 500_000);
        assert_eq!(stacks_of(profile), ["(anonymous);work 2", "(program) 3"]);
        assert_eq!(&*profile.meta().measure.name, "wall time");
        let work = profile.frames().iter().find(|it| profile.func_name(it.func) == "work").unwrap();
        assert_eq!((work.line, work.column, profile.func(work.func).line), (Some(34), Some(13), Some(2)));
        assert_eq!(read.notes, [Note::LeftOut { count: 1, what: "samples without a duration".into() }]);
    }

    #[test]
    fn without_samples_it_says_what_to_record() {
        let error = read(br#"{"version":1,"recording":{"records":[]}}"#).unwrap_err().to_string();
        assert!(error.contains("JavaScript & Events"), "{error}");
        assert!(read(b"{}").is_err());
    }
}
