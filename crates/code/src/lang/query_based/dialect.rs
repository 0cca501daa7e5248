//! What differs between the languages that the reader reads, by its meaning.

use super::query::QueryTag;
use super::{LambdaHead, QueryReader};
use crate::facts::{Def, DefId, DefKind, ExprId, Visibility};
use crate::tree::{NodeChildren, TreeNode};

/// The syntax of one language. Each language implements it in its folder.
///
/// The reader knows the kinds of nodes that several grammars have. The hooks of the first group read the others; they
/// call the methods of the reader for what is the same. The hooks of the other groups answer one question each, and their
/// default is the usual answer.
pub(crate) trait QueryDialect: Sync {
    // --- nodes that only this language has ---

    /// Reads a node that the query found; returns false for what the reader reads in the same way for all languages.
    fn visit<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, tag: QueryTag) -> bool;

    /// The value of a node; `None` if the reader knows the kind.
    fn value<'t>(&self, _reader: &mut QueryReader<'t>, _node: TreeNode<'t>) -> Option<ExprId> {
        None
    }

    /// The value of a call, which is recorded; `None` if the reader knows the kind.
    fn call<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<ExprId>;

    /// Binds what an assignment's target names; returns false if the reader knows the kind.
    fn assign<'t>(&self, _reader: &mut QueryReader<'t>, _target: TreeNode<'t>, _value: ExprId) -> bool {
        false
    }

    /// Declares a parameter, which is at `place`; returns false if the reader knows the kind.
    fn parameter<'t>(&self, _reader: &mut QueryReader<'t>, _node: TreeNode<'t>, _place: u16) -> bool {
        false
    }

    // --- names ---

    /// A called name without a receiver means what the text around it declares. Otherwise, it may be a member of an
    /// enclosing type.
    fn calls_what_is_declared(&self) -> bool {
        false
    }

    /// Whether the receiver inside a definition is the type itself, not an instance.
    fn receiver_is_the_type(&self, _inside: &Def) -> bool {
        false
    }

    /// How names of parameters begin, if named arguments omit it.
    fn start_of_parameter_names(&self) -> &'static str {
        ""
    }

    // --- definitions ---

    /// Whether a comment above a definition documents it.
    fn is_doc(&self, _comment: &str) -> bool {
        true
    }

    /// The text of a doc comment, without its markup.
    fn doc_text(&self, doc: Box<str>) -> Option<Box<str>> {
        Some(doc)
    }

    /// The visibility of a definition without an explicit one, inside of a definition of kind `outer` whose members are
    /// usually `given`. It may remove flags of modifiers that only decide the visibility.
    fn usual_visibility(&self, _outer: DefKind, given: Visibility, _flags: &mut u32) -> Visibility {
        given
    }

    /// The end of a signature, if it is not where the body begins.
    fn signature_end<'t>(&self, _node: TreeNode<'t>, _kids: &NodeChildren<'t>) -> Option<usize> {
        None
    }

    /// The kind of a type, where the kind of its node does not decide it.
    fn kind_of_type<'t>(&self, _node: TreeNode<'t>, _kids: &NodeChildren<'t>, by_node: DefKind) -> DefKind {
        by_node
    }

    /// Reads the parameters that a type itself has; its definition is open.
    fn parameters_of_type<'t>(&self, _reader: &mut QueryReader<'t>, _node: TreeNode<'t>, _kids: &NodeChildren<'t>) {}

    // --- functions ---

    /// Functions of a module are methods of it.
    fn modules_have_methods(&self) -> bool {
        false
    }

    /// A function with a receiver outside of its type is called by its bare name too.
    fn extensions_are_names(&self) -> bool {
        false
    }

    /// Whether a function in the definition `outer` constructs its type, by its name.
    fn is_constructor(&self, _name: &str, _outer: DefKind, _name_of_outer: &str) -> bool {
        false
    }

    /// Whether the program begins in a function, by its name.
    fn is_entry(&self, _name: &str, _outer: DefKind) -> bool {
        false
    }

    /// Whether a function is a test, by its name. Attributes of test runners are known to the reader.
    fn is_test_case(&self, _reader: &QueryReader<'_>, _name: &str, _def: DefId, _name_of_outer: &str) -> bool {
        false
    }

    /// The part of a function's body that is its result without `return`.
    fn result_of<'t>(&self, _reader: &mut QueryReader<'t>, _body: TreeNode<'t>) -> Option<TreeNode<'t>> {
        None
    }

    // --- values ---

    /// The parts of a lambda or block.
    fn lambda<'t>(&self, _node: TreeNode<'t>, kids: &NodeChildren<'t>) -> LambdaHead<'t> {
        LambdaHead { parameters: kids.field("parameters"), implicit: None, returns: true }
    }

    /// Usual methods of containers call a lambda with their elements.
    fn containers_call_lambdas(&self) -> bool {
        false
    }

    /// A list of values without names, where a type is expected, calls its constructor.
    fn lists_construct(&self) -> bool {
        false
    }
}
