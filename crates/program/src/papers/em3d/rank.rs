//! One rank of EM3D: it sets up its ghosts, then performs the steps.

use std::collections::BTreeMap;

use crosswind_schema::experiment::parameters::Cost;

use super::graph::{ELECTRIC, Graph, MAGNETIC};
use crate::op::{Body, Kind, Op};
use crate::random::Stream;
use crate::rank::{Rank, Reply};

/// Bytes of an address sent with the data of a store.
const ADDRESS_BYTES: u32 = 4;
const VALUE_BYTES: u32 = 8;
/// Payload of an active message: the number of a node.
const NODE_BYTES: u32 = 8;
/// Flag bits in the address of a store: the field, and whether the store gives the ghosts' base address instead of
/// values.
const FIELD: u64 = 1;
const BASE: u64 = 2;

/// One field as a rank sees it.
#[derive(Debug, Default)]
struct Field {
    values: Vec<f64>,
    /// Global numbers of all ghosts, ascending, so that those of one owner are contiguous.
    ghosts: Vec<u64>,
    /// Number of ghost values that have arrived but have not been used. Other ranks may be half a step ahead.
    arrived: usize,
    /// For each own node, its edges: index into the other field's `values`, and weight. In the order of the schedule,
    /// once that exists.
    edges: Vec<(u32, f32)>,
    /// Own nodes that each rank wants, and where they are stored there.
    wanted: BTreeMap<u32, Push>,
    schedule: Vec<Piece>,
}

#[derive(Debug, Default)]
struct Push {
    nodes: Vec<u32>,
    base: u64,
}

/// Nodes to compute, then the rank to send to.
#[derive(Debug, Default)]
struct Piece {
    nodes: Vec<u32>,
    first_edge: usize,
    to: Option<u32>,
}

#[derive(Debug)]
enum Phase {
    /// Requests ghost `at` of a field from its owner. Before the first of an owner, sends the base address.
    Asks {
        field: usize,
        at: usize,
        base_said: bool,
    },
    Gathers,
    /// Requests the initial value of magnetic ghost `at`.
    Fetches {
        at: usize,
    },
    Steps {
        piece: usize,
    },
    Over,
}

#[derive(Debug)]
pub struct Em3dRank {
    me: u32,
    nodes: usize,
    degree: u64,
    operation: Cost,
    order: Stream,
    fields: [Field; 2],
    phase: Phase,
    half_steps_left: u64,
    field: usize,
    /// The operation that follows the computation issued last.
    then: Option<Op>,
    /// Order in which the initial values of magnetic ghosts are requested.
    fetch_order: Vec<u32>,
}

impl Em3dRank {
    pub(super) fn new(graph: &Graph, me: u32, steps: u64, operation: Cost) -> Self {
        let first = u64::from(me) * graph.nodes;
        let own = first..first + graph.nodes;
        let mut fields = [Field::default(), Field::default()];
        for field in [ELECTRIC, MAGNETIC] {
            let edges: Vec<_> = own.clone().flat_map(|node| graph.edges(field, node)).collect();
            let mut ghosts: Vec<u64> = edges.iter().map(|e| e.source).filter(|n| !own.contains(n)).collect();
            ghosts.sort_unstable();
            ghosts.dedup();
            fields[field].edges = edges
                .iter()
                .map(|edge| {
                    let place = if own.contains(&edge.source) {
                        edge.source - first
                    } else {
                        graph.nodes + ghosts.partition_point(|ghost| *ghost < edge.source) as u64
                    };
                    (place as u32, edge.weight)
                })
                .collect();
            let other = &mut fields[1 - field];
            other.values = own.clone().map(|node| graph.start(1 - field, node)).collect();
            other.values.resize(graph.nodes as usize + ghosts.len(), 0.0);
            other.ghosts = ghosts;
        }
        Self {
            me,
            nodes: graph.nodes as usize,
            degree: graph.degree,
            operation,
            order: Stream::new(graph.seed, u64::from(me), 5),
            fields,
            phase: Phase::Asks { field: ELECTRIC, at: 0, base_said: false },
            half_steps_left: 2 * steps,
            field: ELECTRIC,
            then: None,
            fetch_order: Vec::new(),
        }
    }

    /// Returns the field that the current half-step reads.
    fn source(&self) -> &Field {
        &self.fields[1 - self.field]
    }

