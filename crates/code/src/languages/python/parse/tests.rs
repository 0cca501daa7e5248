//! Compares the hand-written parser with tree-sitter, and tests which texts it rejects.

use crate::lang::descent::agreement::{MutationTest, left, of_windows, same};
use crate::languages::language;

/// The syntax of the language, tested statement by statement and all together.
const STATEMENTS: &[&str] = &[
    "@deco(1)\n@a.b\nasync def f[T](a, /, b: int = 2, *args: str, c=3, **kw) -> list[int]:\n    '''doc'''  # c\n    return a",
    "def h(*, a, **k: int):\n    '''Says something.'''\n    # first\n    x = 1\n    # last\n  # out\ny = 2",
    "def one(): return 1  # docs",
    "def nested():\n    def inner():\n        return deep()\n        # of inner\n    # of nested\n# of no one\nnested()",
    "class C[T](A, B[int], metaclass=M):\n    x = 1; y: int\n    z: str = 'a'\n\n    @property\n    def p(self): return self._p",
    "class Test(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(1), 2)",
    "x: dict[str, int | None] = {**a, 'k': 1, 2: b, c: d, **e}",
    "x: Callable[[int], a.b]",
    "x: 'str'",
    "x: a[int] | b | None = None",
    "x += (yield from g())",
    "x -= 1, 2",
    "a, *b = c = 1, 2",
    "(a, b), [c, *d] = e",
    "(a) = b",
    "a[b] = c.d = e['k'] = 5j",
    "a = *b, c",
    "print(a, *b, k=v, **kw)",
    "f(x for x in y)(z)[w].v",
    "f((x for x in y), 1)",
    "f(a, (b := c), d == e)",
    "x = [x async for x in y if z if w for q, r in s], (a,), (), {1, 2}, {k: v for k, v in z}, {q for q in r}",
    "x = [], {}, [1], [a, b,], (a, *b), {'a': 1,}",
    "def g():\n    a = yield\n    b = yield 1, 2\n    yield from c\n    return (yield)",
    "with open(x) as f, g() as (a, b): pass",
    "with (open(x) as f, b as c,):\n    f()",
    "with (a, b):\n    pass",
    "with (a): pass",
    "with (a or b) as c: pass",
    "async def f():\n    async with a as b: pass\n    async for c in d: pass\n    await e.f(g)\n    return await h, -i, ~j",
    "del a, b\ndel (c, d)\ndel e[0]",
    "raise E from None\nraise E('x')\nraise E\nraise",
    "assert a, b\nassert c",
    "def f():\n    global q, r\n    nonlocal s\n    q = 1",
    "for i, in x, y:\n    pass\nelse:\n    z()",
    "for x in *a, b: pass",
    "while a := b():\n    break\nelse:\n    c()",
    "f = lambda a, *b, c=1, **d: (a := 3)\ng = lambda: 0",
    "x = not a in b is not c < d and e or f if g else h",
    "x = a if b else lambda: c",
    "x = a + b - c * d / e // f % g @ h ** -i << j >> k & l | m ^ n",
    "x = a + b\ny = [] + [c]",
    "x[1:2, ::3, a], x[1], x[a, b], x['k'], x[:], x[1:], x[:2]",
    "a = 's' \"b\" rb'x\\'y'\nb = '''three\n'lines' ''' + \"\\\"\"",
    "a = f\"a{x}b{y!r}c{z:>10}{{}}{w!s:>{v}}{u=}\" f'{a[\"b\"]}' rf'\\d{e}' f'''{\nq\n}'''",
    "a = f'{x:%H:%M}' f'{f(y)}' f'\\N{DASH}{z}'",
    "type X = int\ntype Y[T] = list[T]\ntype = 3",
    "try:\n    a()\nexcept A:\n    b()\nexcept (B, C) as c:\n    d(c)\nexcept:\n    e()\nelse:\n    f()\nfinally:\n    g()",
    "try: a()\nexcept* A as e: b(e)",
    "if a: b; c\nelif d:\n    e\nelif f: g\nelse:\n    h",
    "if __name__ == '__main__':\n    main()",
    "def f(a=None):\n    if a is None:\n        return b\n    return a",
    "match x:\n    case A(b, c=D(e)) | [1, *r] as q if z(): f()\n    case {'a': B(), **r}: pass\n    case _: g()\n    case a.b | -1 | 's' | None: pass\n    case (a, b): pass\n    case a, b: h()",
    "match = re.match(a, b)\nmatch.group(1)\nmatch(a)\nmatch[a] = b",
    "import a.b.c as d, e, f.g",
    "from . import x\nfrom .a import (b as c, d,)\nfrom ... import y\nfrom ...z.w import v\nfrom a import *\nfrom __future__ import annotations",
    "module = import_module('a.b')\nmodule.run()",
    "class Left:\n    def todo(self):\n        '''Docs.'''\n        raise NotImplementedError('later')",
    "x = 1 \\\n    + 2\nif a and \\\n        b:\n    c()",
    "x = [  # one\n    a(),\n\n    # two\n    b(),\n]\n",
    "f(\n    a,\n    b\n)\\\n.c()",
    "def f(self):\n\tif a:\n\t\tb()\n\treturn c",
    "größe = 1\nprint(größe)",
    "super().f(a)\nsuper(A, self).g()",
    "x = 0x1F, 1_000, 1.5e-3, .5, 1j, 0b1, 10 ** 3",
    "...\npass\nNone\nTrue\nx if y else z",
    "a = b if c else d,",
    "def f(): ...\n\n\nclass D: ...\n",
    "a.append(b)\nc.setdefault(d, e)\nf.update(g)",
];

