//! Languages with declared types: overloads, traits, aliases, and declared types beside assigned values.

use crate::languages::LanguageId;
use crate::resolve::{DefRef, LinkTarget, Program, resolve};
use std::sync::Arc;

/// Every call into the program as `line: target(parameters) confidence`, by line.
fn calls(files: &[(&str, &str)]) -> Vec<String> {
    let mut program = Program::default();
    for (path, text) in files {
        if path.ends_with(".toml") {
            program.manifests.insert((*path).to_owned(), (*text).to_owned());
            continue;
        }
        let language = LanguageId::of(path, "").expect("a path with a known extension");
        program.set(path, Arc::new(crate::parse(path, text, language)));
    }
    let links = resolve(&mut program);
    let (path, _) = files[0];
    let first = program.find_file(path).expect("the first file is part of the program");
    let facts = &program.file(first).facts;
    let mut found: Vec<(u32, String)> = Vec::new();
    for link in &links[first].calls {
        let LinkTarget::Def(DefRef { file, def }) = link.to else { continue };
        let to = &program.file(file).facts;
        let signature = to.def(def).signature.split('(').nth(1).and_then(|s| s.split(')').next()).unwrap_or("");
        let line = facts.calls[link.call].line;
        found.push((line, format!("{line}: {}({signature}) {}", to.path_of(def).join("."), link.how.confidence())));
    }
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, text)| text).collect()
}

#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let found = calls(files);
    assert_eq!(found, expected, "\n{}", found.join("\n"));
}

const WRITER: &str = "package a;
class Writer {
  Writer value(String s) { return this; }
  Writer value(boolean b) { return this; }
  Writer value(Boolean b) { return this; }
  Writer value(double d) { return this; }
  Writer value(long l) { return this; }
  Writer value(Number n) { return this; }
  Writer value(Node n) { return this; }
  Writer value(Node n, int depth) { return this; }
  Writer value(Object o, Class<?> type) { return this; }
  Writer value(Object o, Appendable out) { return this; }
  String value() { return null; }
}
class Node {}
class Leaf extends Node {}
";

