//! The common part of the hand-written recursive descent parsers, which build the crate's own syntax tree.
//!
//! Such a parser accepts common syntax and returns `UnsupportedSyntax` at the first doubt. Then tree-sitter parses the text, which
//! takes several times as long and accepts anything.

#[cfg(test)]
pub(crate) mod agreement;
pub mod compare;
pub(crate) mod lexer;
pub(crate) mod source;

use crate::convert::to_u32;
use crate::tree::{GrammarNames, SyntaxTree, flag};

/// Deepest nesting that is read, to bound the use of the stack.
const DEPTH: u32 = 120;

/// The text is not simple enough for the hand-written parser: tree-sitter has to read it.
#[derive(Debug)]
pub struct UnsupportedSyntax;

/// The result of parsing a part of a text.
pub type ParseResult<T> = Result<T, UnsupportedSyntax>;

/// Fails unless a condition holds.
pub fn ensure(is: bool) -> ParseResult<()> {
    if is { Ok(()) } else { Err(UnsupportedSyntax) }
}

/// A token: its kind, and its start and end in bytes.
#[derive(Clone, Copy, Debug)]
pub struct SourceToken<K> {
    pub kind: K,
    pub start: u32,
    pub end: u32,
}

/// The kinds of tokens of a language; `words!` implements it.
pub trait TokenKind: Copy + PartialEq {
    /// A keyword.
    type Word;
    /// The kind of names.
    const NAME: Self;
    /// The kind of commas, which separate the elements of lists.
    const COMMA: Self;

    /// The kind of a keyword.
    fn keyword(word: Self::Word) -> Self;
}

/// A lexer: returns the tokens of a language one at a time.
pub trait Lex<'t> {
    /// The kinds of tokens.
    type Kind: TokenKind;
    /// A position to return to.
    type Place: Copy;

    /// Returns the next token.
    fn next(&mut self) -> ParseResult<SourceToken<Self::Kind>>;
    /// The current position.
    fn place(&self) -> Self::Place;
    /// Returns to an earlier position.
    fn back_to(&mut self, place: Self::Place) -> ParseResult<()>;
    /// The whole source text.
    fn text(&self) -> &'t str;
}

/// The keywords of the language of a lexer.
type WordOf<'t, L> = <<L as Lex<'t>>::Kind as TokenKind>::Word;

/// The state of a recursive descent parser with one token of lookahead.
pub struct Descent<'t, L: Lex<'t>, S = ()> {
    pub lex: L,
    pub tree: SyntaxTree,
    /// Context that the parser of a language keeps.
    pub state: S,
    /// The next token.
    pub tok: SourceToken<L::Kind>,
    /// End of the last token that was consumed.
    pub last: u32,
    depth: u32,
    /// How many bytes may still be read again after wrong guesses. Nested guesses could take exponential time.
    patience: u32,
}

/// A position to return to when a guess is wrong.
pub struct Guess<'t, L: Lex<'t>, S> {
    place: L::Place,
    state: S,
    tok: SourceToken<L::Kind>,
    last: u32,
    depth: u32,
    nodes: u32,
}

