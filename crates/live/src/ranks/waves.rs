//! Termination detection: polls all ranks twice, so that no change between two answers is overlooked.
//!
//! It counts in two waves (Mattern, "Algorithms for distributed termination detection", 1987, section 4). Each rank
//! reports its activity and how many frames it has sent and handled. The second wave begins after the first ends. If
//! every rank has the same counts in both waves and proceeds by itself in neither, then all were idle at the moment
//! between them. If also as many frames were handled as were sent, none was in flight. Then nothing can ever move: the
//! program is over, or stuck.
//!
//! A stopped rank does not answer, so a pause of any length is not taken for a deadlock. The module uses no clock and no
//! I/O.

use super::wire::State;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub state: State,
    /// Frames sent to other ranks, then frames of other ranks handled, since the start.
    pub sent: u64,
    pub handled: u64,
    /// Description of what the rank waits for.
    pub what: String,
}

/// Result of one wave of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Moving,
    /// All ranks are done, and no frame is in flight.
    Over,
    /// Nothing can move, and not all ranks are done.
    Stuck,
}

/// The waves of a run.
#[derive(Debug)]
pub(super) struct Waves {
    number: u64,
    answers: Vec<Option<Answer>>,
    missing: usize,
    previous: Option<Vec<Answer>>,
    /// Whether the conductor itself has released ranks since the previous wave ended.
    stirred: bool,
}

impl Waves {
    pub fn new(ranks: usize) -> Self {
        Self { number: 0, answers: vec![None; ranks], missing: 0, previous: None, stirred: true }
    }

    /// Begins a wave and returns its number.
    pub fn begin(&mut self) -> u64 {
        self.number += 1;
        self.missing = self.answers.len();
        self.answers.iter_mut().for_each(|answer| *answer = None);
        self.number
    }

    /// Returns whether answers are missing.
    pub fn is_open(&self) -> bool {
        self.missing > 0
    }

    /// Records that the conductor has released ranks.
    pub fn stir(&mut self) {
        self.stirred = true;
    }

    /// Returns the first rank whose answer is missing.
    pub fn silent(&self) -> Option<usize> {
        if self.is_open() { self.answers.iter().position(Option::is_none) } else { None }
    }

    /// Records an answer. Returns the verdict once the last answer of the wave has arrived.
    pub fn answer(&mut self, rank: usize, number: u64, answer: Answer) -> Option<Verdict> {
        let place = self.answers.get_mut(rank)?;
        if number != self.number || place.is_some() {
            return None;
        }
        *place = Some(answer);
        self.missing -= 1;
        if self.missing > 0 {
            return None;
        }
        let all: Vec<Answer> = self.answers.iter().flatten().cloned().collect();
        let idle = all.iter().all(|answer| answer.state != State::Moving);
        let empty = all.iter().map(|a| a.sent).sum::<u64>() == all.iter().map(|a| a.handled).sum::<u64>();
        let same = |before: &Vec<Answer>| {
            before.iter().zip(&all).all(|(a, b)| (a.state, a.sent, a.handled) == (b.state, b.sent, b.handled))
        };
        let still = !self.stirred && self.previous.as_ref().is_some_and(same);
        let over = all.iter().all(|answer| answer.state == State::Done);
        self.stirred = false;
        self.previous = Some(all);
        Some(match (idle && empty && still, over) {
            (false, _) => Verdict::Moving,
            (true, true) => Verdict::Over,
            (true, false) => Verdict::Stuck,
        })
    }

    /// Returns what each rank waited for when it last answered, without the rank `except`.
    pub fn waits(&self, except: Option<usize>) -> String {
        let last = |rank: usize| self.answers[rank].as_ref().or_else(|| self.previous.as_ref()?.get(rank));
        let waits = (0..self.answers.len()).filter(|rank| Some(*rank) != except);
        let waits = waits.filter_map(|rank| Some(format!("rank {rank} {}", last(rank)?.what)));
        waits.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(state: State, sent: u64, handled: u64) -> Answer {
        Answer { state, sent, handled, what: "waits".into() }
    }

    fn wave(waves: &mut Waves, answers: &[Answer]) -> Verdict {
        let number = waves.begin();
        let verdicts: Vec<_> =
            answers.iter().enumerate().filter_map(|(rank, frame)| waves.answer(rank, number, frame.clone())).collect();
        assert_eq!(verdicts.len(), 1);
        verdicts[0]
    }

    #[test]
    fn two_equal_waves_of_idle_ranks_and_no_frame_on_its_way_are_the_end() {
        let mut waves = Waves::new(2);
        let done = [answer(State::Done, 3, 1), answer(State::Done, 1, 3)];
        assert_eq!(wave(&mut waves, &done), Verdict::Moving);
        assert_eq!(wave(&mut waves, &done), Verdict::Over);
        let mut waves = Waves::new(2);
        let stuck = [answer(State::Waiting, 3, 1), answer(State::Done, 1, 3)];
        assert_eq!(wave(&mut waves, &stuck), Verdict::Moving);
        assert_eq!(wave(&mut waves, &stuck), Verdict::Stuck);
        assert_eq!(waves.waits(None), "rank 0 waits; rank 1 waits");
        assert_eq!(waves.waits(Some(0)), "rank 1 waits");
    }

    #[test]
    fn a_frame_on_its_way_a_rank_that_moved_or_a_release_is_no_deadlock() {
        let on_its_way = [answer(State::Waiting, 3, 1), answer(State::Waiting, 1, 2)];
        let arrived = [answer(State::Waiting, 3, 1), answer(State::Waiting, 1, 3)];
        let mut waves = Waves::new(2);
        assert_eq!(wave(&mut waves, &on_its_way), Verdict::Moving);
        assert_eq!(wave(&mut waves, &on_its_way), Verdict::Moving);
        assert_eq!(wave(&mut waves, &arrived), Verdict::Moving, "the counts differ from those of the wave before");
        let moving = [answer(State::Moving, 3, 1), answer(State::Waiting, 1, 3)];
        assert_eq!(wave(&mut waves, &moving), Verdict::Moving);
        assert_eq!(wave(&mut waves, &arrived), Verdict::Moving);
        waves.stir();
        assert_eq!(wave(&mut waves, &arrived), Verdict::Moving);
        assert_eq!(wave(&mut waves, &arrived), Verdict::Stuck);
    }

    #[test]
    fn a_rank_that_does_not_answer_is_known_and_late_answers_count_for_nothing() {
        let mut waves = Waves::new(2);
        let first = waves.begin();
        assert_eq!(waves.answer(0, first, answer(State::Waiting, 0, 0)), None);
        assert_eq!(waves.silent(), Some(1));
        assert!(waves.is_open());
        let second = waves.begin();
        assert_eq!(waves.answer(1, first, answer(State::Waiting, 0, 0)), None);
        assert_eq!(waves.silent(), Some(0));
        assert_ne!(first, second);
    }
}
