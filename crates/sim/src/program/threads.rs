//! One simulation on several threads: each advances a group of ranks.
//!
//! Nothing that a rank does in a window affects another in the same window. So at the end of each window every thread
//! posts what the others need: its packets to their ranks, the first window in which it has something to do, and its
//! part of the meetings. All threads read the same posts and compute the same next window from them, so there is no
//! coordinator and one wait per window.

use std::array;
use std::hint::spin_loop;
use std::mem;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use crosswind_policy::window::WindowSettings;
use crosswind_program::Program;
use crosswind_schema::disturbance::Timelines;

use super::group::{CHECKS_PER_CALL, Group};
use super::inbox::Packet;
use super::meeting::Meeting;
use super::network::Network;

/// Turns of a loop in which a thread waits for another before it offers its processor to others.
const SPINS: u32 = 1 << 12;

/// Why there is no outcome.
pub enum Ended {
    /// A rank met an error.
    ByError,
    Interrupted,
}

/// What a thread posts at the end of a window. Written and read as words, in one or two cache lines.
#[derive(Clone, Copy)]
struct Post {
    /// First window with a visit or with a packet for another group; `u64::MAX` if there is none.
    next: u64,
    /// Whether and why the thread ends.
    end: u64,
    operations: u64,
    one_way: u64,
    meeting: Meeting,
}

const GOES_ON: u64 = 0;
const ERROR: u64 = 1;
const INTERRUPTED: u64 = 2;
const WORDS: usize = 8;

impl Post {
    fn words(self) -> [u64; WORDS] {
        let [present, last, last_handled] = self.meeting.words();
        [self.next, self.end, self.operations, self.one_way, present, last, last_handled, 0]
    }

    fn of(words: [u64; WORDS]) -> Self {
        let [next, end, operations, one_way, present, last, last_handled, _] = words;
        Self { next, end, operations, one_way, meeting: Meeting::of_words([present, last, last_handled]) }
    }
}

/// A thread's posts of two windows: while one is read, the next is written.
#[repr(align(128))]
#[derive(Default)]
struct Board {
    /// Number of posts so far.
    posted: AtomicU64,
    words: [[AtomicU64; WORDS]; 2],
}

impl Board {
    fn post(&self, turn: u64, post: Post) {
        for (place, word) in self.words[turn as usize % 2].iter().zip(post.words()) {
            place.store(word, Ordering::Relaxed);
        }
        self.posted.store(turn + 1, Ordering::Release);
    }

    /// Waits for a thread's post of a turn.
    fn read(&self, turn: u64) -> Post {
        let mut spins = 0;
        while self.posted.load(Ordering::Acquire) <= turn {
            spins += 1;
            if spins < SPINS {
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
        if self.posted.load(Ordering::Acquire) == GONE {
            return Post { next: u64::MAX, end: ERROR, operations: 0, one_way: 0, meeting: Meeting::default() };
        }
        let words = &self.words[turn as usize % 2];
        Post::of(array::from_fn(|at| words[at].load(Ordering::Relaxed)))
    }
}

/// Value of [`Board::posted`] of a thread that panicked.
const GONE: u64 = u64::MAX;

/// Reports a thread that panics, so that the others do not wait for it.
struct Guard<'a>(&'a Board);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.posted.store(GONE, Ordering::Release);
        }
    }
}

type Mail = Mutex<Vec<(u32, Packet)>>;

/// Posts and mailboxes that all threads share.
struct Exchange {
    boards: Vec<Board>,
    /// Packets of two windows, from each group to each: `[turn % 2][from * groups + to]`.
    mail: [Vec<Mail>; 2],
    /// Ranks of a group; the last one has fewer.
    part: u32,
}

impl Exchange {
    fn new(groups: usize, part: u32) -> Self {
        let mail = || (0..groups * groups).map(|_| Mail::default()).collect();
        Self { boards: (0..groups).map(|_| Board::default()).collect(), mail: [mail(), mail()], part }
    }

