//! A check of all crates: no files of a crate need each other in a circle, on any system, and no folders.
//!
//! A file needs the files that have what its paths name, behind all re-exports. A bare name is such a path, too, if it
//! was imported. A module's name alone, and the re-export of an item of a module below, need nothing.

mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use reader::{Names, Reference, Sources};

/// The most re-exports that are followed from a name to the file that has it.
const MAX_REEXPORTS: usize = 8;

/// The modules of a crate that are in circles of its folders, where there are some. No number may grow.
#[cfg(test)]
const FOLDER_CIRCLES: [(&str, usize); 4] =
    [("nyquist-convert", 6), ("nyquist-record", 5), ("nyquist-symbols", 11), ("nyquist-unwind", 15)];

/// The files that a crate's files need.
type Edges = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The circles of a crate's files, with what could not be read; `root` is its `lib.rs` or `main.rs`.
fn circles(root: &str, read: &dyn Fn(&Path) -> Option<String>) -> Vec<String> {
    let mut sources = Sources::of(root, read);
    let edges = sources.edges();
    sources.faults.extend(strongly_connected(&edges));
    sources.faults
}

impl Sources<'_> {
    /// The path from the crate's root, or nothing for what another crate or the language has.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Names> {
        let first = path.first()?;
        let supers = path.iter().take_while(|name| *name == "super").count();
        let (start, rest) = match first.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (module, &path[1..]),
            "super" => (&module[..module.len().checked_sub(supers)?], &path[supers..]),
            _ => (module, path),
        };
        let absolute = [start, rest].concat();
        let is_known = rest.len() < path.len()
            || self.modules.contains_key(&absolute[..=module.len()])
            || self.modules[module].imports.contains_key(first);
        is_known.then_some(absolute)
    }

    /// The files that have what an absolute path names; none when it names a module.
    fn files_of(&self, path: &[String], reexports: usize) -> BTreeSet<PathBuf> {
        let is_module = self.modules.contains_key(path);
        let known = (0..path.len()).rev().find(|length| self.modules.contains_key(&path[..*length]));
        let Some(length) = known else { return BTreeSet::new() };
        let (module, rest) = path.split_at(length);
        match self.modules[module].imports.get(&rest[0]) {
            None if is_module => BTreeSet::new(),
            None => self.modules[module].files.clone(),
            Some(_) if reexports == MAX_REEXPORTS => BTreeSet::new(),
            Some(imports) => {
                let absolute = imports.iter().filter_map(|import| self.absolute(module, import));
                let files = absolute.flat_map(|import| {
                    if import == path[..=length] {
                        // A macro that is exported by its own name.
                        self.modules[module].files.clone()
                    } else {
                        self.files_of(&[&import, &rest[1..]].concat(), reexports + 1)
                    }
                });
                files.collect()
            }
        }
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for Reference { place, path, is_reexport } in &self.references {
            let Some(path) = self.absolute(&place.module, path) else { continue };
            if !is_reexport || !path.starts_with(&place.module) {
                edges.entry(place.file.clone()).or_default().extend(self.files_of(&path, 0));
            }
        }
        edges
    }
}

/// What the folders and files at the top of a crate need, each with all that is in it.
fn edges_of_folders(files: &Edges) -> Edges {
    let mut folders = Edges::new();
    for (file, needed) in files {
        let needed = needed.iter().map(|file| at_the_top(file)).filter(|folder| *folder != at_the_top(file));
        folders.entry(at_the_top(file)).or_default().extend(needed);
    }
    folders
}

/// The module at the top of a crate that a file belongs to.
fn at_the_top(file: &Path) -> PathBuf {
    file.iter().next().map(|name| Path::new(name).with_extension("")).unwrap_or_default()
}

/// The files that a file needs, directly or through others.
fn reached<'a>(edges: &'a Edges, start: &PathBuf) -> BTreeSet<&'a PathBuf> {
    let mut found: BTreeSet<_> = edges.get(start).into_iter().flatten().collect();
    let mut open: Vec<_> = found.iter().copied().collect();
    while let Some(file) = open.pop() {
        open.extend(edges.get(file).into_iter().flatten().filter(|next| found.insert(*next)));
    }
    found
}

/// The sets of files that all need each other.
fn strongly_connected(edges: &Edges) -> BTreeSet<String> {
    let reached: BTreeMap<_, _> = edges.keys().map(|file| (file, reached(edges, file))).collect();
    let needs = |from, to| reached.get(from).is_some_and(|files| files.contains(to));
    let circles = edges.keys().map(|file| -> Vec<_> {
        let members = edges.keys().filter(|other| needs(file, *other) && needs(*other, file));
        members.map(|member| member.display().to_string()).collect()
    });
    circles.filter(|circle| circle.len() > 1).map(|circle| circle.join(", ")).collect()
}

mod tests {
    use super::*;
    use std::fs;

    /// The roots of all crates: the crate's name, the folder of its files, and the file.
    fn roots() -> Vec<(String, PathBuf, &'static str)> {
        let crates = fs::read_dir(crate::paths::root().join("crates")).unwrap();
        let crates = crates.map(|folder| folder.unwrap().path());
        let folders =
            crates.chain(["fuzz", "test-support", "xtask"].map(|name| crate::paths::root().join(name)));
        let roots = folders.flat_map(|folder| {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            ["lib.rs", "main.rs"].map(|root| (name.clone(), folder.join("src"), root))
        });
        roots.filter(|(_, folder, root)| folder.join(root).exists()).collect()
    }

