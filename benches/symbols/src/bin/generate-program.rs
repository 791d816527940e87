//! Generates and builds the large program that the timings are taken on: a Rust program whose debug info is as
//! large as that of a big application, of many units, full of generics that were inlined into each other.
//!
//! `generate-program [TYPES]`: with 230 types, the default, about 150 MB of program.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

/// One module: a type of its own, for which the collections and iterators of the standard library are compiled
/// anew.
const MODULE: &str = r#"
pub mod m@ {
    use std::collections::{BTreeMap, HashMap, VecDeque};

    #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Item@ {
        pub key: u64,
        pub name: String,
        pub parts: Vec<u@>,
    }

    #[inline]
    fn mix(value: u64) -> u64 {
        (value ^ (value >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15 + @)
    }

    #[inline(never)]
    pub fn build(count: u64) -> Vec<Item@> {
        (0..count)
            .map(|n| Item@ { key: mix(n), name: format!("item {n} of @"), parts: vec![n as u@; (n % 7) as usize] })
            .collect()
    }

    #[inline(never)]
    pub fn by_name(items: &[Item@]) -> HashMap<String, Item@> {
        let mut map = HashMap::new();
        for item in items {
            map.entry(item.name.clone()).or_insert_with(|| item.clone()).key ^= mix(item.key);
        }
        map.retain(|_, item| item.key % 5 != @ % 5);
        map
    }

    #[inline(never)]
    pub fn by_item(items: &[Item@]) -> BTreeMap<Item@, usize> {
        let mut map: BTreeMap<Item@, usize> = BTreeMap::new();
        for item in items {
            *map.entry(item.clone()).or_default() += item.parts.len();
        }
        let later = map.split_off(&items[items.len() / 2]);
        map.extend(later.into_iter().filter(|(item, _)| mix(item.key) % 3 == 0));
        map
    }

    #[inline(never)]
    pub fn sorted(items: &[Item@]) -> VecDeque<Item@> {
        let mut items: Vec<Item@> = items.iter().rev().cloned().collect();
        items.sort_by(|a, b| mix(a.key).cmp(&mix(b.key)).then_with(|| a.cmp(b)));
        items.dedup_by_key(|item| item.key);
        let mut queue: VecDeque<Item@> = items.into_iter().collect();
        queue.rotate_left(queue.len() / 3);
        queue.make_contiguous().sort_unstable();
        queue
    }

    #[inline(never)]
    pub fn run(count: u64) -> u64 {
        let items = build(count);
        let named = by_name(&items);
        let ordered = by_item(&items);
        let queue = sorted(&items);
        let text = format!("{:?} {:?} {:?}", named.values().next(), ordered.keys().last(), queue.front());
        let parts: u64 = queue
            .iter()
            .zip(ordered.keys())
            .flat_map(|(a, b)| a.parts.iter().chain(b.parts.iter()))
            .map(|&part| mix(part as u64))
            .fold(0, u64::wrapping_add);
        named.values().map(|item| mix(item.key)).max().unwrap_or(text.len() as u64) ^ parts
    }
}
"#;

fn main() -> ExitCode {
    let types: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(230);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/large");
    let source = folder.join("large.rs");
    let result = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&source, program(types)));
    if let Err(error) = result {
        eprintln!("cannot write {}: {error}", source.display());
        return ExitCode::FAILURE;
    }
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2021", "-g", "-Copt-level=2", "-Ccodegen-units=256"]);
    rustc.arg(&source).arg("-o").arg(folder.join("large"));
    match rustc.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn program(types: usize) -> String {
    let widths = ["8", "16", "32", "64", "128"];
    let mut text = "#![allow(unused_comparisons)]\n".to_owned();
    for number in 0..types {
        let module = MODULE.replace("u@", &format!("u{}", widths[number % widths.len()]));
        text.push_str(&module.replace('@', &number.to_string()));
    }
    text.push_str(
        "fn main() {\n    let count = std::env::args().count() as u64 * 50;\n    let mut sum = 0;\n",
    );
    for number in 0..types {
        let _ = writeln!(text, "    sum ^= m{number}::run(count);");
    }
    text.push_str("    println!(\"{sum}\");\n}\n");
    text
}
