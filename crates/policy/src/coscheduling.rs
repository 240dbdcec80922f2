//! Buffered coscheduling: all nodes together decide once per slice which messages move.
//!
//! An application's call only enqueues ([`BufferedCoscheduling::post`]). At the end of each slice the nodes exchange
//! what was posted during it and schedule transfers for the next one ([`BufferedCoscheduling::next_slice`]). A message
//! posted in slice k therefore moves in slice k + 1 at the earliest, and its receiver is notified when that slice ends
//! (quadrics-overlap, preamble; F3-5). Meanwhile the processors are free to compute for that job or another.
//!
//! In a slice a node sends and receives at most what its link carries, in each direction. The oldest messages go first,
//! regardless of the job. No message starves, messages between the same pair keep their order, and no transfer is
//! omitted if both ends have room for it.
//!
//! Time, the cost of the exchange, and what the processors compute meanwhile are outside this module.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Requirement {
    id: u64,
    from: u32,
    to: u32,
    left: u64,
}

/// Bytes of a message that move in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub id: u64,
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// The outcome of the slice that ends and the schedule of the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Messages whose last byte moved in the slice that ends, oldest first.
    pub arrived: Vec<u64>,
    /// What moves in the slice that begins.
    pub transfers: Vec<Transfer>,
}

/// Why a message cannot be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpostable {
    /// One end is not a node.
    NoSuchNode,
    /// Both ends are the same node, which needs no network.
    ToItself,
}

/// The communication of all nodes.
///
/// # Examples
///
/// ```
/// use crosswind_policy::coscheduling::BufferedCoscheduling;
///
/// let mut slices = BufferedCoscheduling::new(2, 1000);
/// let id = slices.post(0, 1, 1500).unwrap();
/// let first = slices.next_slice();
/// assert_eq!((first.arrived.len(), first.transfers[0].bytes), (0, 1000));
/// assert_eq!(slices.next_slice().transfers[0].bytes, 500);
/// assert_eq!(slices.next_slice().arrived, [id]);
/// ```
#[derive(Clone, Debug)]
pub struct BufferedCoscheduling {
    nodes: u32,
    slice_bytes: u64,
    posted: Vec<Requirement>,
    exchanged: VecDeque<Requirement>,
    moving: Vec<Transfer>,
    ids: u64,
    /// Remaining capacity of the slice at each node, bytes: [to send, to receive].
    room: Vec<[u64; 2]>,
}

impl BufferedCoscheduling {
    /// `nodes` nodes, whose links carry `slice_bytes` bytes per slice in each direction, at least 1.
    #[must_use]
    pub fn new(nodes: u32, slice_bytes: u64) -> Self {
        Self {
            nodes,
            slice_bytes: slice_bytes.max(1),
            posted: Vec::new(),
            exchanged: VecDeque::new(),
            moving: Vec::new(),
            ids: 0,
            room: vec![[0; 2]; nodes as usize],
        }
    }

    /// Enqueues a message of `bytes` bytes, at least 1. Returns its number, counted from 0.
    ///
    /// # Errors
    /// If an end is not a node, or both ends are the same.
    pub fn post(&mut self, from: u32, to: u32, bytes: u64) -> Result<u64, Unpostable> {
        if from >= self.nodes || to >= self.nodes {
            return Err(Unpostable::NoSuchNode);
        }
        if from == to {
            return Err(Unpostable::ToItself);
        }
        let id = self.ids;
        self.ids += 1;
        self.posted.push(Requirement { id, from, to, left: bytes.max(1) });
        Ok(id)
    }

    /// Ends a slice and schedules the next from everything posted so far, including during the slice that ends.
    pub fn next_slice(&mut self) -> Slice {
        let mut arrived = Vec::new();
        for transfer in std::mem::take(&mut self.moving) {
            let Some(at) = self.exchanged.iter().position(|one| one.id == transfer.id) else { continue };
            self.exchanged[at].left -= transfer.bytes;
            if self.exchanged[at].left == 0 {
                self.exchanged.remove(at);
                arrived.push(transfer.id);
            }
        }
        self.exchanged.extend(self.posted.drain(..));
        self.room.fill([self.slice_bytes; 2]);
        let mut transfers = Vec::new();
        for one in &self.exchanged {
            let bytes = one.left.min(self.room[one.from as usize][0]).min(self.room[one.to as usize][1]);
            if bytes > 0 {
                self.room[one.from as usize][0] -= bytes;
                self.room[one.to as usize][1] -= bytes;
                transfers.push(Transfer { id: one.id, from: one.from, to: one.to, bytes });
            }
        }
        self.moving.clone_from(&transfers);
        Slice { arrived, transfers }
    }

    /// Number of messages posted and not yet arrived.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.posted.len() + self.exchanged.len()
    }
}
