//! Generates a program whose symbol table is as large as that of a browser with symbols: a million functions with names
//! of C++, 224 bytes each, and no debug info.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

type Failure = Box<dyn std::error::Error>;

const FUNCTIONS: usize = 1_000_000;

/// The names are put together of these.
const SPACES: [&str; 8] = ["blink", "content", "media", "net", "cc", "gpu", "v8", "base"];
const CLASSES: [&str; 8] = [
    "LayoutObject",
    "RenderFrameHost",
    "PaintController",
    "UrlRequest",
    "TaskQueue",
    "NodeList",
    "Isolate",
    "Decoder",
];
const METHODS: [&str; 8] = [
    "UpdateAfterLayout",
    "DidFinishLoading",
    "Invalidate",
    "OnReadCompleted",
    "PostTask",
    "Visit",
    "Compile",
    "Decode",
];
const ARGUMENTS: [&str; 8] = ["v", "i", "RKSs", "PKvm", "St10unique_ptrIiE", "bb", "PS0_j", "RKNS_4RectE"];

fn main() -> ExitCode {
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/large");
    fs::create_dir_all(&folder)?;
    let (source, program) = (folder.join("symbols.s"), folder.join("symbols"));
    let mut out = BufWriter::new(File::create(&source)?);
    writeln!(out, ".text")?;
    for number in 0..FUNCTIONS {
        let name = name(number);
        writeln!(out, ".globl {name}\n.type {name},@function\n{name}: .skip 224,0x90\n.size {name},224")?;
    }
    out.flush()?;
    drop(out);
    let mut linker = Command::new("cc");
    linker.args(["-nostdlib", "-static", "-Wl,-e,0", "-Wl,--build-id", "-o"]).arg(&program).arg(&source);
    if !linker.status()?.success() {
        return Err("the program cannot be linked".into());
    }
    fs::remove_file(&source)?;
    println!("{}", program.display());
    Ok(())
}

/// A mangled name, another one for each number.
fn name(number: usize) -> String {
    let (space, class) = (SPACES[number % 8], format!("{}{}", CLASSES[number / 8 % 8], number / 512));
    let (method, arguments) = (METHODS[number / 64 % 8], ARGUMENTS[number * 7 / 3 % 8]);
    format!("_ZN{}{space}{}{class}{}{method}E{arguments}", space.len(), class.len(), method.len())
}
