//! Writes the first inputs of each target to `corpus/`: object files of small programs by whatever compilers are
//! there, records, requests and profiles. Nothing of it is kept in the repository.

mod corpus;
mod formats;
mod spools;
mod traces;

use corpus::{corpus, write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

use nyquist_fuzz::elf_image::{self, SECTIONS, TEXT};
use nyquist_fuzz::sample_profile::{VERSIONS, sample_document};
use nyquist_object::macho::Stab;
use nyquist_object::{Elf, MachO};

const C_SOURCE: &str = r#"
static inline __attribute__((always_inline)) int inner(int n) { return n * n + 3; }
static inline __attribute__((always_inline)) int outer(volatile int *p) { int s = 0; for (int i = 0; i < *p; i++) s += inner(i); return s; }
__attribute__((noinline)) int compute(volatile int *p) { int a[64]; for (int i = 0; i < 64; i++) a[i] = *p; return outer(p) + a[*p & 63]; }
__attribute__((noinline)) int dynamic(volatile int *p) { char a[*p]; a[*p / 2] = 1; return compute(p) + a[0]; }
int entry(void) { volatile int n = 7; return dynamic(&n) + compute(&n); }
void _start(void) { entry(); for (;;); }
"#;

const RUST_SOURCE: &str = r#"
#![no_std]
#[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
#[inline] fn inner<T: Into<u64>>(n: T) -> u64 { n.into().rotate_left(7) }
#[unsafe(no_mangle)] pub extern "C" fn entry(n: u32) -> u64 { (0..n).map(inner).sum() }
"#;

/// Ways to compile a program: a compiler and its arguments.
const BUILDS: [(&str, &str); 12] = [
    ("gcc", "-O2 -g -gdwarf-4 -nostdlib -static"),
    ("gcc", "-O2 -g -gdwarf-5 -nostdlib -shared -fPIC"),
    ("gcc", "-O0 -g -gdwarf-5 -gdwarf64 -nostdlib -static-pie -fPIE"),
    ("gcc", "-O2 -g -gdwarf-3 -nostdlib -static -fno-asynchronous-unwind-tables"),
    ("gcc", "-O2 -g -gz=zlib -nostdlib -static"),
    ("gcc", "-O2 -g -gz=zstd -nostdlib -static"),
    ("gcc", "-O2 -g -gsplit-dwarf -nostdlib -static"),
    ("gcc", "-O1 -g -m32 -nostdlib -static"),
    ("gcc", "-O2 -g -c -ffunction-sections"),
    ("clang", "-O2 -g -gdwarf-5 -nostdlib -static"),
    ("clang", "-O2 -g -gdwarf-4 -gpubnames -nostdlib -shared -fPIC"),
    ("clang", "-O2 -fomit-frame-pointer -nostdlib -static -Wl,--build-id"),
];

pub(crate) fn write_all() -> io::Result<()> {
    let scratch = env::temp_dir().join(format!("nyquist-fuzz-seeds-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let files = compile_all(&scratch);
    let windows = compile_for_windows(&scratch);
    let written = write_object_seeds(&files)
        .and_then(|()| write_windows_seeds(&windows))
        .and_then(|()| write_macos_seeds(&scratch))
        .and_then(|()| write_text_seeds())
        .and_then(|()| write_profiles())
        .and_then(|()| write_markers())
        .and_then(|()| write_allocations())
        .and_then(|()| write_answers())
        .and_then(|()| spools::write())
        .and_then(|()| write_recordings())
        .and_then(|()| traces::write());
    fs::remove_dir_all(&scratch)?;
    println!("{} object files, and seeds made of them, are in {}", files.len(), corpus("").display());
    written
}

/// Compiles what can be compiled here; compilers that are missing are passed over.
fn compile_all(scratch: &Path) -> Vec<Vec<u8>> {
    let (c, rust) = (scratch.join("seed.c"), scratch.join("seed.rs"));
    let ready = fs::write(&c, C_SOURCE).and_then(|()| fs::write(&rust, RUST_SOURCE));
    ready.expect("the scratch folder is new");
    let rust_build =
        ("rustc", "--crate-type=cdylib -Cpanic=abort -Cdebuginfo=2 -Copt-level=2 -Clink-arg=-nostdlib");
    let builds = BUILDS.iter().map(|&build| (build, &c)).chain([(rust_build, &rust)]);
    let mut files = Vec::new();
    for ((compiler, arguments), source) in builds {
        let output = scratch.join("output");
        let mut command = Command::new(compiler);
        command.args(arguments.split(' ')).arg("-o").arg(&output).arg(source).current_dir(scratch);
        let compiled = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !compiled {
            println!("skipped: {compiler} {arguments}");
            continue;
        }
        files.extend(fs::read(&output));
        files.extend(mini_debug_info(&output));
    }
    files
}

/// Images and their PDBs, where clang and lld are there.
fn compile_for_windows(scratch: &Path) -> Vec<Vec<u8>> {
    let of = |architecture| compile_for_windows_on(architecture, scratch);
    ["x86_64", "aarch64"].into_iter().flat_map(of).collect()
}

fn compile_for_windows_on(architecture: &str, scratch: &Path) -> Vec<Vec<u8>> {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/windows");
    let run = |command: &mut Command| {
        command.current_dir(scratch).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let target = format!("--target={architecture}-windows-msvc");
    let target = [&*target, "-fno-rtti", "-O1", "-g", "-gcodeview", "-c", "-o"];
    let compiled = [("program.cc", "program.obj"), ("more.c", "more.obj")].iter().all(|(source, object)| {
        run(Command::new("clang").args(target).arg(object).arg(workloads.join(source)))
    });
    let link = ["/nodefaultlib", "/entry:mainCRTStartup", "/subsystem:console", "/debug", "/out:program.exe"];
    if !compiled || !run(Command::new("lld-link").args(link).args(["program.obj", "more.obj"])) {
        println!("skipped: clang and lld-link for Windows on {architecture}");
        return Vec::new();
    }
    ["program.exe", "program.pdb"].iter().filter_map(|name| fs::read(scratch.join(name)).ok()).collect()
}

fn write_windows_seeds(files: &[Vec<u8>]) -> io::Result<()> {
    for (number, file) in files.iter().enumerate() {
        for target in ["pe", "unwind_pe", "windows_symbols"] {
            write(target, number, file)?;
        }
    }
    let text = "MODULE windows x86_64 6C974EBE5232EE469D6B7847A670B2A91 a.pdb\nFILE 0 a.cc\nINLINE_ORIGIN 0 inner(int)\n\
        FUNC 1000 40 0 outer(char)\nINLINE 0 7 0 0 1010 8\n1000 40 9 0\nPUBLIC m 1080 0 ?last@@YAXXZ\nSTACK CFI\n";
    write("windows_symbols", files.len(), text.as_bytes())?;
    write("demangle", 100, b"??$sum@H$02@shapes@@YAHAEAY02$$CBHH@Z")
}

/// Images of macOS, where clang and lld are there: with the object file that holds their debug info, and with a
/// `.dSYM`.
fn write_macos_seeds(scratch: &Path) -> io::Result<()> {
    let run = |command: &mut Command| {
        command.current_dir(scratch).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    // The object file is where the fuzz target puts it.
    let (source, object) = (scratch.join("seed.c"), env::temp_dir().join("nyquist-fuzz-macho.o"));
    for (number, architecture) in ["x86_64", "arm64"].into_iter().enumerate() {
        let target = format!("--target={architecture}-apple-macos11");
        let mut clang = Command::new("clang");
        let compiled = run(clang.args([&*target, "-O1", "-g", "-c", "-o"]).arg(&object).arg(&source));
        let link = ["-arch", architecture, "-platform_version", "macos", "11", "11", "-dylib", "-o", "image"];
        let linked = ["ld64.lld", "ld64.lld-14"].iter().any(|linker| {
            let options = ["-undefined", "dynamic_lookup"];
            run(Command::new(linker).args(link).args(options).arg(&object))
        });
        if !compiled || !linked {
            println!("skipped: clang and ld64.lld for macOS");
            return Ok(());
        }
        let image = without_times(fs::read(scratch.join("image"))?);
        let object = fs::read(&object)?;
        let with_length =
            |image: &[u8], object: &[u8]| [&(image.len() as u32).to_le_bytes()[..], image, object].concat();
        write("macho_symbols", 3 * number, &with_length(&image, &object))?;
        write("macho_symbols", 3 * number + 1, &with_length(&object, &[]))?;
        write("macho", number, &image)?;
        write("unwind_macho", number, &image)?;
        if run(Command::new("dsymutil").arg("--flat").args(["-o", "debug", "image"])) {
            write("macho_symbols", 3 * number + 2, &with_length(&fs::read(scratch.join("debug"))?, &[]))?;
        }
    }
    Ok(())
}

/// An image that does not say when its object files were written: the fuzz target writes them anew.
fn without_times(mut image: Vec<u8>) -> Vec<u8> {
    let Ok(file) = MachO::open(image.as_slice()) else { return image };
    let symbols = file.symbols().unwrap_or_default();
    let start = file.symbol_table().map_or(0, |table| table.symbols.offset.0 as usize);
    let objects = symbols.iter().enumerate().filter(|(_, symbol)| symbol.stab() == Some(Stab::Object));
    for (number, _) in objects {
        image[start + 16 * number + 8..][..8].fill(0);
    }
    image
}

/// The file with its symbols compressed into `.gnu_debugdata`.
fn mini_debug_info(file: &Path) -> Option<Vec<u8>> {
    let (symbols, output) = (file.with_extension("symbols"), file.with_extension("mini"));
    let run = |command: &mut Command| command.stderr(Stdio::null()).status().ok().filter(|s| s.success());
    run(Command::new("objcopy").arg("-S").arg("--keep-symbol=compute").args([file, &symbols]))?;
    run(Command::new("xz").args(["--check=none", "--force"]).arg(&symbols))?;
    let section = format!(".gnu_debugdata={}.xz", symbols.display());
    run(Command::new("objcopy").args(["-S", "--add-section", &section]).args([file, &output]))?;
    fs::read(output).ok()
}

fn write_object_seeds(files: &[Vec<u8>]) -> io::Result<()> {
    let go = SECTIONS.iter().position(|name| *name == ".gopclntab").unwrap_or_default() as u8;
    // sub rsp, 24; mov [rsp + 16], rbp; lea rbp, [rsp + 16]; call rax; then the same again.
    let code = b"H\x83\xec\x18H\x89l$\x10H\x8dl$\x10\xff\xd0".repeat(5);
    let program = elf_image::encode(&[(0, code), (go, go_table(1))]);
    write("unwind_sections", files.len(), &[&[0, 0], program.as_slice()].concat())?;
    // str x30, [sp, -48]!; stur x29, [sp, -8]; mov sp, x3; blr x3; then the same again, for 64-bit ARM.
    let code =
        [0xf81d_0ffe_u32, 0xf81f_83fd, 0x9100_007f, 0xd63f_0060].map(u32::to_le_bytes).concat().repeat(20);
    let program = elf_image::encode(&[(0, code), (go, go_table(4))]);
    write("unwind_sections", files.len() + 1, &[&[1, 0], program.as_slice()].concat())?;
    for (number, file) in files.iter().enumerate() {
        for target in ["elf", "unwind_file", "symbols_file"] {
            write(target, number, file)?;
        }
        let unwinding = sections(file, |name| matches!(name, ".text" | ".eh_frame" | ".debug_frame"));
        write("unwind_sections", number, &[&[0, 0], elf_image::encode(&unwinding).as_slice()].concat())?;
        let symbols = sections(file, |name| !matches!(name, ".eh_frame" | ".debug_frame"));
        write("symbols_sections", number, &elf_image::encode(&symbols))?;
    }
    Ok(())
}

/// The sections of a file that a fuzz input can give.
fn sections(file: &[u8], requested: impl Fn(&str) -> bool) -> Vec<elf_image::Section> {
    let Ok(elf) = Elf::open(file) else { return Vec::new() };
    let named = (0..).zip(SECTIONS).filter(|(_, name)| requested(name));
    named.filter_map(|(number, name)| Some((number, elf.section_data(name).ok()??))).collect()
}

/// A table of Go's of two functions, one of which is the outermost.
fn go_table(quantum: u8) -> Vec<u8> {
    let mut table = [0xffff_fff1_u32, 0x0800_0000 | u32::from(quantum) << 16].map(u32::to_le_bytes).concat();
    table.extend([2, 0, TEXT, 0, 0, 0, 72, 88].map(u64::to_le_bytes).concat());
    table.extend([2, 4, 48, 20, 47, 24, 0, 2, 9, 0, 0, 0, 0, 0, 0, 0]);
    table.extend([0_u32, 20, 0x30, 64, 0x50].map(u32::to_le_bytes).concat());
    for (depths, flags) in [(0_u32, 2), (7, 1)] {
        let mut description = [0; 44];
        description[16..20].copy_from_slice(&depths.to_le_bytes());
        description[41] = flags;
        table.extend(description);
    }
    table
}

fn write_text_seeds() -> io::Result<()> {
    let names = [
        "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
        "_RNvCs1234_7mycrate3foo",
        "_RINvNtC3std3mem8align_ofNtNtC3std3fmt5ErrorE",
        "_ZNSt6vectorIiSaIiEE9push_backEOi",
        "_ZN3FooIXadL_Z3barvEEE3bazEv.cold",
        "_ZZ4mainENKUlvE_clEv.llvm.123",
        "_ZNKSt8functionIFvNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEEclES5_",
    ];
    for (number, name) in names.iter().enumerate() {
        write("demangle", number, name.as_bytes())?;
    }
    write(
        "tracepoint",
        0,
        b"name: b\nID: 7\n\tfield:char a[4];\toffset:0;\tsize:4;\tsigned:0;\n\tfield:__data_loc char[] t;\toffset:4;\tsize:4;\tsigned:0;\n\0abcd\x08\0\x02\0xy",
    )?;
    write("event_names", 0, b"cycles:u,cpu/event=0x3c,period=9/pp,r1a8,sched:sched_*:k,libc:malloc%return")?;
    let kernel = "ffffffff81000000 T _text\nffffffff81000100 t helper\nffffffffc0000000 t start\t[ext4]\n\
        ffffffffc0001000 D data\t[ext4]\nffffffff82000000 R _etext\n\0ext4 1044480 2 - Live 0xffffffffc0000000\n\
        \0\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0abcd";
    write("kernel_symbols", 0, kernel.as_bytes())?;
    let sidecar = r#"{"string_table":["UNKNOWN","f","/a.c"],"data":[{"debug_name":"app","debug_id":"dfb8e43a-f242-3d73-a453-aeb6a777ef75-a",
        "code_id":"","symbol_table":[{"rva":16,"size":8,"symbol":1,"frames":[{"function":1,"file":2,"line":3}]}],"known_addresses":[[17,0]]}]}"#;
    write("samply_sidecar", 0, sidecar.as_bytes())?;
    let requests = [
        (0, r#"{"jobs":[{"memoryMap":[["libc.so","ABC0"],["",""]],"stacks":[[[0,16],[1,17]],[]]}]}"#),
        (0, r#"{"memoryMap":[["libc.so","ABC0"]],"stacks":[[[0,4294967296]]]}"#),
        (1, r#"{"debugName":"libc.so","debugId":"ABC0","moduleOffset":"0x10","file":"/source.c"}"#),
        (
            2,
            r#"{"debugName":"libc.so","debugId":"ABC0","startAddress":"0x10","size":"0x20","continueUntilFunctionEnd":true}"#,
        ),
    ];
    for (number, (endpoint, body)) in requests.into_iter().enumerate() {
        write("server_requests", number, &[&[endpoint], body.as_bytes()].concat())?;
    }
    let questions = [
        (0, "threads=0&range=0-1000000&state=both&transform=focus-function:0"),
        (1, "parts=7&tracks=0,1&hide=a&transform=collapse-lib:0&transform=drop-category:0"),
        (2, "width=900&inverted=1&transform=focus-subtree:0.1&ignore=/^b/"),
        (3, "thread=0&width=300&show=a"),
        (4, "expand=1&limit=9&path=0&transform=merge-function:1"),
        (5, "sort=total&search=a&offset=1&transform=collapse-recursion:0"),
        (6, "function=0&transform=focus-inverted-subtree:0&transform=collapse-subtree:1"),
        (7, "q=a%20b&focus=a&transform=drop-function:2&transform=focus-self:1"),
        (8, "function=1"),
        (9, "limit=5&search=a&kind=b"),
    ];
    for (number, (question, query)) in questions.into_iter().enumerate() {
        write("viewer_questions", number, &[&[question], query.as_bytes()].concat())?;
    }
    let heads = [
        "GET /TOKEN/profile.json HTTP/1.1\r\nHost: HOST\r\n\r\n",
        "HEAD /TOKEN/profile.json HTTP/1.0\r\n\r\n",
        "OPTIONS /TOKEN/asm/v1 HTTP/1.1\r\nHost: HOST\r\nOrigin: https://profiler.firefox.com\r\n\
         Access-Control-Request-Headers: content-type\r\nAccess-Control-Request-Method: POST\r\n\r\n",
        "POST /TOKEN/symbolicate/v5 HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\n{}\r\n0\r\n\r\nGET /TOKEN/profile.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST http://HOST/TOKEN/source/v1 HTTP/1.1\r\nHost: [::1]:80\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    ];
    for (number, head) in heads.iter().enumerate() {
        write("server_http", number, head.as_bytes())?;
    }
    Ok(())
}

fn write_profiles() -> io::Result<()> {
    formats::write_all()?;
    for (number, version) in VERSIONS.into_iter().enumerate() {
        write("profile_bytes", 2 * number, &sample_document(version, false))?;
        write("profile_bytes", 2 * number + 1, &sample_document(version, true))?;
    }
    for (number, json) in [
        r#"{"meta":{"preprocessedProfileVersion":66,"interval":1,"startTime":0},"threads":[{"samples":{"length":1,"stack":[null],"time":[1]}}]}"#,
        r#"{"meta":{"preprocessedProfileVersion":40,"interval":1},"libs":[],"threads":[]}"#,
    ]
    .iter()
    .enumerate()
    {
        write("profile_bytes", 4 + number, json.as_bytes())?;
    }
    Ok(())
}

/// Whole recordings: one of perf's with code of all kinds, and one of simpleperf's with its symbol tables and its large
/// records. The first byte says that a file follows.
fn write_recordings() -> io::Result<()> {
    use nyquist_perf::abi::context;
    use nyquist_perf::file::{Features, FileWriter, WrittenEvent};
    use nyquist_perf::{AttrFlags, ByteOrder, EventAttr, MappedIdentity, Mmap, RecordId, SampleType};
    let fields =
        [SampleType::IP, SampleType::TID, SampleType::TIME, SampleType::PERIOD, SampleType::CALLCHAIN];
    let sample_type = fields.into_iter().fold(SampleType::IDENTIFIER, SampleType::with);
    let event = |kind, config, name: &str, id| WrittenEvent {
        attr: EventAttr {
            kind,
            config,
            sample_period: 1000,
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..EventAttr::default()
        },
        name: name.to_owned(),
        ids: vec![(id, None)],
    };
    let events = vec![
        event(1, 0, "cpu-clock", 10),
        event(1, 10, "offcpu-time", 11),
        event(2, 91, "sched:sched_switch", 12),
    ];
    let format = events[0].attr.record_format(ByteOrder::Little);
    let at = |number, time| RecordId {
        task: Some((7, 8)),
        time: Some(time),
        id: Some(number),
        ..RecordId::default()
    };
    let mapped = |pid, address, path: &'static str| Mmap {
        pid,
        tid: 7,
        address,
        len: 0x1000,
        page_offset: 0,
        identity: MappedIdentity::BuildId(&[1; 20]),
        protection: Some(5),
        flags: Some(2),
        path: path.as_bytes(),
        data: false,
    };
    let large = |kind: u32, body: &[u8]| {
        let size = (body.len() as u32 + 8).to_le_bytes();
        [&kind.to_le_bytes()[..], &size[2..], &size[..2], body].concat()
    };
    let kallsyms = b"ffffffff00000010 t work\n";
    let kernel_symbols = [&(kallsyms.len() as u32).to_le_bytes()[..], kallsyms].concat();
    let records = [
        format.encode_comm((7, 7), b"app", false, &at(10, 1)),
        format.encode_mmap(&mapped(u32::MAX, 0xffff_ffff_0000_0000, "[kernel.kallsyms]_text"), 1, &at(10, 1)),
        format.encode_mmap(&mapped(7, 0x1000, "/lib/a.so"), 2, &at(10, 1)),
        format.encode_kernel_symbol((0xffff_ffff_c000_0000, 64), b"bpf_prog", &at(10, 1)),
        large(32774, &[2_u64, 0, 20, 1, 21].map(u64::to_le_bytes).concat()),
        large(32769, &kernel_symbols),
        large(32772, &large(32769, &kernel_symbols)),
        large(32773, &[]),
        format.encode_sample(2, (0x1010, 1000), &[context::USER, 0x1010, 0x1020], &at(10, 2)),
        format.encode_sample(
            1,
            (0xffff_ffff_c000_0004, 5),
            &[context::KERNEL, 0xffff_ffff_c000_0004],
            &at(11, 3),
        ),
        format.encode_sample(2, (0x1010, 1), &[context::USER, 0x1010], &at(12, 4)),
    ];
    let meta = b"event_type_info\0cpu-clock,1,0\nsched:sched_switch,2,91\0android_version\x0013\0";
    let symbols = b"\x0a\x09/lib/a.so\x10\x02\x18\x00\x22\x08\x08\x10\x10\x40\x1a\x02_f\x32\x02\x08\x00";
    let file2 = [&(symbols.len() as u32).to_le_bytes()[..], symbols].concat();
    for (number, more) in [vec![], vec![(129, meta.to_vec()), (132, file2)]].into_iter().enumerate() {
        let mut writer = FileWriter::new(io::Cursor::new(Vec::new()), events.clone())?;
        records.iter().try_for_each(|record| writer.write_records(record))?;
        more.into_iter().for_each(|(number, section)| writer.add_feature(number, section));
        let bytes = writer.finish(&Features::default())?.into_inner();
        write("perf_data", number, &[&[1], &bytes[..]].concat())?;
    }
    Ok(())
}

/// A marker file's records: every kind of them, with an interval that has a begin and an end.
fn write_markers() -> io::Result<()> {
    use nyquist_tracing::protocol::{
        Field, MarkerKind, Number, Values, put_kind, put_marker, put_thread, record,
    };
    let fields = [("path", ""), ("size", "bytes"), ("flow", "flow-id")];
    let field = |&(key, format): &(&'static str, &'static str)| Field { key, format, ..Field::default() };
    let kind = MarkerKind {
        name: "load".into(),
        marker_name: "load file",
        track: "tasks",
        fields: fields.iter().map(field).collect(),
        ..MarkerKind::default()
    };
    let mut records = Vec::new();
    put_thread(&mut records, 7);
    put_kind(&mut records, 1, &kind);
    let mut values = Values::new();
    values.text(0, "/a");
    let more = [(1, Number::Integer(4096)), (2, Number::Integer(5)), (0, Number::Any(0.5))];
    for (record, times) in [
        (record::START, (1500, 3)),
        (record::INTERVAL, (1500, 2000)),
        (record::INSTANT, (1600, 0)),
        (record::END, (1900, 3)),
    ] {
        put_marker(&mut records, (record, 1), "", times, &values, &more);
        put_marker(&mut records, (record, 0), "plain", times, &Values::new(), &[]);
    }
    let folder = corpus("marker_file");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("records"), records)?;
    fs::write(folder.join("text"), "1500 2000 a step\n1500 1500 now\n")
}

/// Records of allocations: two at one stack, of which the second has its number alone, and a free.
fn write_allocations() -> io::Result<()> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let allocation = |address: u64, stack: u64| {
        words(&[
            1 | (96 + stack) << 32,
            1500,
            7,
            address,
            3,
            24,
            99,
            5,
            0x40_0000,
            0x7fff_0000,
            0x7fff_0010,
            stack,
        ])
    };
    let free = words(&[2 | 40 << 32, 1600, 8, 0x1000, 4]);
    let folder = corpus("allocation_file");
    fs::create_dir_all(&folder)?;
    fs::write(
        folder.join("records"),
        [allocation(0x1000, 64), vec![0; 64], allocation(0x2000, 0), free].concat(),
    )
}

/// The payload of a block of the answer cache, one answer of one string, and the head and the block of two kept
/// functions of the kernel, and of two of a symbol table; each behind the byte that says which it is.
fn write_answers() -> io::Result<()> {
    let numbers = [1_u32, 1, 4, 0x1000, 9, 4].map(u32::to_le_bytes).concat();
    let answer = [0, 1, 0x10, 0, 1, 1, 0, 3, 0];
    write("answer_cache", 0, &[&[1], numbers.as_slice(), b"main", &answer].concat())?;
    let counts = [0_u32, 1, 2].map(u32::to_le_bytes).concat();
    let module = [&[0; 8][..], &0x2000_u64.to_le_bytes(), &[7, 0], b"vmlinux"].concat();
    let index = [0, 0, 0, 0, 0, 0, 8 + 26, 0, 0, 0];
    let head = [counts, module, index.to_vec()].concat();
    let block = [&[0, 0, 0, 0, 4, 0, 0, 0, 0, 8, 0, 0, 6, 0, 0, 0][..], b"idlesecond"].concat();
    write("answer_cache", 1, &[&[5, head.len() as u8, 0], head.as_slice(), &block].concat())?;
    let head = [2_u64, 0x1000].map(u64::to_le_bytes).concat();
    let row = |start: u64, numbers: [u32; 3]| {
        [start.to_le_bytes().as_slice(), &numbers.map(u32::to_le_bytes).concat()].concat()
    };
    let rows = [row(0x1000, [16, 6, 16]), row(0x1000, [16, 1, 16])].concat();
    write("answer_cache", 2, &[&[7, head.len() as u8, 0], head.as_slice(), &rows].concat())
}