impl<'t, L: Lex<'t>, S: Copy> Descent<'t, L, S> {
    /// Creates a parser at the first token of a text.
    pub fn new(mut lex: L, tree: SyntaxTree, state: S) -> ParseResult<Self> {
        let tok = lex.next()?;
        let patience = to_u32(lex.text().len()).saturating_mul(4).saturating_add(10_000);
        Ok(Descent { lex, tree, state, tok, last: 0, depth: 0, patience })
    }

    /// The tree of a whole text, to whose root `read` adds the parts; `None` if the text needs tree-sitter.
    pub fn whole_text(
        lex: L,
        names: &'static GrammarNames,
        root: u16,
        state: S,
        read: impl FnOnce(&mut Self, u32) -> ParseResult<()>,
    ) -> Option<SyntaxTree> {
        let text = lex.text();
        let mut tree = SyntaxTree::new(text, names);
        let root = tree.push(root, flag::NAMED, 0, to_u32(text.len()));
        let mut parser = Self::new(lex, tree, state).ok()?;
        read(&mut parser, root).ok()?;
        Some(parser.tree)
    }

    // --- tokens ---

    /// Consumes the next token and returns it.
    pub fn advance(&mut self) -> ParseResult<SourceToken<L::Kind>> {
        let token = self.tok;
        self.tok = self.lex.next()?;
        self.last = token.end;
        Ok(token)
    }

    /// Consumes the next token.
    pub fn skip(&mut self) -> ParseResult<()> {
        self.advance().map(|_| ())
    }

    /// Whether the next token is of this kind.
    pub fn at(&self, kind: L::Kind) -> bool {
        self.tok.kind == kind
    }

    /// Whether the next token is this keyword.
    pub fn at_word(&self, word: WordOf<'t, L>) -> bool {
        self.at(L::Kind::keyword(word))
    }

    /// Whether the next token is this name, such as a keyword that only some contexts have.
    pub fn at_name(&self, name: &str) -> bool {
        self.at(L::Kind::NAME) && self.text(self.tok) == name
    }

    /// Consumes the next token if it is of this kind; returns whether it was.
    pub fn eat(&mut self, kind: L::Kind) -> ParseResult<bool> {
        let there = self.tok.kind == kind;
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Consumes the next token if it is this keyword; returns whether it was.
    pub fn eat_word(&mut self, word: WordOf<'t, L>) -> ParseResult<bool> {
        self.eat(L::Kind::keyword(word))
    }

    /// Consumes the next token if it is this name; returns whether it was.
    pub fn eat_name(&mut self, name: &str) -> ParseResult<bool> {
        let there = self.at_name(name);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Fails unless this token comes next.
    pub fn require(&self, kind: L::Kind) -> ParseResult<()> {
        ensure(self.at(kind))
    }

    /// Consumes a token of this kind, and fails if another one comes next.
    pub fn expect(&mut self, kind: L::Kind) -> ParseResult<SourceToken<L::Kind>> {
        if self.tok.kind == kind { self.advance() } else { Err(UnsupportedSyntax) }
    }

    /// Consumes this keyword, and fails if another token comes next.
    pub fn expect_word(&mut self, word: WordOf<'t, L>) -> ParseResult<()> {
        self.expect(L::Kind::keyword(word)).map(|_| ())
    }

    /// The text of a token.
    pub fn text(&self, token: SourceToken<L::Kind>) -> &'t str {
        &self.lex.text()[token.start as usize..token.end as usize]
    }

    /// The token after the next one.
    pub fn peek(&mut self) -> ParseResult<SourceToken<L::Kind>> {
        let place = self.lex.place();
        let token = self.lex.next()?;
        self.lex.back_to(place)?;
        Ok(token)
    }

    /// Remembers the position, so that `back_to` can return to it.
    pub fn guess(&self) -> Guess<'t, L, S> {
        let nodes = self.tree.len();
        Guess { place: self.lex.place(), state: self.state, tok: self.tok, last: self.last, depth: self.depth, nodes }
    }

    /// Returns to the position of a guess that was wrong. Fails if too much would be read again.
    pub fn back_to(&mut self, guess: Guess<'t, L, S>) -> ParseResult<()> {
        // At least one, so that an exhausted budget (see `deeper`) always fails here.
        let again = self.tok.start.saturating_sub(guess.tok.start).max(1);
        self.patience = self.patience.checked_sub(again).ok_or(UnsupportedSyntax)?;
        self.lex.back_to(guess.place)?;
        (self.state, self.tok, self.last, self.depth) = (guess.state, guess.tok, guess.last, guess.depth);
        self.tree.truncate(guess.nodes);
        Ok(())
    }

    /// Reads one level deeper, and fails if the nesting is too deep.
    pub fn deeper<R>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<R>) -> ParseResult<R> {
        if self.depth >= DEPTH {
            // A guess that fails because of the depth must not count as a wrong guess: make `back_to` fail.
            self.patience = 0;
            return Err(UnsupportedSyntax);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads what `read` reads, and returns to the place before it.
    pub fn ahead<R>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<R>) -> ParseResult<R> {
        let guess = self.guess();
        let result = read(self)?;
        self.back_to(guess)?;
        Ok(result)
    }

    // --- nodes ---

    /// Opens a node that begins with the next token.
    pub fn open(&mut self, kind: u16) -> u32 {
        self.open_at(kind, self.tok.start)
    }

    /// Opens a node that begins at an offset.
    pub fn open_at(&mut self, kind: u16, start: u32) -> u32 {
        self.tree.push(kind, flag::NAMED, start, start)
    }

    /// Opens a node with the next token, which has no node of its own.
    pub fn begin(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.open(kind);
        self.advance()?;
        Ok(node)
    }

    /// As `begin`, with a token that must come next.
    pub fn begin_with(&mut self, token: L::Kind, kind: u16) -> ParseResult<u32> {
        self.require(token)?;
        self.begin(kind)
    }

    /// Opens a node around one that was already read.
    pub fn around(&mut self, kind: u16, child: u32, field: u8) -> u32 {
        let node = self.open_at(kind, self.tree.start(child));
        self.tree.append(node, child, field);
        node
    }

    /// Opens a node around one that was already read and the next token.
    pub fn begin_around(&mut self, kind: u16, child: u32, field: u8) -> ParseResult<u32> {
        let node = self.around(kind, child, field);
        self.advance()?;
        Ok(node)
    }

    /// Adds a closed node to its parent.
    pub fn add(&mut self, parent: u32, child: u32, field: u8) {
        self.tree.append(parent, child, field);
    }

    /// Adds closed nodes to their parent.
    pub fn add_all(&mut self, parent: u32, children: impl IntoIterator<Item = u32>, field: u8) {
        children.into_iter().for_each(|child| self.add(parent, child, field));
    }

    /// Closes a node at the end of the last token.
    pub fn close(&mut self, node: u32) -> u32 {
        self.tree.set_end(node, self.last);
        node
    }

    /// Consumes the last token of a node and closes it.
    pub fn close_with(&mut self, token: L::Kind, node: u32) -> ParseResult<u32> {
        self.expect(token)?;
        Ok(self.close(node))
    }

    /// Consumes the next token as the last one of a node and closes the node.
    pub fn close_after(&mut self, node: u32) -> ParseResult<u32> {
        self.advance()?;
        Ok(self.close(node))
    }

    /// Consumes the token that decides the kind of a node.
    pub fn decide(&mut self, node: u32, kind: u16) -> ParseResult<()> {
        self.tree.set_kind(node, kind);
        self.skip()
    }

    /// Closes a node, adds it to its parent as the last part and closes the parent.
    pub fn attach_last(&mut self, parent: u32, node: u32, field: u8) -> u32 {
        self.attach(parent, node, field);
        self.close(parent)
    }

    /// Closes a node and adds it to its parent.
    pub fn attach(&mut self, parent: u32, node: u32, field: u8) {
        self.close(node);
        self.add(parent, node, field);
    }

    /// A node that consists of the next token.
    pub fn leaf(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.tree.push(kind, flag::NAMED, self.tok.start, self.tok.end);
        self.advance()?;
        Ok(node)
    }

    /// A node that consists of a name.
    pub fn name(&mut self, kind: u16) -> ParseResult<u32> {
        self.require(L::Kind::NAME)?;
        self.leaf(kind)
    }

    /// An anonymous node for the next token.
    pub fn mark(&mut self, parent: u32, kind: u16, field: u8) -> ParseResult<()> {
        let node = self.tree.push(kind, 0, self.tok.start, self.tok.end);
        self.advance()?;
        self.add(parent, node, field);
        Ok(())
    }

    // --- parts of nodes ---

    /// Reads a node and adds it to its parent.
    pub fn part(
        &mut self,
        parent: u32,
        field: u8,
        read: impl FnOnce(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<()> {
        let part = read(self)?;
        self.add(parent, part, field);
        Ok(())
    }

    /// The next token as a part.
    pub fn token(&mut self, parent: u32, field: u8, kind: u16) -> ParseResult<()> {
        self.part(parent, field, |parser| parser.leaf(kind))
    }

    /// A name as a part.
    pub fn part_name(&mut self, parent: u32, field: u8, kind: u16) -> ParseResult<()> {
        self.part(parent, field, |parser| parser.name(kind))
    }

    /// A part that may be missing.
    pub fn maybe(
        &mut self,
        parent: u32,
        field: u8,
        read: impl FnOnce(&mut Self) -> ParseResult<Option<u32>>,
    ) -> ParseResult<()> {
        let part = read(self)?;
        self.add_all(parent, part, field);
        Ok(())
    }

    /// A part that begins with this token, if that comes next.
    pub fn part_at(
        &mut self,
        token: L::Kind,
        parent: u32,
        field: u8,
        read: impl FnOnce(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<()> {
        if self.at(token) { self.part(parent, field, read) } else { Ok(()) }
    }

    /// This token and a part after it, if the token comes next.
    pub fn part_after(
        &mut self,
        token: L::Kind,
        parent: u32,
        field: u8,
        read: impl FnOnce(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<()> {
        if self.eat(token)? { self.part(parent, field, read) } else { Ok(()) }
    }

    /// Reads the last part of a node and closes the node.
    pub fn last(&mut self, node: u32, field: u8, read: impl FnOnce(&mut Self) -> ParseResult<u32>) -> ParseResult<u32> {
        self.part(node, field, read)?;
        Ok(self.close(node))
    }

    /// Reads the next token as the last part of a node and closes the node.
    pub fn last_token(&mut self, node: u32, field: u8, kind: u16) -> ParseResult<u32> {
        self.last(node, field, |parser| parser.leaf(kind))
    }

    /// Reads a name as the last part of a node and closes the node.
    pub fn last_name(&mut self, node: u32, field: u8, kind: u16) -> ParseResult<u32> {
        self.last(node, field, |parser| parser.name(kind))
    }

    // --- whole nodes ---

    /// A node of one token and one part: `return x`.
    pub fn prefixed(
        &mut self,
        kind: u16,
        field: u8,
        read: impl FnOnce(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        self.last(node, field, read)
    }

    /// A node of one part between tokens: `(x)`. The first token is the next one.
    pub fn enclosed(
        &mut self,
        kind: u16,
        field: u8,
        close: L::Kind,
        read: impl FnOnce(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        self.part(node, field, read)?;
        self.close_with(close, node)
    }

    /// A node of a part that was already read, the next token and a second part: `x + y`.
    pub fn infix(
        &mut self,
        kind: u16,
        (left, left_field): (u32, u8),
        field: u8,
        read: impl FnOnce(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<u32> {
        let node = self.begin_around(kind, left, left_field)?;
        self.last(node, field, read)
    }

    /// A closed node around one that was already read.
    pub fn wrapped(&mut self, kind: u16, child: u32, field: u8) -> u32 {
        let node = self.around(kind, child, field);
        self.close(node)
    }

    // --- lists ---

    /// The separator of list elements, or the end of the list.
    pub fn comma(&mut self, close: L::Kind) -> ParseResult<()> {
        if self.eat(L::Kind::COMMA)? || self.at(close) { Ok(()) } else { Err(UnsupportedSyntax) }
    }

    /// Elements with commas between them and perhaps one at the end, up to and with the closing token.
    pub fn elements(&mut self, close: L::Kind, mut each: impl FnMut(&mut Self) -> ParseResult<()>) -> ParseResult<()> {
        while !self.at(close) {
            each(self)?;
            self.comma(close)?;
        }
        self.skip()
    }

    /// As `elements`, where each is a node that becomes a part of `parent`.
    pub fn list(
        &mut self,
        parent: u32,
        field: u8,
        close: L::Kind,
        mut each: impl FnMut(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<()> {
        self.elements(close, |parser| parser.part(parent, field, &mut each))
    }

    /// A node of a list between tokens: `[a, b]`. The first token is the next one.
    pub fn listed(
        &mut self,
        kind: u16,
        field: u8,
        close: L::Kind,
        each: impl FnMut(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        self.list(node, field, close, each)?;
        Ok(self.close(node))
    }

    /// One or more parts with this token between them.
    pub fn chain(
        &mut self,
        parent: u32,
        field: u8,
        between: L::Kind,
        mut each: impl FnMut(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<()> {
        loop {
            self.part(parent, field, &mut each)?;
            if !self.eat(between)? {
                return Ok(());
            }
        }
    }
}

/// The context of a parser whose language writes no parentheses between a keyword such as `if` and a block in braces.
#[derive(Clone, Copy, Default)]
pub struct HeaderMode {
    /// Between such a keyword and the block: `{` begins the block, not a part of an expression.
    pub header: bool,
}

impl<'t, L: Lex<'t>> Descent<'t, L, HeaderMode> {
    /// Reads the content of brackets or bodies, which is in no header.
    pub fn inside<R>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<R>) -> ParseResult<R> {
        self.in_header(false, read)
    }

    /// Reads with or without the restriction of a header.
    pub fn in_header<R>(&mut self, header: bool, read: impl FnOnce(&mut Self) -> ParseResult<R>) -> ParseResult<R> {
        let before = std::mem::replace(&mut self.state.header, header);
        let result = read(self);
        self.state.header = before;
        result
    }
}

/// The binary operators of a language.
pub trait Operators: Sized {
    /// The precedence of the next operator, where a larger number binds tighter; `None` if no operator comes next.
    fn binds(&mut self) -> Option<u8>;

    /// Reads the next operator and what is to its right; returns the node of both sides.
    fn combine(&mut self, left: u32, precedence: u8) -> ParseResult<u32>;

    /// Continues an expression as long as operators of at least the precedence `least` follow.
    fn climb(&mut self, mut left: u32, least: u8) -> ParseResult<u32> {
        while let Some(precedence) = self.binds().filter(|precedence| *precedence >= least) {
            left = self.combine(left, precedence)?;
        }
        Ok(left)
    }
}

/// Numbers the kinds of nodes or fields of a language in the order of the list.
macro_rules! numbered {
    ($table:ident: $type:ty; $($name:ident $text:literal,)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr($type)]
        enum $table { $($name,)+ }
        $(pub const $name: $type = $table::$name as $type;)+
        pub const TEXTS: &[&str] = &[$($text,)+];
    };
}
pub(crate) use numbered;
