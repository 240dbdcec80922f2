//! The switches of both networks, the buffers between them, and the packets in the buffers.
//!
//! A switch of level l serves a group of 4^l nodes together with 2^(l - 1) - 1 others. It has a link down to each of
//! the four groups below and, except at the highest level, two links up. Each link ends in its own buffer, so the
//! buffer's index identifies the link.

use std::collections::VecDeque;

use crosswind_program::random::Stream;

use super::super::inbox::Packet;
use super::FatTree;

/// No buffer, packet or link.
const NONE: u32 = u32::MAX;
const CHILDREN: u32 = 4;
const PARENTS: u32 = 2;
/// Random stream of path choices.
const WAYS: u64 = 1;

/// Which of the two networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Requests,
    Replies,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    fn push(&mut self, next: &mut [u32], item: u32) {
        next[item as usize] = NONE;
        if self.first == NONE {
            self.first = item;
        } else {
            next[self.last as usize] = item;
        }
        self.last = item;
    }

    fn pop(&mut self, next: &[u32]) -> Option<u32> {
        let item = self.first;
        if item == NONE {
            return None;
        }
        self.first = next[item as usize];
        Some(item)
    }
}

/// Location of a buffer, which determines where its packets go next.
#[derive(Clone, Copy)]
enum At {
    /// At a node's interface, waiting to be sent on its only link.
    Sent { node: u32, link: u32 },
    /// At a node's interface, received.
    Received { node: u32 },
    /// At an input of a switch.
    Switch { switch: u32 },
}

/// A buffer, and the link that ends in it.
struct Buffer {
    packets: List,
    /// Free places. Packets on the link to it count as stored.
    room: u32,
    /// Buffer whose first packet is on the link, or [`NONE`].
    moving_from: u32,
    at: At,
    /// List of the buffers that wait for the link. The links up from one switch share a list.
    waiting: u32,
}

struct Switch {
    /// A node is below the switch if its number, shifted right by this many bits, equals `group`.
    bits: u32,
    group: u32,
    down: [u32; CHILDREN as usize],
    up: [u32; PARENTS as usize],
}

/// All packets in the network or at its ends.
#[derive(Default)]
struct Packets {
    packets: Vec<Packet>,
    to: Vec<u32>,
    /// Next packet in the same buffer.
    next: Vec<u32>,
    unused: Vec<u32>,
}

impl Packets {
    fn add(&mut self, to: u32, packet: Packet) -> u32 {
        if let Some(at) = self.unused.pop() {
            self.packets[at as usize] = packet;
            self.to[at as usize] = to;
            return at;
        }
        self.packets.push(packet);
        self.to.push(to);
        self.next.push(NONE);
        (self.packets.len() - 1) as u32
    }

    fn remove(&mut self, at: u32) -> Packet {
        self.unused.push(at);
        std::mem::replace(&mut self.packets[at as usize], Packet::ACKNOWLEDGEMENT)
    }
}

pub struct Switches {
    nodes: u32,
    /// Number of buffers per network.
    each: u32,
    link_ns: u64,
    buffers: Vec<Buffer>,
    switches: Vec<Switch>,
    packets: Packets,
    /// Lists of buffers whose first packet waits, and the next buffer in the same list.
    waiting: Vec<List>,
    next_waiting: Vec<u32>,
    /// Time at which each link's packet has crossed it. All links take the same time, so the queue is in order.
    moves: VecDeque<(u64, u32)>,
    ways: Stream,
    drawn: u64,
    /// Nodes to notify because a packet has arrived or a place has become free.
    pub notified: Vec<u32>,
}

/// Returns the number of switch levels above `nodes` nodes.
pub fn levels(nodes: u32) -> u32 {
    (1..16).find(|&level| nodes <= 1 << (2 * level)).unwrap_or(16)
}

impl Switches {
    /// Creates both networks for `nodes` nodes. `latency_ns`: latency of the longest path.
    pub fn new(nodes: u32, latency_ns: u64, settings: &FatTree) -> Self {
        let levels = levels(nodes);
        let mut tree = Self {
            nodes,
            each: 0,
            link_ns: (latency_ns / u64::from(2 * levels)).max(1),
            buffers: Vec::new(),
            switches: Vec::new(),
            packets: Packets::default(),
            waiting: Vec::new(),
            next_waiting: Vec::new(),
            moves: VecDeque::new(),
            ways: Stream::new(settings.seed, 0, WAYS),
            drawn: 0,
            notified: Vec::new(),
        };
        tree.add_network(levels, settings);
        tree.each = tree.buffers.len() as u32;
        tree.add_network(levels, settings);
        tree.next_waiting = vec![NONE; tree.buffers.len()];
        tree
    }

