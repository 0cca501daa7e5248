//! The syntax tree of a query.

/// A name and its position in the query, in bytes. Comparison ignores positions, here and in expressions.
#[derive(Clone, Debug)]
pub struct Name {
    pub text: String,
    pub at: usize,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// How a query is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Run,
    /// Returns the plan without running the query.
    Explain,
    /// Runs the query and returns the plan with what each step did.
    Profile,
}

#[derive(Clone, Debug, PartialEq)]
/// A query: clauses, and further queries joined by UNION.
pub struct Query {
    pub mode: Mode,
    pub first: Vec<Clause>,
    /// Further queries whose rows are added. `true` is UNION ALL, which keeps duplicate rows.
    pub unions: Vec<(bool, Vec<Clause>)>,
}

#[derive(Clone, Debug, PartialEq)]
/// A clause of a query.
pub enum Clause {
    Match { optional: bool, patterns: Vec<PatternPart>, filter: Option<Expr>, at: usize },
    Unwind { list: Expr, name: Name },
    With { projection: Projection, filter: Option<Expr> },
    Return(Projection),
    Call(Call),
}

#[derive(Clone, Debug, PartialEq)]
/// A call of a procedure.
pub struct Call {
    /// The full name, with its dots.
    pub procedure: Name,
    /// Without arguments, they are taken from parameters of the same names.
    pub arguments: Option<Vec<Expr>>,
    pub yields: Yields,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
/// Which columns of a procedure a call uses.
pub enum Yields {
    Unspecified,
    All,
    /// Columns, each with the name of its variable.
    These(Vec<(Name, Name)>),
}

#[derive(Clone, Debug, PartialEq)]
/// The body of WITH or RETURN.
pub struct Projection {
    pub distinct: bool,
    /// `*`: all variables, before the items.
    pub star: bool,
    pub items: Vec<Item>,
    pub order: Vec<Sort>,
    pub skip: Option<Expr>,
    pub limit: Option<Expr>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
/// A column of WITH or RETURN.
pub struct Item {
    pub expr: Expr,
    pub alias: Option<Name>,
    /// The source text, which is the name of the column if there is no alias.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
/// A key of ORDER BY.
pub struct Sort {
    pub expr: Expr,
    pub descending: bool,
}

/// A pattern of a MATCH, optionally with a name for the whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternPart {
    pub name: Option<Name>,
    pub shortest: Option<Shortest>,
    pub pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// Whether one shortest path is wanted, or all of them.
pub enum Shortest {
    One,
    All,
}

/// A node, followed by any number of relationships, each with its other node.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub start: NodePattern,
    pub steps: Vec<(EdgePattern, NodePattern)>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
/// A node of a pattern.
pub struct NodePattern {
    pub name: Option<Name>,
    /// The node must have all of them.
    pub labels: Vec<Name>,
    pub properties: Option<Expr>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
/// A relationship of a pattern.
pub struct EdgePattern {
    pub name: Option<Name>,
    /// The relationship must have one of them. Any type if empty.
    pub types: Vec<Name>,
    pub arrow: Arrow,
    pub length: Option<Length>,
    pub properties: Option<Expr>,
    pub at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// The direction of a relationship as written.
pub enum Arrow {
    Right,
    Left,
    Either,
}

/// The length of a path: `*`, `*2` or `*1..3`. A missing bound is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub least: Option<u64>,
    pub most: Option<u64>,
}

/// An expression and its position in the query, in bytes.
#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: Kind,
    pub at: usize,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Parameter(String),
    Variable(String),
    List(Vec<Expr>),
    Map(Vec<(Name, Expr)>),
    Property(Box<Expr>, Name),
    HasLabels(Box<Expr>, Vec<Name>),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Plus(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `a < b <= c`: all comparisons must hold.
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    IsNull(Box<Expr>),
    IsNotNull(Box<Expr>),
    Call {
        function: Name,
        distinct: bool,
        arguments: Vec<Expr>,
    },
    CountStar,
    Case {
        subject: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    ListComprehension {
        name: Name,
        list: Box<Expr>,
        filter: Option<Box<Expr>>,
        map: Option<Box<Expr>>,
    },
    PatternComprehension {
        name: Option<Name>,
        pattern: Box<Pattern>,
        filter: Option<Box<Expr>>,
        map: Box<Expr>,
    },
    Quantifier {
        quantifier: Quantifier,
        name: Name,
        list: Box<Expr>,
        filter: Option<Box<Expr>>,
    },
    Reduce {
        sum: Name,
        start: Box<Expr>,
        name: Name,
        list: Box<Expr>,
        step: Box<Expr>,
    },
    MapProjection {
        subject: Name,
        parts: Vec<MapPart>,
    },
    /// A pattern used as a condition: whether it matches.
    Pattern(Box<Pattern>),
    ShortestPath(Shortest, Box<Pattern>),
    Exists(Box<Subquery>),
    Count(Box<Subquery>),
}

/// The content of the braces of EXISTS and COUNT.
#[derive(Clone, Debug, PartialEq)]
pub enum Subquery {
    Pattern { patterns: Vec<PatternPart>, filter: Option<Expr> },
    Whole(Query),
}

#[derive(Clone, Debug, PartialEq)]
pub enum MapPart {
    /// `.name`
    Property(Name),
    /// `.*`
    All,
    /// `name: value`
    Entry(Name, Expr),
    /// A variable, under its own name.
    Variable(Name),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    All,
    Any,
    None,
    Single,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Or,
    Xor,
    And,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    In,
    StartsWith,
    EndsWith,
    Contains,
    Matches,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
