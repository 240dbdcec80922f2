//! Programs for the tests of the engine: scripts, one list of operations per rank.
#![allow(dead_code)]

use crosswind_policy::window::WindowSettings;
use crosswind_program::{Body, Kind, Op, Program, Rank, Reply};
use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::KnownNetwork;
use crosswind_sim::SimError;
use crosswind_sim::program::{Network, Outcome, simulate};

/// Events at a rank, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    Handled { from: u32, kind: &'static str, word: u64 },
    Answered { from: u32, word: u64 },
}

/// A rank that executes a list of operations and keeps a log.
#[derive(Clone, Debug)]
pub struct Script {
    pub ops: Vec<Op>,
    pub next: usize,
    pub log: Vec<Event>,
    pub reply: Reply,
}

pub struct Scripts {
    pub ops: Vec<Vec<Op>>,
    pub handler_ns: u64,
    pub reply_bytes: u32,
}

pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Store => "store",
        Kind::Post => "post",
        Kind::Put => "put",
        Kind::Get => "get",
        Kind::Request => "request",
    }
}

fn word(body: &Body) -> u64 {
    match body {
        Body::Empty => 0,
        Body::Pair([word, _]) => *word,
        Body::Words(words) => words.first().copied().unwrap_or(0),
    }
}

impl Rank for Script {
    fn next(&mut self) -> Op {
        self.next += 1;
        self.ops.get(self.next - 1).cloned().unwrap_or(Op::Done)
    }

    fn handle(&mut self, from: u32, kind: Kind, body: Body) -> Reply {
        let word = word(&body);
        self.log.push(Event::Handled { from, kind: name(kind), word });
        Reply { body: Body::Pair([word, 0]), ..self.reply.clone() }
    }

    fn answered(&mut self, from: u32, body: Body) {
        self.log.push(Event::Answered { from, word: word(&body) });
    }
}

impl Program for Scripts {
    type Rank = Script;

    fn ranks(&self) -> u32 {
        self.ops.len() as u32
    }

    fn rank(&self, rank: u32) -> Script {
        let reply = Reply { ns: self.handler_ns, bytes: self.reply_bytes, body: Body::Empty };
        Script { ops: self.ops[rank as usize].clone(), next: 0, log: Vec::new(), reply }
    }
}

impl Scripts {
    pub fn new(ops: Vec<Vec<Op>>) -> Self {
        Self { ops, handler_ns: 0, reply_bytes: 1 }
    }

    /// Gives every rank the same list.
    pub fn alike(ranks: u32, ops: &[Op]) -> Self {
        Self::new((0..ranks).map(|_| ops.to_vec()).collect())
    }

    pub fn run(&self, network: &Network, window: WindowSettings, timelines: &Timelines) -> Outcome<Script> {
        simulate(self, network, window, timelines, &mut |_| true).unwrap()
    }

    /// Runs on an undisturbed CM-5 without windows.
    pub fn dedicated(&self) -> Outcome<Script> {
        self.run(&cm5(), WindowSettings::default(), &Timelines::undisturbed(self.ranks()))
    }

    pub fn fails(&self) -> SimError {
        let timelines = Timelines::undisturbed(self.ranks());
        simulate(self, &cm5(), WindowSettings::default(), &timelines, &mut |_| true).map(|_| ()).unwrap_err()
    }
}

pub fn cm5() -> Network {
    Network::of(&KnownNetwork::Cm5.network())
}

pub fn compute(ns: u64) -> Op {
    Op::Compute { ns }
}

pub fn message(to: u32, kind: Kind, bytes: u32, word: u64) -> Op {
    Op::Message { to, kind, bytes: bytes.into(), body: Body::Pair([word, 0]) }
}

/// Parses the sources of a disturbance from TOML.
pub fn disturbed(sources: &str, ranks: u32, seed: u64) -> Timelines {
    let text = format!("schema_version = 1\nname = \"test\"\n{sources}");
    Timelines::new(&Disturbance::from_toml(text.as_bytes(), "disturbance.toml").unwrap(), ranks, seed).unwrap()
}
