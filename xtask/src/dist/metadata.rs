//! What Cargo.toml states for `cargo binstall` and `cargo deb` agrees with what is made here.

use serde_json::Value;

use super::project::package;
use super::target::{System, TARGETS, Target};
use super::{contents, deb, files::Files, formula, project::Project};

/// The address that `cargo binstall` derives for a target, and the folder of its programs.
fn expanded(metadata: &Value, target: &Target, project: &Project) -> (String, String) {
    let about = &metadata["binstall"];
    let format = match &about["overrides"][target.triple]["pkg-fmt"] {
        Value::Null => about["pkg-fmt"].as_str().unwrap(),
        format => format.as_str().unwrap(),
    };
    let archive_suffix = match format {
        "tgz" => ".tar.gz",
        "zip" => ".zip",
        other => panic!("no archive is made as {other}"),
    };
    let program_suffix = if target.system == System::Windows { ".exe" } else { "" };
    let fill = |template: &Value| {
        let mut text = template.as_str().unwrap().to_owned();
        for (word, value) in [
            ("repo", project.repository.as_str()),
            ("version", &project.version),
            ("target", target.triple),
            ("archive-suffix", archive_suffix),
            ("bin", "nyquist"),
            ("binary-ext", program_suffix),
        ] {
            text = text.replace(&format!("{{ {word} }}"), value);
        }
        assert!(!text.contains('{'), "a word is not known: {text}");
        text
    };
    (fill(&about["pkg-url"]), fill(&about["bin-dir"]))
}

#[test]
fn binstall_finds_archives_and_their_programs() {
    let (package, project) = (package().unwrap(), Project::here().unwrap());
    for target in TARGETS {
        let (address, program) = expanded(&package["metadata"], target, &project);
        assert_eq!(address, formula::address(&project, &target.archive(&project.version)));
        assert_eq!(program, format!("{}/{}", target.folder(&project.version), target.program("nyquist")));
    }
}

#[test]
fn cargo_deb_installs_the_same_files() {
    let package = package().unwrap();
    let assets = package["metadata"]["deb"]["assets"].as_array().unwrap();
    let (mut programs, mut pages) = (Files::default(), Files::default());
    for name in contents::PROGRAMS {
        programs.add_program(name, Vec::new());
    }
    pages.add("man/man1/nyquist.1", "");
    for command in contents::PROGRAMS {
        for name in [format!("{command}.bash"), format!("_{command}"), format!("{command}.fish")] {
            pages.add(format!("completions/{name}"), "");
        }
    }
    let documents = contents::documents().unwrap();
    let files =
        deb::installed(&deb::Parts { programs: &programs, pages: &pages, documents: &documents }).unwrap();
    let paths: Vec<&str> = assets.iter().map(|asset| asset[1].as_str().unwrap()).collect();
    // cargo-deb makes these by itself.
    let by_itself = ["usr/share/doc/nyquist/copyright", "usr/share/doc/nyquist/changelog.gz"];
    for path in files.paths().filter(|path| !by_itself.contains(path)) {
        let folder = path.rsplit_once('/').unwrap().0;
        assert!(paths.iter().any(|asset| *asset == path || *asset == format!("{folder}/")), "{path}");
    }
}
