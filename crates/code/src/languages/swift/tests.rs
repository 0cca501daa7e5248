//! Small Swift texts: their facts, and the calls between them.

use crate::facts::{DefId, FileFacts, ROOT, Visibility, flag};
use crate::languages::language;
use crate::languages::printed::printed;
use crate::resolve::call::tests::check;
use crate::resolve::{LinkTarget, Program, resolve};
use std::sync::Arc;

const SHOP: &str = "import Foundation

/// A shop.
/// It sells.
public final class Shop<T>: Base, Sellable {
    private let items: [Item] = []
    static let shared = Shop()
    var total: Int { items.count }
    init(_ name: String, at place: Place = .here) throws { super.init() }
    @discardableResult
    func sell(_ item: Item, to buyer: Buyer) async throws -> Receipt { return Receipt(item) }
    enum Kind: String { case a, b(Int) }
}
protocol Sellable: AnyObject {
    func sell(_ item: Item) -> Receipt
    var price: Int { get }
}
struct Point { var x: Int }
typealias Handler = (Item) -> Void
let limit = 10
func helper() {}
";

fn facts(path: &str, text: &str) -> FileFacts {
    crate::parse(path, text, language("swift"))
}

fn defs(facts: &FileFacts) -> Vec<String> {
    printed(facts, Visibility::Package)
}

#[test]
fn definitions() {
    let facts = facts("a.swift", SHOP);
    assert_eq!(
        defs(&facts),
        [
            "Class Shop 5 public",
            "Field Shop.items 6 private constant",
            "Field Shop.shared 7 static constant",
            "Method Shop.total 8 getter",
            "Method Shop.init 9 constructor",
            "Method Shop.sell 10 async",
            "Enum Shop.Kind 12",
            "Field Shop.Kind.a 12 static constant",
            "Field Shop.Kind.b 12 static constant",
            "Interface Sellable 14",
            "Method Sellable.sell 15 abstract",
            "Method Sellable.price 16 abstract getter",
            "Struct Point 18",
            "Field Point.x 18",
            "Type Handler 19",
            "Variable limit 20 constant",
            "Function helper 21",
        ]
    );
    assert_eq!(facts.defs[DefId::new(1)].doc.as_deref(), Some("A shop.\nIt sells."));
    assert_eq!(&*facts.defs[DefId::new(1)].signature, "public final class Shop<T>: Base, Sellable");
    assert_eq!(
        &*facts.defs[DefId::new(6)].signature,
        "func sell(_ item: Item, to buyer: Buyer) async throws -> Receipt"
    );
    assert!(facts.faults.is_empty(), "{:?}", facts.faults);
}

