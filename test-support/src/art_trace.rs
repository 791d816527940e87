//! Makes method traces of Android by the description of their layouts, for tests and for fuzzing.

const METHODS: [(u32, &str); 3] = [
    (0x10, "0x10\tapp.Main\tmain\t([Ljava/lang/String;)V\tMain.java"),
    (0x14, "0x14\tapp.Main\twork\t()V\tMain.java"),
    (0x18, "0x18\tjava.lang.String\tconcat\t()V\tString.java"),
];

/// Thread, method with its action, CPU and wall time in µs. The thread waits from 300 to 900 µs.
const CALLS: [(u16, u32, u32, u32); 9] = [
    (7, 0x18 | 1, 50, 50),
    (7, 0x10, 100, 100),
    (7, 0x14, 200, 200),
    (7, 0x18, 250, 250),
    // An exception ends both of them.
    (7, 0x14 | 2, 300, 900),
    (8, 0x10, 10, 200),
    (8, 0x10 | 1, 20, 300),
    (7, 0x10 | 1, 400, 1000),
    (8, 0x14, 30, 400),
];

/// The sections of lines.
pub fn sections(clock: &str) -> String {
    let methods = METHODS.map(|(_, line)| line).join("\n");
    format!(
        "*version\n3\nclock={clock}\nvm=art\npid=7\n*threads\n7\tmain\n8\tpool 1\n*methods\n{methods}\n*end\n"
    )
}

/// The binary header.
pub fn header(version: u16, record: u16) -> Vec<u8> {
    let mut out =
        [&b"SLOW"[..], &version.to_le_bytes(), &32_u16.to_le_bytes(), &[1; 8], &record.to_le_bytes()]
            .concat();
    out.resize(32, 0);
    out
}

/// The records, with the times of these clocks.
pub fn records(has_cpu: bool, has_wall: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (thread, method, cpu, wall) in CALLS {
        out.extend(thread.to_le_bytes());
        out.extend(method.to_le_bytes());
        out.extend(
            [(has_cpu, cpu), (has_wall, wall)]
                .iter()
                .filter(|(has, _)| *has)
                .flat_map(|(_, time)| time.to_le_bytes()),
        );
    }
    out
}

/// A trace with both clocks.
pub fn dual() -> Vec<u8> {
    [sections("dual").into_bytes(), header(3, 14), records(true, true)].concat()
}

/// A streamed trace, which names methods and threads where they first occur.
pub fn streamed() -> Vec<u8> {
    let mut out = header(0xf3, 14);
    for (_, line) in METHODS {
        let line = format!("{line}\n");
        out.extend([&[0, 0, 1][..], &(line.len() as u16).to_le_bytes(), line.as_bytes()].concat());
    }
    for (tid, name) in [(7_u16, "main"), (8, "pool 1")] {
        out.extend(
            [&[0, 0, 2][..], &tid.to_le_bytes(), &(name.len() as u16).to_le_bytes(), name.as_bytes()]
                .concat(),
        );
    }
    out.extend(records(true, true));
    let text = "*version\n3\nclock=dual\npid=7\n*threads\n*methods\n*end\n";
    out.extend([&[0, 0, 3][..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat());
    out
}
