//! What the nodes of a subtree need of the rest of the tree.

/// The part of a whole tree's figures that the settings of a subtree's nodes depend on.
///
/// A platform that holds only a subtree has the parent of its topmost node as its root, without that parent's other
/// children. With these figures its nodes get the settings that they have in the whole tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Maximum number of tasks that the topmost node requests ahead. It depends on the node's siblings.
    pub places: u64,
    /// Tasks per second that the whole tree uses.
    pub uses_tasks_per_s: f64,
    /// How long before the end of the run a node could finish late, s. 0 if the end is not levelled.
    pub late_s: f64,
}