#[test]
fn facts_are_those_of_tree_sitter() {
    for statement in STATEMENTS {
        same([*statement, &format!("{statement}\n")], language("python"));
        same([of_windows(format!("# first\n\n{statement}\n"))], language("python"));
    }
    same([""], language("python"));
    same(["\n\n# nothing\n"], language("python"));
    same([&*STATEMENTS.join("\n")], language("python"));
}

#[test]
fn blocks_contain_their_statements() {
    let inside = |statement: &str| format!("    {}", statement.replace('\n', "\n    "));
    // Indentation changes the content of strings over several lines, for both parsers.
    let all: Vec<String> = STATEMENTS.iter().map(|statement| inside(statement)).collect();
    for statement in &all {
        same(
            [format!("class A:\n    def f(self):\n    {}\nend()", statement.replace('\n', "\n    "))],
            language("python"),
        );
        same([format!("if a:\n{statement}\n# out\nelse:\n{statement}\n    # in")], language("python"));
    }
}

#[test]
fn uncommon_texts_are_rejected() {
    let deep = format!("x = {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let not = format!("x = {}y", "not ".repeat(5_000));
    let minus = format!("x = {}y", "-".repeat(5_000));
    let chain = format!("{}y", "x = ".repeat(5_000));
    let blocks: String = (0..2_000).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
    let texts = [
        "print 'x'",
        "print >>f, x",
        "exec 'x'",
        "x = `a`",
        "a <> b",
        "def f((a, b)): pass",
        "except A, e: pass",
        "def f(:\n    pass",
        "x = (1,\n",
        "x = 'abc\n",
        "x = '''abc",
        "x = 1 +",
        "if a:\nb",
        "  x = 1",
        "a b",
        "x = )",
        "if a:\n        b\n    c",
        "f'{a'",
        "f'{'",
        "f'{a!r'",
        "f'{a:'",
        "x = a ? b",
        "\\x",
        "class",
        "def",
        "@",
        "@a",
        "import",
        "from",
        "from . import",
        "lambda",
        "f(a b)",
        "[a for]",
        "x[",
        "match x:\n    y",
        "try: a\nexcept A, B: c",
        &deep,
        &not,
        &minus,
        &chain,
        &blocks,
        "x\0y",
        "\0",
    ];
    left(texts, language("python"));
}

#[test]
fn damage_is_noticed() {
    let damage = MutationTest {
        turns: 8_000,
        pieces: &["(", ")", "[", "]", "{", "}", ":", ",", "'", "\"\"\"", "\\", "\n", "\n    ", "#", "=", "f'", "ä"],
        least: 400,
        // Known mistakes of tree-sitter: `with` and a tuple of one, tabs after spaces, subscripts of `type`.
        misread: |text| text.contains("with (a,") || text.contains(" \t") || text.contains("type ["),
    };
    damage.is_noticed(|_| (language("python"), STATEMENTS));
}