    fn owner(&self, node: u64) -> u32 {
        (node / self.nodes as u64) as u32
    }

    /// Computes for `edges` edges, then executes `then`.
    fn after(&mut self, edges: u64, then: Op) -> Op {
        self.then = Some(then);
        Op::Compute { ns: self.operation.ns(edges) }
    }

    /// Orders the computation of a half-step so that the values for each destination are ready early, and values that
    /// no other rank wants fill the time between two sends.
    fn make_schedule(&mut self, field: usize) {
        let me = &mut self.fields[field];
        for push in me.wanted.values_mut() {
            push.nodes.sort_unstable();
        }
        let mut destinations: Vec<u32> = me.wanted.keys().copied().collect();
        Stream::new(self.order.bits(0), field as u64, 0).shuffle(&mut destinations);
        let mut computed = vec![false; self.nodes];
        let mut pieces: Vec<Piece> = Vec::with_capacity(destinations.len() + 1);
        for to in destinations {
            let nodes: Vec<u32> = me.wanted[&to].nodes.iter().copied().filter(|n| !computed[*n as usize]).collect();
            nodes.iter().for_each(|node| computed[*node as usize] = true);
            pieces.push(Piece { nodes, first_edge: 0, to: Some(to) });
        }
        pieces.push(Piece::default());
        let inner: Vec<u32> = (0..self.nodes as u32).filter(|node| !computed[*node as usize]).collect();
        let shares = pieces.len();
        for (share, piece) in pieces.iter_mut().enumerate() {
            let range = share * inner.len() / shares..(share + 1) * inner.len() / shares;
            piece.nodes.extend_from_slice(&inner[range]);
        }
        let degree = self.degree as usize;
        let scheduled = pieces.iter().flat_map(|piece| &piece.nodes);
        me.edges = scheduled.flat_map(|node| me.edges[*node as usize * degree..][..degree].iter().copied()).collect();
        let mut first = 0;
        for piece in &mut pieces {
            piece.first_edge = first;
            first += piece.nodes.len() * degree;
        }
        me.schedule = pieces;
    }

    /// Computes the values of one piece. Returns the computation, followed by their store or the barrier.
    fn compute(&mut self, piece: usize) -> Op {
        let [electric, magnetic] = &mut self.fields;
        let (target, source) = if self.field == ELECTRIC { (electric, &*magnetic) } else { (magnetic, &*electric) };
        let degree = self.degree as usize;
        let piece = &target.schedule[piece];
        let edges = target.edges[piece.first_edge..].chunks_exact(degree);
        for (node, edges) in piece.nodes.iter().zip(edges) {
            target.values[*node as usize] = edges
                .iter()
                .fold(0.0, |sum, (place, weight)| sum + f64::from(*weight) * source.values[*place as usize]);
        }
        let edges = piece.nodes.len() as u64 * self.degree;
        let then = match piece.to {
            Some(to) => {
                let push = &target.wanted[&to];
                let address = push.base << 2 | self.field as u64;
                let values = push.nodes.iter().map(|node| target.values[*node as usize].to_bits());
                let bytes = ADDRESS_BYTES + VALUE_BYTES * push.nodes.len() as u32;
                let body = match push.nodes.as_slice() {
                    [node] => Body::Pair([address, target.values[*node as usize].to_bits()]),
                    _ => Body::Words(std::iter::once(address).chain(values).collect()),
                };
                Op::Message { to, kind: Kind::Store, bytes: bytes.into(), body }
            }
            None => {
                self.half_steps_left -= 1;
                self.field = 1 - self.field;
                Op::Barrier
            }
        };
        self.after(edges, then)
    }
}

