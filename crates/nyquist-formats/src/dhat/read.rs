//! Reads DHAT's JSON (`valgrind --tool=dhat`, and the Rust crate `dhat`): bytes and blocks of memory by the stack
//! that allocated them.
//!
//! It is described in valgrind's `dhat/dh_main.c` (file format).

use nyquist_profile::{FrameId, Unit};
use serde::Deserialize;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

const FORMAT: &str = "a file of DHAT";

#[derive(Deserialize)]
struct DhatFile {
    #[serde(default)]
    cmd: String,
    #[serde(default)]
    pid: u64,
    /// The unit, if it is not bytes.
    bu: Option<String>,
    pps: Vec<Point>,
    ftbl: Vec<String>,
}

/// A stack that allocated.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Point {
    /// The total, the amount at the peak, and the amount at the end.
    tb: u64,
    tbk: u64,
    gb: u64,
    gbk: u64,
    eb: u64,
    ebk: u64,
    /// Read and written.
    rb: u64,
    wb: u64,
    /// The indices of its frames in the table, the innermost first.
    fs: Vec<usize>,
}

type PointValue = fn(&Point) -> u64;

/// The values of a stack. The first one is read by default.
const VALUES: [(&str, Unit, PointValue); 8] = [
    ("total_bytes", Unit::Bytes, |point| point.tb),
    ("total_blocks", Unit::Count, |point| point.tbk),
    ("peak_bytes", Unit::Bytes, |point| point.gb),
    ("peak_blocks", Unit::Count, |point| point.gbk),
    ("end_bytes", Unit::Bytes, |point| point.eb),
    ("end_blocks", Unit::Count, |point| point.ebk),
    ("read_bytes", Unit::Bytes, |point| point.rb),
    ("written_bytes", Unit::Bytes, |point| point.wb),
];

/// Reads the total of allocated bytes.
///
/// # Errors
/// If it is no such JSON.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// As [`read`], for the value with this name: `total_bytes`, `total_blocks`, the same for `peak` and `end`,
/// `read_bytes`, `written_bytes`.
///
/// # Errors
/// As there, and if there is no such value.
pub fn read_value(bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let file: DhatFile =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    // A program that counts something else states its unit.
    let unit = |unit| if file.bu.is_some() { Unit::Count } else { unit };
    let values: Vec<_> = VALUES.iter().map(|&(name, it, _)| SampleValueKind::new(name, unit(it))).collect();
    let at = choose(&values, name, 0)?;
    let program = file.cmd.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("DHAT");
    let mut importer = Importer::new(program, "DHAT");
    importer.meta_mut().measure = values[at].measure();
    let pid = file.pid.to_string();
    let name = ThreadName { pid: &pid, process: program, tid: &pid, thread: program };
    let mut queue = SampleQueue::new(importer.thread(name));
    let frames: Vec<FrameId> = file.ftbl.iter().map(|text| frame(&mut importer, text)).collect();
    let mut unknown = 0;
    for point in &file.pps {
        let mut stack = None;
        for &place in point.fs.iter().rev() {
            match frames.get(place) {
                Some(&frame) => stack = Some(importer.stack(stack, frame)),
                None => unknown += 1,
            }
        }
        queue.add(&mut importer, stack, VALUES[at].2(point));
    }
    importer.note_left_out(unknown, "frames that are not in the file's table");
    Ok(importer.finish_allocations(None))
}

/// A frame as `0x109154: get (dh.c:3)` or `0x48417B4: malloc (in /usr/lib/vgpreload.so)`.
fn frame(importer: &mut Importer, text: &str) -> FrameId {
    let text = match text.split_once(": ") {
        Some((address, rest)) if address.starts_with("0x") => rest,
        _ => text,
    };
    let Some((name, place)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) else {
        return importer.frame(&CodePosition { name: text, ..CodePosition::default() });
    };
    if let Some(path) = place.strip_prefix("in ") {
        let lib = Some(importer.lib(path, None));
        return importer.frame(&CodePosition { name, lib, ..CodePosition::default() });
    }
    let (file, line, column) = place_of(place);
    importer.frame(&CodePosition { name, file: Some(file), line, column, ..CodePosition::default() })
}

/// A file with its line, and the column if there is one: `src/main.rs:3:14`.
fn place_of(text: &str) -> (&str, Option<u32>, Option<u32>) {
    let number = |text: &str| {
        let (rest, number) = text.rsplit_once(':')?;
        Some((rest.len(), number.parse::<u32>().ok()?))
    };
    let Some((end, last)) = number(text) else { return (text, None, None) };
    match number(&text[..end]) {
        Some((start, line)) => (&text[..start], Some(line), Some(last)),
        None => (&text[..end], Some(last), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    const FILE: &str = r#"{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true,"tu":"instrs","cmd":"./dh 1","pid":7,"te":9,"tg":5,
        "pps":[{"tb":1000,"tbk":10,"tl":1099,"mb":100,"mbk":1,"gb":0,"gbk":0,"eb":0,"ebk":0,"rb":0,"wb":0,"acc":[-100,0],"fs":[1,2,3]},
        {"tb":3000,"tbk":1,"gb":3000,"gbk":1,"eb":3000,"ebk":1,"fs":[1,3]},{"tb":1,"fs":[9]}],
        "ftbl":["[root]","0x48417B4: malloc (in /usr/lib/vgpreload.so)","0x109154: get (dh.c:3)","0x10919B: main (src/dh.rs:6:12)"]}"#;

    #[test]
    fn bytes_and_blocks_are_counted_by_stack() {
        let imported = read(FILE.as_bytes()).unwrap();
        let profile = imported.profile;
        assert_eq!(imported.notes.len(), 1);
        assert_eq!(stacks_of(&profile)[1..], ["main 3000", "main;get 1000"]);
        assert_eq!((profile.meta().interval, &*profile.meta().measure.name), (1, "total_bytes"));
        let end = read_value(FILE.as_bytes(), Some("end_blocks")).unwrap().profile;
        assert_eq!((stacks_of(&end), end.meta().measure.unit), (vec!["main 1".into()], Unit::Count));
        let of = |name| stacks_of(&read_value(FILE.as_bytes(), Some(name)).unwrap().profile);
        assert_eq!(
            ["live", "peak", "live-blocks"].map(of),
            ["end_bytes", "peak_bytes", "end_blocks"].map(of)
        );
        assert!(read_value(FILE.as_bytes(), Some("cpu")).is_err() && read(b"{}").is_err());
    }

    #[test]
    fn frames_have_files_lines_and_libs() {
        let profile = read(FILE.as_bytes()).unwrap().profile;
        let place = |name: &str| {
            let frame = profile.frames().iter().find(|frame| profile.func_name(frame.func) == name).unwrap();
            let source = profile.frame_source(frame).map(|it| profile.string(profile.source(it).filename));
            let lib = profile.func(frame.func).lib.map(|lib| &*profile.lib(lib).name);
            (source, frame.line, frame.column, lib)
        };
        assert_eq!(place("get"), (Some("dh.c"), Some(3), None, None));
        assert_eq!(place("main"), (Some("src/dh.rs"), Some(6), Some(12), None));
        assert_eq!(place("malloc"), (None, None, None, Some("vgpreload.so")));
    }
}
