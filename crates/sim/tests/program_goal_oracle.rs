//! Random GOAL schedules checked against an independent implementation of the rules, which advances one step at a time,
//! earliest rank first. Compares the end of every rank to the nanosecond.
//!
//! The rules (`crosswind_program::goal`, docs/concepts/engine.md): a processor does one thing at a time, and only
//! outside the intervals of noise. When it is free, it handles packets that have passed the interface, in order. Then
//! it sends the next packet of a message that it has begun; only arrivals come in between. Without one, it executes the
//! first free operation. A send for which the interface is not free keeps its place, and computing continues meanwhile.
//! Nothing is handled between two consecutive computations, unless a send waits. A send occupies the processor for o,
//! and the interface for g + (s - 1) G from o before its end.
use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::programs::disturbed;
use crosswind_policy::window::WindowSettings;
use crosswind_program::goal::processors::RankProcessors;
use crosswind_program::{Goal, Program as _};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::{Network, simulate, simulate_processors};

/// The generator of random numbers, SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Send { to: usize, tag: u32, bytes: u64 },
    Receive { from: Option<usize>, tag: Option<u32> },
    Calc { ns: u64 },
}

/// Operations of a rank, each with those that it requires and whether they need only have begun.
type Plan = Vec<(Does, Vec<(usize, bool)>)>;

fn random_plans(random: &mut Random) -> Vec<Plan> {
    let ranks = 2 + random.below(3) as usize;
    let mut plans: Vec<Plan> = vec![Vec::new(); ranks];
    for _ in 0..random.below(12) {
        let from = random.below(ranks as u64) as usize;
        let to = if random.one_in(6) { from } else { (from + 1 + random.below(ranks as u64 - 1) as usize) % ranks };
        let tag = random.below(3) as u32;
        let bytes = [1, 1, 100, 3_000, 200_000][random.below(5) as usize];
        plans[from].push((Does::Send { to, tag, bytes }, Vec::new()));
        let receive =
            Does::Receive { from: (!random.one_in(4)).then_some(from), tag: (!random.one_in(4)).then_some(tag) };
        plans[to].push((receive, Vec::new()));
    }
    for plan in &mut plans {
        for _ in 0..random.below(6) {
            let ns = [0, 700, 1_500, 9_000, 60_000][random.below(5) as usize];
            plan.push((Does::Calc { ns }, Vec::new()));
        }
        for at in (1..plan.len()).rev() {
            plan.swap(at, random.below(at as u64 + 1) as usize);
        }
        for (at, (_, needs)) in plan.iter_mut().enumerate().skip(1) {
            for _ in 0..random.below(3) {
                let before = random.below(at as u64) as usize;
                if needs.iter().all(|&(there, _)| there != before) {
                    needs.push((before, random.one_in(3)));
                }
            }
        }
    }
    plans
}

fn text_of(plans: &[Plan]) -> String {
    let mut text = format!("num_ranks {}\n", plans.len());
    let any = |value: Option<u64>| value.map_or("-1".to_owned(), |value| value.to_string());
    for (rank, plan) in plans.iter().enumerate() {
        writeln!(text, "rank {rank} {{").unwrap();
        for (at, (does, _)) in plan.iter().enumerate() {
            match *does {
                Does::Send { to, tag, bytes } => writeln!(text, "l{at}: send {bytes}b to {to} tag {tag}"),
                // LogGOPSim writes the size here, too. It has no meaning.
                Does::Receive { from, tag } => {
                    let (from, tag) = (any(from.map(|from| from as u64)), any(tag.map(u64::from)));
                    writeln!(text, "l{at}: recv 1b from {from} tag {tag}")
                }
                Does::Calc { ns } => writeln!(text, "l{at}: calc {ns}"),
            }
            .unwrap();
        }
        for (at, (_, needs)) in plan.iter().enumerate() {
            for (before, begun) in needs {
                writeln!(text, "l{at} {} l{before}", if *begun { "irequires" } else { "requires" }).unwrap();
            }
        }
        text.push_str("}\n");
    }
    text
}

/// Times at which a processor is away, sorted.
type Noise = Vec<(u64, u64)>;

fn back(noise: &Noise, at: u64) -> u64 {
    noise.iter().find(|&&(begin, end)| begin <= at && at < end).map_or(at, |&(_, end)| end)
}

