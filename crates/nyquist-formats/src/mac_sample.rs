//! The text of macOS' `sample` (and of Activity Monitor's "Sample Process"): a tree of calls for each thread,
//! with counts.
//!
//! Its manual page is sample(1). The text is not documented, so this follows the output of the system's
//! versions.

use nyquist_profile::{FrameId, LibId, Measure, StackId, Unit};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};
use crate::values::SampleQueue;

const FORMAT: &str = "the output of sample";

/// The characters that are drawn before counts, two for each level.
const GUIDES: [char; 5] = [' ', '+', '!', ':', '|'];

/// Whether a text begins like the output of `sample`.
pub(crate) fn is_sample(first: &str) -> bool {
    first.starts_with("Analysis of sampling ") || first.starts_with("Sampling process ")
}

/// Reads the calls of all threads. `sample` samples threads by the wall clock, whether they run or wait, so
/// samples are wall time.
///
/// # Errors
/// If it has no tree of calls.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let (process, pid, interval) = heading(&text);
    let mut importer = Importer::new(process, "macOS sample");
    importer.meta_mut().measure = Measure { name: "wall time".into(), unit: Unit::Time };
    let images = images(&mut importer, &text);
    let mut tree = Tree { importer, images, process, pid, queue: None, open: Vec::new(), interval };
    let mut lines = text.lines().skip_while(|line| !line.trim_end().ends_with("Call graph:")).skip(1);
    let mut is_whole = false;
    for line in lines.by_ref() {
        if line.trim().is_empty() || line.starts_with("Total number in stack") {
            is_whole = true;
            break;
        }
        if let Some(row) = row(line) {
            tree.add(&row);
        }
    }
    tree.close(0);
    if tree.queue.is_none() {
        return Err(ReadError::Malformed { format: FORMAT, problem: "it has no call graph".into() });
    }
    let mut importer = tree.importer;
    if !is_whole {
        importer.note(Note::Cut { place: "its call graph".into() });
    }
    Ok(importer.finish(Some(interval)))
}

/// The process's name and number, and the interval in ns, from `Analysis of sampling NAME (pid 7) every 1
/// millisecond`.
fn heading(text: &str) -> (&str, &str, u64) {
    let line = text.lines().find(|line| line.starts_with("Analysis of sampling ")).unwrap_or_default();
    let rest = line.strip_prefix("Analysis of sampling ").unwrap_or_default();
    let (name, rest) = rest.split_once(" (pid ").unwrap_or(("sample", ""));
    let (pid, rest) = rest.split_once(')').unwrap_or(("0", ""));
    let mut fields = rest.trim_start().trim_start_matches("every ").split(' ');
    let count = fields.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(1).max(1);
    let unit = match fields.next().unwrap_or_default() {
        unit if unit.starts_with("microsecond") => 1000,
        unit if unit.starts_with("second") => 1_000_000_000,
        _ => MILLISECOND,
    };
    (name, pid, count.saturating_mul(unit))
}

/// The address of each file, by its name in the tree.
type Images<'a> = FxHashMap<&'a str, (u64, LibId)>;

/// The list `Binary Images:`, of lines `0x1000 - 0x1fff +app (1.0) <UUID> /path/app`.
fn images<'a>(importer: &mut Importer, text: &'a str) -> Images<'a> {
    let lines = text.lines().skip_while(|line| !line.starts_with("Binary Images:")).skip(1);
    lines
        .filter_map(|line| {
            let (start, rest) = line.trim().split_once(" - ")?;
            let start = address(start.trim())?;
            let path = rest.get(rest.find(" /")? + 1..)?;
            let name = path.rsplit('/').next()?;
            let uuid = rest.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(uuid, _)| uuid);
            let id = uuid.map(|uuid| uuid.replace('-', ""));
            Some((name, (start, importer.lib(path, id.as_deref()))))
        })
        .collect()
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// A line of the tree.
struct TreeLine<'a> {
    depth: usize,
    count: u64,
    text: &'a str,
}

fn row(line: &str) -> Option<TreeLine<'_>> {
    let rest = line.trim_start_matches(GUIDES);
    let (count, text) = rest.split_once(' ')?;
    let count = count.parse().ok()?;
    Some(TreeLine { depth: (line.len() - rest.len()) / 2, count, text: text.trim() })
}

/// The part of a tree that is not complete.
struct OpenNode {
    depth: usize,
    stack: Option<StackId>,
    /// The number of its samples, and the number of samples in its callees.
    count: u64,
    called: u64,
}

struct Tree<'a> {
    importer: Importer,
    images: Images<'a>,
    process: &'a str,
    pid: &'a str,
    /// The queue of the current thread.
    queue: Option<SampleQueue>,
    open: Vec<OpenNode>,
    interval: u64,
}

