//! liballprof's text, one file a rank: `MPI_Recv:t0:buffer:count:type,size:peer:tag:comm:...:t1`, times in microseconds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MOST_RANKS, ReadError, json};
use crate::trace::{Event, Key, Kind, Part, Trace};

pub struct AllprofReader {
    trace: Trace,
    began: bool,
    collectives: u32,
    messages: BTreeMap<(bool, u32, i64), u32>,
    /// Calls that cannot be modelled, with their number.
    unknown: BTreeMap<String, u64>,
}

impl AllprofReader {
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self {
            trace: Trace { source: source.into(), ..Trace::default() },
            began: false,
            collectives: 0,
            messages: BTreeMap::new(),
            unknown: BTreeMap::new(),
        }
    }

    /// # Errors
    /// The line is wrong.
    pub fn line(&mut self, line: &[u8], number: u64) -> Result<(), ReadError> {
        if !line.starts_with(b"MPI_") {
            return if line.starts_with(b"#") {
                Ok(())
            } else {
                Err(ReadError::line(number, "it must begin with MPI_ or #"))
            };
        }
        let cells: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
        let name = cells[0];
        let last = cells[cells.len() - 1];
        if cells.len() < 3 || last == b"-" || matches!(name, b"MPI_Init" | b"MPI_Init_thread" | b"MPI_Finalize") {
            return Ok(());
        }
        let shown = |cell: &[u8]| String::from_utf8_lossy(&cell[..cell.len().min(40)]).into_owned();
        let time = |cell: &[u8]| {
            let time = json::scaled(cell, 3).filter(|time| time.abs() < 1 << 61);
            time.ok_or_else(|| ReadError::line(number, format!("{} is no time in microseconds", shown(cell))))
        };
        let (t0, t1) = (time(cells[1])?, time(last)?);
        if t1 < t0 {
            return Err(ReadError::line(number, "the call ends before it began"));
        }
        if !self.began {
            (self.trace.began, self.trace.ended, self.began) = (t0, t0, true);
        }
        let rank_of = |cell: Option<&&[u8]>, what: &str| {
            let rank =
                cell.and_then(|cell| json::scaled(cell, 0)).filter(|rank| (0..i64::from(MOST_RANKS)).contains(rank));
            rank.map(|rank| rank as u32)
                .ok_or_else(|| ReadError::line(number, format!("{what} must be a whole number from 0 to 999999")))
        };
        match name {
            b"MPI_Comm_rank" | b"MPI_Comm_size" => {
                let parts: Vec<&[u8]> = cells[2].split(|&byte| byte == b',').collect();
                if let [_, rank, size, ..] = parts[..] {
                    self.trace.rank = Some(rank_of(Some(&rank), "the rank")?);
                    self.trace.world = Some(rank_of(Some(&size), "the number of ranks")?);
                }
            }
            b"MPI_Send" | b"MPI_Ssend" | b"MPI_Rsend" | b"MPI_Bsend" | b"MPI_Recv" => {
                let sends = name != b"MPI_Recv";
                let peer = rank_of(cells.get(5), "the peer")?;
                let tag = cells.get(6).and_then(|cell| json::scaled(cell, 0));
                let tag = tag.ok_or_else(|| ReadError::line(number, "the tag must be a whole number"))?;
                let Some(me) = self.trace.rank else {
                    return Err(ReadError::line(
                        number,
                        "MPI_Comm_rank must come before the first message: it says the rank",
                    ));
                };
                let count = self.messages.entry((sends, peer, tag)).or_default();
                let (from, to) = if sends { (me, peer) } else { (peer, me) };
                let key = Key::Message { comm: "world".into(), from, to, tag, number: *count };
                *count += 1;
                let (part, name): (_, Arc<str>) =
                    if sends { (Part::Gives, "send".into()) } else { (Part::Takes, "recv".into()) };
                self.trace.push_blocking(
                    Event { key, part, name, size: 0, start: t0, since: t0, end: t1, together: None },
                    -1,
                );
            }
            b"MPI_Allreduce"
            | b"MPI_Barrier"
            | b"MPI_Allgather"
            | b"MPI_Allgatherv"
            | b"MPI_Alltoall"
            | b"MPI_Alltoallv"
            | b"MPI_Reduce_scatter" => {
                let key = Key::Collective { comm: "world".into(), number: self.collectives };
                self.collectives += 1;
                let name: Arc<str> = String::from_utf8_lossy(&name[4..]).to_lowercase().into();
                self.trace.push_blocking(
                    Event { key, part: Part::All, name, size: 0, start: t0, since: t0, end: t1, together: None },
                    -1,
                );
            }
            b"MPI_Wtime"
            | b"MPI_Get_processor_name"
            | b"MPI_Get_count"
            | b"MPI_Type_size"
            | b"MPI_Initialized"
            | b"MPI_Iprobe" => {}
            _ => {
                *self.unknown.entry(String::from_utf8_lossy(&name[..name.len().min(60)]).into_owned()).or_default() += 1
            }
        }
        Ok(())
    }

    /// # Errors
    /// The file holds no call.
    pub fn finish(mut self) -> Result<Trace, ReadError> {
        if self.trace.acts.is_empty() {
            return Err(ReadError::file("there are no messages and no collective operations"));
        }
        if let Some((name, count)) = self.unknown.iter().next() {
            self.trace
                .refusals
                .push(format!("{count} calls of {name} are not modelled: the waits in them are not seen"));
        }
        let ended = self.trace.ended;
        self.trace.push(Kind::Step, 0, ended, ended, -1);
        Ok(self.trace)
    }
}