#[test]
fn tests_of_both_frameworks() {
    let text = "import XCTest
final class ShopTests: XCTestCase { func testSell() {} \n func helper() {} }
@Test func works() {}
@Suite struct Others { @Test(\"x\") func t() {} }
";
    let facts = facts("Tests/ShopTests/ShopTests.swift", text);
    assert!(facts.defs[ROOT].is(flag::TEST));
    assert_eq!(&*facts.package, "ShopTests");
    assert_eq!(
        defs(&facts),
        [
            "Class ShopTests 2 test",
            "Method ShopTests.testSell 2 test",
            "Method ShopTests.helper 3",
            "Function works 4 test",
            "Struct Others 5 test",
            "Method Others.t 5 test",
        ]
    );
}

#[test]
fn calls_within_a_file() {
    check(
        &[(
            "Sources/Shop/a.swift",
            "class Base { func log() {} }
class Shop: Base {
    let buyer: Buyer
    init(buyer: Buyer) { self.buyer = buyer }
    func run() { log(); self.run(); super.log(); buyer.pay() }
    static func make() -> Shop { Shop(buyer: Buyer()) }
}
struct Buyer { func pay() {} }
func use(shop: Shop?, all: [Buyer]) {
    shop?.run()
    Shop.make().run()
    for one in all { one.pay() }
    all.forEach { $0.pay() }
    all.map { b in b.pay() }
    if let shop { shop.run() }
    guard let other = shop else { return }
    other.run()
    let third = Shop(buyer: all[0])
    third.log()
}
",
        )],
        &[
            "Sources/Shop/a.swift:5 -> Base.log:1 0.98",
            "Sources/Shop/a.swift:5 -> Shop.run:5 0.98",
            "Sources/Shop/a.swift:5 -> Base.log:1 0.9",
            "Sources/Shop/a.swift:5 -> Buyer.pay:8 0.9",
            "Sources/Shop/a.swift:6 -> Buyer:8 0.98",
            "Sources/Shop/a.swift:6 -> Shop.init:4 0.98",
            "Sources/Shop/a.swift:10 -> Shop.run:5 0.9",
            "Sources/Shop/a.swift:11 -> Shop.make:6 0.98",
            "Sources/Shop/a.swift:11 -> Shop.run:5 0.9",
            "Sources/Shop/a.swift:12 -> Buyer.pay:8 0.9",
            "Sources/Shop/a.swift:13 -> Buyer.pay:8 0.9",
            "Sources/Shop/a.swift:14 -> Buyer.pay:8 0.9",
            "Sources/Shop/a.swift:15 -> Shop.run:5 0.9",
            "Sources/Shop/a.swift:17 -> Shop.run:5 0.9",
            "Sources/Shop/a.swift:18 -> Shop.init:4 0.98",
            "Sources/Shop/a.swift:19 -> Base.log:1 0.9",
        ],
    );
}

#[test]
fn files_of_a_module_share_names_and_imports_name_modules() {
    check(
        &[
            (
                "Sources/Kit/point.swift",
                "public struct Point { public func move() {} }\npublic func origin() -> Point { Point() }\n",
            ),
            ("Sources/Shop/a.swift", "import Kit\nfunc use(p: Point) { p.move(); help(); origin().move() }\n"),
            ("Sources/Shop/b.swift", "func help() {}\n"),
        ],
        &[
            "Sources/Kit/point.swift:2 -> Point:1 0.98",
            "Sources/Shop/a.swift:2 -> Sources/Kit/point.swift Point.move:1 0.9",
            "Sources/Shop/a.swift:2 -> Sources/Shop/b.swift help:1 0.95",
            "Sources/Shop/a.swift:2 -> Sources/Kit/point.swift origin:2 0.95",
            "Sources/Shop/a.swift:2 -> Sources/Kit/point.swift Point.move:1 0.9",
        ],
    );
}

#[test]
fn a_method_of_an_extension_belongs_to_its_type() {
    let files = [
        ("a.swift", "class Shop { func open() {} }\nprotocol Named { func name() -> String }\n"),
        (
            "b.swift",
            "extension Shop: Named {\n    func name() -> String { open(); self.open(); return \"\" }\n    static func twice() {}\n}\n",
        ),
        ("c.swift", "func use(shop: Shop, named: Named) { shop.name(); Shop.twice(); named.name() }\n"),
    ];
    check(
        &files,
        &[
            "b.swift:2 -> a.swift Shop.open:1 0.98",
            "b.swift:2 -> a.swift Shop.open:1 0.98",
            "c.swift:1 -> b.swift name:2 0.9",
            "c.swift:1 -> b.swift twice:3 0.95",
            "c.swift:1 -> a.swift Named.name:2 0.6",
            "c.swift:1 -> b.swift name:2 0.8",
        ],
    );
    let mut program = Program::default();
    for (path, text) in files {
        program.set(path, Arc::new(facts(path, text)));
    }
    let links = resolve(&mut program);
    let extension = program.find_file("b.swift").expect("set");
    let owners: Vec<&str> =
        links[extension].receivers.iter().map(|(_, of)| program.file(of.file).facts.path_of(of.def)[0]).collect();
    assert_eq!(owners, ["Shop", "Shop"]);
    // Conformance belongs to the file of the type.
    let shop = program.find_file("a.swift").expect("set");
    let bases: Vec<LinkTarget> = links[shop].bases.iter().map(|base| base.to).collect();
    assert_eq!(bases.len(), 1);
}

#[test]
fn damaged_text_is_read_as_far_as_possible() {
    let pieces = ["{", "}", "(", ")", "\"", "case", "let ", "?", "<", ">", "extension ", "\\(", "@", "#if"];
    let mut random = crate::lang::mutations::MutationRng::new();
    for _ in 0..200 {
        let text = random.damaged(&[SHOP], &pieces);
        let facts = facts("a.swift", &text);
        assert!(!facts.defs.is_empty());
    }
    let deep = format!("let x = {}1{}", "(".repeat(3_000), ")".repeat(3_000));
    assert!(!facts("a.swift", &deep).defs.is_empty());
}