    #[test]
    fn no_files_of_a_crate_form_a_circle() {
        let mut found = Vec::new();
        for (_, folder, root) in roots() {
            let circles = circles(root, &|file| fs::read_to_string(folder.join(file)).ok());
            found.extend(circles.iter().map(|circle| format!("{}: {circle}", folder.display())));
        }
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn the_circles_of_folders_do_not_grow() {
        let (mut counts, mut shown) = (BTreeMap::new(), Vec::new());
        for (name, folder, root) in roots() {
            let read = |file: &Path| fs::read_to_string(folder.join(file)).ok();
            let circles = strongly_connected(&edges_of_folders(&Sources::of(root, &read).edges()));
            let modules: usize = circles.iter().map(|circle| circle.split(", ").count()).sum();
            if modules > 0 {
                counts.insert(name.clone(), modules);
                shown.push((name, circles));
            }
        }
        let known = FOLDER_CIRCLES.map(|(name, modules)| (name.to_owned(), modules));
        assert_eq!(counts, known.into(), "a smaller number goes into FOLDER_CIRCLES: {shown:#?}");
    }

    #[test]
    fn a_circle_of_folders_has_no_circle_of_files() {
        let pairs = [
            ("a/mod.rs", "b/one.rs"),
            ("b/two.rs", "a/other.rs"),
            ("c.rs", "a/mod.rs"),
            ("a/x.rs", "a/mod.rs"),
        ];
        let mut files = Edges::new();
        for (from, to) in pairs {
            files.entry(from.into()).or_default().insert(to.into());
        }
        assert!(strongly_connected(&files).is_empty());
        assert_eq!(strongly_connected(&edges_of_folders(&files)), ["a, b".to_owned()].into());
    }

    fn circles_of(texts: [&str; 3]) -> Vec<String> {
        let files = ["lib.rs", "folder/mod.rs", "folder/child.rs"];
        circles(files[0], &|file| {
            let index = files.iter().position(|name| file == Path::new(name))?;
            Some(texts[index].to_owned())
        })
    }

    #[test]
    fn a_circle_through_a_macro_and_a_child_is_found() {
        let root = "mod folder; fn call() { println!(\"{}\", folder::name(1)) }";
        let parent =
            "mod child; pub use child::Part; pub fn name(_: u8) {} fn part() -> Part { child::Part }";
        let child = "use super::name; pub struct Part;";
        assert_eq!(circles_of([root, parent, child]), ["folder/child.rs, folder/mod.rs"]);
        let child = "use crate::call as other; pub struct Part;";
        assert_eq!(circles_of([root, parent, child]), ["folder/child.rs, folder/mod.rs, lib.rs"]);
    }

    /// The circles when a parent's items are `items`, and its child needs one of them.
    fn circles_with_parent(items: &str) -> Vec<String> {
        let parent = format!("mod child; pub use child::{{PART, Part, part}}; pub struct Other; {items}");
        let child = "use super::Other; pub struct Part; pub const PART: Part = Part; pub fn part() {}";
        circles_of(["mod folder;", &parent, child])
    }

    #[test]
    fn a_circle_by_a_bare_name_is_found() {
        for items in [
            "struct Whole { part: Option<Part> }",
            "fn whole() { part() }",
            "fn is_whole(part: &u8) -> bool { matches!(part, PART) }",
            "fn is_whole(part: &u8) -> bool { match part { PART => true, _ => false } }",
            "fn show() { println!(\"{}\", part()) }",
            "fn show() { println!(\"{:?}\", 0..PART) }",
            "fn show() { println!(\"{:?}\", Whole { first: PART }) }",
        ] {
            assert_eq!(circles_with_parent(items), ["folder/child.rs, folder/mod.rs"], "{items}");
        }
    }

    #[test]
    fn names_that_are_no_reexports_form_no_circle() {
        for items in [
            "",
            "struct Whole { part: u8 } impl Whole { fn other(&self) -> u8 { self.part } }",
            "fn other(whole: &Whole) { println!(\"{}\", whole.part) }",
            "fn other() { println!(\"{:?}\", Whole { part: 1 }) }",
            "fn other(whole: &Whole) { let Whole { part, .. } = whole; }",
            "#[cfg(test)] fn other() { part() }",
        ] {
            assert_eq!(circles_with_parent(items), Vec::<String>::new(), "{items}");
        }
        // The value `self` is not the module `self`, whose name an item has, too.
        let parent = "mod child; pub struct Other; impl Other { fn child(&self) { self.child() } }";
        let child = "use super::Other; pub fn folder() {}";
        let root = "mod folder; pub use folder::child::folder;";
        assert_eq!(circles_of([root, parent, child]), Vec::<String>::new());
    }

    #[test]
    fn reexports_and_tests_form_no_circle() {
        let root = "mod folder; pub use folder::Part; fn part() -> Part { Part }";
        let parent = "mod child; pub use self::child::Part; pub(in crate::folder) const ONE: u8 = 1;";
        let child = "pub struct Part; use super::ONE; #[cfg(test)] mod tests { use crate::part; }";
        assert_eq!(circles_of([root, parent, child]), Vec::<String>::new());
    }
}
