//! Random graphs, random openCypher queries on them, and a naive evaluation to compare with.
//!
//! The naive evaluation tries all combinations. It has no planner and no index, and shares no code with the product.

mod naive;

pub use naive::answer;

/// A random number generator (SplitMix64) that is determined by its seed.
pub struct SeededRandom(pub u64);

impl SeededRandom {
    /// Returns a number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

pub const LABELS: [&str; 3] = ["A", "B", "C"];
pub const TYPES: [&str; 2] = ["R", "S"];
const TEXTS: [&str; 4] = ["ab", "b", "abc", ""];

/// A random graph. Nodes are identified by their index.
#[derive(Clone, Debug)]
pub struct RandomGraph {
    pub nodes: Vec<RandomNode>,
    pub edges: Vec<RandomEdge>,
}

#[derive(Clone, Debug)]
pub struct RandomNode {
    pub label: usize,
    pub n: Option<i64>,
    pub s: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct RandomEdge {
    pub src: usize,
    pub dst: usize,
    pub kind: usize,
    pub w: Option<i64>,
}

impl RandomGraph {
    pub fn new(dice: &mut SeededRandom) -> RandomGraph {
        let (nodes, edges) = (2 + dice.below(6), 3 + dice.below(10));
        RandomGraph::of(nodes, edges, dice)
    }

