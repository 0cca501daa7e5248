//! Finds objects of any type by words and by meaning.

use crate::pipeline::fuse::{Candidate, Channel, Fusion, best, fuse};
use crate::pipeline::seeds::trust;
use crate::recipes::{IntentWeights, OBJECTS};
use lukasa_graph::Node;

/// The inputs of the search for objects.
pub struct ObjectsQuestion {
    /// Objects that contain words of the query, with scores; `None` if words do not count.
    pub by_words: Option<Vec<(Node, f64)>>,
    /// Objects that are near in meaning, with likenesses.
    pub by_meaning: Vec<(Node, f64)>,
    pub template: IntentWeights,
    pub fusion: Fusion,
    /// Most candidates of each channel.
    pub pool: usize,
}

/// Ranks objects, best first; `order` breaks ties. Also returns what each channel found.
pub fn objects(ask: ObjectsQuestion, order: impl Fn(Node) -> u64 + Copy) -> (Vec<Candidate>, Vec<Channel>) {
    let mut channels = Vec::new();
    if let Some(found) = ask.by_words {
        channels.push(Channel { name: "lexical", weight: ask.template.lexical, found: best(found, ask.pool, order) });
    }
    let found = best(ask.by_meaning, ask.pool, order);
    let trusted = trust(found.first().map_or(0.0, |(_, likeness)| *likeness));
    channels.push(Channel { name: "vector", weight: ask.template.vector, found });
    channels.retain(|channel| !channel.found.is_empty());
    if let [only] = &mut channels[..] {
        only.weight = OBJECTS.alone;
    }
    // Normalised scores do not show whether the nearest object is near at all, so its likeness weights the channel.
    channels.iter_mut().filter(|channel| channel.name == "vector").for_each(|channel| channel.weight *= trusted);
    (fuse(&channels, ask.fusion, order), channels)
}
