//! Languages with declared types: overloads, traits, aliases, and what declarations say beside what is put in.

use crate::language::Language;
use crate::resolve::{Gid, Program, To, resolve};
use std::sync::Arc;

/// Every call into the program as `line: target(parameters) confidence`, by line.
fn calls(files: &[(&str, &str)]) -> Vec<String> {
    let mut program = Program::default();
    for (path, text) in files {
        if path.ends_with(".toml") {
            program.manifests.insert((*path).to_owned(), (*text).to_owned());
            continue;
        }
        let language = Language::of(path, "").expect("a path with a known extension");
        program.set(path, Arc::new(crate::parse(path, text, language)));
    }
    let links = resolve(&mut program);
    let (path, _) = files[0];
    let first = program.find_file(path).expect("the first file is part of the program");
    let facts = &program.file(first).facts;
    let mut found: Vec<(u32, String)> = Vec::new();
    for link in &links[first as usize].calls {
        let To::Def(Gid { file, def }) = link.to else { continue };
        let to = &program.file(file).facts;
        let signature = to.def(def).signature.split('(').nth(1).and_then(|s| s.split(')').next()).unwrap_or("");
        let line = facts.calls[link.call as usize].line;
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
