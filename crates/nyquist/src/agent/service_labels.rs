//! What processes belong to: the unit, the container and the pod by their control groups, and the service that their
//! environment names. A thread reads it while they live, because the answers can take long.

use super::container_names::{ContainerName, ContainerNames};
use super::label_rules::LabelRules;
use crate::delegates;
use nyquist_convert::ProcessFile;
use nyquist_convert::event::Pid;
use nyquist_formats::ProcessLabels;
use nyquist_profile::Process;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

/// The processes that may wait for being looked at.
const MAX_WAITING: usize = 4096;

/// The processes that are remembered.
const MAX_KNOWN: usize = 16_384;

/// The bytes that are read of the list of a process's control groups.
const MAX_GROUPS_BYTES: u64 = 16 << 10;

/// The longest name of a service, and of any value from outside.
const MAX_NAME: usize = 200;

/// The service of those that are beyond the number of services.
const OTHER: &str = "other";

/// The variable by which a process names its service.
const SERVICE_VARIABLE: &[u8] = b"OTEL_SERVICE_NAME=";

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessOrigin {
    unit: Option<String>,
    container: Option<String>,
    pod: Option<String>,
    /// What Kubernetes calls the container.
    name: Option<ContainerName>,
    /// The service that it claims to be.
    claim: Option<String>,
    /// Whether its environment could be read. That of a process that is ending cannot.
    has_environment: bool,
}

impl ProcessOrigin {
    /// What is known now of a process of which something was known. One that ends as soon as it has become another
    /// program has claimed before what it claims.
    fn after(self, before: Option<&Self>) -> Self {
        let is_same = |before: &&Self| {
            (&before.unit, &before.container, &before.pod) == (&self.unit, &self.container, &self.pod)
        };
        match before.filter(is_same) {
            Some(before) if !self.has_environment => {
                Self { claim: before.claim.clone(), has_environment: before.has_environment, ..self }
            }
            _ => self,
        }
    }
}

/// Reads where processes come from.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    requests: SyncSender<u32>,
    known: Arc<Mutex<HashMap<u32, ProcessOrigin>>>,
}

impl Origins {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (requests, requested) = sync_channel(MAX_WAITING);
        let known: Arc<Mutex<HashMap<u32, ProcessOrigin>>> = Arc::default();
        let shared = Arc::clone(&known);
        thread::Builder::new().name("agent-origins".to_owned()).spawn(move || {
            let mut containers = ContainerNames::of_machine();
            while let Ok(pid) = requested.recv() {
                let Some(mut origin) = origin_of(pid) else { continue };
                origin.name = origin.container.as_deref().and_then(|id| containers.get(id)).cloned();
                let mut known = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let origin = origin.after(known.get(&pid));
                if known.len() >= MAX_KNOWN {
                    known.clear();
                }
                known.insert(pid, origin);
            }
        })?;
        Ok(Self { requests, known })
    }

    /// A process was sampled. Never waits: if too many wait already, it is left out.
    pub(super) fn notice(&self, pid: u32) {
        let _ = self.requests.try_send(pid);
    }

    fn of(&self, pid: u32) -> ProcessOrigin {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&pid).cloned().unwrap_or_default()
    }
}

/// Names services and labels, for a limited number of services.
#[derive(Debug)]
pub(super) struct Labelling {
    /// Labels of everything.
    pub(super) common: Vec<(String, String)>,
    pub(super) max_services: usize,
    /// The service of everything, if it is stated.
    pub(super) service: Option<String>,
    pub(super) rules: LabelRules,
    services: HashSet<String>,
}

impl Labelling {
    pub(super) fn new(
        common: Vec<(String, String)>,
        max_services: usize,
        service: Option<String>,
        rules: LabelRules,
    ) -> Self {
        Self { common, max_services, service, rules, services: HashSet::new() }
    }

    /// The labels of a process.
    pub(super) fn labels(&mut self, process: &Process, origins: &Origins) -> ProcessLabels {
        let digits = process.pid.split('.').next().unwrap_or_default();
        let origin = digits.parse().map(|pid| origins.of(pid)).unwrap_or_default();
        self.labels_of(&process.name, origin)
    }

