//! One rank of CONNECT.

use crosswind_schema::experiment::parameters::ConnectParameters;

use super::graph::Graph;
use super::table::Table;
use crate::op::{Body, Kind, Op};
use crate::random::Stream;
use crate::rank::{Rank, Reply};

/// Two integers, or an address and an integer.
const BYTES: u32 = 8;
const COINS: u64 = 9;
/// Mask of a coin toss: heads, onto which others hook, come up once in `HEADS + 1` tosses.
const HEADS: u64 = 3;

/// Purpose of an active message, in the lowest bits of its first word. The bits above hold a vertex.
mod tag {
    pub const BITS: u32 = 3;
    pub const HOOK: u64 = 0;
    pub const COUNT: u64 = 1;
    pub const TOTAL: u64 = 2;
    pub const EDGE: u64 = 3;
    pub const ROOT: u64 = 4;
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Joins,
    /// Requests the root of name `at`, if it may have changed.
    Renames {
        at: usize,
    },
    Contracts,
    /// Waits for the counts of its children in the tree, then for the total.
    Counts {
        said: bool,
        child: u32,
    },
    Hooks {
        at: usize,
    },
    /// Sends edge `at` to rank 0.
    Gathers {
        at: usize,
    },
    Gathered,
    Spreads {
        at: usize,
    },
    /// Determines whose parents must be known.
    LooksUp,
    /// Requests the parent of `asked[at]`.
    Jumps {
        at: usize,
    },
    Meets,
    Lands,
    Over,
}

#[derive(Debug)]
pub struct ConnectRank {
    parameters: ConnectParameters,
    ranks: u32,
    me: u32,
    first: u64,
    seed: u64,
    round: u64,
    /// For each own vertex, the own vertex that represents it.
    local: Vec<u32>,
    /// For each own vertex, a vertex of the same component, in the end a root. Vertices that represent no others keep
    /// their representative here.
    parent: Vec<u64>,
    table: Table,
    /// For each name, whether a hook has been sent in this round.
    hooked: Vec<bool>,
    /// At rank 0, at the end: the edges of all ranks, then vertices and their roots.
    gathered: Vec<(u64, u64)>,
    /// Own vertices whose parent may not be a root yet (`open`), and the parents of those parents (`asked`).
    open: Vec<u32>,
    asked: Vec<(u64, u64)>,
    jumping: bool,
    counted: u64,
    counts_left: u32,
    total: Option<u64>,
    gets: u64,
    stride: usize,
    owed: u64,
    phase: Phase,
    then: Option<Op>,
}

impl ConnectRank {
    pub(super) fn new(graph: &Graph, parameters: &ConnectParameters, me: u32) -> Self {
        let own = graph.vertices_per_rank;
        let first = u64::from(me) * own;
        let edges: Vec<(u64, u64)> = graph.edges(me).collect();
        let mut rank = Self {
            parameters: parameters.clone(),
            ranks: graph.ranks,
            me,
            first,
            seed: graph.seed,
            round: 0,
            local: (0..own as u32).collect(),
            parent: (first..first + own).collect(),
            table: Table { names: Vec::new(), edges: Vec::new() },
            hooked: Vec::new(),
            gathered: edges,
            open: Vec::new(),
            asked: Vec::new(),
            jumping: false,
            counted: 0,
            counts_left: 0,
            total: None,
            gets: 0,
            stride: 1,
            owed: 0,
            phase: Phase::Joins,
            then: None,
        };
        rank.counts_left = rank.children();
        rank
    }

    fn children(&self) -> u32 {
        (1..3).filter(|child| 2 * u64::from(self.me) + child < u64::from(self.ranks)).count() as u32
    }

    fn owner(&self, vertex: u64) -> u32 {
        (vertex / self.local.len() as u64) as u32
    }

    fn own(&self, vertex: u64) -> Option<usize> {
        (self.owner(vertex) == self.me).then(|| (vertex - self.first) as usize)
    }

    /// Returns a component's coin toss in a round, the same at every rank.
    fn heads(&self, root: u64, round: u64) -> bool {
        Stream::new(self.seed, round, COINS).bits(root) & HEADS == 0
    }

