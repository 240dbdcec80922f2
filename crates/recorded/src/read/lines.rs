//! Lines of JSON: the calls of one rank, or step times of any ranks.
//!
//! ```text
//! {"rank": 0, "world": 4, "t0": 1790857026.1}
//! {"op": "send", "t0": 1790857026.2, "t1": 1790857026.3, "peer": 1, "tag": 7}
//! {"op": "sendwait", "t0": ..., "t1": ..., "peer": 1, "tag": 7}
//! {"op": "allreduce", "t0": ..., "t1": ..., "bytes": 8}
//! {"op": "step", "t0": ..., "t1": ...}
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::json;
use super::steps::StepTimes;
use super::{Found, MOST_RANKS, ReadError};
use crate::trace::{Event, Key, Kind, Part, Trace};

pub struct LinesReader {
    trace: Trace,
    began: bool,
    /// Number of the next collective of each communicator.
    collectives: BTreeMap<Arc<str>, u32>,
    /// Number of the next message of each (sends?, peer, tag).
    messages: BTreeMap<(bool, u32, i64), u32>,
    words: BTreeMap<Vec<u8>, Arc<str>>,
    /// Last send to each (peer, tag), for `sendwait`.
    sent: BTreeMap<(u32, i64), u32>,
    steps: StepTimes,
}

/// The fields of a line.
#[derive(Default)]
struct Line<'a> {
    op: Option<&'a [u8]>,
    rank: Option<u32>,
    world: Option<u32>,
    t0: Option<i64>,
    t1: Option<i64>,
    peer: Option<u32>,
    root: Option<u32>,
    tag: i64,
    bytes: u64,
    comm: Option<&'a [u8]>,
    step: Option<i64>,
    seconds: Option<i64>,
    start: Option<i64>,
    end: Option<i64>,
}

fn fields(line: &[u8], number: u64) -> Result<Line<'_>, ReadError> {
    let mut members = json::members(line).ok_or_else(|| ReadError::line(number, "it must be a JSON object"))?;
    let mut found = Line::default();
    for (key, value) in members.by_ref() {
        let field = || String::from_utf8_lossy(key).into_owned();
        let shown = || String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
        let wrong =
            |permitted: &str| ReadError::line(number, format!("{} is {}; it must be {permitted}", field(), shown()));
        let time = || {
            let time = json::scaled(value, 9).filter(|time| time.abs() < 1 << 61);
            time.ok_or_else(|| wrong("a number of seconds"))
        };
        let rank = || {
            let rank = json::scaled(value, 0).filter(|rank| (0..i64::from(MOST_RANKS)).contains(rank));
            rank.map(|rank| rank as u32).ok_or_else(|| wrong("a whole number from 0 to 999999"))
        };
        let whole = || json::scaled(value, 0).ok_or_else(|| wrong("a whole number"));
        match key {
            b"op" => {
                found.op = Some(
                    value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).ok_or_else(|| wrong("a string"))?,
                )
            }
            b"rank" => found.rank = Some(rank()?),
            b"world" | b"world_size" => found.world = Some(rank()?),
            b"t0" => found.t0 = Some(time()?),
            b"t1" => found.t1 = Some(time()?),
            b"peer" => found.peer = Some(rank()?),
            b"root" => found.root = Some(rank()?),
            b"tag" => found.tag = whole()?,
            b"bytes" => found.bytes = whole()?.unsigned_abs(),
            b"comm" => found.comm = Some(value),
            b"step" => found.step = Some(whole()?),
            b"seconds" => found.seconds = Some(time()?),
            b"start_s" => found.start = Some(time()?),
            b"end_s" => found.end = Some(time()?),
            _ => {}
        }
    }
    if members.is_broken() {
        return Err(ReadError::line(number, "it must be one whole JSON object"));
    }
    Ok(found)
}

