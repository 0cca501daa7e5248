//! Renders facts as a compact text.

use crate::facts::*;
use std::fmt::Write;

/// A compact text of all facts.
pub(super) fn shown(facts: &FileFacts) -> String {
    let mut out = String::new();
    for def in facts.defs.iter().skip(1) {
        let mut depth = 0;
        let mut up = def.parent;
        while up != ROOT {
            depth += 1;
            up = facts.def(up).parent;
        }
        let _ = write!(out, "{}{:?} {}", "  ".repeat(depth), def.kind, facts.name(def.name));
        let _ = write!(out, " {}-{}{}", def.span.line, def.span.end_line, flags(def.flags));
        if def.visibility != Visibility::Public {
            let _ = write!(out, " {:?}", def.visibility);
        }
        let params: Vec<String> = def.params.iter().map(|p| var(facts, *p)).collect();
        if !params.is_empty() {
            let _ = write!(out, " ({})", params.join(", "));
        }
        if let Some(result) = def.result {
            let _ = write!(out, " -> {}", expr(facts, result));
        }
        for base in &def.bases {
            let _ = write!(out, " {:?} {}", base.how, expr(facts, base.of));
        }
        if let Some(receiver) = def.receiver {
            let _ = write!(out, " on {}", expr(facts, receiver));
        }
        if let Some(doc) = &def.doc {
            let _ = write!(out, " /{}/", doc.replace('\n', "|"));
        }
        out.push('\n');
    }
    for import in &facts.imports {
        let _ = write!(out, "import {:?} ", import.module);
        let _ = match import.what {
            ImportKind::Symbol(name) => write!(out, "{}", facts.name(name)),
            what => write!(out, "{what:?}"),
        };
        if let Some(var) = import.var {
            let _ = write!(out, " as {}", facts.name(facts.vars[var].name));
        }
        if let Some(name) = import.reexport {
            let _ = write!(out, " gives {}", facts.name(name));
        }
        out.push_str(if import.type_only { " types\n" } else { "\n" });
    }
    for export in &facts.exports {
        let _ = writeln!(out, "export {} = {}", facts.name(export.name), expr(facts, export.value));
    }
    for call in &facts.calls {
        let args: Vec<String> = facts
            .args(call.args)
            .iter()
            .map(|a| format!("{}{}", if a.how == ArgKind::Spread { "..." } else { "" }, expr(facts, a.value)))
            .collect();
        let how = if call.how == CallKind::Plain { String::new() } else { format!("{:?} ", call.how) };
        let _ = writeln!(
            out,
            "{} {}: {how}{}({})",
            call.line,
            facts.name(facts.def(call.owner).name),
            expr(facts, call.callee),
            args.join(", ")
        );
    }
    for bind in &facts.binds {
        let target = match bind.target {
            BindTarget::Var(v) => var(facts, v),
            BindTarget::Member(of, name) => format!("{}.{}", expr(facts, of), facts.name(name)),
            BindTarget::At(of, name) => format!("{}[{:?}]", expr(facts, of), facts.name(name)),
            BindTarget::Element(of) => format!("{}[]", expr(facts, of)),
            BindTarget::Free(name) => format!("?{}", facts.name(name)),
        };
        let _ = writeln!(out, "{target} = {}", expr(facts, bind.value));
    }
    for back in &facts.returns {
        let how = if back.yields { "yield" } else { "return" };
        let _ = writeln!(out, "{how} {} of {}", expr(facts, back.value), facts.name(facts.def(back.owner).name));
    }
    for (line, what) in &facts.faults {
        let _ = writeln!(out, "fault {line}: {what}");
    }
    out
}

fn flags(of: u32) -> String {
    let names = [
        (flag::ASYNC, "async"),
        (flag::ABSTRACT, "abstract"),
        (flag::STATIC, "static"),
        (flag::EXPORTED, "exported"),
        (flag::GENERATOR, "generator"),
        (flag::TEST, "test"),
        (flag::GETTER, "getter"),
        (flag::SETTER, "setter"),
        (flag::CONSTRUCTOR, "constructor"),
        (flag::ARROW, "arrow"),
        (flag::DECLARED, "declared"),
        (flag::CONSTANT, "constant"),
        (flag::VARIADIC, "variadic"),
    ];
    names.iter().filter(|(f, _)| of & f != 0).map(|(_, name)| format!(" {name}")).collect()
}