    /// Returns the operation, preceded by the work that is owed.
    fn after_work(&mut self, op: Op) -> Op {
        if self.owed == 0 {
            return op;
        }
        self.then = Some(op);
        Op::Compute { ns: self.parameters.operation_s.ns(std::mem::take(&mut self.owed)) }
    }

    /// Does the work that is owed, or waits if there is none. The condition is checked again after the work.
    fn wait(&mut self) -> Op {
        let op = self.after_work(Op::Wait);
        self.then = None;
        op
    }

    fn post(&mut self, to: u32, tag: u64, vertex: u64, value: u64) -> Op {
        let body = Body::Pair([vertex << tag::BITS | tag, value]);
        self.after_work(Op::Message { to, kind: Kind::Post, bytes: BYTES.into(), body })
    }

    fn get(&mut self, vertex: u64, place: usize) -> Op {
        self.gets += 1;
        let body = Body::Pair([vertex, place as u64]);
        self.after_work(Op::Message { to: self.owner(vertex), kind: Kind::Get, bytes: BYTES.into(), body })
    }

    /// Returns element `at` of a permutation of `all` places in which neighbours are far apart and which starts
    /// elsewhere on each rank. Names are sorted, and all ranks must not request those of one owner at the same time.
    fn scattered(&mut self, at: usize, all: usize) -> usize {
        if at == 0 {
            // The golden section of `all`, or the next number coprime to `all`, so that every place occurs once.
            let golden = (all as f64 * 0.618) as usize;
            self.stride = (golden.max(1)..).find(|stride| divisor(*stride, all) == 1).unwrap_or(1);
        }
        ((at + self.me as usize * all / self.ranks as usize) % all * self.stride) % all
    }

    /// Whether enough gets are outstanding that a sync is due. Resets the count if so.
    fn sync_is_due(&mut self) -> bool {
        let due = self.gets >= self.parameters.gets_per_sync.get();
        if due {
            self.gets = 0;
        }
        due
    }

    /// Joins the vertices connected by own edges, and keeps the edges that lead elsewhere.
    fn join(&mut self) {
        let edges = std::mem::take(&mut self.gathered);
        let mut sets = Sets::new(self.local.len());
        for (a, b) in &edges {
            if let (Some(a), Some(b)) = (self.own(*a), self.own(*b)) {
                sets.join(a, b);
            }
        }
        for vertex in 0..self.local.len() {
            self.local[vertex] = sets.find(vertex) as u32;
            self.parent[vertex] = self.first + u64::from(self.local[vertex]);
        }
        self.open = (0..self.local.len() as u32).filter(|v| self.local[*v as usize] == *v).collect();
        let stands = |v: u64| self.own(v).map_or(v, |own| self.first + u64::from(self.local[own]));
        let renamed: Vec<(u64, u64)> =
            edges.iter().map(|(a, b)| (stands(*a), stands(*b))).filter(|(a, b)| a != b).collect();
        self.table = Table::new(&renamed);
        self.owed += (edges.len() + self.local.len()) as u64;
    }

    /// Whether the root of `name` may have changed. At first no root is known; later, those that tossed tails may have
    /// hooked.
    fn may_have_changed(&self, name: u64) -> bool {
        if self.round == 0 { self.own(name).is_none() } else { !self.heads(name, self.round - 1) }
    }

    /// Starts the sum of a count over all ranks, along a tree.
    fn count(&mut self, here: u64) {
        self.counted += here;
        self.phase = Phase::Counts { said: false, child: 1 };
    }

    /// Joins the remaining components on rank 0 alone.
    fn finish(&mut self) {
        let table = Table::new(&std::mem::take(&mut self.gathered));
        let mut sets = Sets::new(table.names.len());
        table.edges.iter().for_each(|(a, b)| sets.join(*a as usize, *b as usize));
        self.owed += (table.edges.len() + table.names.len()) as u64;
        self.gathered = (0..table.names.len())
            .map(|at| (table.names[at], table.names[sets.find(at)]))
            .filter(|(vertex, root)| vertex != root)
            .collect();
    }

    /// Collects the distinct parents whose own parents must be known.
    fn look_up(&mut self) {
        let parents = self.open.iter().map(|v| self.parent[*v as usize]);
        self.asked = parents.map(|parent| (parent, parent)).collect();
        self.asked.sort_unstable();
        self.asked.dedup();
    }

