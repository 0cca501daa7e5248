//! Reading a text by recursive descent into our tree: what parsers of all languages do the same way.
//!
//! Such a parser reads what people usually write and gives up at the first doubt (`Unsure`). tree-sitter then reads the
//! text, which takes several times as long and makes sense of anything.

use crate::tree::{Tree, flag};

/// Deepest nesting that is read: it costs stack.
const DEPTH: u32 = 120;

/// Stands for "this is not plain": somebody more patient has to read the text.
#[derive(Debug)]
pub struct Unsure;

pub type Read<T> = Result<T, Unsure>;

#[derive(Clone, Copy, Debug)]
pub struct Token<K> {
    pub kind: K,
    pub start: u32,
    pub end: u32,
}

/// The tokens of a language, one at a time.
pub trait Lex<'t> {
    type Kind: Copy + PartialEq;
    /// Where it is: enough to come back.
    type Place: Copy;

    fn next(&mut self) -> Read<Token<Self::Kind>>;
    fn place(&self) -> Self::Place;
    fn go_back(&mut self, place: Self::Place) -> Read<()>;
    fn text(&self) -> &'t str;
}

pub struct Descent<'t, L: Lex<'t>, S = ()> {
    pub lex: L,
    pub tree: Tree,
    /// What a language has to remember of the place it is at.
    pub state: S,
    /// What comes next.
    pub tok: Token<L::Kind>,
    /// Where what was read so far ends.
    pub last: u32,
    depth: u32,
    /// How many bytes may still be read again after wrong guesses: nested ones could take forever.
    patience: u32,
}

/// A place to come back to when a guess was wrong.
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

    /// What comes behind the next token.
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
        // At least one, so that none is left when it was given up.
        let again = self.tok.start.saturating_sub(guess.tok.start).max(1);
        self.patience = self.patience.checked_sub(again).ok_or(Unsure)?;
        self.lex.go_back(guess.place)?;
        (self.state, self.tok, self.last, self.depth) = (guess.state, guess.tok, guess.last, guess.depth);
        self.tree.truncate(guess.nodes);
        Ok(())
    }

    pub fn deeper<R>(&mut self, read: impl FnOnce(&mut Self) -> Read<R>) -> Read<R> {
        if self.depth >= DEPTH {
            // Nor may a guess that ends here be taken for a wrong one.
            self.patience = 0;
            return Err(Unsure);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    // --- nodes ---

    /// A node that begins with what comes next.
    pub fn open(&mut self, kind: u16) -> u32 {
        self.open_at(kind, self.tok.start)
    }

    pub fn open_at(&mut self, kind: u16, start: u32) -> u32 {
        self.tree.push(kind, flag::NAMED, start, start)
    }

    /// A node around one that was read already.
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

    /// A node that is nothing but the next token.
    pub fn leaf(&mut self, kind: u16) -> Read<u32> {
        let node = self.tree.push(kind, flag::NAMED, self.tok.start, self.tok.end);
        self.advance()?;
        Ok(node)
    }

    /// A word without a name of its own.
    pub fn mark(&mut self, parent: u32, kind: u16, field: u8) -> Read<()> {
        let node = self.tree.push(kind, 0, self.tok.start, self.tok.end);
        self.advance()?;
        self.add(parent, node, field);
        Ok(())
    }
}

/// The comments a lexer has passed, for languages that tell by their place what they are about.
#[derive(Default)]
pub struct Comments {
    /// Where each begins and ends.
    passed: Vec<(u32, u32)>,
    /// How many of them have been put into the tree, or were given up.
    taken: usize,
}

impl Comments {
    pub fn pass(&mut self, start: u32, end: u32) {
        self.passed.push((start, end));
    }

    /// A place to come back to.
    pub fn place(&self) -> (usize, usize) {
        (self.passed.len(), self.taken)
    }

    pub fn go_back(&mut self, (passed, taken): (usize, usize)) {
        self.passed.truncate(passed);
        self.taken = taken;
    }
}

/// Tokens of a language whose comments are put into the tree.
pub trait Remarks<'t>: Lex<'t> {
    fn comments(&mut self) -> &mut Comments;
}

impl<'t, L: Remarks<'t>, S: Copy> Descent<'t, L, S> {
    /// Puts the comments between what was read last and what comes next into the list they stand in.
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

/// Numbers the kinds of nodes or fields of a language in the order they are written.
macro_rules! numbered {
    ($table:ident: $type:ty; $($name:ident $text:literal,)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr($type)]
        enum $table { $($name,)+ }
        $(pub const $name: $type = $table::$name as $type;)+
        pub const TEXTS: &[&str] = &[$($text,)+];
    };
}
pub(super) use numbered;
