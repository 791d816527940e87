//! The CPU profiles of V8 in a trace: complete ones, and ones that come in parts, in any order.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::event::Event;
use super::unparsed_value::{ThreadId, microseconds};
use crate::import::Importer;
use crate::v8::{CpuProfileSamples, Node, Tree, signed_step};

/// A profile, as far as its parts are known.
#[derive(Default)]
struct CpuProfile {
    /// Its thread and start, from its head (`Profile`, or the complete profile).
    head: Option<(ThreadId, u64)>,
    end: u64,
    nodes: Vec<Node>,
    chunks: Vec<ProfileChunk>,
}

/// Samples with the times between them.
struct ProfileChunk {
    /// When it was written, which determines its order among the others.
    time: u64,
    /// The thread that wrote it, which is not the thread of the samples.
    writer: ThreadId,
    samples: Vec<u64>,
    deltas: Vec<f64>,
}

/// The profiles by their process and id.
#[derive(Default)]
pub(super) struct CpuProfiles(FxHashMap<(String, String), CpuProfile>);

impl CpuProfiles {
    /// Whether an event is a part of one. `Profile` alone has no samples.
    pub(super) fn has_samples(event: &Event<'_>) -> bool {
        matches!(&*event.name.text(), "ProfileChunk" | "CpuProfile") && Self::takes(event)
    }

    /// Whether an event is handled here.
    pub(super) fn takes(event: &Event<'_>) -> bool {
        matches!(&*event.ph, "P" | "I" | "i" | "R")
            && matches!(&*event.name.text(), "Profile" | "ProfileChunk" | "CpuProfile")
    }

    /// Adds an event. `Profile` has the thread and the start of a profile, each `ProfileChunk` adds nodes and
    /// samples, and `CpuProfile` is a complete profile. Returns the number of invalid nodes.
    pub(super) fn add(&mut self, thread: ThreadId, event: &Event<'_>) -> u64 {
        let (name, args) = (event.name.text(), event.args.value());
        let is_whole = name == "CpuProfile";
        let data = &args["data"];
        let document = &data["cpuProfile"];
        let id = if is_whole { format!("whole {}", self.0.len()) } else { event.id.id() };
        let profile = self.0.entry((thread.0.clone(), id)).or_default();
        // Some members are in the profile itself, as in a separate file.
        let member = |name: &str| if data[name].is_null() { &document[name] } else { &data[name] };
        if is_whole || name == "Profile" {
            profile.head.get_or_insert((thread.clone(), microseconds(member("startTime"))));
        }
        profile.end = profile.end.max(microseconds(member("endTime")));
        let nodes = array(&document["nodes"]).iter().map(Node::deserialize_from);
        let (known, unknown): (Vec<_>, Vec<_>) = nodes.partition(Option::is_some);
        profile.nodes.extend(known.into_iter().flatten());
        profile.chunks.push(ProfileChunk {
            time: event.ts.microseconds(),
            writer: thread,
            samples: array(&document["samples"]).iter().map(|id| id.as_u64().unwrap_or(0)).collect(),
            deltas: array(member("timeDeltas")).iter().map(|delta| delta.as_f64().unwrap_or(0.0)).collect(),
        });
        unknown.len() as u64
    }

    /// Adds the samples to the profile, and returns the number of samples whose node is not known.
    pub(super) fn add_to(
        self,
        importer: &mut Importer,
        mut thread: impl FnMut(&mut Importer, &ThreadId) -> nyquist_profile::ThreadIndex,
    ) -> u64 {
        let mut profiles: Vec<_> = self.0.into_iter().collect();
        profiles.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut unknown = 0;
        for (_, mut profile) in profiles {
            profile.chunks.sort_by_key(|chunk| chunk.time);
            let Some(first) = profile.chunks.first() else { continue };
            // If the trace does not have a profile's head, the time when its first part was written is used.
            let (owner, start) = profile.head.unwrap_or_else(|| (first.writer.clone(), first.time));
            let tree = Tree::of(importer, &profile.nodes);
            let thread = thread(importer, &owner);
            let mut samples = CpuProfileSamples::new(importer, &tree, (thread, start));
            for chunk in profile.chunks {
                let deltas = chunk.deltas.iter().copied().chain(std::iter::repeat(0.0));
                for (&node, delta) in chunk.samples.iter().zip(deltas) {
                    samples.add_after(node, signed_step(delta));
                }
            }
            unknown += samples.finish(profile.end);
        }
        unknown
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
