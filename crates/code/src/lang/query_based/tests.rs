//! Small texts and their facts.

mod managed;
mod native;
mod script;

use crate::facts::{
    ArgKind, BaseKind, BindTarget, CallKind, DefId, ExprId, FileFacts, ImportKind, ROOT, SourceExpr, Visibility, flag,
};
use crate::languages::LanguageId;

fn facts(path: &str, text: &str) -> FileFacts {
    let language = LanguageId::of(path, text).expect("the name says it");
    crate::parse(path, text, language)
}

/// Renders an expression as text.
fn shown(facts: &FileFacts, expr: ExprId) -> String {
    match facts.expr(expr) {
        SourceExpr::Unknown => "?".into(),
        SourceExpr::Var(var) => {
            let var = &facts.vars[var];
            format!(
                "<{}{}>",
                facts.path_of(var.owner).iter().map(|n| format!("{n}/")).collect::<String>(),
                facts.name(var.name)
            )
        }
        SourceExpr::Free(name) => facts.name(name).into(),
        SourceExpr::This => "this".into(),
        SourceExpr::Super => "super".into(),
        SourceExpr::ThisType => "This".into(),
        SourceExpr::Member(of, name) => format!("{}.{}", shown(facts, of), facts.name(name)),
        SourceExpr::Call(call) => format!("{}()", shown(facts, facts.calls[call].callee)),
        SourceExpr::Def(def) => format!("def {}", facts.path_of(def).join("/")),
        SourceExpr::Element(of) => format!("{}[]", shown(facts, of)),
        SourceExpr::AtIndex(of, at) => format!("{}[{at}]", shown(facts, of)),
        SourceExpr::InstanceOf(ty) => format!("a {}", shown(facts, ty)),
        SourceExpr::FunctionType(ty) => format!("fn -> {}", shown(facts, ty)),
        SourceExpr::Generic(of, items) | SourceExpr::Construct(of, items) => {
            let items: Vec<String> = facts.items(items).iter().map(|i| shown(facts, i.value)).collect();
            format!("{}<{}>", shown(facts, of), items.join(", "))
        }
        SourceExpr::Either(items) => {
            let items: Vec<String> = facts.items(items).iter().map(|i| shown(facts, i.value)).collect();
            items.join(" | ")
        }
        other => format!("{other:?}"),
    }
}

fn owner(facts: &FileFacts, def: DefId) -> String {
    let path = facts.path_of(def);
    if path.is_empty() { "file".into() } else { path.join("/") }
}

fn defs(facts: &FileFacts) -> String {
    const FLAGS: &[(u32, &str)] = &[
        (flag::ASYNC, "async"),
        (flag::ABSTRACT, "abstract"),
        (flag::STATIC, "static"),
        (flag::TEST, "test"),
        (flag::GETTER, "getter"),
        (flag::CONSTRUCTOR, "constructor"),
        (flag::DECLARED, "declared"),
        (flag::CONSTANT, "constant"),
        (flag::ENTRY, "entry"),
        (flag::TAKES_SELF, "self"),
    ];
    let mut text = String::new();
    for (at, def) in facts.defs.iter_ids().skip(1) {
        text += &format!("{:?} {} {}-{}", def.kind, owner(facts, at), def.span.line, def.span.end_line);
        if def.visibility != Visibility::Public {
            text += &format!(" {:?}", def.visibility).to_lowercase();
        }
        for (flag, word) in FLAGS {
            if def.is(*flag) {
                text += &format!(" {word}");
            }
        }
        if let Some(receiver) = def.receiver {
            text += &format!(" of {}", shown(facts, receiver));
        }
        for base in &def.bases {
            let how = if base.how == BaseKind::Extends { "extends" } else { "implements" };
            text += &format!(" {how} {}", shown(facts, base.of));
        }
        text.push('\n');
    }
    text
}

fn calls(facts: &FileFacts) -> String {
    let mut text = String::new();
    for call in &facts.calls {
        let how = match call.how {
            CallKind::Plain => "",
            CallKind::New => "new ",
            CallKind::Implicit => "implicit ",
            _ => "other ",
        };
        let args: Vec<String> = facts
            .args(call.args)
            .iter()
            .map(|arg| match arg.how {
                ArgKind::Named(name) => format!("{}={}", facts.name(name), shown(facts, arg.value)),
                ArgKind::Place => shown(facts, arg.value),
                _ => format!("*{}", shown(facts, arg.value)),
            })
            .collect();
        let callee = shown(facts, call.callee);
        text += &format!("{} {}: {how}{callee}({})\n", call.line, owner(facts, call.owner), args.join(", "));
    }
    text
}

