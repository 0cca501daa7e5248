//! The types of source code.

use crate::{Context, Engine, packs};
use lukasa_model::types::TypePack;
use lukasa_model::{Result, Scope};
use std::sync::LazyLock;

static CODE: packs::BundledPack = LazyLock::new(|| packs::read("code", include_str!("../../../../../packs/code.json")));

/// The type pack `code`.
pub fn code() -> Result<&'static TypePack> {
    packs::bundled(&CODE)
}

impl Engine {
    /// Declares the types of source code in the project, unless they are declared already.
    pub fn declare_code_types(&self, scope: &Scope, context: &Context<'_>) -> Result<()> {
        self.declare_pack(scope, code()?, &context.header(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_code::type_names;

    #[test]
    fn the_code_pack_declares_what_the_index_records() {
        let pack = code().unwrap();
        let objects: Vec<&str> = pack.object_types.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(objects, [&type_names::OBJECT_TYPES[..], &[type_names::COMMIT]].concat());
        let relationships: Vec<&str> = pack.relationship_types.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(relationships, type_names::RELATIONSHIP_TYPES);
        let extends = pack.relationship_types.iter().find(|t| t.name == type_names::EXTENDS).unwrap();
        for alias in &extends.aliases {
            assert_eq!(type_names::relationship_type(alias), Some(type_names::EXTENDS));
        }
    }
}