impl Tree<'_> {
    fn add(&mut self, row: &TreeLine<'_>) {
        self.close(row.depth);
        let Some(caller) = self.open.last_mut() else {
            self.queue = Some(self.thread(row.text));
            self.open.push(OpenNode { depth: row.depth, stack: None, count: row.count, called: 0 });
            return;
        };
        caller.called = caller.called.saturating_add(row.count);
        let prefix = caller.stack;
        let frame = self.frame(row.text);
        let stack = Some(self.importer.stack(prefix, frame));
        self.open.push(OpenNode { depth: row.depth, stack, count: row.count, called: 0 });
    }

    /// Completes frames that are as deep or deeper. They get the samples that none of their callees has.
    fn close(&mut self, depth: usize) {
        while let Some(open) = self.open.pop_if(|open| open.depth >= depth) {
            let own = open.count.saturating_sub(open.called);
            if let Some(queue) = &mut self.queue {
                queue.add(&mut self.importer, open.stack, own.saturating_mul(self.interval));
            }
        }
    }

    /// A thread as `Thread_123: name` or `Thread_123   DispatchQueue_1: com.apple.main-thread  (serial)`.
    fn thread(&mut self, text: &str) -> SampleQueue {
        let end = text.find([' ', ':']).unwrap_or(text.len());
        let (id, rest) = text.split_at(end);
        let name = rest.trim_start_matches(':').trim();
        let thread = ThreadName {
            pid: self.pid,
            process: self.process,
            tid: id.strip_prefix("Thread_").unwrap_or(id),
            thread: if name.is_empty() { id } else { name },
        };
        SampleQueue::new(self.importer.thread(thread))
    }

    /// A frame as `main  (in app) + 52  [0x10ab]  main.c:12`; addresses that it has several of end in `,...`.
    fn frame(&mut self, text: &str) -> FrameId {
        let (name, rest) = text.split_once("  (in ").unwrap_or((text, ""));
        let (image, rest) = rest.split_once(')').unwrap_or((rest, ""));
        let start = rest.split_once("[0x").map(|(_, rest)| rest);
        let digits = start.and_then(|rest| rest.split([',', ']', '.']).next());
        let absolute = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let known = self.images.get(image).copied();
        let lib = match known {
            Some((_, lib)) => Some(lib),
            None => (!image.is_empty()).then(|| self.importer.lib(image, None)),
        };
        let address = absolute
            .zip(known)
            .and_then(|(address, (base, _))| u32::try_from(address.checked_sub(base)?).ok());
        let place = rest.rsplit_once(']').and_then(|(_, place)| place.trim().rsplit_once(':'));
        let (file, line) = place.map_or((None, None), |(file, line)| (Some(file), line.parse().ok()));
        // `???` means that there is no name.
        let name = name.trim();
        let unknown = absolute.map(|address| format!("{address:#x}"));
        let name = if name == "???" { unknown.as_deref().unwrap_or(name) } else { name };
        self.importer.frame(&CodePosition { name, lib, file, line, address, ..CodePosition::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    const FILE: &str = "Analysis of sampling app (pid 77) every 2 milliseconds
Process:         app [77]
Path:            /bin/app

Call graph:
    10 Thread_501   DispatchQueue_1: com.apple.main-thread  (serial)
    + 10 start  (in dyld) + 1805  [0x7ff80a]
    +   9 main  (in app) + 52  [0x100001010]  main.c:12
    +   ! 6 work(int)  (in app) + 8,16,...  [0x100001100,0x100001108,...]
    +   : 2 ???  (in libx.dylib)  load address 0x2000 + 0x10  [0x2010]
    +   1 exit  (in libsystem_c.dylib) + 1  [0x9]
    4 Thread_502: worker
      4 __workq_kernreturn  (in libsystem_kernel.dylib) + 10  [0x99]

Total number in stack (recursive counted multiple, when >=5):

Sort by top of stack, same collapsed (when >= 5):
        work(int)  (in app)        6

Binary Images:
       0x100000000 -        0x100003fff +app (1.0) <0A1B2C3D-0000-1111-2222-333344445555> /bin/app
";

    #[test]
    fn the_tree_becomes_stacks_of_threads() {
        let imported = read(FILE.as_bytes()).unwrap();
        assert_eq!(imported.notes, []);
        let profile = imported.profile;
        let expected = [
            "__workq_kernreturn 4",
            "start;exit 1",
            "start;main 1",
            "start;main;0x2010 2",
            "start;main;work(int) 6",
        ];
        assert_eq!(stacks_of(&profile), expected);
        assert_eq!(profile.meta().interval, 2_000_000);
        assert_eq!(profile.meta().measure, Measure { name: "wall time".into(), unit: Unit::Time });
        let threads: Vec<_> = profile.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
        assert_eq!(threads, [("501", "DispatchQueue_1: com.apple.main-thread  (serial)"), ("502", "worker")]);
        assert_eq!(profile.processes()[0].pid, "77");
    }

    #[test]
    fn addresses_are_relative_to_their_image() {
        let profile = read(FILE.as_bytes()).unwrap().profile;
        let main = profile.frames().iter().find(|frame| profile.func_name(frame.func) == "main").unwrap();
        let lib = profile.lib(profile.func(main.func).lib.unwrap());
        assert_eq!((main.address, main.line, &*lib.path), (Some(0x1010), Some(12), "/bin/app"));
        assert_eq!(lib.code_id.as_deref(), Some("0A1B2C3D000011112222333344445555"));
    }

    #[test]
    fn a_cut_tree_is_said() {
        let cut = &FILE[..FILE.find("    4 Thread_502").unwrap()];
        assert_eq!(read(cut.as_bytes()).unwrap().notes.len(), 1);
        assert!(read(&FILE.as_bytes()[..100]).is_err());
    }

    /// A thread's own line says 7. `inferno-collapse-sample` has 3: it leaves waits out, and keeps one of equal stacks.
    #[test]
    fn equal_stacks_and_waits_are_all_counted() {
        let text = "Analysis of sampling app (pid 7) every 1 millisecond\nCall graph:\n    7 Thread_1: x\n\
            \x20   + 2 main  (in app) + 5  [0x1005]\n    + ! 2 work  (in app) + 9  [0x1019]\n\
            \x20   + 3 main  (in app) + 8  [0x1008]\n    + ! 3 work  (in app) + 9  [0x1019]\n\
            \x20   + 2 __ulock_wait  (in libsystem_kernel.dylib) + 10  [0x9]\n\nTotal number in stack\n";
        let profile = read(text.as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["__ulock_wait 2", "main;work 5"]);
    }
}