    fn labels_of(&mut self, program: &str, origin: ProcessOrigin) -> ProcessLabels {
        let ProcessOrigin { unit, container, pod, name, claim, .. } = origin;
        // What processes claim takes no more than half of the services, so that the others keep theirs.
        let claim = claim.filter(|claim| {
            self.services.contains(claim) || self.services.len() < self.max_services.div_ceil(2)
        });
        let plain_unit = unit.as_deref().map(|unit| unit.strip_suffix(".service").unwrap_or(unit).to_owned());
        let container_name = name.as_ref().map(|name| name.container.clone());
        let service = self.service.clone().or(claim).or(container_name).or(plain_unit);
        let service = service.unwrap_or_else(|| program.to_owned());
        let service = if service.is_empty() { "unknown".to_owned() } else { service };
        let is_known = self.services.contains(&service);
        let service = if is_known || self.services.len() < self.max_services {
            self.services.insert(service.clone());
            service
        } else {
            OTHER.to_owned()
        };
        let (pod_name, namespace, container_name) = match name {
            Some(name) => (Some(name.pod), Some(name.namespace), Some(name.container)),
            None => (None, None, None),
        };
        let own = [
            ("systemd.unit", unit),
            ("container.id", container),
            ("k8s.pod.uid", pod),
            ("k8s.pod.name", pod_name),
            ("k8s.namespace.name", namespace),
            ("k8s.container.name", container_name),
        ];
        let own = own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let all = self.common.iter().cloned().chain(own);
        ProcessLabels { service, labels: all.filter(|(key, _)| self.rules.allow(key)).collect() }
    }
}

/// What the files of a process say; `None` if it is gone.
fn origin_of(pid: u32) -> Option<ProcessOrigin> {
    let groups = beginning(&format!("/proc/{pid}/cgroup"), MAX_GROUPS_BYTES)?;
    let groups = String::from_utf8_lossy(&groups).into_owned();
    let mut origin = ProcessOrigin::default();
    for path in groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)) {
        let found = of_group(path);
        origin.unit = origin.unit.or(found.unit);
        origin.container = origin.container.or(found.container);
        origin.pod = origin.pod.or(found.pod);
    }
    let environment = delegates::targets().process_file(Pid(pid), None, ProcessFile::Environment);
    if let Some(environment) = environment.ok().filter(|environment| !environment.is_empty()) {
        origin.has_environment = true;
        origin.claim = claimed_service(&environment);
    }
    Some(origin)
}

fn beginning(path: &str, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The service that an environment names.
fn claimed_service(environment: &[u8]) -> Option<String> {
    let value = environment.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(SERVICE_VARIABLE))?;
    let text = std::str::from_utf8(value).ok()?;
    let is_name = !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control);
    is_name.then(|| text.to_owned())
}

/// What the path of a control group says.
fn of_group(path: &str) -> ProcessOrigin {
    let mut origin = ProcessOrigin::default();
    for part in path.split('/').filter(|part| part.len() <= MAX_NAME) {
        if let Some(container) = container(part) {
            origin.container = Some(container.to_owned());
        } else if let Some(pod) = pod(part) {
            origin.pod = Some(pod);
        } else if [".service", ".scope"].iter().any(|end| part.ends_with(end)) {
            origin.unit.get_or_insert_with(|| part.to_owned());
        }
    }
    origin
}

/// The id of a container: 64 hexadecimal digits, or 32 with a number behind, maybe with the name of the runtime before
/// it.
fn container(part: &str) -> Option<&str> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let is_id = |text: &str| text.len() == 64 && is_hex(text);
    if is_id(part) {
        return Some(part);
    }
    if let Some((id, number)) = part.split_once('-')
        && id.len() == 32
        && is_hex(id)
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Some(part);
    }
    part.rsplit_once('-').map(|(_, id)| id).filter(|id| is_id(id))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The UID of a pod: `podUID`, or `kubepods-burstable-podUID.slice` with `_` for `-`.
