//! Small Python texts and their facts.

use crate::facts::{FileFacts, ROOT, flag};
use crate::lang::compact::compact;
use crate::languages::language;

fn parse(path: &str, text: &str) -> FileFacts {
    crate::parse(path, text, language("python"))
}

/// Compares the lines of the compact form that begin with one of these words.
#[track_caller]
fn check(text: &str, words: &str, expected: &str) {
    let all = compact(&parse("x.py", text));
    let found: Vec<&str> = all.lines().filter(|l| words.split(' ').any(|w| l.split(' ').next() == Some(w))).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(found.join("\n"), expected.join("\n"));
}

#[test]
fn functions_and_their_parameters() {
    check(
        r#""""What it is for."""

async def fetch(url: str, *parts, timeout: float = 1.0, **more) -> bytes:
    """Gets it.

    And more.
    """
    yield url

def _own(a, b=fetch): pass
"#,
        "def doc sig",
        r#"
        def File  1-10
        doc x.py "What it is for."
        def Function fetch exported async generator 3-8 (url: str, ...parts: -, timeout: float, more: -) -> bytes
        sig async def fetch(url: str, *parts, timeout: float = 1.0, **more) -> bytes
        doc fetch "Gets it.\n\nAnd more."
        def Function _own 10-10 (a: -, b: -)
        sig def _own(a, b=fetch)
        "#,
    );
}

#[test]
fn classes_methods_and_decorators() {
    check(
        r#"
class Shop(Base, metaclass=Meta):
    """Sells."""

    limit: int = 3

    def __init__(self, name: str):
        self.name = name

    @property
    def size(self) -> int: return 1

    @size.setter
    def size(self, value): pass

    @staticmethod
    def make(): return Shop("x")

    @classmethod
    def of(cls, name): return cls(name)

    @abstractmethod
    def sell(self): ...

    class Inner: pass
"#,
        "def doc bind",
        r#"
        def File  1-25
        def Class Shop exported 2-25 < Extends Base
        doc Shop "Sells."
        def Field Shop/limit exported 5-5 -> int
        def Method Shop/__init__ exported self constructor 7-8 (self: -, name: str)
        def Method Shop/size exported self getter 10-11 (self: -) -> int
        def Method Shop/size exported self setter 13-14 (self: -, value: -)
        def Method Shop/make exported static 16-17
        def Method Shop/of exported self of the class 19-20 (cls: -, name: -)
        def Method Shop/sell abstract exported self 22-23 (self: -)
        def Class Shop/Inner exported 25-25
        bind <limit> = Number
        bind <self>.name = <name>
        bind <size> = def size
        "#,
    );
}

#[test]
fn imports_in_all_forms() {
    check(
        r#"
import os
import os.path
import numpy as np
from a.b import c, d as e
from . import near
from ..far import *
try:
    import fast
except ImportError:
    fast = None
"#,
        "import",
        r#"
        import os Module os 2
        import os.path Root os 3
        import numpy Module np 4
        import a.b Symbol c c 5
        import a.b Symbol d e 5
        import . Symbol near near 6
        import ..far All - 7
        import fast Module fast 9
        "#,
    );
}

#[test]
fn calls_and_their_arguments() {
    check(
        r#"
def run(shop, *rest, **named):
    shop.open(1, "x", key=rest, *rest, **named)
    sold = [item.sell() for item in shop.items if item.ready()]
    with shop.lock() as lock:
        lock.hold(lambda x: x.go())
    return sold[0].price() if shop else None

@cached(size=3)
def made(): run(Shop())
"#,
        "call return",
        r#"
        call run: <shop>.open(Number, "x", <rest>, ...<rest>, <named>) 3:4
        call run: <shop>.items.__iter__() 4:24
        call run: <shop>.items.__iter__().__next__() 4:24
        call run: <item>.ready() 4:50
        call run: <item>.sell() 4:12
        call run: <shop>.lock() 5:9
        call run: <shop>.lock().__enter__() 5:9
        call run: <shop>.lock().__exit__() 5:9
        call <lambda>: <x>.go() 6:28
        call run: <lock>.hold(def <lambda>) 6:8
        call run: <sold>#0.price() 7:11
        call x.py: cached(Number) 9:1
        call x.py: cached()(def made) 9:1
        call made: Shop() 10:16
        call made: <run>(Shop()) 10:12
        return <lambda>: <x>.go()
        return run: either(<sold>#0.price(), Nothing)
        "#,
    );
}

#[test]
fn bindings_of_names() {
    check(
        r#"
first, (second, third) = pair()
chosen = left or right
table = {"open": opened, **more}
for key, value in table.items(): last = value
if (found := look()): pass
a.b = c["d"]
e["f"] = 1
del a
global_one: Shop
"#,
        "bind",
        r#"
        bind <first> = pair()#0
        bind <second> = pair()#1#0
        bind <third> = pair()#1#1
        bind <chosen> = either(left, right)
        bind <table> = Map[open: opened, ...more]
        bind <key> = <table>.items()[]#0
        bind <value> = <table>.items()[]#1
        bind <last> = <value>
        bind <found> = look()
        bind a.b = c["d"]
        bind e["f"] = Number
        "#,
    );
}

#[test]
fn tests_are_detected_by_names_of_files_and_functions() {
    let text = "def test_one(): pass\ndef helper(): pass\nclass TestShop:\n    def test_two(self): pass\n";
    for (path, is) in [("tests/test_shop.py", true), ("shop_test.py", true), ("a/tests/x.py", true), ("shop.py", false)]
    {
        let facts = parse(path, text);
        let tests: Vec<&str> =
            facts.defs.iter().skip(1).filter(|d| d.is(flag::TEST)).map(|d| facts.name(d.name)).collect();
        assert_eq!(facts.defs[ROOT].is(flag::TEST), is, "{path}");
        assert_eq!(tests.contains(&"test_one"), is, "{path}: {tests:?}");
        assert!(!tests.contains(&"helper"), "{path}");
    }
}

#[test]
fn unreadable_parts_are_faults_and_the_rest_is_read() {
    let facts = parse("x.py", "def good(): pass\n\ndef bad(:\n    pass\n\ndef after(): pass\n");
    assert!(!facts.faults.is_empty());
    let names: Vec<&str> = facts.defs.iter().map(|d| facts.name(d.name)).collect();
    assert!(names.contains(&"good") && names.contains(&"after"), "{names:?}");
    // Extremely deep nesting is read without overflowing the stack.
    let deep = format!("x = {}1{}\n", "(".repeat(5_000), ")".repeat(5_000));
    parse("x.py", &deep);
    assert!(parse("x.py", "").faults.is_empty());
}
