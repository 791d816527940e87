//! The entitlements of a copy that allows debuggers: those of the program, as far as anybody may sign them.
//!
//! The system ends a program at once whose signature has a restricted entitlement and no certificate ("ad hoc"). On
//! macOS, those are all but `get-task-allow`, application groups, and what configures the sandbox and the hardened
//! runtime (Apple's TN3125, "Entitlements on macOS"), whose names begin alike.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Others may look at the program.
pub(crate) const GET_TASK_ALLOW: &str = "com.apple.security.get-task-allow";
/// How the names of entitlements begin that need nobody's permission.
const UNRESTRICTED: &str = "com.apple.security.";
/// Those of programs that run in a sandbox.
const SANDBOX: [&str; 2] = ["com.apple.security.app-sandbox", "com.apple.security.inherit"];

/// The entitlements of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entitlements {
    /// Those that a copy has, too, as elements of a property list.
    retained: String,
    /// The names of those that only the program's developer can give.
    pub(crate) lost: Vec<String>,
    /// Whether the program runs in a sandbox.
    pub(crate) is_sandboxed: bool,
}

impl Entitlements {
    /// Reads a property list, as `codesign` prints it. Nothing is a program without entitlements. `None` if it is
    /// no list of entitlements.
    pub(crate) fn of(list: &str) -> Option<Self> {
        let list = list.trim_matches(|char: char| char.is_whitespace() || char == '\0');
        let mut all = Self::default();
        if list.is_empty() {
            return Some(all);
        }
        let mut xml = Reader::from_str(list);
        if !enter_dictionary(&mut xml)? {
            return Some(all);
        }
        loop {
            let at = xml.buffer_position();
            match xml.read_event().ok()? {
                Event::Start(element) if element.name().as_ref() == "key" => {
                    let name = xml.read_text(element.name()).ok()?.into_inner();
                    let is_true = skip_value(&mut xml)?;
                    let element = list.get(at as usize..xml.buffer_position() as usize)?;
                    all.add(&name, is_true, element);
                }
                Event::Text(_) | Event::Comment(_) => {}
                Event::End(_) => return Some(all),
                _ => return None,
            }
        }
    }

    fn add(&mut self, name: &str, is_true: bool, element: &str) {
        self.is_sandboxed |= is_true && SANDBOX.contains(&name);
        if name == GET_TASK_ALLOW {
            return;
        }
        if name.starts_with(UNRESTRICTED) {
            self.retained.push_str(element);
        } else {
            self.lost.push(name.to_owned());
        }
    }

    /// The property list of a copy that allows debuggers.
    pub(crate) fn of_copy(&self) -> String {
        property_list(&self.retained, &[GET_TASK_ALLOW])
    }
}

/// A property list with these elements, and with entitlements that are given.
pub(crate) fn property_list(elements: &str, given: &[&str]) -> String {
    let given: String = given.iter().flat_map(|name| ["<key>", name, "</key><true/>"]).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>{elements}{given}</dict></plist>\n"
    )
}

/// Reads up to the first element of the dictionary. Returns whether there may be one.
fn enter_dictionary(xml: &mut Reader<&[u8]>) -> Option<bool> {
    loop {
        match xml.read_event().ok()? {
            Event::Start(element) if element.name().as_ref() == "dict" => return Some(true),
            Event::Empty(element) if element.name().as_ref() == "dict" => return Some(false),
            Event::Start(element) if element.name().as_ref() == "plist" => {}
            Event::Start(_) | Event::Empty(_) | Event::End(_) | Event::Eof => return None,
            _ => {}
        }
    }
}

/// Reads the value of a key. Returns whether it is "true".
fn skip_value(xml: &mut Reader<&[u8]>) -> Option<bool> {
    loop {
        match xml.read_event().ok()? {
            Event::Empty(element) => return Some(element.name().as_ref() == "true"),
            Event::Start(element) => {
                xml.read_to_end(element.name()).ok()?;
                return Some(element.name().as_ref() == "true");
            }
            Event::Text(_) | Event::Comment(_) => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"https://www.apple.com/DTDs/PropertyList-1.0.dtd\"><plist version=\"1.0\">";

    fn list(elements: &str) -> String {
        format!("{HEAD}<dict>{elements}</dict></plist>")
    }

    #[test]
    fn what_anybody_may_sign_is_kept() {
        let jit = "<key>com.apple.security.cs.allow-jit</key><true/>";
        let groups =
            "<key>com.apple.security.application-groups</key><array><string>a</string><dict/></array>";
        let team = "<key>com.apple.developer.team-identifier</key><string>A1</string>";
        let keychain = "<key>keychain-access-groups</key>\n\t<array>\n\t<string>A1.x</string></array>";
        let all = Entitlements::of(&list(&[team, jit, keychain, groups].concat())).unwrap();
        assert_eq!(all.lost, ["com.apple.developer.team-identifier", "keychain-access-groups"]);
        assert!(!all.is_sandboxed);
        let allowed = format!("<dict>{jit}{groups}<key>{GET_TASK_ALLOW}</key><true/></dict>");
        assert!(all.of_copy().contains(&allowed), "{}", all.of_copy());
        // What was written can be read, and stays as it is.
        let again = Entitlements::of(&all.of_copy()).unwrap();
        assert_eq!((again.of_copy(), again.lost.len()), (all.of_copy(), 0));
    }

    #[test]
    fn a_program_may_have_none() {
        for text in ["", "\0", " \n", &list(""), &format!("{HEAD}<dict/></plist>\n\0")] {
            assert_eq!(Entitlements::of(text), Some(Entitlements::default()), "{text:?}");
        }
        let refused = format!("<key>{GET_TASK_ALLOW}</key><false/>");
        let allowed = Entitlements::of(&list(&refused)).unwrap().of_copy();
        assert!(allowed.contains("get-task-allow</key><true/>") && !allowed.contains("false"), "{allowed}");
    }

    #[test]
    fn a_sandbox_is_seen() {
        let is_sandboxed = |name: &str, value: &str| {
            Entitlements::of(&list(&format!("<key>{name}</key> {value}"))).unwrap().is_sandboxed
        };
        assert!(is_sandboxed(SANDBOX[0], "<true/>") && is_sandboxed(SANDBOX[1], "<true></true>"));
        assert!(!is_sandboxed(SANDBOX[0], "<false/>") && !is_sandboxed("x", "<true/>"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in
            ["[Dict]", "<plist><array/></plist>", "<dict><key>a</key></dict>", "<dict><string/></dict>"]
        {
            assert_eq!(Entitlements::of(text), None, "{text}");
        }
    }

    #[test]
    fn damaged_lists_do_no_harm() {
        let nested = "<array>".repeat(10_000);
        let whole = list("<key>com.apple.security.a</key><dict><key>b</key><string>&amp;</string></dict>");
        for len in (0..whole.len()).filter(|len| whole.is_char_boundary(*len)) {
            let _ = Entitlements::of(&whole[..len]);
            for byte in ["<", ">", "/", "&", "\"", "\0"] {
                let _ = Entitlements::of(&format!("{}{byte}{}", &whole[..len], &whole[len + 1..]));
            }
        }
        assert_eq!(Entitlements::of(&list(&format!("<key>a</key>{nested}"))), None);
    }
}