fn pod(part: &str) -> Option<String> {
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let uid = part.rsplit_once("pod").map(|(before, uid)| (before, uid.replace('_', "-")));
    let (_, uid) = uid.filter(|(before, _)| before.is_empty() || before.ends_with('-'))?;
    let is_uid =
        matches!(uid.len(), 32 | 36) && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_uid.then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "8d7ce5b4-2b0c-4a53-9f2c-0e3c7a1b2c3d";

    fn of(path: &str) -> (Option<String>, Option<String>, Option<String>) {
        let ProcessOrigin { unit, container, pod, .. } = of_group(path);
        (unit, container, pod)
    }

    #[test]
    fn groups_name_units_containers_and_pods() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("/system.slice/nginx.service"), (some("nginx.service"), None, None));
        assert_eq!(of("/user.slice/user-0.slice/session-1.scope"), (some("session-1.scope"), None, None));
        assert_eq!(of(&format!("/system.slice/docker-{ID}.scope")), (None, some(ID), None));
        let slices = UID.replace('-', "_");
        let kubernetes = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slices}.slice/cri-containerd-{ID}.scope"
        );
        assert_eq!(of(&kubernetes), (None, some(ID), some(UID)));
        assert_eq!(of(&format!("/kubepods/besteffort/pod{UID}/{ID}/child")), (None, some(ID), some(UID)));
        assert_eq!(of("/kubepods/podium/x"), (None, None, None));
        let task = format!("{}-1234567890", &ID[..32]);
        assert_eq!(of(&format!("/ecs/{task}")), (None, some(&task), None));
        assert_eq!(of("/"), (None, None, None));
    }

    #[test]
    fn a_claimed_service_is_a_name() {
        assert_eq!(claimed_service(b"A=1\0OTEL_SERVICE_NAME=shop\0B=2").as_deref(), Some("shop"));
        for environment in
            [&b"X_OTEL_SERVICE_NAME=a\0"[..], b"OTEL_SERVICE_NAME=\0", b"OTEL_SERVICE_NAME=a\nb\0", b""]
        {
            assert_eq!(claimed_service(environment), None);
        }
    }

    /// The environment of a process that is ending cannot be read.
    #[test]
    fn a_process_that_ends_keeps_its_claim() {
        let unit = |name: &str| ProcessOrigin { unit: Some(name.into()), ..ProcessOrigin::default() };
        let read = |name: &str, claim: Option<&str>| ProcessOrigin {
            claim: claim.map(str::to_owned),
            has_environment: true,
            ..unit(name)
        };
        let shop = read("a.service", Some("shop"));
        assert_eq!(unit("a.service").after(Some(&shop)), shop);
        // It is another process, or has another environment.
        assert_eq!(unit("b.service").after(Some(&shop)), unit("b.service"));
        assert_eq!(read("a.service", None).after(Some(&shop)), read("a.service", None));
        assert_eq!(unit("a.service").after(None), unit("a.service"));
    }

    #[test]
    fn beyond_the_limit_services_are_others() {
        let mut labelling =
            Labelling::new(vec![("host.name".into(), "a".into())], 2, None, LabelRules::default());
        let unit = ProcessOrigin { unit: Some("nginx.service".into()), ..ProcessOrigin::default() };
        let labels = labelling.labels_of("nginx", unit.clone());
        assert_eq!(labels.service, "nginx");
        let keys: Vec<_> = labels.labels.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["host.name", "systemd.unit"]);
        assert_eq!(labelling.labels_of("bash", ProcessOrigin::default()).service, "bash");
        let claim = ProcessOrigin { claim: Some("random-7".into()), ..unit };
        let labels = labelling.labels_of("nginx", claim);
        // A claim stays within its unit, and takes no place of others.
        assert_eq!((&*labels.service, &*labels.labels[1].1), ("nginx", "nginx.service"));
        assert_eq!(labelling.labels_of("third", ProcessOrigin::default()).service, OTHER);
    }

    #[test]
    fn a_container_has_the_names_of_kubernetes() {
        let mut labelling = Labelling::new(Vec::new(), 10, None, LabelRules::default());
        let name = ContainerName { pod: "web-0".into(), namespace: "shop".into(), container: "app".into() };
        let origin = ProcessOrigin { container: Some(ID.into()), name: Some(name), ..Default::default() };
        let labels = labelling.labels_of("python3", origin);
        assert_eq!(labels.service, "app");
        let pairs: Vec<_> = labels.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
        let names =
            [("k8s.pod.name", "web-0"), ("k8s.namespace.name", "shop"), ("k8s.container.name", "app")];
        assert_eq!(pairs, [&[("container.id", ID)][..], &names].concat());
    }
}
