//! What Kubernetes calls a container: its pod, its namespace and its own name, as the names of the links to logs say it
//! (`POD_NAMESPACE_CONTAINER-ID.log`). The links are never followed.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where kubelet makes the links.
const FOLDER: &str = "/var/log/containers";

/// The links that are read at most, and the pause before they are read again.
const MAX_LINKS: usize = 20_000;
const PAUSE: Duration = Duration::from_secs(10);

/// The longest name of a pod, a namespace or a container (RFC 1123).
const MAX_NAME: usize = 253;

/// The names of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerName {
    pub(super) pod: String,
    pub(super) namespace: String,
    pub(super) container: String,
}

/// The names of the containers of this machine.
#[derive(Debug)]
pub(super) struct ContainerNames {
    folder: PathBuf,
    by_id: HashMap<String, ContainerName>,
    read_at: Option<Instant>,
}

impl ContainerNames {
    pub(super) fn of_machine() -> Self {
        Self { folder: FOLDER.into(), by_id: HashMap::new(), read_at: None }
    }

    /// The name of the container with an id. An unknown id makes it read the links again, once in a while.
    /// O(1), or O(links).
    pub(super) fn get(&mut self, id: &str) -> Option<&ContainerName> {
        let is_due = self.read_at.is_none_or(|read_at| read_at.elapsed() >= PAUSE);
        if is_due && !self.by_id.contains_key(id) {
            self.read();
        }
        self.by_id.get(id)
    }

    fn read(&mut self) {
        self.read_at = Some(Instant::now());
        let links = fs::read_dir(&self.folder).into_iter().flatten().flatten().take(MAX_LINKS);
        self.by_id = links.filter_map(|link| named(link.file_name().to_str()?)).collect();
    }
}

/// The id and the names in the name of a link.
fn named(link: &str) -> Option<(String, ContainerName)> {
    let (names, id) = link.strip_suffix(".log")?.rsplit_once('-')?;
    let mut parts = names.split('_');
    let mut next = || parts.next().filter(|name| is_name(name)).map(str::to_owned);
    let name = ContainerName { pod: next()?, namespace: next()?, container: next()? };
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && parts.next().is_none()).then(|| (id.to_owned(), name))
}

fn is_name(text: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn web() -> ContainerName {
        ContainerName { pod: "web-0".into(), namespace: "shop".into(), container: "app".into() }
    }

    #[test]
    fn the_name_of_a_link_has_three_names_and_an_id() {
        assert_eq!(named(&format!("web-0_shop_app-{ID}.log")), Some((ID.to_owned(), web())));
        for link in [
            format!("web-0_shop_app-{ID}"),
            format!("web-0_shop-{ID}.log"),
            format!("web-0_shop_app_x-{ID}.log"),
            format!("web-0_shop_app-{}.log", &ID[1..]),
            format!("web\n0_shop_app-{ID}.log"),
            format!("__-{ID}.log"),
        ] {
            assert_eq!(named(&link), None, "{link:?}");
        }
    }

    #[test]
    fn links_are_read_again_for_an_unknown_id() {
        let folder = std::env::temp_dir().join(format!("nyquist-containers-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut names = ContainerNames { folder: folder.clone(), by_id: HashMap::new(), read_at: None };
        assert_eq!(names.get(ID), None);
        std::os::unix::fs::symlink("/nowhere", folder.join(format!("web-0_shop_app-{ID}.log"))).unwrap();
        assert_eq!(names.get(ID), None, "so soon they are not read again");
        names.read_at = Instant::now().checked_sub(PAUSE);
        assert_eq!(names.get(ID), Some(&web()));
        fs::remove_dir_all(&folder).unwrap();
    }
}
