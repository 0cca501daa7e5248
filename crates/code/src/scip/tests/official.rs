//! An index written by SCIP's own crate: the numbers of fields, roles, kinds and encodings are those of the format.

use super::super::read::{ColumnEncoding, ScipDocument, ScipIndex, ScipRange, kind, role};
use protobuf::{Enum, Message};
use scip::types::symbol_information::Kind;
use scip::types::{
    self, MultiLineRange, PositionEncoding, Relationship, SingleLineRange, SymbolInformation, SymbolRole, ToolInfo,
};

fn range(line: u32, column: u32, end_line: u32, end_column: u32) -> ScipRange {
    ScipRange { line, column, end_line, end_column }
}

#[test]
fn every_field_is_read_as_it_was_written() {
    let mut occurrences = vec![types::Occurrence::new(); 5];
    occurrences[0].range = vec![3, 4, 9];
    occurrences[0].symbol_roles = SymbolRole::Definition.value();
    occurrences[1].range = vec![3, 4, 5, 6];
    let one_line = SingleLineRange { line: 7, start_character: 0, end_character: 8, ..SingleLineRange::new() };
    occurrences[2].set_single_line_range(one_line);
    let lines =
        MultiLineRange { start_line: 1, start_character: 2, end_line: 3, end_character: 0, ..MultiLineRange::new() };
    occurrences[3].set_multi_line_range(lines);
    for occurrence in &mut occurrences[..4] {
        occurrence.symbol = "tool npm shop 1.0.0 f().".into();
        // Fields that are not read must be skipped.
        occurrence.override_documentation = vec!["text".into()];
        occurrence.enclosing_range = vec![1, 2, 3];
    }
    // Without a symbol: it only highlights syntax.
    occurrences[4].range = vec![1, 1, 2];

    let implements =
        Relationship { symbol: "base".into(), is_implementation: true, is_reference: true, ..Relationship::new() };
    let refers = Relationship { symbol: "other".into(), is_reference: true, ..Relationship::new() };
    let typed = Relationship { symbol: "typed".into(), is_type_definition: true, ..Relationship::new() };
    let information = SymbolInformation {
        symbol: "tool npm shop 1.0.0 f().".into(),
        documentation: vec!["about f".into()],
        relationships: vec![refers, implements, typed],
        kind: Kind::AbstractMethod.into(),
        display_name: "f".into(),
        enclosing_symbol: "around".into(),
        ..SymbolInformation::new()
    };
    let document = types::Document {
        language: "TypeScript".into(),
        relative_path: "src/a.ts".into(),
        occurrences,
        symbols: vec![information.clone()],
        text: "function f() {}".into(),
        position_encoding: PositionEncoding::UTF32CodeUnitOffsetFromLineStart.into(),
        ..types::Document::new()
    };
    let tool =
        ToolInfo { name: "indexer".into(), version: "1.2".into(), arguments: vec!["-v".into()], ..ToolInfo::new() };
    let metadata =
        types::Metadata { tool_info: Some(tool).into(), project_root: "file:///w".into(), ..types::Metadata::new() };
    let written = types::Index {
        metadata: Some(metadata).into(),
        documents: vec![document],
        external_symbols: vec![SymbolInformation { symbol: "outside".into(), kind: Kind::Trait.into(), ..information }],
        ..types::Index::new()
    };
    let bytes = written.write_to_bytes().unwrap();

    let index = ScipIndex::read(&bytes).unwrap();
    assert_eq!((index.made_by().as_str(), index.root), ("indexer 1.2", "file:///w"));
    assert_eq!(index.outside.into_iter().collect::<Vec<_>>(), [("outside", Kind::Trait.value() as u64)]);
    let document = ScipDocument::read(index.documents[0]).unwrap();
    assert_eq!((document.path, document.text), ("src/a.ts", Some("function f() {}")));
    assert_eq!(document.encoding, Some(ColumnEncoding::Utf32));
    let ranges: Vec<ScipRange> = document.occurrences.iter().map(|occurrence| occurrence.range).collect();
    assert_eq!(ranges, [range(3, 4, 3, 9), range(3, 4, 5, 6), range(7, 0, 7, 8), range(1, 2, 3, 0)]);
    let roles: Vec<u64> = document.occurrences.iter().map(|occurrence| occurrence.roles).collect();
    assert_eq!(roles, [role::DEFINITION, 0, 0, 0]);
    let [symbol] = &document.symbols[..] else { panic!("one symbol was written") };
    assert_eq!((symbol.symbol, symbol.kind), ("tool npm shop 1.0.0 f().", Kind::AbstractMethod.value() as u64));
    assert_eq!(symbol.implements, ["base"]);
}

#[test]
fn roles_kinds_and_encodings_have_the_numbers_of_the_format() {
    let role_of = |role: SymbolRole| role.value() as u64;
    assert_eq!(role::DEFINITION, role_of(SymbolRole::Definition));
    assert_eq!(role::IMPORT, role_of(SymbolRole::Import));
    assert_eq!(role::FORWARD_DEFINITION, role_of(SymbolRole::ForwardDefinition));
    let numbers = |kinds: &[Kind]| kinds.iter().map(|kind| kind.value() as u64).collect::<Vec<_>>();
    let parameters = [Kind::Parameter, Kind::SelfParameter, Kind::ThisParameter, Kind::TypeParameter];
    assert_eq!(numbers(&parameters), kind::PARAMETERS);
    assert_eq!(numbers(&[Kind::Interface, Kind::Protocol, Kind::Trait]), kind::INTERFACES);
    let methods = [
        Kind::AbstractMethod,
        Kind::MethodSpecification,
        Kind::ProtocolMethod,
        Kind::PureVirtualMethod,
        Kind::TraitMethod,
        Kind::TypeClassMethod,
    ];
    assert_eq!(numbers(&methods), kind::ABSTRACT_METHODS);
    for (theirs, ours) in [
        (PositionEncoding::UTF8CodeUnitOffsetFromLineStart, ColumnEncoding::Utf8),
        (PositionEncoding::UTF16CodeUnitOffsetFromLineStart, ColumnEncoding::Utf16),
        (PositionEncoding::UTF32CodeUnitOffsetFromLineStart, ColumnEncoding::Utf32),
    ] {
        let document = types::Document { position_encoding: theirs.into(), ..types::Document::new() };
        let bytes = document.write_to_bytes().unwrap();
        assert_eq!(ScipDocument::read(&bytes).unwrap().encoding, Some(ours));
    }
}
