//! A tree with the rates of its subtrees, updated incrementally: a change affects only the nodes above it.

use super::Shape;
use super::graph::Graph;
use crate::steady::{Bench, Offer};

/// A tree that can be changed, with undo of the last change.
pub(super) struct Hung<'a> {
    graph: &'a Graph,
    shape: Shape,
    children: Vec<Vec<usize>>,
    rate: Vec<f64>,
    // Undo information of the last change.
    former_root: usize,
    former_parents: Vec<(usize, usize)>,
    former_rates: Vec<(usize, f64)>,
    // Working memory.
    offers: Vec<Offer>,
    bench: Bench,
    moves: Vec<(usize, usize)>,
}

impl<'a> Hung<'a> {
    pub fn new(graph: &'a Graph, shape: Shape) -> Self {
        let mut children = vec![Vec::new(); graph.count];
        for (host, &parent) in shape.parent.iter().enumerate() {
            if parent != Shape::NOWHERE && host != shape.root {
                children[parent].push(host);
            }
        }
        let mut hung = Self {
            graph,
            former_root: shape.root,
            shape,
            children,
            rate: vec![0.0; graph.count],
            former_parents: Vec::new(),
            former_rates: Vec::new(),
            offers: Vec::new(),
            bench: Bench::default(),
            moves: Vec::new(),
        };
        for host in hung.root_first().into_iter().rev() {
            hung.rate[host] = hung.rate_of(host);
        }
        hung
    }

    /// Returns the tasks per second of the whole tree.
    pub fn throughput(&self) -> f64 {
        self.rate[self.shape.root]
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the hosts of the tree, each after its parent.
    pub fn root_first(&self) -> Vec<usize> {
        let mut order = vec![self.shape.root];
        let mut at = 0;
        while at < order.len() {
            order.extend(&self.children[order[at]]);
            at += 1;
        }
        order
    }

    /// Moves a node with its subtree under another parent. Returns whether that is possible and a change.
    pub fn rehang(&mut self, node: usize, parent: usize) -> bool {
        let former = self.shape.parent[node];
        if node == self.shape.root || parent == former || self.is_within(parent, node) {
            return false;
        }
        self.moves.clear();
        self.moves.push((node, parent));
        self.change(self.shape.root, &[node, former, parent])
    }

    /// Swaps two nodes. Returns whether that is possible.
    pub fn swap(&mut self, a: usize, b: usize) -> bool {
        if a == b {
            return false;
        }
        let other = |host: usize| if host == a { b } else { [host, a][usize::from(host == b)] };
        self.moves.clear();
        for &host in [a, b].iter().chain(&self.children[a]).chain(&self.children[b]) {
            let moved = (other(host), other(self.shape.parent[host]));
            if !self.moves.contains(&moved) {
                self.moves.push(moved); // if one is a child of the other, it is in the list twice
            }
        }
        let above = [other(self.shape.parent[a]), other(self.shape.parent[b])];
        self.change(other(self.shape.root), &[a, b, above[0], above[1]])
    }

    /// Removes a node, giving its children to its parent, and inserts it between another node and that node's parent.
    /// Returns whether that is possible and a change.
    pub fn insert(&mut self, node: usize, child: usize) -> bool {
        let root = self.shape.root;
        if node == root || child == root || node == child || self.shape.parent[child] == node {
            return false;
        }
        let (left, parent) = (self.shape.parent[node], self.shape.parent[child]);
        self.moves.clear();
        self.moves.extend(self.children[node].iter().map(|&orphan| (orphan, left)));
        if parent != left {
            self.moves.push((node, parent));
        }
        self.moves.push((child, node));
        self.change(root, &[node, left, parent])
    }

    pub fn undo(&mut self) {
        self.shape.root = self.former_root;
        while let Some((node, parent)) = self.former_parents.pop() {
            self.hang(node, parent);
        }
        while let Some((node, rate)) = self.former_rates.pop() {
            self.rate[node] = rate;
        }
    }

    /// Applies the moves if every link is known. `joints`: the nodes whose children changed.
    fn change(&mut self, root: usize, joints: &[usize]) -> bool {
        if self.moves.iter().any(|&(node, parent)| node != root && self.graph.leg(parent, node).is_none()) {
            return false;
        }
        self.former_root = self.shape.root;
        self.former_parents.clear();
        self.former_rates.clear();
        self.shape.root = root;
        let moves = std::mem::take(&mut self.moves);
        for &(node, parent) in &moves {
            self.former_parents.push((node, self.shape.parent[node]));
            self.hang(node, parent);
        }
        for &(node, _) in &moves {
            if !joints.contains(&node) {
                self.look_again(node); // another feeder, the same children
            }
        }
        self.moves = moves;
        for &joint in joints {
            let mut at = joint;
            while self.look_again(at) && at != self.shape.root {
                at = self.shape.parent[at];
            }
        }
        true
    }

    /// Moves a node from its parent's children to another's. The root is its own parent and no node's child.
    fn hang(&mut self, node: usize, parent: usize) {
        let former = self.shape.parent[node];
        if former != node {
            if let Some(place) = self.children[former].iter().position(|&child| child == node) {
                self.children[former].swap_remove(place);
            }
        }
        self.shape.parent[node] = parent;
        if parent != node {
            self.children[parent].push(node);
        }
    }

    /// Recomputes a node's rate. Returns whether it changed.
    fn look_again(&mut self, node: usize) -> bool {
        let (rate, former) = (self.rate_of(node), self.rate[node]);
        if rate == former {
            return false;
        }
        self.former_rates.push((node, former));
        self.rate[node] = rate;
        true
    }

    fn rate_of(&mut self, node: usize) -> f64 {
        let Some(station) = self.graph.station(self.shape.parent[node], node) else { return 0.0 };
        self.offers.clear();
        for &child in &self.children[node] {
            self.offers.extend(self.graph.offer(node, child, self.rate[child]));
        }
        self.graph.rate(&station, &mut self.offers, &mut self.bench)
    }

    /// Whether `node` is `above` or below it.
    fn is_within(&self, node: usize, above: usize) -> bool {
        let mut at = node;
        while at != above && at != self.shape.root {
            at = self.shape.parent[at];
        }
        at == above
    }
}
