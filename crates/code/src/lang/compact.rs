//! Renders facts as text, for comparisons.

use crate::facts::{
    ArgKind, BindTarget, ExprId, ExprItem, FileFacts, ImportKind, IndexRange, ItemKey, Literal, ROOT, SourceExpr,
    VarId, VarKind, flag,
};

/// One line per fact, each beginning with a word for its kind.
pub(crate) fn compact(f: &FileFacts) -> String {
    let mut out = String::new();
    for (index, d) in f.defs.iter_ids() {
        let mut line = format!("def {:?} {}", d.kind, f.path_of(index).join("/"));
        let flags = [
            (flag::ABSTRACT, "abstract"),
            (flag::EXPORTED, "exported"),
            (flag::TEST, "test"),
            (flag::ENTRY, "entry"),
            (flag::CONSTANT, "constant"),
            (flag::TAKES_SELF, "self"),
            (flag::VARIADIC, "variadic"),
            (flag::ARROW, "arrow"),
            (flag::DECLARED, "declared"),
            (flag::ASYNC, "async"),
            (flag::STATIC, "static"),
            (flag::CLASS_METHOD, "of the class"),
            (flag::GETTER, "getter"),
            (flag::SETTER, "setter"),
            (flag::GENERATOR, "generator"),
            (flag::CONSTRUCTOR, "constructor"),
        ];
        for (bit, word) in flags {
            if d.is(bit) {
                line += &format!(" {word}");
            }
        }
        line += &format!(" {}-{}", d.span.line, d.span.end_line);
        if let Some(receiver) = d.receiver {
            line += &format!(" of {}", shown(f, receiver));
        }
        if !d.params.is_empty() {
            let params: Vec<String> = d
                .params
                .iter()
                .map(|p| {
                    let var = &f.vars[*p];
                    let rest = if matches!(var.what, VarKind::Rest(_)) { "..." } else { "" };
                    format!("{rest}{}: {}", f.name(var.name), var.ty.map_or("-".into(), |t| shown(f, t)))
                })
                .collect();
            line += &format!(" ({})", params.join(", "));
        }
        if let Some(result) = d.result {
            line += &format!(" -> {}", shown(f, result));
        }
        for base in &d.bases {
            line += &format!(" < {:?} {}", base.how, shown(f, base.of));
        }
        out += &line;
        out.push('\n');
        if index != ROOT {
            out += &format!("sig {}\n", d.signature);
        }
        if let Some(doc) = &d.doc {
            out += &format!("doc {} {:?}\n", f.name(d.name), doc);
        }
    }
    for v in &f.vars {
        let ty = v.ty.map_or("-".into(), |t| shown(f, t));
        out += &format!("var {}.{} {:?}: {ty}\n", f.name(f.def(v.owner).name), f.name(v.name), v.what);
    }
    for c in &f.calls {
        let args: Vec<String> = f
            .args(c.args)
            .iter()
            .map(|a| match a.how {
                ArgKind::Spread => format!("...{}", shown(f, a.value)),
                _ => shown(f, a.value),
            })
            .collect();
        let owner = f.name(f.def(c.owner).name);
        out += &format!("call {owner}: {}({}) {}:{}\n", shown(f, c.callee), args.join(", "), c.line, c.column);
    }
    for b in &f.binds {
        let target = match b.target {
            BindTarget::Var(v) => variable(f, v),
            BindTarget::Member(e, n) => format!("{}.{}", shown(f, e), f.name(n)),
            BindTarget::At(e, n) => format!("{}[{:?}]", shown(f, e), f.name(n)),
            BindTarget::Element(e) => format!("{}[]", shown(f, e)),
            BindTarget::Free(n) => format!("free {}", f.name(n)),
        };
        out += &format!("bind {target} = {}\n", shown(f, b.value));
    }
    for r in &f.returns {
        out += &format!("return {}: {}\n", f.name(f.def(r.owner).name), shown(f, r.value));
    }
    for u in &f.uses {
        out += &format!("use {}: {} {}\n", f.name(f.def(u.owner).name), shown(f, u.expr), u.line);
    }
    for i in &f.imports {
        let what = match i.what {
            ImportKind::Symbol(n) => format!("Symbol {}", f.name(n)),
            other => format!("{other:?}"),
        };
        let called = i.var.map_or("-", |v| f.name(f.vars[v].name));
        out += &format!("import {} {what} {called} {}\n", i.module, i.line);
    }
    for (line, what) in &f.faults {
        out += &format!("fault {line} {what}\n");
    }
    out
}

/// A variable is rendered with its number among those of the same name: `<x>`, `<x2>`, `<x3>`.
fn variable(f: &FileFacts, var: VarId) -> String {
    let v = &f.vars[var];
    let earlier = f.vars.iter().take(var.index()).filter(|o| o.name == v.name).count();
    let number = if earlier == 0 { String::new() } else { (earlier + 1).to_string() };
    format!("<{}{number}>", f.name(v.name))
}

fn items(f: &FileFacts, range: IndexRange) -> String {
    let item = |i: &ExprItem| {
        let value = shown(f, i.value);
        match i.key {
            ItemKey::Next => value,
            ItemKey::Name(n) => format!("{}: {value}", f.name(n)),
            ItemKey::Any => format!("?: {value}"),
            ItemKey::Spread => format!("...{value}"),
        }
    };
    f.items(range).iter().map(item).collect::<Vec<_>>().join(", ")
}

fn shown(f: &FileFacts, expr: ExprId) -> String {
    match f.expr(expr) {
        SourceExpr::Unknown => "?".into(),
        SourceExpr::Literal(l) => match l {
            Literal::String(n) => format!("{:?}", f.name(n)),
            other => format!("{other:?}"),
        },
        SourceExpr::Var(v) => variable(f, v),
        SourceExpr::Free(n) => f.name(n).into(),
        SourceExpr::Member(e, n) => format!("{}.{}", shown(f, e), f.name(n)),
        SourceExpr::At(e, n) => format!("{}[{:?}]", shown(f, e), f.name(n)),
        SourceExpr::AtIndex(e, i) => format!("{}#{i}", shown(f, e)),
        SourceExpr::Element(e) => format!("{}[]", shown(f, e)),
        SourceExpr::KeysOf(e) => format!("keys({})", shown(f, e)),
        SourceExpr::Call(c) => format!("{}()", shown(f, f.calls[c].callee)),
        SourceExpr::Def(d) => format!("def {}", f.name(f.def(d).name)),
        SourceExpr::Collection(kind, range) => format!("{kind:?}[{}]", items(f, range)),
        SourceExpr::Construct(e, range) => format!("{}{{{}}}", shown(f, e), items(f, range)),
        SourceExpr::Either(range) => format!("either({})", items(f, range)),
        SourceExpr::Generic(e, range) => format!("{}<{}>", shown(f, e), items(f, range)),
        SourceExpr::InstanceOf(e) => format!("a {}", shown(f, e)),
        SourceExpr::FunctionType(e) => format!("fn {}", shown(f, e)),
        SourceExpr::Joined(range) => format!("joined({})", items(f, range)),
        other => format!("{other:?}"),
    }
}