fn worked(noise: &Noise, mut at: u64, mut ns: u64) -> u64 {
    while ns > 0 {
        at = back(noise, at);
        let until = noise.iter().map(|&(begin, _)| begin).find(|&begin| begin > at).unwrap_or(u64::MAX);
        let now = ns.min(until - at);
        at += now;
        ns -= now;
    }
    at
}

struct Rank {
    plan: Plan,
    noise: Noise,
    begun: Vec<bool>,
    over: Vec<bool>,
    free: Vec<bool>,
    queue: VecDeque<usize>,
    posted: Vec<usize>,
    unexpected: Vec<(usize, u32)>,
    /// In the network or at the interface: arrival, source, number, tag, bytes, whether it is a message's last packet.
    coming: Vec<(u64, usize, u64, u32, u64, bool)>,
    /// Past the interface: time, source, tag, whether it is the last packet.
    here: VecDeque<(u64, usize, u32, bool)>,
    /// A partly sent message: operation, bytes left.
    sending: Option<(usize, u64)>,
    taken: Option<u64>,
    now: u64,
    interface: u64,
    sent: u64,
    after_computing: bool,
    end: u64,
}

impl Rank {
    fn new(plan: Plan, noise: Noise) -> Self {
        let count = plan.len();
        let mut rank = Self {
            plan,
            noise,
            begun: vec![false; count],
            over: vec![false; count],
            free: vec![false; count],
            queue: VecDeque::new(),
            posted: Vec::new(),
            unexpected: Vec::new(),
            coming: Vec::new(),
            here: VecDeque::new(),
            sending: None,
            taken: None,
            now: 0,
            interface: 0,
            sent: 0,
            after_computing: false,
            end: 0,
        };
        rank.release();
        rank
    }

    /// Finds the operations that have become free by scanning all of them until nothing changes.
    fn release(&mut self) {
        let mut new = Vec::new();
        loop {
            let ready: Vec<usize> = (0..self.plan.len())
                .filter(|&at| {
                    !self.free[at]
                        && self.plan[at].1.iter().all(|&(b, begun)| if begun { self.begun[b] } else { self.over[b] })
                })
                .collect();
            let mut posts = false;
            for at in ready {
                self.free[at] = true;
                let Does::Receive { from, tag } = self.plan[at].0 else {
                    new.push(at);
                    continue;
                };
                posts = true;
                self.begun[at] = true;
                match self.unexpected.iter().position(|&message| asks(from, tag, message)) {
                    Some(place) => {
                        self.unexpected.remove(place);
                        self.over[at] = true;
                    }
                    None => self.posted.push(at),
                }
            }
            if !posts {
                break;
            }
        }
        new.sort_by_key(|&at| (!matches!(self.plan[at].0, Does::Send { .. }), at));
        self.queue.extend(new);
    }

    fn done(&mut self, at: usize) {
        self.begun[at] = true;
        self.release();
        self.over[at] = true;
        self.release();
    }

    /// Passes packets that have arrived by a given time through the interface.
    fn take_in(&mut self, until: u64, network: &Network) {
        self.coming.sort_unstable();
        while self.coming.first().is_some_and(|message| message.0 <= until) {
            let (at, from, _, tag, bytes, last) = self.coming.remove(0);
            let gap = network.gap_ns.max(network.overhead_ns) + train(network, bytes);
            let at = self.taken.map_or(at, |taken| at.max(taken + gap));
            self.taken = Some(at);
            self.here.push_back((at, from, tag, last));
        }
    }

    /// Returns when the rank does its next step, as far as is known now.
    fn next(&self) -> Option<u64> {
        let computes = self.queue.iter().any(|&at| matches!(self.plan[at].0, Does::Calc { .. }));
        let works = match self.sending {
            Some(_) => Some(self.interface),
            None if computes => Some(self.now),
            None => (!self.queue.is_empty()).then_some(self.interface),
        };
        let here = self.here.front().map(|message| message.0);
        let coming = self.coming.iter().map(|message| message.0).min();
        let first = [works, here, coming].into_iter().flatten().min();
        first.map(|at| back(&self.noise, at.max(self.now)))
    }

