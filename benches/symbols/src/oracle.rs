//! Other people's symbolizers.

use crate::{Chain, PlainFrame, plain_path};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// gimli's addr2line, as a library.
pub fn addr2line(program: &Path, addresses: &[u64]) -> Result<Vec<Chain>, String> {
    let loader = addr2line::Loader::new(program).map_err(|error| error.to_string())?;
    let chain = |&address: &u64| {
        let mut chain = Chain::new();
        let Ok(mut frames) = loader.find_frames(address) else { return chain };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let location = frame.location.as_ref();
            chain.push(PlainFrame {
                function: name.map(|name| nyquist_symbols::demangle(&name).into_owned()),
                file: location.and_then(|location| location.file).map(plain_path),
                line: location.and_then(|location| location.line).filter(|&line| line != 0),
            });
        }
        chain
    };
    Ok(addresses.iter().map(chain).collect())
}

/// The version of `llvm-symbolizer` whose differences are known.
const LLVM_VERSION: &str = "14";

/// Whether `llvm-symbolizer` is there, in that version; where it is not, says so.
pub fn has_llvm() -> bool {
    let output = Command::new("llvm-symbolizer").arg("--version").output();
    let message =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let is_known = message.contains(&format!("LLVM version {LLVM_VERSION}."));
    if !is_known {
        println!(
            "skipped: llvm-symbolizer {LLVM_VERSION} is not installed, and differences.txt is about no other"
        );
    }
    is_known
}

/// `llvm-symbolizer`, as a program.
pub fn llvm(program: &Path, addresses: &[u64]) -> Result<Vec<Chain>, String> {
    let mut command = Command::new("llvm-symbolizer");
    command.args(["--output-style=JSON", "--no-demangle", "--inlines", "--functions=linkage"]);
    command.arg("--obj").arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("llvm-symbolizer: {error}"))?;
    let input: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut stdin = child.stdin.take().ok_or("no pipe")?;
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    writer.join().map_err(|_| "the writer failed")?.map_err(|error| error.to_string())?;
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<serde_json::Value>();
    let chains: Result<Vec<Chain>, _> =
        answers.map(|answer| answer.map(|answer| llvm_chain(&answer))).collect();
    let chains = chains.map_err(|error| error.to_string())?;
    if chains.len() != addresses.len() {
        return Err(format!("{} answers for {} addresses", chains.len(), addresses.len()));
    }
    Ok(chains)
}

fn llvm_chain(answer: &serde_json::Value) -> Chain {
    let symbols = answer["Symbol"].as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let frames = symbols.iter().map(|symbol| PlainFrame {
        function: text(&symbol["FunctionName"]).map(|name| nyquist_symbols::demangle(&name).into_owned()),
        file: text(&symbol["FileName"]).map(|path| plain_path(&path)),
        line: symbol["Line"].as_u64().map(|line| line as u32).filter(|&line| line != 0),
    });
    frames.collect()
}
