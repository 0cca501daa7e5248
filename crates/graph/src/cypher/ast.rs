//! The syntax tree of a query.

/// A name and its position in the query, in bytes. Comparison ignores positions, here and in expressions.
#[derive(Clone, Debug)]
pub struct CypherName {
    pub text: String,
    pub at: usize,
}

impl PartialEq for CypherName {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// How a query is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryMode {
    #[default]
    Run,
    /// Returns the plan without running the query.
    Explain,
    /// Runs the query and returns the plan with what each step did.
    Profile,
}

#[derive(Clone, Debug, PartialEq)]
/// A query: clauses, and further queries joined by UNION.
pub struct CypherQuery {
    pub mode: QueryMode,
    pub first: Vec<Clause>,
    /// Further queries whose rows are added. `true` is UNION ALL, which keeps duplicate rows.
    pub unions: Vec<(bool, Vec<Clause>)>,
}

#[derive(Clone, Debug, PartialEq)]
/// A clause of a query.
pub enum Clause {
    Match { optional: bool, patterns: Vec<PatternPart>, filter: Option<CypherExpr>, at: usize },
    Unwind { list: CypherExpr, name: CypherName },
    With { projection: ProjectionBody, filter: Option<CypherExpr> },
    Return(ProjectionBody),
    Call(CallClause),
}

#[derive(Clone, Debug, PartialEq)]
/// A call of a procedure.
pub struct CallClause {
    /// The full name, with its dots.
    pub procedure: CypherName,
    /// Without arguments, they are taken from parameters of the same names.
    pub arguments: Option<Vec<CypherExpr>>,
    pub yields: Yields,
    pub filter: Option<CypherExpr>,
}

#[derive(Clone, Debug, PartialEq)]
/// Which columns of a procedure a call uses.
pub enum Yields {
    Unspecified,
    All,
    /// Columns, each with the name of its variable.
    These(Vec<(CypherName, CypherName)>),
}

#[derive(Clone, Debug, PartialEq)]
/// The body of WITH or RETURN.
pub struct ProjectionBody {
    pub distinct: bool,
    /// `*`: all variables, before the items.
    pub star: bool,
    pub items: Vec<ProjectionItem>,
    pub order: Vec<Sort>,
    pub skip: Option<CypherExpr>,
    pub limit: Option<CypherExpr>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
/// A column of WITH or RETURN.
pub struct ProjectionItem {
    pub expr: CypherExpr,
    pub alias: Option<CypherName>,
    /// The source text, which is the name of the column if there is no alias.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
/// A key of ORDER BY.
pub struct Sort {
    pub expr: CypherExpr,
    pub descending: bool,
}

/// A pattern of a MATCH, optionally with a name for the whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternPart {
    pub name: Option<CypherName>,
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
    pub name: Option<CypherName>,
    /// The node must have all of them.
    pub labels: Vec<CypherName>,
    pub properties: Option<CypherExpr>,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
/// A relationship of a pattern.
pub struct EdgePattern {
    pub name: Option<CypherName>,
    /// The relationship must have one of them. Any type if empty.
    pub types: Vec<CypherName>,
    pub arrow: Arrow,
    pub length: Option<Length>,
    pub properties: Option<CypherExpr>,
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
pub struct CypherExpr {
    pub kind: CypherExprKind,
    pub at: usize,
}

impl PartialEq for CypherExpr {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum CypherExprKind {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Parameter(String),
    Variable(String),
    List(Vec<CypherExpr>),
    Map(Vec<(CypherName, CypherExpr)>),
    Property(Box<CypherExpr>, CypherName),
    HasLabels(Box<CypherExpr>, Vec<CypherName>),
    Index(Box<CypherExpr>, Box<CypherExpr>),
    Slice(Box<CypherExpr>, Option<Box<CypherExpr>>, Option<Box<CypherExpr>>),
    Not(Box<CypherExpr>),
    Negate(Box<CypherExpr>),
    Plus(Box<CypherExpr>),
    Binary(Operator, Box<CypherExpr>, Box<CypherExpr>),
    /// `a < b <= c`: all comparisons must hold.
    Compare(Box<CypherExpr>, Vec<(ComparisonOperator, CypherExpr)>),
    IsNull(Box<CypherExpr>),
    IsNotNull(Box<CypherExpr>),
    Call {
        function: CypherName,
        distinct: bool,
        arguments: Vec<CypherExpr>,
    },
    CountStar,
    Case {
        subject: Option<Box<CypherExpr>>,
        branches: Vec<(CypherExpr, CypherExpr)>,
        otherwise: Option<Box<CypherExpr>>,
    },
    ListComprehension {
        name: CypherName,
        list: Box<CypherExpr>,
        filter: Option<Box<CypherExpr>>,
        map: Option<Box<CypherExpr>>,
    },
    PatternComprehension {
        name: Option<CypherName>,
        pattern: Box<Pattern>,
        filter: Option<Box<CypherExpr>>,
        map: Box<CypherExpr>,
    },
    Quantifier {
        quantifier: Quantifier,
        name: CypherName,
        list: Box<CypherExpr>,
        filter: Option<Box<CypherExpr>>,
    },
    Reduce {
        sum: CypherName,
        start: Box<CypherExpr>,
        name: CypherName,
        list: Box<CypherExpr>,
        step: Box<CypherExpr>,
    },
    MapProjection {
        subject: CypherName,
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
    Pattern { patterns: Vec<PatternPart>, filter: Option<CypherExpr> },
    Whole(CypherQuery),
}

#[derive(Clone, Debug, PartialEq)]
pub enum MapPart {
    /// `.name`
    Property(CypherName),
    /// `.*`
    All,
    /// `name: value`
    Entry(CypherName, CypherExpr),
    /// A variable, under its own name.
    Variable(CypherName),
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
pub enum ComparisonOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