    fn mail(&self, turn: u64, from: usize, to: usize) -> std::sync::MutexGuard<'_, Vec<(u32, Packet)>> {
        let place = &self.mail[turn as usize % 2][from * self.boards.len() + to];
        place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Simulates a program whose settings have been checked. Returns the groups of its ranks, in rank order.
pub fn simulate<P: Program>(
    program: &P,
    network: &Network,
    window: WindowSettings,
    timelines: &Timelines,
    threads: usize,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<Group<P::Rank>>, Ended> {
    let part = program.ranks().div_ceil(threads as u32);
    let groups = program.ranks().div_ceil(part) as usize;
    let exchange = &Exchange::new(groups, part);
    let run = |me: usize, watch: &mut dyn FnMut(u64) -> bool| {
        let _guard = Guard(&exchange.boards[me]);
        let first = me as u32 * part;
        let ranks = first..(first + part).min(program.ranks());
        let group = Group::new(program, network, window, timelines, ranks);
        Member { me, exchange, outgoing: (0..groups).map(|_| Vec::new()).collect(), group }.run(watch)
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the threads only share out the ranks: what happens, and when, does not depend on them"
    )]
    thread::scope(|scope| {
        let mut others: Vec<ScopedJoinHandle<'_, Result<Group<P::Rank>, Ended>>> = Vec::new();
        for me in 1..groups {
            let started =
                thread::Builder::new().name("simulation".into()).spawn_scoped(scope, move || run(me, &mut |_| true));
            let Ok(thread) = started else {
                // The system refuses a thread: those that have started end.
                exchange.boards.iter().for_each(|board| board.posted.store(GONE, Ordering::Release));
                return Err(Ended::ByError);
            };
            others.push(thread);
        }
        let first = run(0, watch);
        let others = others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    })
}

/// A thread and its group.
struct Member<'a, R> {
    me: usize,
    exchange: &'a Exchange,
    /// Packets to each other group.
    outgoing: Vec<Vec<(u32, Packet)>>,
    group: Group<R>,
}

impl<R: crosswind_program::Rank> Member<'_, R> {
    fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Group<R>, Ended> {
        let (mut checks, mut operations) = (0, 0);
        let mut window = 0;
        for turn in 0.. {
            let mut end = GOES_ON;
            match self.group.advance(window) {
                Ok(visits) => checks += visits * self.exchange.boards.len() as u64,
                Err(_) => end = ERROR,
            }
            if self.me == 0 && checks >= CHECKS_PER_CALL {
                checks = 0;
                if !watch(operations) {
                    end = INTERRUPTED;
                }
            }
            self.post(turn, end);
            let all = self.read(turn);
            operations = all.operations;
            match all.end {
                GOES_ON => {}
                INTERRUPTED => return Err(Ended::Interrupted),
                _ => return Err(Ended::ByError),
            }
            window = all.next;
            let (mut meeting, wires) = (all.meeting, &mut self.group.wires);
            if let Some(since) = meeting.over(wires.ranks, all.one_way) {
                let at = since + wires.network.control_ns;
                window = window.min(wires.windows.lengths.of(at));
                wires.totals.meetings += u64::from(self.me == 0);
                wires.meeting.start_next();
                self.group.release(at);
            }
            if window == u64::MAX {
                break;
            }
        }
        Ok(self.group)
    }

    /// Posts the window's results: packets first, then what announces them.
    fn post(&mut self, turn: u64, end: u64) {
        let wires = &self.group.wires;
        let mut first_packet = u64::MAX;
        for (to, packet) in self.group.away.drain(..) {
            first_packet = first_packet.min(packet.at);
            self.outgoing[(to / self.exchange.part) as usize].push((to, packet));
        }
        for (to, packets) in self.outgoing.iter_mut().enumerate().filter(|(_, packets)| !packets.is_empty()) {
            // What comes back is empty: the receiver has read it two turns ago.
            mem::swap(&mut *self.exchange.mail(turn, self.me, to), packets);
        }
        let mut next = wires.calendar.first().unwrap_or(u64::MAX);
        if first_packet < u64::MAX {
            next = next.min(wires.windows.lengths.of(first_packet));
        }
        let (operations, one_way, meeting) = (wires.totals.operations, wires.one_way, wires.meeting);
        self.exchange.boards[self.me].post(turn, Post { next, end, operations, one_way, meeting });
    }

    /// Reads all posts and takes in the packets. Returns the posts as one.
    fn read(&mut self, turn: u64) -> Post {
        let mut all = Post { next: u64::MAX, end: GOES_ON, operations: 0, one_way: 0, meeting: Meeting::default() };
        for from in 0..self.exchange.boards.len() {
            let post = self.exchange.boards[from].read(turn);
            all.next = all.next.min(post.next);
            all.end = all.end.max(post.end);
            all.operations += post.operations;
            all.one_way = all.one_way.wrapping_add(post.one_way);
            all.meeting.add(&post.meeting);
            if from != self.me {
                let mut mail = self.exchange.mail(turn, from, self.me);
                self.group.take_mail(&mut mail);
            }
        }
        all
    }
}