    fn add_buffer(&mut self, at: At, room: u32, waiting: u32) -> u32 {
        self.buffers.push(Buffer { packets: List::EMPTY, room, moving_from: NONE, at, waiting });
        (self.buffers.len() - 1) as u32
    }

    fn add_list(&mut self) -> u32 {
        self.waiting.push(List::EMPTY);
        (self.waiting.len() - 1) as u32
    }

    /// The nodes' buffers come first: those to send, then those to receive. [`Self::sent`] and [`Self::received`] rely
    /// on this.
    fn add_network(&mut self, levels: u32, settings: &FatTree) {
        let first = self.buffers.len() as u32;
        for node in 0..self.nodes {
            self.add_buffer(At::Sent { node, link: NONE }, settings.send_packets, NONE);
        }
        for node in 0..self.nodes {
            let waiting = self.add_list();
            self.add_buffer(At::Received { node }, settings.receive_packets, waiting);
        }
        // Switches of the level below, group by group.
        let mut below = Vec::new();
        for level in 1..=levels {
            let in_group = 1 << (level - 1);
            let groups = self.nodes.div_ceil(1 << (2 * level));
            let here: Vec<u32> = (0..groups * in_group).map(|at| self.add_switch(level, at / in_group)).collect();
            if level == 1 {
                for node in 0..self.nodes {
                    self.link_node(first, node, here[(node / CHILDREN) as usize], settings);
                }
            }
            for (at, &switch) in (0..).zip(&below) {
                let (group, place) = (at / (in_group / PARENTS), at % (in_group / PARENTS));
                let above = (group / CHILDREN) * in_group + PARENTS * place;
                self.link_switches(switch, group % CHILDREN, &here[above as usize..], settings);
            }
            below = here;
        }
    }

    fn add_switch(&mut self, level: u32, group: u32) -> u32 {
        let none = [NONE; CHILDREN as usize];
        self.switches.push(Switch { bits: 2 * level, group, down: none, up: [NONE; PARENTS as usize] });
        (self.switches.len() - 1) as u32
    }

    /// Links a node to its switch.
    fn link_node(&mut self, first: u32, node: u32, switch: u32, settings: &FatTree) {
        let waiting = self.add_list();
        let link = self.add_buffer(At::Switch { switch }, settings.buffer_packets, waiting);
        self.buffers[(first + node) as usize].at = At::Sent { node, link };
        self.switches[switch as usize].down[(node % CHILDREN) as usize] = first + self.nodes + node;
    }

    /// Links a switch, in the child group number `child`, to the first switches of `above`.
    fn link_switches(&mut self, switch: u32, child: u32, above: &[u32], settings: &FatTree) {
        let waits_for_any = self.add_list();
        for (place, &parent) in above.iter().take(PARENTS as usize).enumerate() {
            let up = self.add_buffer(At::Switch { switch: parent }, settings.buffer_packets, waits_for_any);
            self.switches[switch as usize].up[place] = up;
            let waiting = self.add_list();
            let down = self.add_buffer(At::Switch { switch }, settings.buffer_packets, waiting);
            self.switches[parent as usize].down[child as usize] = down;
        }
    }

    const fn sent(&self, node: u32, lane: Lane) -> u32 {
        self.each * lane as u32 + node
    }

    const fn received(&self, node: u32, lane: Lane) -> u32 {
        self.sent(node, lane) + self.nodes
    }

    /// Whether a node's interface has room for a packet to send.
    pub fn has_room(&self, node: u32, lane: Lane) -> bool {
        self.buffers[self.sent(node, lane) as usize].room > 0
    }

    /// Reserves a place at a node's interface for a packet that its processor is about to send. Requires a free place.
    pub fn reserve(&mut self, node: u32, lane: Lane) {
        let buffer = self.sent(node, lane);
        self.buffers[buffer as usize].room -= 1;
    }

