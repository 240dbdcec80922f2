//! Streams: when the next operation begins, and what is measured of completed operations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crosswind_schema::experiment::streams::{Arrivals, MessageDraws, Stream};

use super::engine::Engine;
use super::observer::Observer;
use crate::time::{NEVER, Nanos};

/// An operation of a stream in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Sequence number in order of start, from 0.
    number: u64,
    began: Nanos,
    gap: Nanos,
    /// Receivers that have not received their message, or not answered.
    left: u32,
}

pub(super) struct StreamState {
    draws: MessageDraws,
    arrivals: Arrivals,
    pub at_once: Option<u64>,
    pub routes: Vec<u32>,
    messages: u64,
    began: u64,
    bytes: u64,
    latencies: Vec<Nanos>,
    ended: Option<Nanos>,
    later: BinaryHeap<Reverse<Nanos>>,
}

#[derive(Clone, Debug)]
pub struct MeasuredStream {
    /// Latency of each timed operation, from its start to its completion, in order of completion, ns.
    pub latencies: Vec<Nanos>,
    /// Bytes of the timed operations that have started.
    pub bytes: u64,
    /// Time at which the last timed operation completed, ns. `None` if the measurement was abandoned first.
    pub ended: Option<Nanos>,
}

#[derive(Clone, Debug)]
pub struct Measured {
    /// Time at which everything timed had completed, or the measurement was abandoned, ns.
    pub ended: Nanos,
    /// Whether all timed messages completed.
    pub is_complete: bool,
    /// In the order of the experiment.
    pub streams: Vec<MeasuredStream>,
    /// Time at which the last process of each job ended, ns. `None` if the measurement was abandoned first or the job
    /// was absent.
    pub jobs: Vec<Option<Nanos>>,
    pub frames: u64,
    pub dropped: u64,
}

impl StreamState {
    pub fn new(stream: &Stream, place: usize, seed: u64) -> Self {
        Self {
            draws: MessageDraws::new(stream, place, seed),
            arrivals: stream.arrivals,
            at_once: stream.at_once(),
            routes: Vec::new(),
            messages: stream.messages.get(),
            began: 0,
            bytes: 0,
            latencies: Vec::new(),
            ended: None,
            later: BinaryHeap::new(),
        }
    }

    pub fn measured(self) -> MeasuredStream {
        MeasuredStream { latencies: self.latencies, bytes: self.bytes, ended: self.ended }
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Starts a stream's next operation.
    #[inline]
    pub fn begin(&mut self, stream: u32) {
        let state = &mut self.streams[stream as usize];
        let number = state.began;
        state.began += 1;
        let gap = state.draws.gap_ns();
        if state.arrivals == Arrivals::Open {
            let slot = self.agenda.layout.stream(stream);
            self.agenda.slots.set(slot, self.now.saturating_add(gap).min(NEVER));
        }
        let receivers = state.routes.len();
        let operation = self.operations.add(Operation { number, began: self.now, gap, left: receivers as u32 });
        for receiver in 0..receivers {
            let state = &mut self.streams[stream as usize];
            let (bytes, answer) = (state.draws.bytes(), state.draws.answer_bytes().unwrap_or(0));
            if number < state.messages {
                state.bytes += bytes + answer;
            }
            let route = state.routes[receiver];
            self.send(route, bytes as u32, operation, answer as u32);
        }
    }

    /// Records that one receiver of an operation has its message or has answered.
    #[inline]
    pub fn part_done(&mut self, stream: u32, operation: u32) {
        let of = &mut self.operations[operation];
        of.left -= 1;
        if of.left > 0 {
            return;
        }
        let Operation { number, began, gap, .. } = *of;
        self.operations.free(operation);
        let state = &mut self.streams[stream as usize];
        let arrivals = state.arrivals;
        if number < state.messages {
            state.latencies.push(self.now - began);
            if state.latencies.len() as u64 == state.messages {
                state.ended = Some(self.now);
                self.counts.unfinished -= 1;
            }
            self.has_progressed();
        }
        if arrivals == Arrivals::Open {
            return;
        }
        if gap == 0 {
            self.begin(stream);
            return;
        }
        let later = &mut self.streams[stream as usize].later;
        later.push(Reverse(self.now.saturating_add(gap).min(NEVER)));
        self.next_of(stream);
    }

    /// Handles a stream's timer: its next operation is due.
    pub fn on_stream(&mut self, stream: u32) {
        let state = &mut self.streams[stream as usize];
        if state.arrivals != Arrivals::Open {
            state.later.pop();
            self.next_of(stream);
        }
        self.begin(stream);
    }

    fn next_of(&mut self, stream: u32) {
        let next = self.streams[stream as usize].later.peek().map_or(NEVER, |&Reverse(at)| at);
        let slot = self.agenda.layout.stream(stream);
        self.agenda.slots.set(slot, next);
    }
}