    /// Replaces parents by their parents. Vertices whose parent is a root are done.
    fn land(&mut self) {
        let (asked, parent) = (&self.asked, &mut self.parent);
        self.open.retain(|vertex| {
            let above = &mut parent[*vertex as usize];
            let at = asked.partition_point(|(name, _)| name < above);
            let further = asked.get(at).map_or(*above, |(_, further)| *further);
            let at_root = further == *above;
            *above = further;
            !at_root
        });
    }
}

impl Rank for ConnectRank {
    fn next(&mut self) -> Op {
        if let Some(op) = self.then.take() {
            return op;
        }
        loop {
            match self.phase {
                Phase::Joins => {
                    self.join();
                    self.phase = Phase::Renames { at: 0 };
                    return self.after_work(Op::Barrier);
                }
                Phase::Renames { at } => {
                    if self.sync_is_due() {
                        return Op::Sync;
                    }
                    if at == self.table.names.len() {
                        self.phase = Phase::Contracts;
                        self.gets = 0;
                        return self.after_work(Op::Sync);
                    }
                    self.phase = Phase::Renames { at: at + 1 };
                    self.owed += 1 + share(self.table.edges.len(), at, self.table.names.len());
                    let at = self.scattered(at, self.table.names.len());
                    let name = self.table.names[at];
                    if self.may_have_changed(name) {
                        match self.own(name) {
                            Some(own) => self.table.names[at] = self.parent[own],
                            None => return self.get(name, at),
                        }
                    }
                }
                Phase::Contracts => {
                    self.table.contract();
                    self.count(self.table.edges.len() as u64);
                }
                Phase::Counts { said: false, .. } => {
                    if self.counts_left > 0 {
                        return self.wait();
                    }
                    self.counts_left = self.children();
                    self.phase = Phase::Counts { said: true, child: 1 };
                    let counted = std::mem::take(&mut self.counted);
                    if self.me > 0 {
                        return self.post((self.me - 1) / 2, tag::COUNT, 0, counted);
                    }
                    self.total = Some(counted);
                }
                Phase::Counts { said: true, child } => {
                    let Some(total) = self.total else { return self.wait() };
                    if child < 3 {
                        self.phase = Phase::Counts { said: true, child: child + 1 };
                        let to = 2 * u64::from(self.me) + u64::from(child);
                        if to < u64::from(self.ranks) {
                            return self.post(to as u32, tag::TOTAL, 0, total);
                        }
                        continue;
                    }
                    self.total = None;
                    self.phase = match (self.jumping, total) {
                        (true, 0) => Phase::Over,
                        (true, _) | (false, 0) => Phase::LooksUp,
                        (false, few) if few <= self.parameters.edges_left_to_one.get() => Phase::Gathers { at: 0 },
                        _ => {
                            self.hooked.clear();
                            self.hooked.resize(self.table.names.len(), false);
                            Phase::Hooks { at: 0 }
                        }
                    };
                }
                Phase::Hooks { at } => {
                    let Some(&(a, b)) = self.table.edges.get(at) else {
                        self.phase = Phase::Renames { at: 0 };
                        self.round += 1;
                        return self.after_work(Op::StoreSync);
                    };
                    self.phase = Phase::Hooks { at: at + 1 };
                    self.owed += 1;
                    let [a_heads, b_heads] = [a, b].map(|end| self.heads(self.table.names[end as usize], self.round));
                    let (tail, head) = if a_heads { (b, a) } else { (a, b) };
                    if a_heads != b_heads && !self.hooked[tail as usize] {
                        self.hooked[tail as usize] = true;
                        let (tail, head) = (self.table.names[tail as usize], self.table.names[head as usize]);
                        if self.own(tail).is_some() {
                            self.hook(tail, head);
                        } else {
                            return self.post(self.owner(tail), tag::HOOK, tail, head);
                        }
                    }
                }
                Phase::Gathers { at } => {
                    let Some(&(a, b)) = self.table.edges.get(at) else {
                        self.phase = Phase::Gathered;
                        return self.after_work(Op::StoreSync);
                    };
                    self.phase = Phase::Gathers { at: at + 1 };
                    self.owed += 1;
                    let edge = (self.table.names[a as usize], self.table.names[b as usize]);
                    if self.me > 0 {
                        return self.post(0, tag::EDGE, edge.0, edge.1);
                    }
                    self.gathered.push(edge);
                }
                Phase::Gathered => {
                    self.table = Table::default();
                    self.finish();
                    self.phase = Phase::Spreads { at: 0 };
                }
                Phase::Spreads { at } => {
                    let Some(&(vertex, root)) = self.gathered.get(at) else {
                        self.phase = Phase::LooksUp;
                        return self.after_work(Op::StoreSync);
                    };
                    self.phase = Phase::Spreads { at: at + 1 };
                    match self.own(vertex) {
                        Some(own) => self.parent[own] = root,
                        None => return self.post(self.owner(vertex), tag::ROOT, vertex, root),
                    }
                }
                Phase::LooksUp => {
                    self.jumping = true;
                    self.look_up();
                    self.phase = Phase::Jumps { at: 0 };
                }
                Phase::Jumps { at } => {
                    if self.sync_is_due() {
                        return Op::Sync;
                    }
                    if at == self.asked.len() {
                        self.phase = Phase::Meets;
                        self.gets = 0;
                        return self.after_work(Op::Sync);
                    }
                    self.phase = Phase::Jumps { at: at + 1 };
                    self.owed += share(self.open.len(), at, self.asked.len());
                    let at = self.scattered(at, self.asked.len());
                    let (name, _) = self.asked[at];
                    match self.own(name) {
                        Some(own) => self.asked[at].1 = self.parent[own],
                        None => return self.get(name, at),
                    }
                }
                Phase::Meets => {
                    self.phase = Phase::Lands;
                    return Op::Barrier;
                }
                Phase::Lands => {
                    self.owed += self.open.len() as u64;
                    self.land();
                    self.count(self.open.len() as u64);
                }
                Phase::Over => return self.after_work(Op::Done),
            }
        }
    }