#[test]
fn java_overloads_are_told_apart_by_the_types_of_their_arguments() {
    let main = "package a;
class Main {
  void run(Writer out, Leaf leaf, String text, java.util.Date date) {
    out.value(text);
    out.value(\"a\" + 1);
    out.value(true);
    out.value(1);
    out.value(1.5);
    out.value(leaf);
    out.value((Node) null, 2);
    out.value(null, Leaf.class);
    out.value();
  }
}";
    let expected = [
        "4: Writer.value(String s) 0.9",
        "5: Writer.value(String s) 0.9",
        "6: Writer.value(boolean b) 0.9",
        "7: Writer.value(long l) 0.9",
        "8: Writer.value(double d) 0.9",
        "9: Writer.value(Node n) 0.9",
        "10: Writer.value(Node n, int depth) 0.9",
        "11: Writer.value(Object o, Class<?> type) 0.9",
        "12: Writer.value() 0.9",
    ];
    check(&[("a/Main.java", main), ("a/Writer.java", WRITER)], &expected);
}

#[test]
fn a_java_overload_that_cannot_be_told_is_only_possible() {
    let main = "package a;
class Main {
  void run(Writer out, Unknown what) { out.value(what.thing(), 1); }
}";
    check(&[("a/Main.java", main), ("a/Writer.java", WRITER)], &["3: Writer.value(Node n, int depth) 0.9"]);
    let main = "package a;
class Main {
  void run(Pair p, Unknown what) { p.take(what.thing()); }
}
class Pair { void take(String s) {} void take(Main m) {} }";
    check(&[("a/Main.java", main)], &["3: Pair.take(Main m) 0.45", "3: Pair.take(String s) 0.45"]);
}

#[test]
fn java_overloads_of_what_is_inherited_count_too() {
    let main = "package a;
class Main {
  void run(Thing thing) {
    thing.get();
    thing.get(\"a\");
    new Thing().put(1);
  }
}
class Base {
  Base get() { return this; }
  void put(int i) {}
}
class Thing extends Base {
  Thing get(String name) { return this; }
  @Override void put(int j) {}
}";
    let expected =
        ["4: Base.get() 0.98", "5: Thing.get(String name) 0.98", "6: Thing() 0.98", "6: Thing.put(int j) 0.98"];
    let found: Vec<String> = calls(&[("a/Main.java", main)])
        .into_iter()
        .map(|line| line.rsplit_once(' ').map_or(line.clone(), |(text, _)| text.to_owned()))
        .collect();
    let expected: Vec<String> =
        expected.iter().map(|line| line.rsplit_once(' ').map_or("", |(text, _)| text).to_owned()).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_result_of_a_java_call_is_that_of_the_overload() {
    let main = "package a;
class Main {
  void run(Text text) { text.text().equals(\"a\"); }
}
class Text {
  String text() { return null; }
  Text text(String s) { return this; }
  public boolean equals(Object other) { return false; }
}";
    check(&[("a/Main.java", main)], &["3: Text.text() 0.9"]);
}

#[test]
fn a_java_overload_with_any_number_of_arguments_comes_last() {
    let main = "package a;
class Main {
  void run(Spec spec, java.util.List<Spec> list) {
    spec.with(list);
    spec.with(spec);
    spec.with(spec, spec);
    new Spec(\"a\", 1);
    new Spec(spec, 1);
  }
}
class Spec {
  Spec(String name, int i) {}
  Spec(Spec of, int i) {}
  Spec with(Spec... more) { return this; }
  Spec with(java.util.List<Spec> more) { return this; }
}";
    let expected = [
        "4: Spec.with(java.util.List<Spec> more) 0.9",
        "5: Spec.with(Spec... more) 0.9",
        "6: Spec.with(Spec... more) 0.9",
        "7: Spec.Spec(String name, int i) 0.98",
        "8: Spec.Spec(Spec of, int i) 0.98",
    ];
    check(&[("a/Main.java", main)], &expected);
}

#[test]
fn a_java_field_is_not_the_method_of_its_name() {
    let main = "package a;
class Main {
  void run(Walker walker) {
    walker.next().open();
    walker.next.open();
  }
}
class Walker {
  Main2 next;
  Main2 next() { Main2 result = next; next = null; return result; }
}
class Main2 { void open() {} }";
    let expected = ["4: Main2.open() 0.9", "4: Walker.next() 0.9", "5: Main2.open() 0.9"];
    check(&[("a/Main.java", main)], &expected);
}

#[test]
fn a_java_declaration_bounds_what_is_found() {
    let main = "package a;
class Main {
  void run(Element element) {
    element.asObject().get();
    Element made = new Text();
    made.name();
    Text.of();
  }
}
class Element {
  Obj asObject() { return (Obj) this; }
  void name() {}
}
class Obj extends Element { void get() {} void name() {} }
class Text extends Element { void get() {} void name() {} Text() {} static Text of() { return new Text(); } }
class Use { void use() { new Obj().asObject(); new Text().asObject(); } }";
    let expected = [
        "4: Element.asObject() 0.9",
        "4: Obj.get() 0.9",
        "5: Text.Text() 0.98",
        "6: Text.name() 0.9",
        "7: Text.of() 0.98",
    ];
    assert_eq!(calls(&[("a/Main.java", main)])[..5], expected);
}

#[test]
fn a_java_class_named_in_its_base_is_not_its_constructor() {
    let main = "package a;
class Name {
  static final Part ANY = Part.of(1);
}
class Part extends Name { Part(int i) {} static Part of(int i) { return null; } }";
    check(&[("a/Name.java", main)], &["3: Part.of(int i) 0.98", "5: Name() 0.9"]);
}

#[test]
fn a_java_loop_over_a_list_of_elsewhere_asks_it_for_nothing_of_ours() {
    let main = "package a;
import java.util.ArrayList;
class Nodes extends ArrayList<Nodes> {
  Nodes next() { return this; }
  void all() { for (Nodes node : this) { } }
}";
    check(&[("a/Nodes.java", main)], &[]);
}

#[test]
fn what_a_rust_type_says_itself_comes_before_its_traits() {
    let main = "struct Graph;
trait Count { fn count(&self) -> usize; }
impl Graph { fn count(&self) -> usize { 1 } }
impl Count for Graph {
    fn count(&self) -> usize { self.count() }
}
fn run(graph: &Graph) { graph.count(); }
";
    check(&[("src/lib.rs", main)], &["5: count(&self) 0.98", "7: count(&self) 0.9"]);
}

#[test]
fn a_rust_glob_import_comes_before_a_crate_of_that_name() {
    let part = "use super::*;
fn run() { time(1); }
";
    let main = "mod part;
fn time(t: u32) -> u32 { t }
";
    let manifest = "[package]\nname = \"a\"\n[dependencies]\ntime = \"1\"\n";
    check(&[("src/part.rs", part), ("src/lib.rs", main), ("Cargo.toml", manifest)], &["2: time(t: u32) 0.95"]);
}

#[test]
fn a_rust_alias_of_result_is_seen_through() {
    let main = "use std::result;
struct Error;
pub type Result<T, E = Error> = result::Result<T, E>;
struct Connection;
impl Connection {
    fn open() -> Result<Self> { Ok(Connection) }
    fn run(&self) {}
}
fn checked() -> Result<Connection> { Connection::open() }
fn main() -> Result<()> {
    let db = checked()?;
    db.run();
    Connection::open().unwrap().run();
    Ok(())
}
";
    let expected =
        ["9: open() 0.98", "11: checked() 0.98", "12: run(&self) 0.9", "13: open() 0.98", "13: run(&self) 0.9"];
    check(&[("src/main.rs", main)], &expected);
}

#[test]
fn a_declared_type_holds_whatever_is_passed() {
    let mut main =
        String::from("package a\ntype Key []string\nfunc (k Key) last() {}\nfunc take(key Key) {\n\tkey.last()\n}\n");
    main.push_str("func all() {\n");
    for i in 0..12 {
        main.push_str(&format!("\ttake(Key{{\"{i}\"}})\n"));
    }
    main.push_str("}\n");
    let found = calls(&[("a.go", &main)]);
    assert_eq!(found[0], "5: last(k Key) 0.9");
}

#[test]
fn a_rust_field_and_a_method_may_have_one_name() {
    let main = "struct Index<T>(T);
impl<T> Index<T> { fn index(self) -> usize { 0 } }
struct Walk<T> { next: [Index<T>; 2] }
impl<T> Walk<T> {
    fn next(&mut self, all: &[u8]) {
        all.get(self.next[0].index());
    }
}
";
    check(&[("src/lib.rs", main)], &["6: index(self) 0.9"]);
}

#[test]
fn go_lists_that_are_made_of_one_another_are_followed_in_bounded_time() {
    let mut main = String::from("package a\ntype T struct{}\nfunc (t T) run() {}\nfunc all() {\n\tvar xs []any\n");
    for _ in 0..40 {
        main.push_str("\txs = append(xs, T{})\n");
    }
    main.push_str("\tfor _, x := range xs {\n\t\tx.(T).run()\n\t}\n}\n");
    let found = calls(&[("a.go", &main)]);
    assert!(found.iter().any(|line| line.contains("run(")), "{found:?}");
}

#[test]
fn derived_traits_give_the_type_itself() {
    let main = "#[derive(Clone, Default)]
pub struct Box2 { n: u32 }
impl Box2 { fn open(&self) -> u32 { self.n } }
fn run() {
    let one = Box2::default();
    one.open();
    one.clone().open();
}
";
    check(&[("src/lib.rs", main)], &["6: open(&self) 0.9", "7: open(&self) 0.9"]);
}

#[test]
fn a_method_without_a_body_gives_way_to_what_is_written_for_it() {
    let main = "package a;
class Main {
  void run(Shape shape, Proxy proxy) {
    shape.area();
    proxy.ask();
  }
}
interface Shape { int area(); }
interface Proxy { int ask(); }
class Square implements Shape { public int area() { return 1; } }
class Use { Shape make() { return new Square(); } }";
    // `ask` has no implementation, so the declaration is the only target.
    let expected = ["4: Shape.area() 0.6", "4: Square.area() 0.8", "5: Proxy.ask() 0.9", "11: Square() 0.98"];
    check(&[("a/Main.java", main)], &expected);
    let main = "trait Shape { fn area(&self) -> u32; fn twice(&self) -> u32 { self.area() * 2 } }
struct Square;
impl Shape for Square { fn area(&self) -> u32 { 1 } }
fn run(shape: &dyn Shape) -> u32 { shape.twice() }
fn main() { run(&Square); }
";
    let found = calls(&[("src/main.rs", main)]);
    assert_eq!(found.iter().filter(|line| line.contains("Shape.area(&self) 0.6")).count(), 1, "{found:?}");
    assert!(found.iter().any(|line| line.starts_with("4: Shape.twice(&self) 0.9")), "{found:?}");
}

#[test]
fn a_method_is_as_sure_as_the_classes_below_leave_it() {
    let main = "package a;
class Main {
  void run(Base base) {
    base.go();
  }
}
abstract class Base { void go() {} }
class Leaf extends Base {}
class Use { Base make() { return new Leaf(); } }
";
    // No class overrides it, so it is the target, although no instance of `Base` itself is made.
    check(&[("a/Main.java", main)], &["4: Base.go() 0.9", "9: Leaf() 0.98"]);
    let found = |more: &str| {
        let files = [("a/Main.java", main), ("a/More.java", more)];
        calls(&files).into_iter().filter(|line| line.starts_with("4:")).collect::<Vec<_>>()
    };
    let other = "package a; class Other extends Base { void go() {} }";
    assert_eq!(found(other), ["4: Base.go() 0.9", "4: Other.go() 0.45"], "an `Other` is never made");
    let made = format!("{other} class More {{ Base make() {{ return new Other(); }} }}");
    assert_eq!(found(&made), ["4: Base.go() 0.9", "4: Other.go() 0.6"], "a `Leaf` still runs what it inherits");
    let over =
        "package a; class Leaf2 extends Leaf { void go() {} } class More { Base make() { return new Leaf2(); } }";
    assert_eq!(found(over), ["4: Base.go() 0.9", "4: Leaf2.go() 0.6"]);
}

#[test]
fn rust_impls_of_a_generic_type_that_say_the_same_name_are_only_possible() {
    let main = "struct Maker<S>(S);
struct Text;
struct Count;
impl Maker<Text> { fn build(self) -> Text { Text } }
impl Maker<Count> { fn build(self) -> Count { Count } }
impl<S> Maker<S> { fn with(self) -> Self { self } }
fn run(maker: Maker<Text>) { maker.with().build(); }
";
    check(&[("src/lib.rs", main)], &["7: build(self) 0.45", "7: with(self) 0.9"]);
    // Without type parameters, they are for different platforms.
    let main = "struct Maker;
#[cfg(unix)]
impl Maker { fn build(self) {} }
#[cfg(windows)]
impl Maker { fn build(self) {} }
fn run(maker: Maker) { maker.build(); }
";
    check(&[("src/lib.rs", main)], &["6: build(self) 0.9"]);
}

#[test]
fn a_rust_method_is_called_not_the_field_of_its_name() {
    let main = "struct Inner;
impl Inner { fn build(&self, n: u32) {} }
struct Outer { inner: Inner }
impl Outer {
    fn inner(&mut self, inner: Inner) -> &mut Outer { self }
    fn build(&self, s: &str) { self.inner.build(1); }
}
fn run(mut outer: Outer) { outer.inner(Inner).build(\"\"); }
";
    let expected =
        ["6: build(&self, n: u32) 0.9", "8: build(&self, s: &str) 0.9", "8: inner(&mut self, inner: Inner) 0.9"];
    check(&[("src/lib.rs", main)], &expected);
}

#[test]
fn a_rust_trait_that_types_of_elsewhere_have_means_no_type_of_ours_alone() {
    let main = "struct Key;
trait AsKey { fn as_key(&self) -> Key; }
impl AsKey for Key { fn as_key(&self) -> Key { Key } }
fn run(key: impl AsKey) { key.as_key(); }
";
    let ours = "4: as_key(&self) ";
    let sure = |text: &str| calls(&[("src/lib.rs", text)]).into_iter().find(|line| line.starts_with(ours));
    assert_eq!(sure(main).as_deref(), Some("4: as_key(&self) 0.8"));
    let text = format!("{main}impl AsKey for &str {{ fn as_key(&self) -> Key {{ Key }} }}\n");
    assert_eq!(sure(&text).as_deref(), Some("4: as_key(&self) 0.45"));
}

#[test]
fn of_several_java_classes_that_come_to_a_call_each_is_a_candidate() {
    let main = "package a;
class Main {
  void draw(Shape shape) {
    shape.area();
  }
  void run() { draw(new Square()); draw(new Circle()); }
}
interface Shape { int area(); }
class Square implements Shape { public int area() { return 1; } }
class Circle implements Shape { public int area() { return 3; } }";
    let expected = ["4: Circle.area() 0.6", "4: Shape.area() 0.6", "4: Square.area() 0.6"];
    assert_eq!(calls(&[("a/Main.java", main)])[..3], expected);
}

#[test]
fn a_java_class_without_a_name_runs_the_constructor_above() {
    let main = "package a;
class Main {
  void run() {
    new Base(1) { void go() {} };
    new Other() {};
  }
}
class Base { Base() {} Base(int n) {} }
interface Other {}";
    let found = calls(&[("a/Main.java", main)]);
    let named: Vec<&str> = found.iter().map(String::as_str).filter(|line| !line.contains("<anonymous")).collect();
    assert_eq!(named, ["4: Base.Base(int n) 0.98"]);
}

#[test]
fn a_java_class_may_be_named_with_its_package() {
    let main = "package org.shop.core.desk;
class Main extends org.shop.core.Base {
  void run() {
    check();
    org.shop.core.Base.make();
  }
}";
    let base = "package org.shop.core;
public class Base { protected void check() {} public static Base make() { return null; } }";
    let files = [("org/shop/core/desk/Main.java", main), ("org/shop/core/Base.java", base)];
    check(&files, &["4: Base.check() 0.9", "5: Base.make() 0.95"]);
}

#[test]
fn a_cast_chooses_the_overload() {
    super::check(
        &[(
            "A.java",
            "import java.util.List;\n\
             class A {\n\
             \x20 void f(Object o) {}\n\
             \x20 void f(String s) {}\n\
             \x20 void f(Integer i) {}\n\
             \x20 void f(long l) {}\n\
             \x20 void f(List<String> l) {}\n\
             \x20 void f(A a) {}\n\
             \x20 void f(Object[] all) {}\n\
             \x20 void g(Object x, String s, int n, A a) {\n\
             \x20   f((Object) s);\n\
             \x20   f((String) null);\n\
             \x20   f((String) x);\n\
             \x20   f((Integer) x);\n\
             \x20   f((long) n);\n\
             \x20   f((List<String>) x);\n\
             \x20   f((Object) a);\n\
             \x20   f((A) x);\n\
             \x20   f((Object[]) x);\n\
             \x20   f((Object) null);\n\
             \x20   this.f((Object) (s + n));\n\
             \x20   var o = (Object) s;\n\
             \x20   f(o);\n\
             \x20   f(n > 1 ? (Object) s : s);\n\
             \x20 }\n\
             }\n",
        )],
        &[
            "A.java:11 -> A.f:3 0.98",
            "A.java:12 -> A.f:4 0.98",
            "A.java:13 -> A.f:4 0.98",
            "A.java:14 -> A.f:5 0.98",
            "A.java:15 -> A.f:6 0.98",
            "A.java:16 -> A.f:7 0.98",
            "A.java:17 -> A.f:3 0.98",
            "A.java:18 -> A.f:8 0.98",
            "A.java:19 -> A.f:9 0.98",
            "A.java:20 -> A.f:3 0.98",
            "A.java:21 -> A.f:3 0.98",
            "A.java:23 -> A.f:3 0.98",
            "A.java:24 -> A.f:3 0.98",
        ],
    );
}

#[test]
fn a_method_overrides_one_with_a_type_parameter_but_not_one_with_object() {
    let text = "package a;
class Sub extends Base<String> {
  void take(String s) {}
  void put(String s) {}
  void run(String s) {
    take((Object) s);
    take((String) s);
    put(s);
  }
}
class Base<T> {
  void take(Object o) {}
  void put(T t) {}
}";
    let expected = ["6: Base.take(Object o) 0.98", "7: Sub.take(String s) 0.98", "8: Sub.put(String s) 0.98"];
    check(&[("a/Main.java", text)], &expected);
}

#[test]
fn a_base_method_that_other_classes_inherit_runs_on_them_too() {
    let main = "
class Parameter:
    def consume(self):
        return self.read()
    def read(self):
        return 1

class Option(Parameter):
    def consume(self):
        return super().consume()
    def read(self):
        return 2

class Argument(Parameter):
    pass

Option().consume()
";
    check(
        &[("main.py", main)],
        &[
            "4: Option.read(self) 0.98",
            "4: Parameter.read(self) 0.98",
            "10: Parameter.consume(self) 0.9",
            "17: Option(Parameter) 0.98",
            "17: Option.consume(self) 0.9",
        ],
    );
}

#[test]
fn of_a_decorator_or_what_it_makes_the_decorator_is_called() {
    let main = "
from typing import Callable, overload

class Command:
    def __call__(self): ...

@overload
def command(name: Callable) -> Command: ...
@overload
def command(name: str | None = ...) -> Callable[[Callable], Command]: ...
def command(name=None) -> Command | Callable[[Callable], Command]:
    def decorator(f) -> Command:
        return Command()
    if callable(name):
        return decorator(name)
    return decorator

@command()
def first(): ...

first()
";
    check(
        &[("main.py", main)],
        &[
            "13: Command() 0.98",
            "15: command.decorator(f) 0.98",
            "18: command(name=None) 0.98",
            "18: command.decorator(f) 0.98",
            "21: first() 0.98",
        ],
    );
}
