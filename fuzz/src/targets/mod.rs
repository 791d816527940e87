//! The fuzz targets: each takes bytes and must neither panic nor take much time or memory.
//!
//! A new one is a file here, its name in the list below, and first inputs in `../seeds.rs`.

/// The modules of this folder, and the table of them.
macro_rules! targets {
    ($($name:ident)*) => {
        $(pub mod $name;)*

        /// Every target: its name, and what takes an input.
        pub const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),*];
    };
}

targets! {
    allocation_file
    answer_cache
    converter
    demangle
    elf
    etl
    event_names
    formats
    go_tables
    kernel_symbols
    macho
    macho_symbols
    made_code
    marker_file
    pe
    perf_data
    perf_record
    profile_bytes
    profile_edits
    samply_sidecar
    server_http
    server_requests
    shared_cache
    spool
    symbols_file
    symbols_sections
    tracepoint
    unwind_compact
    unwind_file
    unwind_macho
    unwind_pe
    unwind_sections
    unwind_walk
    viewer_questions
    windows_symbols
}

/// The target of that name.
pub fn find(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}
