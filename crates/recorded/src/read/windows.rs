//! Windows of one-sided communication: which calls on them wait for which ranks.
//!
//! | call | waits for |
//! |---|---|
//! | making and freeing a window, a fence that ends an epoch | all ranks of the window |
//! | Win_start | Win_post of each rank of the group |
//! | Win_wait, Win_test | Win_complete of each rank of the group that Win_post named |
//!
//! The standard lets Win_start return before the others have posted. Open MPI and MPICH's device ch4 wait there; of
//! other libraries it is not known where they do. With MPI_MODE_NOCHECK ranks give no notice of a post, and none is waited
//! for. What locks wait for is not known.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::app_calls::{Begun, Left, ONE_SIDED};
use super::app_rank::{Call, Rank};
use crate::trace::{Event, Key, Kind, Part};

/// Bits of `tag`: assertions that the program made.
const NO_PRECEDE: i32 = 1;
const NO_SUCCEED: i32 = 2;
const NO_CHECK: i32 = 4;

pub struct Window {
    name: Arc<str>,
    /// A fence has begun an epoch that the next one ends.
    is_open: bool,
    /// Ranks of the world whose memory this one uses since Win_start, and those that use its own since Win_post.
    used: Vec<u32>,
    users: Vec<u32>,
    /// Notices so far, by kind, whether sent, and the other rank.
    notices: BTreeMap<(Notice, bool, u32), u32>,
}

/// What a rank lets another know about a window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Notice {
    Posted,
    Completed,
}

impl Window {
    pub fn new(name: Arc<str>) -> Self {
        Self { name, is_open: false, used: Vec::new(), users: Vec::new(), notices: BTreeMap::new() }
    }

    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }
}

impl Rank {
    /// Takes part in a fence or in the freeing of a window. A fence that ends no epoch need not wait for other ranks.
    pub(super) fn fence(&mut self, call: &Call) -> Begun<u32> {
        let Some(window) = self.windows.get_mut(&call.request) else { return Err(Left::Unmodelled(ONE_SIDED)) };
        if call.kind == 206 {
            let ends = std::mem::replace(&mut window.is_open, call.tag & NO_SUCCEED == 0) && call.tag & NO_PRECEDE == 0;
            if !ends {
                return Err(Left::Unmodelled("fences that end no epoch"));
            }
            self.synchronised = true;
        }
        self.at_window(call).ok_or(Left::Unmodelled(ONE_SIDED))
    }

    /// Begins or ends an epoch between groups: Win_start, Win_post, Win_complete, Win_wait. It waited since `since`.
    pub(super) fn epoch(&mut self, call: &Call, since: i64, ran: i64) -> Begun<()> {
        self.synchronised = true;
        let taken = match call.kind {
            _ if !self.starts_wait => None,
            208 => self.start_access(call, ran),
            209 => self.post(call, ran),
            210 => self.complete_access(call, ran),
            _ => self.wait_for_users(call, since, ran),
        };
        taken.ok_or(Left::Unmodelled(ONE_SIDED))
    }

    /// Returns the other ranks of the world in the group of a call. `None`: one is not of this world.
    fn others(&self, call: &Call) -> Option<Vec<u32>> {
        let me = self.trace.number();
        let ranks: Option<Vec<u32>> = call.extras.iter().map(|&(_, rank, _)| u32::try_from(rank).ok()).collect();
        ranks.map(|ranks| ranks.into_iter().filter(|&rank| rank != me).collect())
    }

    fn start_access(&mut self, call: &Call, ran: i64) -> Option<()> {
        let ranks = self.others(call)?;
        self.windows.get_mut(&call.request)?.used.extend(&ranks);
        if call.tag & NO_CHECK != 0 {
            return Some(());
        }
        let posts = self.notices(call, (Notice::Posted, Part::Takes), ranks, call.t0, ran)?;
        self.wait_for(&posts, (call.t0, call.t1));
        Some(())
    }

    fn post(&mut self, call: &Call, ran: i64) -> Option<()> {
        let ranks = self.others(call)?;
        self.windows.get_mut(&call.request)?.users.extend(&ranks);
        if call.tag & NO_CHECK == 0 {
            self.notices(call, (Notice::Posted, Part::Gives), ranks, call.t0, ran)?;
        }
        Some(())
    }

    fn complete_access(&mut self, call: &Call, ran: i64) -> Option<()> {
        let used = std::mem::take(&mut self.windows.get_mut(&call.request)?.used);
        self.notices(call, (Notice::Completed, Part::Gives), used, call.t0, ran)?;
        // What it waits for are transfers, which are not recorded.
        self.skipped(ONE_SIDED, call.t1 - call.t0);
        Some(())
    }

    fn wait_for_users(&mut self, call: &Call, since: i64, ran: i64) -> Option<()> {
        let users = std::mem::take(&mut self.windows.get_mut(&call.request)?.users);
        let ended = self.notices(call, (Notice::Completed, Part::Takes), users, since, ran)?;
        self.wait_for(&ended, (since, call.t1));
        Some(())
    }

    /// Adds notices to or from ranks, which begin at `start`. `None`: the window is not known.
    fn notices(
        &mut self,
        call: &Call,
        (notice, part): (Notice, Part),
        ranks: Vec<u32>,
        start: i64,
        mut ran: i64,
    ) -> Option<Vec<u32>> {
        let (kind, name) = match notice {
            Notice::Posted => (209, "win_post"),
            Notice::Completed => (210, "win_complete"),
        };
        let (me, name) = (self.trace.number(), self.name(kind, name));
        let mut events = Vec::with_capacity(ranks.len());
        for rank in ranks {
            let window = self.windows.get_mut(&call.request)?;
            let next = window.notices.entry((notice, part == Part::Gives, rank)).or_default();
            let (comm, number) = (Arc::clone(&window.name), *next);
            *next += 1;
            let (from, to) = if part == Part::Gives { (me, rank) } else { (rank, me) };
            let key = Key::Message { comm, from, to, tag: kind.into(), number };
            let name = Arc::clone(&name);
            let (since, end) = (start, start);
            let event = self.event(Event { key, part, name, size: 0, start, since, end, together: None });
            self.trace.push(Kind::Post, event, start, start, ran);
            ran = 0;
            events.push(event);
        }
        Some(events)
    }

    fn wait_for(&mut self, events: &[u32], (since, end): (i64, i64)) {
        let waits: Vec<(Kind, u32)> = events.iter().map(|&event| (Kind::Wait, event)).collect();
        self.waits(&waits, since, end, 0);
    }
}
