//! Objects of any type, by words and meaning.

use crate::pipeline::fuse::{Candidate, Channel, Fusion, best, fuse};
use crate::pipeline::seeds::trust;
use crate::recipes::{OBJECTS, Template};
use lukasa_graph::Node;

/// What is known about a question for objects.
pub struct ObjectsQuestion {
    /// What contains its words, if words count.
    pub by_words: Option<Vec<(Node, f64)>>,
    /// What is near in meaning.
    pub by_meaning: Vec<(Node, f64)>,
    pub template: Template,
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
    // The nearest of what is not near has a score like any other; what it counts depends on how alike it is.
    channels.iter_mut().filter(|channel| channel.name == "vector").for_each(|channel| channel.weight *= trusted);
    (fuse(&channels, ask.fusion, order), channels)
}