    /// Performs one step. Returns the packet sent, if any: destination, arrival, number, tag, bytes, whether it is the
    /// last.
    fn step(&mut self, at: u64, network: &Network) -> Option<(usize, u64, u64, u32, u64, bool)> {
        self.now = at;
        self.take_in(at, network);
        let first = self.queue.front().map(|&at| self.plan[at].0);
        let goes_on_computing = self.after_computing && matches!(first, Some(Does::Calc { .. }));
        self.after_computing = false;
        if !goes_on_computing && self.here.front().is_some_and(|message| message.0 <= at) {
            let (_, from, tag, last) = self.here.pop_front().unwrap();
            self.now = worked(&self.noise, at, network.overhead_ns);
            self.end = self.now;
            if !last {
                return None;
            }
            let wanted = |rank: &Self, at: usize| match rank.plan[at].0 {
                Does::Receive { from: f, tag: t } => asks(f, t, (from, tag)),
                Does::Send { .. } | Does::Calc { .. } => false,
            };
            match self.posted.iter().position(|&at| wanted(self, at)) {
                Some(place) => {
                    let at = self.posted.remove(place);
                    self.over[at] = true;
                    self.release();
                }
                None => self.unexpected.push((from, tag)),
            }
            return None;
        }
        let begins = match first {
            Some(Does::Send { bytes, .. }) if self.sending.is_none() => Some((self.queue[0], bytes)),
            _ => self.sending,
        };
        if let Some((number, left)) = begins
            && self.interface <= at
            && let Does::Send { to, tag, .. } = self.plan[number].0
        {
            let is_first = self.sending.is_none();
            if is_first {
                self.queue.pop_front();
            }
            let bytes = left.min(u64::from(network.packet_bytes));
            let left = left - bytes;
            self.sending = (left > 0).then_some((number, left));
            self.now = worked(&self.noise, at, network.overhead_ns);
            self.end = self.now;
            self.interface = self.now - network.overhead_ns + network.gap_ns + train(network, bytes);
            self.sent += 1;
            if is_first {
                self.begun[number] = true;
                self.release();
            }
            if left == 0 {
                self.over[number] = true;
                self.release();
            }
            let arrival = self.now + network.latency_ns + train(network, bytes);
            return Some((to, arrival, self.sent, tag, bytes, left == 0));
        }
        if self.sending.is_some() {
            return None;
        }
        let place = self.queue.iter().position(|&at| matches!(self.plan[at].0, Does::Calc { .. }))?;
        let number = self.queue.remove(place).unwrap();
        let Does::Calc { ns } = self.plan[number].0 else { return None };
        self.now = worked(&self.noise, at, ns);
        self.end = self.now;
        self.after_computing = place == 0;
        self.done(number);
        None
    }
}

fn asks(from: Option<usize>, tag: Option<u32>, message: (usize, u32)) -> bool {
    from.is_none_or(|from| from == message.0) && tag.is_none_or(|tag| tag == message.1)
}

fn train(network: &Network, bytes: u64) -> u64 {
    (bytes - 1) * network.gap_per_byte_ns as u64
}

/// Returns when each rank did its last step, or `None` if one waits for ever.
fn ends(plans: &[Plan], noises: &[Noise], network: &Network) -> Option<Vec<u64>> {
    let mut ranks: Vec<Rank> = plans.iter().zip(noises).map(|(p, n)| Rank::new(p.clone(), n.clone())).collect();
    loop {
        let next = (0..ranks.len()).filter_map(|rank| Some((ranks[rank].next()?, rank))).min();
        let Some((at, rank)) = next else { break };
        if let Some((to, arrival, number, tag, bytes, last)) = ranks[rank].step(at, network) {
            ranks[to].coming.push((arrival, rank, number, tag, bytes, last));
        }
    }
    ranks.iter().all(|rank| rank.over.iter().all(|over| *over)).then(|| ranks.iter().map(|rank| rank.end).collect())
}

fn random_noises(random: &mut Random, ranks: usize) -> Vec<Noise> {
    let one = |random: &mut Random| {
        let (mut at, mut noise) = (0, Noise::new());
        for _ in 0..random.below(12) {
            let begin = at + 1 + random.below(30_000);
            at = begin + 1 + random.below(20_000);
            noise.push((begin, at));
        }
        noise
    };
    (0..ranks).map(|_| one(random)).collect()
}

