//! Call sites and definitions by the parsers of oxc, ruff and rust-analyzer, compared with ours and with tree-sitter's.

use super::{PATH, Reading, Source};
use crate::{print, round};
use lukasa_code::facts::{CallKind, DefKind, SourceExpr};
use lukasa_code::lang::descent::compare;
use lukasa_code::{FileFacts, LanguageId};
use rayon::prelude::*;
use serde_json::json;
use std::collections::HashMap;
use std::time::Instant;

/// Of the files that both parsers read the same way, one in ten is compared.
const SAMPLE: usize = 10;

/// What a parser finds in a file.
#[derive(Default)]
struct Sites {
    /// Line of the called name, and the name; calls of anything but a name or a member are left out.
    calls: Vec<(u32, String)>,
    /// Names of functions, methods and types.
    definitions: Vec<String>,
}

/// How the sites of two parsers agree.
#[derive(Clone, Copy, Default)]
struct Agreement {
    agree: usize,
    missing: usize,
    extra: usize,
}

pub fn run(read: &[(&Source, &Reading)], verbose: bool, as_json: bool) {
    for (oracle, languages) in
        [("oxc", &["javascript", "typescript", "tsx"] as &[&str]), ("ruff", &["python"]), ("rust-analyzer", &["rust"])]
    {
        let of_language = read.iter().filter(|(source, _)| languages.contains(&source.language.name()));
        let of_language: Vec<_> = of_language.filter(|(_, reading)| !matches!(reading, Reading::Left)).collect();
        let (mut different, mut same) = (Vec::new(), Vec::new());
        for (source, reading) in of_language {
            match reading {
                Reading::Different { .. } => different.push(*source),
                _ => same.push(*source),
            }
        }
        let sample: Vec<&Source> = same.into_iter().step_by(SAMPLE).collect();
        for (files, of) in [(different, "different"), (sample, "sample")] {
            if !files.is_empty() {
                compared(oracle, of, &files, verbose, as_json);
            }
        }
    }
}

fn compared(oracle: &str, of: &str, files: &[&Source], verbose: bool, as_json: bool) {
    let found: Vec<[(Agreement, Agreement); 2]> = files
        .par_iter()
        .filter_map(|source| {
            let Source { language, text, path } = source;
            let theirs = sites_of_oracle(text, *language)?;
            let own = compare::own(text, *language)?;
            let ours = sites(&compare::facts(PATH, text, *language, &own));
            let tree_sitter = sites(&compare::facts_by_tree_sitter(PATH, text, *language));
            let compared = [ours, tree_sitter].map(|sites| {
                (agreement(&theirs.calls, &sites.calls), agreement(&theirs.definitions, &sites.definitions))
            });
            if verbose && compared[0].0.missing > 0 {
                eprintln!("{}: {} calls of {oracle} are not ours", path.display(), compared[0].0.missing);
            }
            Some(compared)
        })
        .collect();
    // On one thread, as the times of the other parsers.
    let began = Instant::now();
    files.iter().for_each(|source| drop(sites_of_oracle(&source.text, source.language)));
    let oracle_ms = began.elapsed().as_secs_f64() * 1e3;
    let began = Instant::now();
    files.iter().for_each(|source| drop(compare::own(&source.text, source.language)));
    let own_ms = began.elapsed().as_secs_f64() * 1e3;
    for (at, reader) in ["ours", "tree-sitter"].into_iter().enumerate() {
        let sum = |of: fn(&(Agreement, Agreement)) -> Agreement| {
            found.iter().map(|pair| of(&pair[at])).fold(Agreement::default(), |all, one| Agreement {
                agree: all.agree + one.agree,
                missing: all.missing + one.missing,
                extra: all.extra + one.extra,
            })
        };
        let (calls, definitions) = (sum(|pair| pair.0), sum(|pair| pair.1));
        let line = json!({
            "suite": "parse", "oracle": oracle, "of": of, "reader": reader, "files": found.len(),
            "not_read_by_oracle": files.len() - found.len(),
            "calls_agree": calls.agree, "calls_missing": calls.missing, "calls_extra": calls.extra,
            "definitions_agree": definitions.agree, "definitions_missing": definitions.missing,
            "definitions_extra": definitions.extra, "oracle_with_visit_ms": round(oracle_ms), "own_ms": round(own_ms),
        });
        print(&line, as_json);
    }
}