/// A variable with its owner, so that shadowing is visible; its declared type follows a colon.
fn var(facts: &FileFacts, var: VarId) -> String {
    let var = &facts.vars[var];
    let owner = if var.owner == ROOT { "" } else { facts.name(facts.def(var.owner).name) };
    let what = match var.what {
        VarKind::Rest(_) => "...",
        _ => "",
    };
    let ty = var.ty.map_or(String::new(), |ty| format!(":{}", expr(facts, ty)));
    let name = facts.name(var.name);
    if owner.is_empty() { format!("{what}{name}{ty}") } else { format!("{what}{owner}/{name}{ty}") }
}

pub(super) fn expr(facts: &FileFacts, of: ExprId) -> String {
    let list = |range: IndexRange| -> String {
        let items: Vec<String> = facts
            .items(range)
            .iter()
            .map(|item| match item.key {
                ItemKey::Next => expr(facts, item.value),
                ItemKey::Name(name) => format!("{}: {}", facts.name(name), expr(facts, item.value)),
                ItemKey::Any => format!("[?]: {}", expr(facts, item.value)),
                ItemKey::Spread => format!("...{}", expr(facts, item.value)),
            })
            .collect();
        items.join(", ")
    };
    match facts.expr(of) {
        SourceExpr::Unknown => "_".into(),
        SourceExpr::Literal(Literal::String(name)) => format!("{:?}", facts.name(name)),
        SourceExpr::Literal(what) => format!("{what:?}").to_lowercase(),
        SourceExpr::Var(v) => {
            let shown = &facts.vars[v];
            let owner = if shown.owner == ROOT { "" } else { facts.name(facts.def(shown.owner).name) };
            if owner.is_empty() { facts.name(shown.name).into() } else { format!("{owner}/{}", facts.name(shown.name)) }
        }
        SourceExpr::Free(name) => format!("?{}", facts.name(name)),
        SourceExpr::This => "this".into(),
        SourceExpr::Super => "super".into(),
        SourceExpr::ThisType => "This".into(),
        SourceExpr::Member(of, name) => format!("{}.{}", expr(facts, of), facts.name(name)),
        SourceExpr::At(of, name) => format!("{}[{:?}]", expr(facts, of), facts.name(name)),
        SourceExpr::AtIndex(of, place) => format!("{}[{place}]", expr(facts, of)),
        SourceExpr::Element(of) => format!("{}[]", expr(facts, of)),
        SourceExpr::Awaited(of) => format!("await {}", expr(facts, of)),
        SourceExpr::Call(call) => format!("{}()", expr(facts, facts.calls[call].callee)),
        SourceExpr::Def(def) => format!("<{}>", facts.name(facts.def(def).name)),
        SourceExpr::Collection(ListKind::Map, range) => format!("{{{}}}", list(range)),
        SourceExpr::Collection(_, range) => format!("[{}]", list(range)),
        SourceExpr::Either(range) => format!("({})", list(range).replace(", ", " | ")),
        SourceExpr::Generic(of, range) => format!("{}<{}>", expr(facts, of), list(range)),
        SourceExpr::InstanceOf(of) => format!("a {}", expr(facts, of)),
        SourceExpr::FunctionType(of) => format!("=> {}", expr(facts, of)),
        SourceExpr::ListOf(of) => format!("list {}", expr(facts, of)),
        SourceExpr::Import(import) => format!("import {:?}", facts.imports[import].module),
        SourceExpr::KeysOf(of) => format!("keys {}", expr(facts, of)),
        SourceExpr::Bound(of) => format!("bound {}", expr(facts, of)),
        other => format!("{other:?}"),
    }
}