    /// Enters a packet whose place was reserved, when the node's processor has finished with it.
    pub fn send(&mut self, node: u32, lane: Lane, to: u32, packet: Packet, now: u64) {
        let packet = self.packets.add(to, packet);
        self.put(self.sent(node, lane), packet, now);
    }

    /// Removes the next arrived packet at a node.
    pub fn take(&mut self, node: u32, lane: Lane, now: u64) -> Option<Packet> {
        let buffer = self.received(node, lane);
        let packet = self.buffers[buffer as usize].packets.pop(&self.packets.next)?;
        self.buffers[buffer as usize].room += 1;
        self.serve(buffer, now);
        Some(self.packets.remove(packet))
    }

    /// Returns when the next packet has crossed its link, or `u64::MAX` if none is on a link.
    pub fn next(&self) -> u64 {
        self.moves.front().map_or(u64::MAX, |&(at, _)| at)
    }

    /// Moves the next packet from its link into the buffer.
    pub fn step(&mut self) {
        let Some((now, link)) = self.moves.pop_front() else { return };
        let from = std::mem::replace(&mut self.buffers[link as usize].moving_from, NONE);
        let behind = &mut self.buffers[from as usize];
        let Some(packet) = behind.packets.pop(&self.packets.next) else { return };
        behind.room += 1;
        let is_empty = behind.packets.first == NONE;
        self.put(link, packet, now);
        self.serve(link, now);
        match self.buffers[from as usize].at {
            At::Sent { node, .. } => self.notified.push(node),
            At::Received { .. } | At::Switch { .. } => self.serve(from, now),
        }
        if !is_empty {
            self.offer(from, now);
        }
    }

    /// Number of packets in the network and at its ends.
    pub fn held(&self) -> usize {
        self.packets.packets.len() - self.packets.unused.len()
    }

    fn put(&mut self, buffer: u32, packet: u32, now: u64) {
        let own = &mut self.buffers[buffer as usize];
        let is_first = own.packets.first == NONE;
        own.packets.push(&mut self.packets.next, packet);
        match own.at {
            At::Received { node } => self.notified.push(node),
            At::Sent { .. } | At::Switch { .. } if is_first => self.offer(buffer, now),
            At::Sent { .. } | At::Switch { .. } => {}
        }
    }

    fn is_free(&self, link: u32) -> bool {
        let own = &self.buffers[link as usize];
        own.moving_from == NONE && own.room > 0
    }

    /// Moves a buffer's first packet onto a free link, or queues the buffer if none is free.
    fn offer(&mut self, buffer: u32, now: u64) {
        let own = &self.buffers[buffer as usize];
        let links = match own.at {
            At::Received { .. } => return,
            At::Sent { link, .. } => [link, NONE],
            At::Switch { switch } => self.links(switch, self.packets.to[own.packets.first as usize]),
        };
        let free = |link: u32| link != NONE && self.is_free(link);
        let link = match links.map(free) {
            [true, true] => {
                self.drawn += 1;
                links[(self.ways.bits(self.drawn) >> 63) as usize]
            }
            [true, false] => links[0],
            [false, true] => links[1],
            [false, false] => {
                let waiting = self.buffers[links[0] as usize].waiting;
                self.waiting[waiting as usize].push(&mut self.next_waiting, buffer);
                return;
            }
        };
        self.move_on(buffer, link, now);
    }

    /// Returns the links that a packet at a switch may take next.
    fn links(&self, switch: u32, to: u32) -> [u32; PARENTS as usize] {
        let own = &self.switches[switch as usize];
        if to >> own.bits == own.group {
            [own.down[((to >> (own.bits - 2)) % CHILDREN) as usize], NONE]
        } else {
            own.up
        }
    }

    fn move_on(&mut self, buffer: u32, link: u32, now: u64) {
        let own = &mut self.buffers[link as usize];
        own.moving_from = buffer;
        own.room -= 1;
        self.moves.push_back((now + self.link_ns, link));
    }

    /// Gives a link, if it is free, to the first buffer that waits for it.
    fn serve(&mut self, link: u32, now: u64) {
        if !self.is_free(link) {
            return;
        }
        let waiting = self.buffers[link as usize].waiting;
        if let Some(buffer) = self.waiting[waiting as usize].pop(&self.next_waiting) {
            self.move_on(buffer, link, now);
        }
    }
}
