//! The page's modules as one script. Loading them separately takes longer than all other steps until the page
//! is drawn. A page opened from a disk may not load any.
//!
//! Each module becomes a function that returns the module's exports. The page's modules use only one form
//! of import and export, and no cycles; their tests check that. Code of others ends with a list of its exports.

use std::fmt::Write as _;

use crate::files;

/// The module that starts the served page.
pub(crate) const SERVED: &str = "assets/main.js";

/// The module that starts the page in a file.
pub(crate) const OFFLINE: &str = "offline/main.js";

/// The script of a module and all its imports.
pub(crate) fn script(main: &str) -> String {
    let mut bundle = Bundle::default();
    bundle.add(main);
    bundle.script
}

#[derive(Default)]
struct Bundle {
    /// The modules in the script, in its order.
    known: Vec<String>,
    script: String,
}

impl Bundle {
    /// Adds a module after those that it imports, and returns the name of its exports.
    fn add(&mut self, name: &str) -> String {
        if let Some(known) = self.known.iter().position(|known| known == name) {
            return variable(known);
        }
        let (text, list) = without_export_list(files::module(name).unwrap_or_default());
        let (mut head, mut body) = (String::new(), String::new());
        let mut exported: Vec<_> = list.split(',').filter(|pair| !pair.is_empty()).map(exported_as).collect();
        for line in text.lines() {
            if let Some((names, from)) = import(line) {
                let module = self.add(&resolved(name, from));
                let _ = writeln!(head, "const {{{}}} = {module};", names.replace(" as ", ": "));
                continue;
            }
            let line = line.strip_prefix("export ").map_or(line, |declaration| {
                exported.extend(declared(declaration).map(str::to_owned));
                declaration
            });
            if !is_comment(line) {
                body.push_str(line);
                body.push('\n');
            }
        }
        let number = self.known.len();
        self.known.push(name.to_owned());
        let exports = exported.join(", ");
        let _ = write!(
            self.script,
            "const {} = (() => {{\n{head}{body}return {{ {exports} }};\n}})();\n",
            variable(number)
        );
        variable(number)
    }
}

fn variable(number: usize) -> String {
    format!("module{number}")
}

/// The names in a line of imports, and their module.
fn import(line: &str) -> Option<(&str, &str)> {
    let (names, from) = line.strip_prefix("import {")?.split_once("} from '")?;
    Some((names, from.strip_suffix("';")?))
}

/// The text of a module, and the list of exports at its end.
fn without_export_list(text: &str) -> (&str, &str) {
    let parts = text.trim_end().strip_suffix("};").and_then(|text| text.rsplit_once("export{"));
    parts.unwrap_or((text, ""))
}

/// A pair of a list of exports (`local as exported`) as a member of an object.
fn exported_as(pair: &str) -> String {
    match pair.split_once(" as ") {
        Some((local, exported)) => format!("{exported}: {local}"),
        None => pair.to_owned(),
    }
}

/// The name that a declaration declares.
fn declared(declaration: &str) -> Option<&str> {
    let mut words = declaration.split(|char: char| !(char.is_alphanumeric() || char == '_' || char == '$'));
    let is_name = |word: &&str| !["async", "function", "const", "class"].contains(word);
    words.find(is_name).filter(|name| !name.is_empty())
}

/// Whether a line consists of a comment, which the script omits. No line of code begins with an asterisk.
fn is_comment(line: &str) -> bool {
    let line = line.trim();
    let is_documentation = line.starts_with("/**") && (line.ends_with("*/") || !line.contains("*/"));
    is_documentation
        || ["//", "* ", "*/"].iter().any(|begin| line.starts_with(begin))
        || line == "*"
        || line.is_empty()
}

/// The path of a module from a relative path in another module.
fn resolved(importer: &str, path: &str) -> String {
    let mut folders: Vec<&str> = importer.split('/').collect();
    folders.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                folders.pop();
            }
            part => folders.push(part),
        }
    }
    folders.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_those_they_import() {
        in_order(SERVED);
        in_order(OFFLINE);
    }

    fn in_order(main: &str) {
        let script = script(main);
        assert!(!script.contains("\nimport ") && !script.contains("\nexport "));
        for (number, rest) in script.split("const module").skip(1).enumerate() {
            assert!(rest.starts_with(&format!("{number} = ")));
            for used in rest.split("} = module").skip(1) {
                let used: usize = used.split(';').next().unwrap().parse().unwrap();
                assert!(used < number, "module {number} uses module {used}");
            }
        }
    }

    #[test]
    fn comments_are_not_sent() {
        let script = script(SERVED);
        assert!(
            !script.lines().any(|line| line.trim_start().starts_with("* @") || line.contains("@typedef"))
        );
        let multiplied = |line: &str| line.trim_start().starts_with("* ") || line.trim() == "*";
        assert!(!script.lines().any(multiplied));
    }

    #[test]
    fn nothing_in_the_script_ends_its_element() {
        let script = script(OFFLINE).to_ascii_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--") && !script.contains("<script"));
    }

    #[test]
    fn paths_are_relative_to_the_importer() {
        assert_eq!(resolved("panels/a/b.js", "../../store.js"), "store.js");
        assert_eq!(resolved("panels/a/b.js", "./c.js"), "panels/a/c.js");
    }

    #[test]
    fn lists_of_exports_become_members() {
        let (text, list) = without_export_list("var a=[/x/g];export{a as default,b};\n");
        assert_eq!((text, list), ("var a=[/x/g];", "a as default,b"));
        assert_eq!(list.split(',').map(exported_as).collect::<Vec<_>>(), ["default: a", "b"]);
        assert_eq!(without_export_list("export const a = {};\n"), ("export const a = {};\n", ""));
    }

    #[test]
    fn declarations_have_names() {
        assert_eq!(declared("async function ask(panel) {"), Some("ask"));
        assert_eq!(declared("class CallTree {"), Some("CallTree"));
        assert_eq!(declared("{};"), None);
        assert_eq!(declared("const rowId = (path) =>"), Some("rowId"));
    }
}
