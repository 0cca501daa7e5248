//! Macro calls and macro definitions.

use super::lex::{MacroToken, RustTokenKind};
use super::{Parser, field, kind};
use crate::lang::descent::{Lex, ParseResult, UnsupportedSyntax};
use crate::tree::flag;

impl Parser<'_> {
    /// `path!(…)`, after the path.
    pub(super) fn macro_invocation(&mut self, path: u32) -> ParseResult<u32> {
        let node = self.around(kind::MACRO_INVOCATION, path, field::MACRO);
        self.expect(RustTokenKind::Bang)?;
        self.last(node, field::NO, Self::token_tree)
    }

    /// A token tree: the uninterpreted content of brackets.
    pub(super) fn token_tree(&mut self) -> ParseResult<u32> {
        self.tokens(false)
    }

    /// With `rules`, a tree in a macro definition, where variables begin with `$`.
    fn tokens(&mut self, rules: bool) -> ParseResult<u32> {
        let RustTokenKind::Open(open) = self.tok.kind else { return Err(UnsupportedSyntax) };
        let root = self.open(kind::TOKEN_TREE);
        // The enclosing trees, each with its closing bracket. The lexer is behind the first bracket.
        let mut around: Vec<(u32, u8)> = vec![(root, closing(open))];
        while let Some((node, close)) = around.last().copied() {
            let (piece, start, end) = self.lex.piece()?;
            let (kind, flags) = match piece {
                MacroToken::Node(kind, named) => (kind, if named { flag::NAMED } else { 0 }),
                MacroToken::Open(bracket) => {
                    let inner = self.tree.push(kind::TOKEN_TREE, flag::NAMED, start, start);
                    self.add(node, inner, field::NO);
                    around.push((inner, closing(bracket)));
                    continue;
                }
                MacroToken::Dollar if !rules => (kind::SIGN_DOLLAR, 0),
                MacroToken::Dollar => {
                    if self.lex.variable()? {
                        let end = self.lex.at;
                        let variable = self.tree.push(kind::METAVARIABLE, flag::NAMED, start, end);
                        self.add(node, variable, field::NO);
                        continue;
                    }
                    let (MacroToken::Open(b'('), at, behind) = self.lex.piece()? else { return Err(UnsupportedSyntax) };
                    let inner = self.tree.push(kind::TOKEN_REPETITION, flag::NAMED, start, start);
                    self.sign(inner, kind::SIGN_DOLLAR, start, start + 1);
                    self.sign(inner, kind::SIGN_OPEN, at, behind);
                    self.add(node, inner, field::NO);
                    around.push((inner, 0));
                    continue;
                }
                MacroToken::Close(bracket) if close == 0 && bracket == b')' => {
                    self.sign(node, kind::SIGN_CLOSE, start, end);
                    let at = self.lex.repeated()?;
                    let sign = match self.lex.byte(at) {
                        b'+' => kind::SIGN_PLUS,
                        b'*' => kind::SIGN_TIMES,
                        _ => kind::SIGN_QUESTION,
                    };
                    self.sign(node, sign, at, at + 1);
                    self.tree.set_end(node, at + 1);
                    around.pop();
                    continue;
                }
                MacroToken::Close(bracket) if bracket == close => {
                    self.tree.set_end(node, end);
                    self.last = end;
                    around.pop();
                    continue;
                }
                MacroToken::Close(_) => return Err(UnsupportedSyntax),
            };
            let token = self.tree.push(kind, flags, start, end);
            self.add(node, token, field::NO);
        }
        self.go_on()?;
        Ok(root)
    }

    /// Skips the matcher of a rule, which has no calls.
    fn skip_tree(&mut self) -> ParseResult<()> {
        let RustTokenKind::Open(open) = self.tok.kind else { return Err(UnsupportedSyntax) };
        let mut around = vec![closing(open)];
        while let Some(close) = around.last().copied() {
            match self.lex.piece()?.0 {
                MacroToken::Open(bracket) => around.push(closing(bracket)),
                MacroToken::Close(bracket) if bracket != close => return Err(UnsupportedSyntax),
                MacroToken::Close(_) => {
                    around.pop();
                }
                MacroToken::Dollar | MacroToken::Node(..) => {}
            }
        }
        self.last = self.lex.at;
        self.go_on()
    }

    fn sign(&mut self, parent: u32, kind: u16, start: u32, end: u32) {
        let node = self.tree.push(kind, 0, start, end);
        self.add(parent, node, field::NO);
    }

    /// Reads the next token after text that was read without tokens.
    fn go_on(&mut self) -> ParseResult<()> {
        self.tok = self.lex.next()?;
        Ok(())
    }

    pub(super) fn macro_definition(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::MACRO_DEFINITION)?;
        self.expect(RustTokenKind::Bang)?;
        self.part_name(node, field::NAME, kind::IDENTIFIER)?;
        let RustTokenKind::Open(open) = self.tok.kind else { return Err(UnsupportedSyntax) };
        let close = RustTokenKind::Close(closing(open));
        self.advance()?;
        while !self.at(close) {
            let rule = self.open(kind::MACRO_RULE);
            self.skip_tree()?;
            self.expect(RustTokenKind::FatArrow)?;
            self.part(rule, field::RIGHT, |parser| parser.tokens(true))?;
            self.attach(node, rule, field::NO);
            if !self.eat(RustTokenKind::Semicolon)? && !self.at(close) {
                return Err(UnsupportedSyntax);
            }
        }
        self.advance()?;
        if open != b'{' {
            self.expect(RustTokenKind::Semicolon)?;
        }
        Ok(self.close(node))
    }
}

fn closing(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}