    fn handle(&mut self, _from: u32, kind: Kind, body: Body) -> Reply {
        let Body::Pair([word, value]) = body else { return Reply::default() };
        if kind == Kind::Get {
            let parent = self.parent[(word - self.first) as usize];
            return Reply { ns: 0, bytes: BYTES, body: Body::Pair([value, parent]) };
        }
        let vertex = word >> tag::BITS;
        match word & ((1 << tag::BITS) - 1) {
            tag::HOOK => self.hook(vertex, value),
            tag::COUNT => {
                self.counted += value;
                self.counts_left -= 1;
            }
            tag::TOTAL => self.total = Some(value),
            tag::EDGE => self.gathered.push((vertex, value)),
            _ => self.parent[(vertex - self.first) as usize] = value,
        }
        Reply::default()
    }

    fn answered(&mut self, _from: u32, body: Body) {
        if let Body::Pair([place, parent]) = body {
            if self.jumping {
                self.asked[place as usize].1 = parent;
            } else {
                self.table.names[place as usize] = parent;
            }
        }
    }

    fn result(&self) -> Vec<u64> {
        self.local.iter().map(|stands| self.parent[*stands as usize]).collect()
    }
}

impl ConnectRank {
    /// Hooks the own root `tail` onto `head`. Of several heads the smallest wins, so the order of messages does not
    /// matter.
    fn hook(&mut self, tail: u64, head: u64) {
        let parent = &mut self.parent[(tail - self.first) as usize];
        if *parent == tail || head < *parent {
            *parent = head;
        }
    }
}

fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Returns the share of `all` pieces of work for step `at` of `steps`. Spreading the work keeps arriving messages from
/// waiting for all of it.
fn share(all: usize, at: usize, steps: usize) -> u64 {
    ((at + 1) * all / steps - at * all / steps) as u64
}

/// Disjoint sets. The smallest member represents a set.
struct Sets(Vec<usize>);

impl Sets {
    fn new(members: usize) -> Self {
        Self((0..members).collect())
    }

    fn find(&mut self, mut member: usize) -> usize {
        while self.0[member] != member {
            self.0[member] = self.0[self.0[member]];
            member = self.0[member];
        }
        member
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}
