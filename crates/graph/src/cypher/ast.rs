//! A query as it was written, taken apart.

/// A name and where it stands. Two are the same wherever they stand; so are expressions.
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

/// What is to be done with a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Run,
    /// Tell the plan and do not run it.
    Explain,
    /// Run it and tell what each step did.
    Profile,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub mode: Mode,
    pub first: Vec<Clause>,
    /// Further queries whose rows are added; `all` keeps rows that are the same.
    pub unions: Vec<(bool, Vec<Clause>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    Match { optional: bool, patterns: Vec<PatternPart>, filter: Option<Expr>, at: usize },
    Unwind { list: Expr, name: Name },
    With { projection: Projection, filter: Option<Expr> },
    Return(Projection),
    Call(Call),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// With dots.
    pub procedure: Name,
    /// Left out, they are taken from parameters of the same names.
    pub arguments: Option<Vec<Expr>>,
    pub yields: Yields,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Yields {
    Unsaid,
    All,
    /// Columns, each under its own or another name.
    These(Vec<(Name, Name)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    pub distinct: bool,
    /// `*`: everything there is, before the items.
    pub star: bool,
    pub items: Vec<Item>,
    pub order: Vec<Sort>,
    pub skip: Option<Expr>,
    pub limit: Option<Expr>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub expr: Expr,
    pub alias: Option<Name>,
    /// As it was written, which names the column when no alias does.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    pub expr: Expr,
    pub descending: bool,
}

/// A pattern of a MATCH, perhaps with a name for the whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternPart {
    pub name: Option<Name>,
    pub shortest: Option<Shortest>,
    pub pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortest {
    One,
    All,
}

/// A node, and as often as wanted a relationship and another node.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub start: NodePattern,
    pub steps: Vec<(EdgePattern, NodePattern)>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodePattern {
    pub name: Option<Name>,
    /// All of them.
    pub labels: Vec<Name>,
    pub properties: Option<Expr>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EdgePattern {
    pub name: Option<Name>,
    /// One of them; empty: any.
    pub types: Vec<Name>,
    pub arrow: Arrow,
    pub length: Option<Length>,
    pub properties: Option<Expr>,
    pub at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    Right,
    Left,
    Either,
}

/// `*`, `*2`, `*1..3`: open ends are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub least: Option<u64>,
    pub most: Option<u64>,
}

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
    /// `a < b <= c`: all must hold.
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
    /// A pattern where a truth is asked for: whether there is one like it.
    Pattern(Box<Pattern>),
    ShortestPath(Shortest, Box<Pattern>),
    Exists(Box<Subquery>),
    Count(Box<Subquery>),
}

/// What stands in the braces of EXISTS and COUNT.
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
    /// A variable under its own name.
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
