//! The common part of all lexers: a position in a source, the comments so far, and the state of the language's own
//! lexer.

use super::source::{GreaterOperator, SourceBytes};
use super::{Descent, Lex, ParseResult, SourceToken, TokenKind, UnsupportedSyntax};
use crate::tree::flag;

/// The lexical rules of a language; the value is the state that its lexer has besides the position.
pub trait LexicalRules: Copy + Default {
    type Kind: TokenKind;

    fn next(lexer: &mut Lexer<'_, Self>) -> ParseResult<SourceToken<Self::Kind>>;
}

/// A lexer for a language with the lexical rules `D`.
pub struct Lexer<'t, D> {
    pub source: SourceBytes<'t>,
    pub at: u32,
    pub state: D,
    comments: Comments,
}

impl<'t, D: LexicalRules> Lex<'t> for Lexer<'t, D> {
    type Kind = D::Kind;
    type Place = (u32, D, (usize, usize));

    fn next(&mut self) -> ParseResult<SourceToken<D::Kind>> {
        D::next(self)
    }

    fn place(&self) -> Self::Place {
        (self.at, self.state, self.comments.place())
    }

    fn back_to(&mut self, (at, state, comments): Self::Place) -> ParseResult<()> {
        (self.at, self.state) = (at, state);
        self.comments.back_to(comments);
        Ok(())
    }

    fn text(&self) -> &'t str {
        self.source.text
    }
}

impl<'t, D: LexicalRules> Lexer<'t, D> {
    pub fn new(text: &'t str) -> ParseResult<Self> {
        let (source, at) = SourceBytes::new(text)?;
        Ok(Lexer { source, at, state: D::default(), comments: Comments::default() })
    }

    pub fn byte(&self, at: u32) -> u8 {
        self.source.byte(at)
    }

    pub fn rest(&self, at: u32) -> &'t [u8] {
        self.source.rest(at)
    }

    /// Continues at another offset.
    pub fn jump(&mut self, at: u32) {
        self.at = at;
    }

    /// The token from an offset up to the position of the lexer.
    pub fn token(&self, kind: D::Kind, start: u32) -> SourceToken<D::Kind> {
        SourceToken { kind, start, end: self.at }
    }

    /// Skips `// …` or `/* … */`, which may be `nested`; `false` if neither begins here.
    pub fn comment(&mut self, nested: bool) -> ParseResult<bool> {
        let start = self.at;
        self.at = match (self.byte(start), self.byte(start + 1)) {
            (b'/', b'/') => self.source.line_end(start),
            (b'/', b'*') if nested => self.source.nested_comment_end(start)?,
            (b'/', b'*') => self.source.block_comment_end(start)?,
            _ => return Ok(false),
        };
        self.comments.pass(start, self.at);
        Ok(true)
    }

    /// Reads a string on one line with `\` as the escape character.
    pub fn string(&mut self, start: u32, quote: u8, kind: D::Kind) -> ParseResult<D::Kind> {
        self.at = self.source.string_end(start, quote)?;
        Ok(kind)
    }

    /// Reads a name (see `Source::name_end`) or a keyword.
    pub fn word(
        &mut self,
        start: u32,
        dollar: bool,
        keyword: fn(&[u8]) -> Option<<D::Kind as TokenKind>::Word>,
    ) -> ParseResult<D::Kind> {
        self.at = self.source.name_end(start, dollar)?;
        Ok(keyword(self.source.between(start, self.at)).map_or(D::Kind::NAME, D::Kind::keyword))
    }

    /// Reads an operator or a bracket.
    pub fn operator(&mut self, start: u32, sign: Sign<D::Kind>) -> ParseResult<D::Kind> {
        let (kind, len) = sign(self.rest(start)).ok_or(UnsupportedSyntax)?;
        self.at = start + len;
        Ok(kind)
    }

    /// The operator that a token `>` begins: comparison, shift or augmented assignment. A lexer returns each `>` alone,
    /// because only the parser can distinguish the end of type arguments.
    pub fn greater(
        &mut self,
        token: SourceToken<D::Kind>,
        [compare, shift, augmented]: [D::Kind; 3],
    ) -> SourceToken<D::Kind> {
        let (greater, len) = self.source.greater(token.start);
        let kind = match greater {
            GreaterOperator::Alone => return token,
            GreaterOperator::Compare => compare,
            GreaterOperator::Shift => shift,
            GreaterOperator::Augmented => augmented,
        };
        self.at = token.start + len;
        self.token(kind, token.start)
    }
}

/// Finds the operator or bracket at the beginning of a text, and its length.
type Sign<K> = fn(&[u8]) -> Option<(K, u32)>;

/// The comments that a lexer skipped, for languages that interpret them by their position.
#[derive(Default)]
struct Comments {
    /// Start and end of each.
    passed: Vec<(u32, u32)>,
    /// How many of them are in the tree or were dropped.
    taken: usize,
}

impl Comments {
    fn pass(&mut self, start: u32, end: u32) {
        self.passed.push((start, end));
    }

    /// A position to return to.
    fn place(&self) -> (usize, usize) {
        (self.passed.len(), self.taken)
    }

    fn back_to(&mut self, (passed, taken): (usize, usize)) {
        self.passed.truncate(passed);
        self.taken = taken;
    }
}

impl<'t, D: LexicalRules, S: Copy> Descent<'t, Lexer<'t, D>, S> {
    /// Adds the comments between the last and the next token to a list node.
    pub fn remarks(&mut self, list: u32, kind: u16) {
        let comments = &mut self.lex.comments;
        let from = std::mem::replace(&mut comments.taken, comments.passed.len());
        for (start, end) in &comments.passed[from..] {
            if *start >= self.last && *end <= self.tok.start {
                let comment = self.tree.push(kind, flag::NAMED | flag::EXTRA, *start, *end);
                self.tree.append(list, comment, 0);
            }
        }
    }
}

/// The keywords of a language, and the function that recognises them. The name of the type of tokens comes first; it
/// has the variants `Name`, `Comma` and `Word`.
macro_rules! words {
    ($tokens:ident: $($word:ident $text:literal),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Word { $($word,)+ }

        impl $crate::lang::descent::TokenKind for $tokens {
            type Word = Word;
            const NAME: $tokens = $tokens::Name;
            const COMMA: $tokens = $tokens::Comma;

            fn keyword(word: Word) -> $tokens {
                $tokens::Word(word)
            }
        }

        fn keyword(word: &[u8]) -> Option<Word> {
            Some(match word {
                $($text => Word::$word,)+
                _ => return None,
            })
        }
    };
}
pub(crate) use words;

/// The function that recognises the operators and brackets of a language: the first of the list that matches. Each is
/// the token with the bytes of its text, as patterns. The name of the type of tokens comes first.
macro_rules! signs {
    ($tokens:ident: $($token:ident $(($kind:expr))? [$($byte:pat),+]),+ $(,)?) => {
        fn sign(text: &[u8]) -> Option<($tokens, u32)> {
            Some(match text {
                [open @ (b'(' | b'[' | b'{'), ..] => ($tokens::Open(*open), 1),
                [close @ (b')' | b']' | b'}'), ..] => ($tokens::Close(*close), 1),
                $([$($byte,)+ ..] => ($tokens::$token $(($kind))?, $crate::convert::to_u32([$(stringify!($byte)),+].len())),)+
                _ => return None,
            })
        }
    };
}
pub(crate) use signs;
