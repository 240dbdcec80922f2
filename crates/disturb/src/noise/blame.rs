//! Attributes gaps to causes, by comparing the turns in the kernel's trace with the gaps seen by the loop.
//!
//! The loop knows its absence to tens of nanoseconds; the kernel's trace knows to a microsecond what ran meanwhile. A
//! gap is cut where the CPU passes from one cause to another. The time before the first turn and after the last
//! (entry, exit, the switch itself) counts to them. A gap without any recorded event is attributed to the hypervisor
//! or the hardware.

use std::collections::VecDeque;

use super::events::{CauseId, LOOP, OWN, Turn, UNKNOWN};
use super::gaps::Gap;

/// The kernel writes whole microseconds and rounds down.
const BLUR_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub start_ns: u64,
    pub end_ns: u64,
    pub cause: CauseId,
}

/// Turns of one CPU, the earliest first, and the cause that had it before them.
#[derive(Debug)]
pub struct Turns {
    waiting: VecDeque<Turn>,
    before: CauseId,
}

impl Default for Turns {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), before: LOOP }
    }
}

impl Turns {
    pub fn push(&mut self, turn: Turn) {
        // The trace of one CPU is in order, except for clock errors of virtual machines.
        let from_ns = self.waiting.back().map_or(turn.from_ns, |last| turn.from_ns.max(last.from_ns));
        self.waiting.push_back(Turn { from_ns, ..turn });
    }

    fn drop_before(&mut self, time_ns: u64) {
        while self.waiting.front().is_some_and(|turn| turn.from_ns < time_ns) {
            self.before = self.waiting.pop_front().map_or(self.before, |turn| turn.cause);
        }
    }

    /// Cuts a gap into pieces by cause. Gaps must arrive in order; turns before this one are dropped.
    pub fn pieces(&mut self, gap: Gap, pieces: &mut Vec<Piece>) {
        self.drop_before(gap.start_ns.saturating_sub(BLUR_NS));
        let first = pieces.len();
        let turns = self.waiting.iter().take_while(|turn| turn.from_ns <= gap.end_ns);
        let (mut cause, mut from) = (self.before, gap.start_ns);
        for turn in turns {
            let at = turn.from_ns.clamp(from, gap.end_ns);
            add(pieces, first, Piece { start_ns: from, end_ns: at, cause });
            (cause, from) = (turn.cause, at);
        }
        add(pieces, first, Piece { start_ns: from, end_ns: gap.end_ns, cause });
        // A turn recorded only within the tolerance counts as well.
        if pieces.len() == first {
            let seen = self.waiting.iter().take_while(|turn| turn.from_ns <= gap.end_ns).map(|turn| turn.cause);
            let cause = seen.chain([self.before]).find(|cause| *cause != LOOP).unwrap_or(UNKNOWN);
            pieces.push(Piece { start_ns: gap.start_ns, end_ns: gap.end_ns, cause });
        } else {
            pieces[first].start_ns = gap.start_ns;
            let last = pieces.len() - 1;
            pieces[last].end_ns = gap.end_ns;
        }
    }
}

/// Adds a piece. The loop's own time, on the way in and out, extends the piece before it.
fn add(pieces: &mut Vec<Piece>, first: usize, piece: Piece) {
    if piece.end_ns <= piece.start_ns {
        return;
    }
    let known = pieces.len() > first;
    let start_ns = match pieces.last_mut().filter(|_| known) {
        Some(last) if piece.cause == LOOP || last.cause == piece.cause => {
            last.end_ns = piece.end_ns;
            return;
        }
        None if piece.cause == LOOP => return,
        Some(last) => last.end_ns,
        None => piece.start_ns,
    };
    pieces.push(Piece { start_ns, ..piece });
}

/// Whether the recorder itself causes this noise, which a recording leaves out.
#[must_use]
pub fn is_own(cause: CauseId) -> bool {
    cause == OWN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(gap: (u64, u64), turns: &[(u64, CauseId)]) -> Vec<(u64, u64, CauseId)> {
        let mut known = Turns::default();
        turns.iter().for_each(|(from_ns, cause)| known.push(Turn { from_ns: *from_ns, cause: *cause }));
        let mut pieces = Vec::new();
        known.pieces(Gap { start_ns: gap.0, end_ns: gap.1, preempted: false, throttled: false }, &mut pieces);
        pieces.iter().map(|piece| (piece.start_ns, piece.end_ns, piece.cause)).collect()
    }

    #[test]
    fn a_gap_is_cut_where_the_turn_passes_and_the_way_in_and_out_goes_to_the_first_and_the_last() {
        let turns = [(11_000, 0), (14_000, 1), (18_000, LOOP)];
        assert_eq!(cut((10_500, 18_400), &turns), [(10_500, 14_000, 0), (14_000, 18_400, 1)]);
    }

    #[test]
    fn a_moment_of_the_loop_between_two_goes_to_the_one_before() {
        let turns = [(11_000, 0), (14_000, LOOP), (14_500, 1), (18_000, LOOP)];
        assert_eq!(cut((10_500, 18_400), &turns), [(10_500, 14_500, 0), (14_500, 18_400, 1)]);
    }

    #[test]
    fn a_gap_within_one_microsecond_is_whose_turn_was_seen_there() {
        assert_eq!(cut((10_700, 12_300), &[(10_000, 3), (10_000, LOOP)]), [(10_700, 12_300, 3)]);
    }

    #[test]
    fn a_gap_in_which_the_kernel_recorded_nothing_is_unknown() {
        assert_eq!(cut((50_000, 90_000), &[(10_000, 3), (12_000, LOOP)]), [(50_000, 90_000, UNKNOWN)]);
    }

    #[test]
    fn pieces_cover_their_gap_and_follow_one_another() {
        let turns: Vec<(u64, CauseId)> =
            (0..100).map(|at| (at * 700, if at % 3 == 0 { LOOP } else { (at % 5) as CauseId })).collect();
        let pieces = cut((5_100, 33_333), &turns);
        assert_eq!((pieces[0].0, pieces[pieces.len() - 1].1), (5_100, 33_333));
        assert!(pieces.windows(2).all(|pair| pair[0].1 == pair[1].0 && pair[0].2 != pair[1].2));
    }
}