fn timelines(noises: &[Noise], ranks: u32) -> Timelines {
    let mut source = "[[source]]\nkind = \"recorded\"\nlength_s = 1.0\naligned = true\ncauses = [\"x\"]\n".to_owned();
    for (cpu, noise) in noises.iter().enumerate() {
        let intervals: Vec<String> =
            noise.iter().map(|(begin, end)| format!("[{}e-9, {}e-9, 0]", begin, end - begin)).collect();
        writeln!(source, "[[source.cpu]]\ncpu = {cpu}\nintervals = [{}]", intervals.join(", ")).unwrap();
    }
    disturbed(&source, ranks, 1)
}

fn networks(random: &mut Random) -> Network {
    let (overhead_ns, gap_ns) = [(1_500, 1_000), (1_000, 4_000), (500, 500)][random.below(3) as usize];
    Network {
        fat_tree: None,
        latency_ns: 2_500,
        overhead_ns,
        gap_ns,
        gap_per_byte_ns: random.below(7) as f64,
        packet_bytes: [u32::MAX, 70_000, 1_500][random.below(3) as usize],
        acknowledgement_ns: 1_500,
        control_ns: 10_000,
    }
}

#[test]
fn random_schedules_end_when_the_rules_say() {
    let (mut whole, mut stuck) = (0, 0);
    for seed in 0..4_000 {
        let random = &mut Random(seed);
        let plans = random_plans(random);
        let network = networks(random);
        let noises = if seed % 2 == 0 { vec![Noise::new(); plans.len()] } else { random_noises(random, plans.len()) };
        let text = text_of(&plans);
        let goal = Goal::parse(text.as_bytes()).unwrap();
        let timelines = timelines(&noises, goal.ranks());
        let run = simulate(&goal, &network, WindowSettings::default(), &timelines, &mut |_| true);
        let found = run.ok().filter(|run| goal.check(&run.results()).is_ok());
        let found = found.map(|run| run.times.iter().map(|rank| rank.end_ns).collect::<Vec<u64>>());
        let expected = ends(&plans, &noises, &network);
        assert_eq!(found, expected, "seed {seed}, {network:?}, noise {noises:?}\n{text}");
        // An interface of several processors takes packets g apart; one of a single processor not faster than o.
        if network.gap_ns >= network.overhead_ns {
            let run = simulate_processors(&goal, &network, WindowSettings::default(), &timelines, &mut |_| true);
            let results = |ranks: &[RankProcessors]| ranks.iter().map(RankProcessors::result).collect::<Vec<_>>();
            let found = run.ok().filter(|run| goal.check(&results(&run.ranks)).is_ok());
            let found = found.map(|run| run.times.iter().map(|rank| rank.end_ns).collect::<Vec<u64>>());
            assert_eq!(
                found, expected,
                "as one of several processors: seed {seed}, {network:?}, noise {noises:?}\n{text}"
            );
        }
        *(if expected.is_some() { &mut whole } else { &mut stuck }) += 1;
    }
    assert!(whole > 2_000 && stuck > 20, "{whole} end, {stuck} are stuck");
}

#[test]
fn what_computes_does_not_wait_for_a_send_that_waits_for_the_interface() {
    let text = "num_ranks 2\nrank 0 {\nsend 1000000b to 1 tag 0\nsend 1b to 1 tag 1\ncalc 5000000\n}\n\
                rank 1 {\nrecv 1000000b from 0 tag 0\nrecv 1b from 0 tag 1\n}\n";
    let goal = Goal::parse(text.as_bytes()).unwrap();
    let network = Network { gap_per_byte_ns: 6.0, ..networks(&mut Random(0)) };
    let network = Network { overhead_ns: 1_500, gap_ns: 1_000, packet_bytes: u32::MAX, ..network };
    let run = simulate(&goal, &network, WindowSettings::default(), &Timelines::undisturbed(2), &mut |_| true).unwrap();
    // The result of LogGOPSim built from source: the second message has arrived while the first is being handled.
    assert_eq!(run.makespan_ns, 1_500 + 2_500 + 999_999 * 6 + 2 * 1_500);
}