/// Counts what two lists share; `missing` is only in the first, `extra` only in the second.
fn agreement<T: Eq + std::hash::Hash>(truth: &[T], found: &[T]) -> Agreement {
    let mut counts: HashMap<&T, usize> = HashMap::new();
    truth.iter().for_each(|site| *counts.entry(site).or_default() += 1);
    let mut agree = 0;
    for site in found {
        if let Some(count) = counts.get_mut(site).filter(|count| **count > 0) {
            *count -= 1;
            agree += 1;
        }
    }
    Agreement { agree, missing: truth.len() - agree, extra: found.len() - agree }
}

fn sites(facts: &FileFacts) -> Sites {
    let name = |expr| match facts.expr(expr) {
        SourceExpr::Free(name) | SourceExpr::Member(_, name) => Some(facts.name(name).to_owned()),
        SourceExpr::Var(var) => Some(facts.name(facts.vars[var].name).to_owned()),
        _ => None,
    };
    let written = facts.calls.iter().filter(|call| matches!(call.how, CallKind::Plain | CallKind::New));
    let calls = written.filter_map(|call| Some((call.line, name(call.callee)?))).collect();
    let defined = facts.defs.iter().filter(|def| {
        matches!(
            def.kind,
            DefKind::Function | DefKind::Method | DefKind::Class | DefKind::Struct | DefKind::Enum | DefKind::Interface
        )
    });
    Sites { calls, definitions: defined.map(|def| facts.name(def.name).to_owned()).collect() }
}

/// `None` if the oracle reports an error.
fn sites_of_oracle(text: &str, language: LanguageId) -> Option<Sites> {
    match language.name() {
        "python" => ruff::sites(text),
        "rust" => rust_analyzer::sites(text),
        _ => oxc::sites(text, language),
    }
}

/// Lines of offsets.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    fn at(&self, offset: usize) -> u32 {
        self.0.partition_point(|end| *end < offset) as u32 + 1
    }
}

mod oxc {
    use super::{Lines, Sites};
    use lukasa_code::LanguageId;
    use oxc_allocator::Allocator;
    use oxc_ast::ast::{CallExpression, Class, Expression, Function, MethodDefinition, NewExpression};
    use oxc_ast_visit::{Visit, walk};
    use oxc_parser::Parser;
    use oxc_span::{GetSpan, SourceType};
    use oxc_syntax::scope::ScopeFlags;

    pub fn sites(text: &str, language: LanguageId) -> Option<Sites> {
        let kind = match language.name() {
            "typescript" => SourceType::ts(),
            "tsx" => SourceType::tsx(),
            _ => SourceType::unambiguous().with_jsx(true),
        };
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, text, kind).parse();
        if parsed.panicked || !parsed.diagnostics.is_empty() {
            return None;
        }
        let mut finder = Finder { lines: Lines::of(text), sites: Sites::default() };
        finder.visit_program(&parsed.program);
        Some(finder.sites)
    }

    struct Finder {
        lines: Lines,
        sites: Sites,
    }

    impl Finder {
        fn call(&mut self, start: u32, callee: &Expression<'_>, is_new: bool) {
            let (name, at) = match callee {
                Expression::Identifier(name) => (name.name.to_string(), start),
                Expression::StaticMemberExpression(member) => (member.property.name.to_string(), callee.span().end),
                Expression::PrivateFieldExpression(member) => (format!("#{}", member.field.name), callee.span().end),
                _ => return,
            };
            let at = if is_new { start } else { at };
            self.sites.calls.push((self.lines.at(at as usize), name));
        }
    }

    impl<'a> Visit<'a> for Finder {
        fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
            self.call(call.span.start, &call.callee, false);
            walk::walk_call_expression(self, call);
        }

        fn visit_new_expression(&mut self, call: &NewExpression<'a>) {
            self.call(call.span.start, &call.callee, true);
            walk::walk_new_expression(self, call);
        }

        fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
            self.sites.definitions.extend(function.id.as_ref().map(|id| id.name.to_string()));
            walk::walk_function(self, function, flags);
        }

        fn visit_class(&mut self, class: &Class<'a>) {
            self.sites.definitions.extend(class.id.as_ref().map(|id| id.name.to_string()));
            walk::walk_class(self, class);
        }

        fn visit_method_definition(&mut self, method: &MethodDefinition<'a>) {
            self.sites.definitions.extend(method.key.static_name().map(|name| name.to_string()));
            walk::walk_method_definition(self, method);
        }
    }
}

