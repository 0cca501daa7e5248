//! A synthetic code graph: functions and calls, the same in every run.

use lukasa_model::Write;
use lukasa_model::batch::{PutObject, PutRelationship, Reference};

pub struct SyntheticFacts {
    objects: u64,
    degree: u64,
}

pub fn key(i: u64) -> String {
    format!("src/module_{:04}/file_{:05}.rs::function_{i:07}", i / 1_000, i / 20)
}

fn object(i: u64, port: u64) -> PutObject {
    PutObject::new("Function", &key(i))
        .title(&format!("function_{i:07}"))
        .property("language", "rust")
        .property("line", i % 977)
        .property("summary", format!("Computes part {i} of the answer and returns it to the caller."))
        .property("port", port)
}

/// New versions of the first `count` objects.
pub fn changed(count: u64) -> Vec<Write> {
    (0..count).map(|i| object(i, 7).into()).collect()
}

impl SyntheticFacts {
    pub fn new(objects: u64, degree: u64) -> SyntheticFacts {
        SyntheticFacts { objects, degree }
    }

    /// Objects first, then relationships with ends spread over all of them.
    pub fn writes(&self) -> impl Iterator<Item = Write> + use<> {
        let (objects, degree) = (self.objects, self.degree);
        let edges = (0..objects * degree).map(move |e| {
            let src = e / degree;
            let dst = (src + 1 + e.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (objects - 1).max(1)) % objects;
            let put = PutRelationship {
                discriminator: (e % degree).to_string(),
                confidence: Some(0.5 + (e % 50) as f64 / 100.0),
                derivation: Some("import".into()),
                properties: [("line".to_string(), (e % 977).into())].into_iter().collect(),
                ..PutRelationship::new(
                    "CALLS",
                    Reference::exact("Function", &key(src)),
                    Reference::exact("Function", &key(dst)),
                )
            };
            Write::from(put)
        });
        (0..objects).map(|i| Write::from(object(i, 1))).chain(edges)
    }

    pub fn batches(&self, size: usize) -> impl Iterator<Item = Vec<Write>> + use<> {
        let mut writes = self.writes();
        std::iter::from_fn(move || {
            let batch: Vec<_> = writes.by_ref().take(size).collect();
            (!batch.is_empty()).then_some(batch)
        })
    }
}