impl LinesReader {
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self {
            trace: Trace { source: source.into(), ..Trace::default() },
            began: false,
            collectives: BTreeMap::new(),
            messages: BTreeMap::new(),
            words: BTreeMap::new(),
            sent: BTreeMap::new(),
            steps: StepTimes::default(),
        }
    }

    fn word(&mut self, text: &[u8]) -> Arc<str> {
        let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
        if let Some(word) = self.words.get(text) {
            return Arc::clone(word);
        }
        let word: Arc<str> = String::from_utf8_lossy(text).into();
        self.words.insert(text.to_vec(), Arc::clone(&word));
        word
    }

    /// # Errors
    /// The line is wrong.
    pub fn line(&mut self, line: &[u8], number: u64) -> Result<(), ReadError> {
        let found = fields(line, number)?;
        if let Some(step) = found.step.filter(|_| found.op.is_none()) {
            let rank = found.rank.ok_or_else(|| ReadError::line(number, "rank is missing"))?;
            self.steps.world = self.steps.world.max(found.world);
            return self.steps.add(rank, step, found.seconds, found.start.zip(found.end), number);
        }
        let Some(op) = found.op else {
            let t0 = found.t0.ok_or_else(|| ReadError::line(number, "t0 is missing: when the rank began, s"))?;
            if self.began {
                return Err(ReadError::line(number, "a second head; a file holds one rank, and its head comes first"));
            }
            self.trace.rank = Some(found.rank.ok_or_else(|| ReadError::line(number, "rank is missing"))?);
            self.trace.world = found.world;
            (self.trace.began, self.trace.ended, self.began) = (t0, t0, true);
            return Ok(());
        };
        if !self.began {
            return Err(ReadError::line(number, "the head is missing: a line with rank, world and t0 comes first"));
        }
        let missing = |field: &str| ReadError::line(number, format!("{field} is missing"));
        let t0 = found.t0.ok_or_else(|| missing("t0"))?;
        let t1 = found.t1.ok_or_else(|| missing("t1"))?;
        if t1 < t0 {
            return Err(ReadError::line(
                number,
                format!("t1 is {:.9} s before t0; a call ends after it began", (t0 - t1) as f64 * 1e-9),
            ));
        }
        let before = self.trace.acts.last().map_or(self.trace.began, |act| act.end);
        if t0 < before {
            return Err(ReadError::line(
                number,
                format!(
                    "t0 is {:.9} s before the last call ended; lines come in order of time",
                    (before - t0) as f64 * 1e-9
                ),
            ));
        }
        let me = self.trace.number();
        self.trace.sized |= found.bytes > 0;
        let comm = self.word(found.comm.unwrap_or(b"world"));
        match op {
            b"step" => self.trace.push(Kind::Step, 0, t0, t1, -1),
            b"sendwait" => {
                let peer = found.peer.ok_or_else(|| missing("peer"))?;
                let Some(&event) = self.sent.get(&(peer, found.tag)) else {
                    return Err(ReadError::line(
                        number,
                        format!("sendwait without a send to {peer} with tag {} before it", found.tag),
                    ));
                };
                (self.trace.events[event as usize].since, self.trace.events[event as usize].end) = (t0, t1);
                self.trace.push(Kind::WaitSent, event, t0, t1, -1);
            }
            b"send" | b"recv" => {
                let peer = found.peer.ok_or_else(|| missing("peer"))?;
                let sends = op == b"send";
                let count = self.messages.entry((sends, peer, found.tag)).or_default();
                let (from, to) = if sends { (me, peer) } else { (peer, me) };
                let key = Key::Message { comm, from, to, tag: found.tag, number: *count };
                *count += 1;
                let at = self.trace.events.len() as u32;
                let part = if sends { Part::Gives } else { Part::Takes };
                let name = self.word(op);
                self.trace.push_blocking(
                    Event { key, part, name, size: found.bytes, start: t0, since: t0, end: t1, together: None },
                    -1,
                );
                if sends {
                    self.sent.insert((peer, found.tag), at);
                }
            }
            _ => {
                let rooted = match op {
                    b"bcast" | b"broadcast" | b"scatter" | b"scatterv" => Some(true),
                    b"reduce" | b"gather" | b"gatherv" => Some(false),
                    _ => None,
                };
                let part = match (rooted, found.root) {
                    _ if matches!(op, b"scan" | b"exscan") => self.prefix(&comm),
                    (Some(from_root), Some(root)) if (root == me) == from_root => Part::Gives,
                    (Some(_), Some(_)) => Part::Takes,
                    _ => Part::All,
                };
                let count = self.collectives.entry(Arc::clone(&comm)).or_default();
                let key = Key::Collective { comm, number: *count };
                *count += 1;
                let name = self.word(op);
                self.trace.push_blocking(
                    Event { key, part, name, size: found.bytes, start: t0, since: t0, end: t1, together: None },
                    -1,
                );
            }
        }
        Ok(())
    }

    /// Returns the part in a scan. Only the world's order of ranks is known.
    fn prefix(&mut self, comm: &str) -> Part {
        let reason =
            "scans of communicators other than the world are not modelled: the order of their ranks is not known";
        if comm != "world" && !self.trace.refusals.iter().any(|refusal| refusal == reason) {
            self.trace.refusals.push(reason.into());
        }
        Part::Prefix(self.trace.number())
    }

    /// # Errors
    /// The file holds no call.
    pub fn finish(self) -> Result<Found, ReadError> {
        if !self.steps.is_empty() {
            if self.began {
                return Err(ReadError::file("step times and calls stand in one file; use two"));
            }
            return Ok(Found::Steps(Box::new(self.steps)));
        }
        if self.trace.acts.is_empty() {
            return Err(ReadError::file("there are no calls"));
        }
        Ok(Found::Trace(Box::new(self.trace)))
    }
}