mod ruff {
    use super::{Lines, Sites};
    use ruff_python_ast::visitor::{self, Visitor};
    use ruff_python_ast::{Expr, Stmt};

    pub fn sites(text: &str) -> Option<Sites> {
        let parsed = ruff_python_parser::parse_module(text).ok()?;
        let mut finder = Finder { lines: Lines::of(text), sites: Sites::default() };
        finder.visit_body(parsed.suite());
        Some(finder.sites)
    }

    struct Finder {
        lines: Lines,
        sites: Sites,
    }

    impl<'a> Visitor<'a> for Finder {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Call(call) = expr {
                let named = match &*call.func {
                    Expr::Name(name) => Some((name.id.to_string(), name.range.start())),
                    Expr::Attribute(member) => Some((member.attr.to_string(), member.attr.range.end())),
                    _ => None,
                };
                if let Some((name, at)) = named {
                    self.sites.calls.push((self.lines.at(at.to_usize()), name));
                }
            }
            visitor::walk_expr(self, expr);
        }

        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            match stmt {
                Stmt::FunctionDef(def) => self.sites.definitions.push(def.name.to_string()),
                Stmt::ClassDef(def) => self.sites.definitions.push(def.name.to_string()),
                _ => {}
            }
            visitor::walk_stmt(self, stmt);
        }
    }
}

mod rust_analyzer {
    use super::{Lines, Sites};
    use ra_ap_syntax::ast::{self, HasName};
    use ra_ap_syntax::{AstNode, Edition, SourceFile, SyntaxNode};

    pub fn sites(text: &str) -> Option<Sites> {
        let parsed = SourceFile::parse(text, Edition::CURRENT);
        if !parsed.errors().is_empty() {
            return None;
        }
        let lines = Lines::of(text);
        let mut sites = Sites::default();
        for node in parsed.tree().syntax().descendants() {
            sites.calls.extend(call(&node, &lines));
            sites.definitions.extend(definition(node));
        }
        Some(sites)
    }

    fn call(node: &SyntaxNode, lines: &Lines) -> Option<(u32, String)> {
        let name = if let Some(call) = ast::MethodCallExpr::cast(node.clone()) {
            call.name_ref()?
        } else {
            let call = ast::CallExpr::cast(node.clone())?;
            match call.expr()? {
                ast::Expr::PathExpr(path) => path.path()?.segment()?.name_ref()?,
                ast::Expr::FieldExpr(field) => field.name_ref()?,
                _ => return None,
            }
        };
        let at = usize::from(name.syntax().text_range().start());
        Some((lines.at(at), name.text().trim_start_matches("r#").to_owned()))
    }

    fn definition(node: SyntaxNode) -> Option<String> {
        let name = if let Some(function) = ast::Fn::cast(node.clone()) {
            function.name()
        } else if let Some(adt) = ast::Adt::cast(node.clone()) {
            adt.name()
        } else {
            ast::Trait::cast(node)?.name()
        };
        Some(name?.text().trim_start_matches("r#").to_owned())
    }
}