impl Rank for Em3dRank {
    fn next(&mut self) -> Op {
        if let Some(op) = self.then.take() {
            return op;
        }
        loop {
            match self.phase {
                Phase::Asks { field, at, base_said } => {
                    let ghosts = &self.fields[field].ghosts;
                    let Some(&node) = ghosts.get(at) else {
                        self.phase = if field == ELECTRIC {
                            Phase::Asks { field: MAGNETIC, at: 0, base_said: false }
                        } else {
                            Phase::Gathers
                        };
                        continue;
                    };
                    let to = self.owner(node);
                    let first_of_owner = at == 0 || self.owner(ghosts[at - 1]) != to;
                    if first_of_owner && !base_said {
                        self.phase = Phase::Asks { field, at, base_said: true };
                        let body = Body::Pair([((self.nodes + at) as u64) << 2 | BASE | field as u64, 0]);
                        return Op::Message { to, kind: Kind::Store, bytes: (ADDRESS_BYTES + 4).into(), body };
                    }
                    self.phase = Phase::Asks { field, at: at + 1, base_said: false };
                    let body = Body::Pair([node, field as u64]);
                    // Looking up a ghost costs about as much as computing an own node.
                    return self
                        .after(self.degree, Op::Message { to, kind: Kind::Post, bytes: NODE_BYTES.into(), body });
                }
                Phase::Gathers => {
                    self.phase = Phase::Fetches { at: 0 };
                    return Op::StoreSync;
                }
                Phase::Fetches { at } => {
                    if at == 0 {
                        self.make_schedule(ELECTRIC);
                        self.make_schedule(MAGNETIC);
                        self.fetch_order = (0..self.fields[MAGNETIC].ghosts.len() as u32).collect();
                        self.order.shuffle(&mut self.fetch_order);
                    }
                    let Some(ghost) = self.fetch_order.get(at) else {
                        self.phase = Phase::Steps { piece: 0 };
                        return Op::Sync;
                    };
                    let node = self.fields[MAGNETIC].ghosts[*ghost as usize];
                    self.phase = Phase::Fetches { at: at + 1 };
                    let (to, body) = (self.owner(node), Body::Pair([node, u64::from(*ghost)]));
                    return self
                        .after(self.degree, Op::Message { to, kind: Kind::Request, bytes: NODE_BYTES.into(), body });
                }
                Phase::Steps { .. } if self.half_steps_left == 0 => self.phase = Phase::Over,
                // All ranks have stored what this half-step reads, but it may not have been handled here. A barrier
                // does not ensure that, so the rank waits for its own data only.
                Phase::Steps { piece: 0 } if self.source().arrived < self.source().ghosts.len() => return Op::Wait,
                Phase::Steps { piece } => {
                    if piece == 0 {
                        let source = &mut self.fields[1 - self.field];
                        source.arrived -= source.ghosts.len();
                    }
                    let last = piece + 1 == self.fields[self.field].schedule.len();
                    self.phase = Phase::Steps { piece: if last { 0 } else { piece + 1 } };
                    return self.compute(piece);
                }
                Phase::Over => return Op::Done,
            }
        }
    }

    fn handle(&mut self, from: u32, kind: Kind, body: Body) -> Reply {
        let first = u64::from(self.me) * self.nodes as u64;
        match (kind, body) {
            (Kind::Post, Body::Pair([node, field])) => {
                self.fields[field as usize].wanted.entry(from).or_default().nodes.push((node - first) as u32);
            }
            (Kind::Store, Body::Pair([address, _])) if address & BASE != 0 => {
                self.fields[(address & FIELD) as usize].wanted.entry(from).or_default().base = address >> 2;
            }
            (Kind::Store, Body::Pair([address, value])) => {
                let field = &mut self.fields[(address & FIELD) as usize];
                field.values[(address >> 2) as usize] = f64::from_bits(value);
                field.arrived += 1;
            }
            (Kind::Store, Body::Words(words)) => {
                if let [address, values @ ..] = &*words {
                    let (field, base) = ((address & FIELD) as usize, (address >> 2) as usize);
                    let field = &mut self.fields[field];
                    for (ghost, value) in field.values[base..].iter_mut().zip(values) {
                        *ghost = f64::from_bits(*value);
                    }
                    field.arrived += values.len();
                }
            }
            (Kind::Request, Body::Pair([node, ghost])) => {
                let value = self.fields[MAGNETIC].values[(node - first) as usize];
                let body = Body::Pair([ghost, value.to_bits()]);
                return Reply { ns: 0, bytes: ADDRESS_BYTES + VALUE_BYTES, body };
            }
            _ => {}
        }
        Reply::default()
    }

    fn answered(&mut self, _from: u32, body: Body) {
        if let Body::Pair([ghost, value]) = body {
            self.fields[MAGNETIC].values[self.nodes + ghost as usize] = f64::from_bits(value);
            self.fields[MAGNETIC].arrived += 1;
        }
    }

    fn result(&self) -> Vec<u64> {
        self.fields.iter().flat_map(|field| &field.values[..self.nodes]).map(|value| value.to_bits()).collect()
    }
}