fn binds(facts: &FileFacts) -> String {
    let mut text = String::new();
    for bind in &facts.binds {
        let target = match bind.target {
            BindTarget::Var(var) => facts.name(facts.vars[var].name).to_owned(),
            BindTarget::Member(of, name) => format!("{}.{}", shown(facts, of), facts.name(name)),
            BindTarget::Element(of) => format!("{}[]", shown(facts, of)),
            BindTarget::Free(name) => format!("free {}", facts.name(name)),
            BindTarget::At(..) => "at".into(),
        };
        text += &format!("{target} = {}\n", shown(facts, bind.value));
    }
    for returned in &facts.returns {
        text += &format!("{} gives {}\n", owner(facts, returned.owner), shown(facts, returned.value));
    }
    text
}

fn imports(facts: &FileFacts) -> String {
    let mut text = format!("package {}", facts.package).trim_end().to_owned() + "\n";
    for import in &facts.imports {
        let what = match import.what {
            ImportKind::Symbol(name) => facts.name(name).to_owned(),
            other => format!("{other:?}"),
        };
        let called = import.var.map_or("", |var| facts.name(facts.vars[var].name));
        text += format!("{} {what} {called}", import.module).trim_end();
        text.push('\n');
    }
    text
}

fn types(facts: &FileFacts) -> String {
    let typed = facts.vars.iter().filter_map(|v| v.ty.map(|ty| (v, ty)));
    typed.map(|(v, ty)| format!("{}: {}\n", facts.name(v.name), shown(facts, ty))).collect()
}

fn file(facts: &FileFacts) -> String {
    if facts.defs[ROOT].is(flag::TEST) { "a test file\n".into() } else { "no test file\n".into() }
}

fn docs(facts: &FileFacts) -> String {
    let docs = facts.defs.iter().filter_map(|d| d.doc.as_ref().map(|doc| (d, doc)));
    docs.map(|(d, doc)| format!("{} | {doc}\n", d.signature)).collect()
}

fn uses(facts: &FileFacts) -> String {
    let uses: Vec<String> = facts.uses.iter().map(|u| shown(facts, u.expr)).collect();
    format!("uses {}\n", uses.join(", "))
}

/// Compares the given parts of the facts of a text.
fn check(path: &str, text: &str, parts: &str, expected: &str) {
    let facts = facts(path, text);
    let mut found = String::new();
    for part in parts.split(' ') {
        found += &match part {
            "defs" => defs(&facts),
            "calls" => calls(&facts),
            "binds" => binds(&facts),
            "imports" => imports(&facts),
            "types" => types(&facts),
            "docs" => docs(&facts),
            "uses" => uses(&facts),
            _ => file(&facts),
        };
    }
    assert_eq!(found.trim(), expected.trim(), "\n{found}");
}

#[test]
fn broken_texts_are_read_in_part() {
    for (path, text, name) in [
        ("a.c", "int f( { g(; } }}} int h(void) { k(1); }", "k"),
        ("a.cpp", "class A { void f( ; }; :: void B::m() { k(1); } >>", "k"),
        ("a.cs", "class A { void F( { } } class B { void M() { k(1); } }", "k"),
        ("a.rb", "class A def f( x end end\ndef m; k(1); end", "k"),
        ("a.php", "<?php class A { function f( { } function m() { k(1); }", "k"),
        ("a.kt", "fun m() {\n k(1)\n}\nclass A { fun f( { } }\n", "k"),
    ] {
        let facts = facts(path, text);
        assert!(!facts.faults.is_empty(), "{path}");
        assert!(calls(&facts).contains(&format!("{name}(")), "{path}: {}", calls(&facts));
        for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            crate::parse(path, &text[..cut], facts.language);
        }
    }
}

#[test]
fn deep_nesting_does_not_crash() {
    let (open, close) = ("f(".repeat(5_000), ")".repeat(5_000));
    let parens = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    for (path, before, after) in [
        ("a.c", "int main(void) { x = ", "; }"),
        ("a.cpp", "int main() { x = ", "; }"),
        ("a.cs", "class A { void F() { x = ", "; } }"),
        ("a.rb", "def m\n x = ", "\nend"),
        ("a.php", "<?php function m() { $x = ", "; }"),
        ("a.kt", "fun m() {\n x = ", "\n}"),
    ] {
        facts(path, &format!("{before}{parens}{after}"));
        facts(path, &format!("{before}{open}1{close}{after}"));
    }
    facts("a.cpp", &"namespace a { class B { void f() { [] { ".repeat(1_000));
}
