//! Jitdumps and perf maps of arbitrary bytes, and unwind information in a jitdump.

use nyquist_object::{Architecture, RelativeAddress};
use nyquist_perf::{Budget, CodeNames, JitDumpBody, JitDumpHeader, JitDumpRecord};
use nyquist_unwind::Module;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = JitDumpHeader::parse(bytes);
    let mut rest = bytes;
    while let Ok(Some(record)) = JitDumpRecord::parse(rest) {
        read(record.body);
        rest = &rest[record.size as usize..];
    }
    let map = CodeNames::read(bytes, &Budget::default()).expect("bytes can be read");
    let (all, found) =
        (map.len(), map.iter().filter(|code| map.find(code.start) == Some(*code)).count());
    assert_eq!(all, found, "an entry is not found by its own first address");
}

fn read(body: JitDumpBody<'_>) {
    match body {
        JitDumpBody::DebugInfo { lines, .. } => drop(lines.iter().count()),
        JitDumpBody::UnwindingInfo { data, .. } => {
            for architecture in [Architecture::X86_64, Architecture::Aarch64] {
                let module = Module::from_made_code(architecture, 0x1000, data.to_vec());
                for at in (0..0x1000).step_by(16) {
                    let _ = module.rule(RelativeAddress(at));
                }
            }
        }
        _ => {}
    }
}