    pub fn of(count: u64, edges: u64, dice: &mut SeededRandom) -> RandomGraph {
        let node = |dice: &mut SeededRandom| RandomNode {
            label: dice.below(3) as usize,
            n: (!dice.one_in(4)).then(|| dice.below(4) as i64),
            s: (!dice.one_in(3)).then(|| dice.pick(&TEXTS)),
        };
        let nodes: Vec<_> = (0..count).map(|_| node(dice)).collect();
        let edge = |dice: &mut SeededRandom| RandomEdge {
            src: dice.below(count) as usize,
            dst: dice.below(count) as usize,
            kind: dice.below(2) as usize,
            w: (!dice.one_in(4)).then(|| dice.below(3) as i64),
        };
        let edges = (0..edges).map(|_| edge(dice)).collect();
        RandomGraph { nodes, edges }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    Right,
    Left,
    Either,
}

#[derive(Clone, Debug)]
pub struct RandomNodePattern {
    pub var: usize,
    pub label: Option<usize>,
    pub n: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct RandomEdgePattern {
    pub var: usize,
    pub kind: Option<usize>,
    pub arrow: Arrow,
    pub length: Option<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub struct RandomPath {
    pub start: RandomNodePattern,
    pub steps: Vec<(RandomEdgePattern, RandomNodePattern)>,
}

#[derive(Clone, Debug)]
pub enum Term {
    /// `n`, `s` or `id` of a node, `w` of an edge.
    NodeN(usize),
    NodeS(usize),
    NodeId(usize),
    EdgeW(usize),
    Integer(i64),
    Text(&'static str),
    Null,
    Sum(Box<Term>, Box<Term>),
}

#[derive(Clone, Debug)]
pub enum Test {
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Xor(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Compare(Term, &'static str, Term),
    IsNull(Term),
    StartsWith(Term, &'static str),
    In(Term, Vec<i64>),
    Label(usize, usize),
    Exists(Box<RandomPath>),
}

#[derive(Clone, Debug)]
pub struct Match {
    pub optional: bool,
    pub chains: Vec<RandomPath>,
    pub filter: Option<Test>,
}

#[derive(Clone, Debug)]
pub enum Column {
    Plain(Term),
    CountAll,
    Count { distinct: bool, of: Term },
    Sum(Term),
    Least(Term),
    Most(Term),
}

/// A random query.
#[derive(Clone, Debug)]
pub struct RandomQuery {
    pub matches: Vec<Match>,
    pub distinct: bool,
    pub columns: Vec<Column>,
    /// With an order: rows are sorted by all columns; these are the values of SKIP and LIMIT.
    pub ordered: Option<(u64, u64)>,
}

struct QueryGenerator<'a> {
    dice: &'a mut SeededRandom,
    nodes: Vec<usize>,
    edges: Vec<usize>,
    /// The next edge variable; those of paths of variable length are not in `edges`, because they have no `w`.
    next: usize,
}

impl RandomQuery {
    pub fn new(dice: &mut SeededRandom) -> RandomQuery {
        RandomQuery::of(2, 2, dice)
    }

    /// Generates a query with at most this many clauses, and at most this many chains in each. For a large graph, both
    /// should be 1.
    pub fn of(clauses: u64, chains: u64, dice: &mut SeededRandom) -> RandomQuery {
        let mut maker = QueryGenerator { dice, nodes: vec![], edges: vec![], next: 0 };
        let mut matches = Vec::new();
        for i in 0..1 + maker.dice.below(clauses) {
            let optional = i > 0 && maker.dice.one_in(2);
            let chains = (0..1 + maker.dice.below(chains)).map(|_| maker.chain(2)).collect();
            let filter = maker.dice.one_in(2).then(|| maker.test(2));
            matches.push(Match { optional, chains, filter });
        }
        let grouped = maker.dice.one_in(2);
        let mut columns: Vec<Column> = Vec::new();
        for _ in 0..1 + maker.dice.below(3) {
            let column = if grouped && maker.dice.one_in(2) { maker.aggregate() } else { Column::Plain(maker.term()) };
            columns.push(column);
        }
        let ordered = maker.dice.one_in(3).then(|| (maker.dice.below(3), 1 + maker.dice.below(5)));
        RandomQuery { matches, distinct: maker.dice.one_in(4), columns, ordered }
    }

    /// Returns the query as openCypher text.
    pub fn text(&self) -> String {
        self.written(false)
    }

    /// Returns the query for engines that may match one relationship twice in a pattern, with conditions that exclude
    /// that. `None` if conditions cannot make the answers equal.
    pub fn without_repetition(&self) -> Option<String> {
        let rows = |m: &Match| {
            let edges: Vec<_> = m.chains.iter().flat_map(|c| c.steps.iter().map(|(e, _)| e)).collect();
            edges.iter().any(|e| e.length.is_some())
        };
        // Engines differ in the sum of no values, and in where null is sorted.
        let differs = self.ordered.is_some() || self.columns.iter().any(|c| matches!(c, Column::Sum(_)));
        (!differs && !self.matches.iter().any(rows)).then(|| self.written(true))
    }

    /// Whether a pattern matches relationships in either direction. Some engines count a self-loop twice there.
    pub fn goes_either_way(&self) -> bool {
        let either = |c: &RandomPath| c.steps.iter().any(|(e, _)| e.arrow == Arrow::Either);
        self.matches
            .iter()
            .any(|m| m.chains.iter().any(either) || m.filter.as_ref().is_some_and(|t| any_chain(t, &either)))
    }

    fn written(&self, apart: bool) -> String {
        let mut text = String::new();
        for m in &self.matches {
            let chains: Vec<_> = m.chains.iter().map(|c| chain_text(c, true)).collect();
            text += &format!("{}MATCH {} ", if m.optional { "OPTIONAL " } else { "" }, chains.join(", "));
            let mut tests: Vec<String> = m.filter.iter().map(|t| format!("({})", test_text(t, apart))).collect();
            let edges: Vec<_> = m.chains.iter().flat_map(|c| c.steps.iter().map(|(e, _)| e.var)).collect();
            if apart {
                for (i, a) in edges.iter().enumerate() {
                    tests.extend(edges[i + 1..].iter().map(|b| format!("id(r{a}) <> id(r{b})")));
                }
            }
            if !tests.is_empty() {
                text += &format!("WHERE {} ", tests.join(" AND "));
            }
        }
        let column = |c: &Column| match c {
            Column::Plain(t) => term_text(t),
            Column::CountAll => "count(*)".into(),
            Column::Count { distinct, of } => {
                format!("count({}{})", if *distinct { "DISTINCT " } else { "" }, term_text(of))
            }
            Column::Sum(t) => format!("sum({})", term_text(t)),
            Column::Least(t) => format!("min({})", term_text(t)),
            Column::Most(t) => format!("max({})", term_text(t)),
        };
        let columns: Vec<_> = self.columns.iter().enumerate().map(|(i, c)| format!("{} AS c{i}", column(c))).collect();
        text += &format!("RETURN {}{}", if self.distinct { "DISTINCT " } else { "" }, columns.join(", "));
        if let Some((skip, limit)) = self.ordered {
            let names: Vec<_> = (0..self.columns.len()).map(|i| format!("c{i}")).collect();
            text += &format!(" ORDER BY {} SKIP {skip} LIMIT {limit}", names.join(", "));
        }
        text
    }
}

fn any_chain(test: &Test, is: &dyn Fn(&RandomPath) -> bool) -> bool {
    match test {
        Test::And(a, b) | Test::Or(a, b) | Test::Xor(a, b) => any_chain(a, is) || any_chain(b, is),
        Test::Not(a) => any_chain(a, is),
        Test::Exists(chain) => is(chain),
        _ => false,
    }
}

impl QueryGenerator<'_> {
    fn node(&mut self) -> RandomNodePattern {
        let known = !self.nodes.is_empty() && self.dice.one_in(3);
        let var = if known {
            self.dice.pick(&self.nodes)
        } else {
            self.next += 1;
            self.nodes.push(self.next);
            self.next
        };
        let label = self.dice.one_in(5).then(|| self.dice.below(3) as usize);
        RandomNodePattern { var, label, n: self.dice.one_in(12).then(|| self.dice.below(4) as i64) }
    }

    fn chain(&mut self, longest: u64) -> RandomPath {
        let start = self.node();
        let mut steps = Vec::new();
        for _ in 0..self.dice.below(longest + 1) {
            self.next += 1;
            let var = self.next;
            let least = self.dice.below(2) as usize;
            let length = self.dice.one_in(5).then(|| (least, least + self.dice.below(3) as usize));
            let kind = self.dice.one_in(3).then(|| self.dice.below(2) as usize);
            let arrow = self.dice.pick(&[Arrow::Right, Arrow::Left, Arrow::Either]);
            let edge = RandomEdgePattern { var, kind, arrow, length };
            if length.is_none() {
                self.edges.push(var);
            }
            steps.push((edge, self.node()));
        }
        RandomPath { start, steps }
    }

    fn term(&mut self) -> Term {
        let node = self.dice.pick(&self.nodes);
        match self.dice.below(8) {
            0..=2 => Term::NodeN(node),
            3 => Term::NodeS(node),
            4 => Term::NodeId(node),
            5 if !self.edges.is_empty() => Term::EdgeW(self.dice.pick(&self.edges)),
            6 => Term::Sum(Box::new(Term::NodeN(node)), Box::new(Term::Integer(self.dice.below(3) as i64))),
            _ => Term::NodeId(node),
        }
    }

    fn number(&mut self) -> Term {
        let node = self.dice.pick(&self.nodes);
        match self.dice.below(3) {
            0 if !self.edges.is_empty() => Term::EdgeW(self.dice.pick(&self.edges)),
            1 => Term::NodeId(node),
            _ => Term::NodeN(node),
        }
    }

    fn test(&mut self, depth: u64) -> Test {
        let sign = |dice: &mut SeededRandom| dice.pick(&["=", "<>", "<", "<=", ">", ">="]);
        match self.dice.below(if depth == 0 { 6 } else { 11 }) {
            0 | 1 => {
                let (a, b) = (self.number(), Term::Integer(self.dice.below(4) as i64));
                Test::Compare(a, sign(self.dice), b)
            }
            2 => {
                let (a, b) = (self.number(), self.number());
                Test::Compare(a, sign(self.dice), b)
            }
            3 => {
                let (a, b) = (Term::NodeS(self.dice.pick(&self.nodes)), Term::Text(self.dice.pick(&TEXTS)));
                Test::Compare(a, sign(self.dice), b)
            }
            4 => Test::IsNull(self.term()),
            5 => Test::Label(self.dice.pick(&self.nodes), self.dice.below(3) as usize),
            6 => Test::And(Box::new(self.test(depth - 1)), Box::new(self.test(depth - 1))),
            7 => Test::Or(Box::new(self.test(depth - 1)), Box::new(self.test(depth - 1))),
            8 => Test::Not(Box::new(self.test(depth - 1))),
            9 if self.dice.one_in(2) => Test::Xor(Box::new(self.test(depth - 1)), Box::new(self.test(depth - 1))),
            9 => match self.dice.one_in(2) {
                true => Test::StartsWith(Term::NodeS(self.dice.pick(&self.nodes)), self.dice.pick(&TEXTS)),
                false => Test::In(self.number(), (0..self.dice.below(3)).map(|i| i as i64 * 2).collect()),
            },
            _ => self.exists(),
        }
    }

    /// A pattern that starts at a bound node and binds no variables outside it.
    fn exists(&mut self) -> Test {
        let var = self.dice.pick(&self.nodes);
        let (nodes, edges) = (self.nodes.clone(), self.edges.clone());
        let mut chain = self.chain(1);
        chain.start = RandomNodePattern { var, label: None, n: None };
        if chain.steps.is_empty() {
            self.next += 1;
            let edge = RandomEdgePattern { var: self.next, kind: None, arrow: Arrow::Right, length: None };
            self.next += 1;
            chain.steps.push((edge, RandomNodePattern { var: self.next, label: None, n: None }));
        }
        (self.nodes, self.edges) = (nodes, edges);
        Test::Exists(Box::new(chain))
    }

    fn aggregate(&mut self) -> Column {
        match self.dice.below(6) {
            0 | 1 => Column::CountAll,
            2 => Column::Count { distinct: self.dice.one_in(2), of: self.term() },
            3 => Column::Sum(self.number()),
            4 => Column::Least(self.number()),
            _ => Column::Most(self.number()),
        }
    }
}

fn node_text(node: &RandomNodePattern) -> String {
    let label = node.label.map(|l| format!(":{}", LABELS[l])).unwrap_or_default();
    let n = node.n.map(|n| format!(" {{n: {n}}}")).unwrap_or_default();
    format!("(n{}{label}{n})", node.var)
}

fn chain_text(chain: &RandomPath, named: bool) -> String {
    let mut text = node_text(&chain.start);
    for (edge, node) in &chain.steps {
        let kind = edge.kind.map(|k| format!(":{}", TYPES[k])).unwrap_or_default();
        let length = edge.length.map(|(least, most)| format!("*{least}..{most}")).unwrap_or_default();
        let name = if named { format!("r{}", edge.var) } else { String::new() };
        let (left, right) = match edge.arrow {
            Arrow::Right => ("-", "->"),
            Arrow::Left => ("<-", "-"),
            Arrow::Either => ("-", "-"),
        };
        text += &format!("{left}[{name}{kind}{length}]{right}{}", node_text(node));
    }
    text
}

fn term_text(term: &Term) -> String {
    match term {
        Term::NodeN(v) => format!("n{v}.n"),
        Term::NodeS(v) => format!("n{v}.s"),
        Term::NodeId(v) => format!("n{v}.id"),
        Term::EdgeW(v) => format!("r{v}.w"),
        Term::Integer(n) => n.to_string(),
        Term::Text(t) => format!("'{t}'"),
        Term::Null => "null".into(),
        Term::Sum(a, b) => format!("{} + {}", term_text(a), term_text(b)),
    }
}

/// `by_function`: labels are tested with `label(n)`.
fn test_text(test: &Test, by_function: bool) -> String {
    let test_text = |t: &Test| test_text(t, by_function);
    match test {
        Test::And(a, b) => format!("({} AND {})", test_text(a), test_text(b)),
        Test::Or(a, b) => format!("({} OR {})", test_text(a), test_text(b)),
        Test::Xor(a, b) => format!("({} XOR {})", test_text(a), test_text(b)),
        Test::Not(a) => format!("(NOT {})", test_text(a)),
        Test::Compare(a, sign, b) => format!("{} {sign} {}", term_text(a), term_text(b)),
        Test::IsNull(t) => format!("{} IS NULL", term_text(t)),
        Test::StartsWith(t, with) => format!("{} STARTS WITH '{with}'", term_text(t)),
        Test::In(t, list) => format!("{} IN {list:?}", term_text(t)),
        Test::Label(v, label) if by_function => format!("label(n{v}) = '{}'", LABELS[*label]),
        Test::Label(v, label) => format!("n{v}:{}", LABELS[*label]),
        Test::Exists(chain) => format!("exists {{ MATCH {} }}", chain_text(chain, false)),
    }
}
