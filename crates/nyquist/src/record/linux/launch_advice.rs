//! Hints for a command that cannot be started.

use nyquist_record::linux::launch::LaunchError;
use nyquist_symbols::missing_loader;
use std::io::ErrorKind;
use std::path::Path;

/// A hint, if the likely reason is known.
pub(crate) fn advice(error: &LaunchError) -> Option<String> {
    match error {
        LaunchError::Exec { program, source } => about(program, source.kind(), Path::new(".")),
        _ => None,
    }
}

/// Advice on a program that was typed in this folder.
fn about(program: &str, kind: ErrorKind, folder: &Path) -> Option<String> {
    let file = folder.join(program);
    match kind {
        ErrorKind::NotFound if program.contains(' ') && !file.exists() => Some(format!(
            "the program and its arguments are separate words, without quotes: nyquist record {program}"
        )),
        ErrorKind::NotFound if program.contains('/') => {
            not_there(&file, missing_loader(&file).as_deref(), folder)
        }
        ErrorKind::NotFound if file.is_file() => {
            Some(format!("the program in this folder is called ./{program}"))
        }
        ErrorKind::NotFound => {
            Some("it is in no folder of PATH; one in another folder needs its path, as ./app".to_owned())
        }
        ErrorKind::PermissionDenied if file.is_dir() => Some("it is a folder".to_owned()),
        ErrorKind::PermissionDenied if file.is_file() => {
            Some(format!("you may not execute this file; if it is a program: chmod +x {program}"))
        }
        _ => None,
    }
}

/// Advice on a program that the kernel did not find. `loader` is the one it names, if that does not exist.
fn not_there(file: &Path, loader: Option<&Path>, folder: &Path) -> Option<String> {
    if let Some(loader) = loader {
        return Some(format!("the file is there, but its loader is not: {}", loader.display()));
    }
    if file.is_file() {
        return Some("the file is there, but the interpreter that its first line names is not".to_owned());
    }
    let is_package = folder.join("Cargo.toml").is_file();
    is_package.then(|| "to build the package in this folder and record its program: cargo nyquist".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_get_advice() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let check = |program: &str, kind: ErrorKind, expected: Option<&str>| {
            let advice = about(program, kind, package);
            let fits = match expected {
                Some(part) => advice.as_deref().is_some_and(|advice| advice.contains(part)),
                None => advice.is_none(),
            };
            assert!(fits, "{program}: {advice:?}");
        };
        check("./target/app", ErrorKind::NotFound, Some("cargo nyquist"));
        check("./Cargo.toml", ErrorKind::NotFound, Some("interpreter"));
        let loader = Path::new("/lib64/ld-lost.so.2");
        let advice = not_there(Path::new("/bin/true"), Some(loader), package).unwrap();
        assert!(advice.ends_with("its loader is not: /lib64/ld-lost.so.2"), "{advice}");
        check("Cargo.toml", ErrorKind::NotFound, Some("./Cargo.toml"));
        check("ap", ErrorKind::NotFound, Some("PATH"));
        check("./spin 10", ErrorKind::NotFound, Some("without quotes: nyquist record ./spin 10"));
        check("src", ErrorKind::PermissionDenied, Some("a folder"));
        check("./Cargo.toml", ErrorKind::PermissionDenied, Some("chmod +x ./Cargo.toml"));
        check("./app", ErrorKind::OutOfMemory, None);
    }
}
