//! The common part of the hand-written recursive descent parsers, which build the crate's own syntax tree.
//!
//! Such a parser accepts common syntax and returns `Unsure` at the first doubt. Then tree-sitter parses the text, which
//! takes several times as long and accepts anything.

use crate::tree::{Tree, flag};

/// Deepest nesting that is read, to bound the use of the stack.
const DEPTH: u32 = 120;

/// The text is not simple enough for the hand-written parser: tree-sitter has to read it.
#[derive(Debug)]
pub struct Unsure;

pub type Read<T> = Result<T, Unsure>;

#[derive(Clone, Copy, Debug)]
pub struct Token<K> {
    pub kind: K,
    pub start: u32,
    pub end: u32,
}

/// A lexer: returns the tokens of a language one at a time.
pub trait Lex<'t> {
    type Kind: Copy + PartialEq;
    /// A position to return to.
    type Place: Copy;

    fn next(&mut self) -> Read<Token<Self::Kind>>;
    fn place(&self) -> Self::Place;
    fn go_back(&mut self, place: Self::Place) -> Read<()>;
    fn text(&self) -> &'t str;
}

pub struct Descent<'t, L: Lex<'t>, S = ()> {
    pub lex: L,
    pub tree: Tree,
    /// Context that the parser of a language keeps.
    pub state: S,
    /// The next token.
    pub tok: Token<L::Kind>,
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
    tok: Token<L::Kind>,
    last: u32,
    depth: u32,
    nodes: u32,
}

impl<'t, L: Lex<'t>, S: Copy> Descent<'t, L, S> {
    pub fn new(mut lex: L, tree: Tree, state: S) -> Read<Self> {
        let tok = lex.next()?;
        let patience = (lex.text().len() as u32).saturating_mul(4).saturating_add(10_000);
        Ok(Descent { lex, tree, state, tok, last: 0, depth: 0, patience })
    }

    // --- tokens ---

    pub fn advance(&mut self) -> Read<Token<L::Kind>> {
        let token = self.tok;
        self.tok = self.lex.next()?;
        self.last = token.end;
        Ok(token)
    }

    pub fn at(&self, kind: L::Kind) -> bool {
        self.tok.kind == kind
    }

    pub fn eat(&mut self, kind: L::Kind) -> Read<bool> {
        let there = self.tok.kind == kind;
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    pub fn expect(&mut self, kind: L::Kind) -> Read<Token<L::Kind>> {
        if self.tok.kind == kind { self.advance() } else { Err(Unsure) }
    }

    pub fn text(&self, token: Token<L::Kind>) -> &'t str {
        &self.lex.text()[token.start as usize..token.end as usize]
    }

    /// The token after the next one.
    pub fn peek(&mut self) -> Read<Token<L::Kind>> {
        let place = self.lex.place();
        let token = self.lex.next()?;
        self.lex.go_back(place)?;
        Ok(token)
    }

    pub fn guess(&self) -> Guess<'t, L, S> {
        let nodes = self.tree.len();
        Guess { place: self.lex.place(), state: self.state, tok: self.tok, last: self.last, depth: self.depth, nodes }
    }

    pub fn go_back(&mut self, guess: Guess<'t, L, S>) -> Read<()> {
        // At least one, so that an exhausted budget (see `deeper`) always fails here.
        let again = self.tok.start.saturating_sub(guess.tok.start).max(1);
        self.patience = self.patience.checked_sub(again).ok_or(Unsure)?;
        self.lex.go_back(guess.place)?;
        (self.state, self.tok, self.last, self.depth) = (guess.state, guess.tok, guess.last, guess.depth);
        self.tree.truncate(guess.nodes);
        Ok(())
    }

    pub fn deeper<R>(&mut self, read: impl FnOnce(&mut Self) -> Read<R>) -> Read<R> {
        if self.depth >= DEPTH {
            // A guess that fails because of the depth must not count as a wrong guess: make `go_back` fail.
            self.patience = 0;
            return Err(Unsure);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    // --- nodes ---

    /// Opens a node that begins with the next token.
    pub fn open(&mut self, kind: u16) -> u32 {
        self.open_at(kind, self.tok.start)
    }

    pub fn open_at(&mut self, kind: u16, start: u32) -> u32 {
        self.tree.push(kind, flag::NAMED, start, start)
    }

    /// Wraps a node that was already read.
    pub fn around(&mut self, kind: u16, child: u32, field: u8) -> u32 {
        let node = self.open_at(kind, self.tree.start(child));
        self.tree.append(node, child, field);
        node
    }

    pub fn add(&mut self, parent: u32, child: u32, field: u8) {
        self.tree.append(parent, child, field);
    }

    pub fn close(&mut self, node: u32) -> u32 {
        self.tree.set_end(node, self.last);
        node
    }

    /// A node that consists of the next token.
    pub fn leaf(&mut self, kind: u16) -> Read<u32> {
        let node = self.tree.push(kind, flag::NAMED, self.tok.start, self.tok.end);
        self.advance()?;
        Ok(node)
    }

    /// An anonymous node for the next token.
    pub fn mark(&mut self, parent: u32, kind: u16, field: u8) -> Read<()> {
        let node = self.tree.push(kind, 0, self.tok.start, self.tok.end);
        self.advance()?;
        self.add(parent, node, field);
        Ok(())
    }
}

/// The comments that a lexer skipped, for languages that interpret them by their position.
#[derive(Default)]
pub struct Comments {
    /// Start and end of each.
    passed: Vec<(u32, u32)>,
    /// How many of them are in the tree or were dropped.
    taken: usize,
}

impl Comments {
    pub fn pass(&mut self, start: u32, end: u32) {
        self.passed.push((start, end));
    }

    /// A position to return to.
    pub fn place(&self) -> (usize, usize) {
        (self.passed.len(), self.taken)
    }

    pub fn go_back(&mut self, (passed, taken): (usize, usize)) {
        self.passed.truncate(passed);
        self.taken = taken;
    }
}

/// A lexer of a language whose comments become part of the tree.
pub trait Remarks<'t>: Lex<'t> {
    fn comments(&mut self) -> &mut Comments;
}

impl<'t, L: Remarks<'t>, S: Copy> Descent<'t, L, S> {
    /// Adds the comments between the last and the next token to a list node.
    pub fn remarks(&mut self, list: u32, kind: u16) {
        let comments = self.lex.comments();
        let from = std::mem::replace(&mut comments.taken, comments.passed.len());
        for at in from..self.lex.comments().passed.len() {
            let (start, end) = self.lex.comments().passed[at];
            if start >= self.last && end <= self.tok.start {
                let comment = self.tree.push(kind, flag::NAMED | flag::EXTRA, start, end);
                self.tree.append(list, comment, 0);
            }
        }
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
