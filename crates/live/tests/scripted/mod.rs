//! Fixture for programs whose ranks execute a list of operations: every rank on a thread, over real connections on
//! loopback.

use std::sync::mpsc;
use std::thread::JoinHandle;

use crosswind_access::Access;
use crosswind_access::token::Token;
use crosswind_live::LiveError;
use crosswind_live::log::Log;
use crosswind_live::ranks::{Conductor, ConductorConfig, Joined, Outcome, RankConfig, RanksSettings};
use crosswind_program::{Body, Kind, Op, Program, Rank, Reply};

/// The operations of every rank, and the results expected at the end.
#[derive(Clone, Default)]
pub struct Script {
    pub ops: Vec<Vec<Op>>,
    pub expected: Option<Vec<Vec<u64>>>,
}

/// A rank that sums and counts what arrives, by kind: stores, posts, puts, gets, requests, and answers.
#[derive(Clone, Default)]
pub struct Scripted {
    ops: std::collections::VecDeque<Op>,
    number: u32,
    waits: u64,
    pub sums: [u64; 6],
    pub counts: [u64; 6],
}

pub fn sum(body: &Body) -> u64 {
    match body {
        Body::Empty => 0,
        Body::Pair(pair) => pair.iter().fold(0, |sum, word| sum.wrapping_add(*word)),
        Body::Words(words) => words.iter().fold(0, |sum, word| sum.wrapping_add(*word)),
    }
}

impl Scripted {
    fn take(&mut self, place: usize, body: &Body) {
        self.sums[place] = self.sums[place].wrapping_add(sum(body));
        self.counts[place] += 1;
    }
}

impl Rank for Scripted {
    fn next(&mut self) -> Op {
        // In a list, a wait is for one more post. It is repeated as often as something else arrives.
        while self.ops.front() == Some(&Op::Wait) {
            if self.counts[Kind::Post as usize] <= self.waits {
                return Op::Wait;
            }
            self.waits += 1;
            self.ops.pop_front();
        }
        self.ops.pop_front().unwrap_or(Op::Done)
    }

    fn handle(&mut self, from: u32, kind: Kind, body: Body) -> Reply {
        self.take(kind as usize, &body);
        let own = u64::from(self.number);
        let answer = match kind {
            Kind::Get => Body::Pair([own, 1]),
            Kind::Request => Body::Words((0..100).map(|word| word + own + u64::from(from)).collect()),
            _ => Body::Empty,
        };
        Reply { ns: 0, bytes: 16, body: answer }
    }

    fn answered(&mut self, _: u32, body: Body) {
        self.take(5, &body);
    }

    fn result(&self) -> Vec<u64> {
        self.sums.iter().chain(&self.counts).copied().collect()
    }
}

impl Program for Script {
    type Rank = Scripted;

    fn ranks(&self) -> u32 {
        self.ops.len() as u32
    }

    fn rank(&self, number: u32) -> Scripted {
        Scripted { ops: self.ops[number as usize].clone().into(), number, ..Scripted::default() }
    }

    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        match &self.expected {
            Some(expected) if results != expected => Err(format!("{results:?} instead of {expected:?}")),
            _ => Ok(()),
        }
    }
}

pub fn message(to: u32, kind: Kind, bytes: u32, body: Body) -> Op {
    Op::Message { to, kind, bytes: bytes.into(), body }
}

/// Settings of a run that ends by itself, however slow the host is: its limit ends only one that hangs.
pub fn settings(ranks: usize, more: serde_json::Value) -> RanksSettings {
    let mut run =
        serde_json::json!({"ranks": ranks, "quiet_s": 0.1, "silence_s": 5.0, "start_s": 10.0, "limit_s": 600.0});
    run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(run).unwrap()
}

pub fn access() -> Access {
    Token::new("a token for tests only").unwrap().into()
}

pub fn conductor(run: RanksSettings) -> Conductor {
    let (listen, log) = ("127.0.0.1:0".into(), Log::on_stderr("conductor"));
    Conductor::open(ConductorConfig { run, listen, access: access(), log, held: false }).unwrap()
}

pub fn joining(conductor: &str, rank: u32) -> RankConfig {
    RankConfig {
        rank,
        conductor: conductor.into(),
        listen: "127.0.0.1:0".into(),
        access: access(),
        patience_s: 10.0,
        watch_input: false,
        log: Log::on_stderr(&format!("rank {rank}")),
    }
}

type RankThread = JoinHandle<Result<(), LiveError>>;

pub fn rank<P: Program + Clone + Send + 'static>(conductor: &str, rank: u32, program: &P) -> RankThread {
    let (config, program) = (joining(conductor, rank), program.clone());
    std::thread::spawn(move || Joined::join(config)?.run(&program))
}

/// Runs a program with every rank on a thread. Returns the result of the conductor, and of each rank.
pub fn run<P: Program + Clone + Send + 'static>(
    program: &P,
    more: serde_json::Value,
) -> (Result<Outcome, LiveError>, Vec<Result<(), LiveError>>) {
    let conductor = conductor(settings(program.ranks() as usize, more));
    let address = conductor.address().unwrap();
    let ranks: Vec<RankThread> = (0..program.ranks()).map(|number| rank(&address, number, program)).collect();
    let (told, zero) = mpsc::channel();
    let outcome = conductor.run(program, &mut |zero_ns| told.send(zero_ns).unwrap());
    if outcome.is_ok() {
        assert!(zero.recv().unwrap() > 0);
    }
    (outcome, ranks.into_iter().map(|rank| rank.join().unwrap()).collect())
}
