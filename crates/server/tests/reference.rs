//! The reference pages match the registry of operations.
#![allow(clippy::unwrap_used)]

use std::path::Path;

#[test]
fn reference_pages_are_those_of_the_registry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let pages = lukasa_server::reference::pages();
    if std::env::var_os("LUKASA_WRITE_REFERENCE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        pages.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
    }
    let mut there: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    let mut named: Vec<String> = pages.iter().map(|(name, _)| name.clone()).collect();
    named.sort();
    assert_eq!(there, named, "pages of toolsets that are gone, or missing ones");
    for (name, text) in pages {
        let kept = std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(
            kept == text,
            "docs/reference/{name} is not what the registry says: LUKASA_WRITE_REFERENCE=1 writes it"
        );
    }
}
