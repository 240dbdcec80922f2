//! The thread that disturbs one rank: it sleeps until an interval begins, takes the processor away, and gives it
//! back.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::busy::StandIns;
use super::hold::Hold;
use super::outcome::{Done, How, RankDone};
use super::priority::{self, Urgency};
use super::script::{Away, Cause, Intervals, ways};
use crosswind_linux::processes::Pid;
use crosswind_linux::{exact_timers, now_ns, readable, wait, watch};

/// Delay up to which an interval keeps its planned length; a later one is shortened by its delay.
const IN_TIME_NS: u64 = 1_000_000;
/// Intervals this close together are merged: giving the processor back between them would take longer.
const TOUCHING_NS: u64 = 20_000;
/// Interval at which a computing thread checks for the end.
const LOOK_NS: u64 = 1_000_000;

/// State of a rank's thread.
pub struct Target {
    pub rank: u32,
    /// Its leading processes, as last found.
    pub leaders: Arc<Mutex<Vec<Pid>>>,
    pub intervals: Intervals,
    pub causes: Arc<[Cause]>,
    /// Method for every interval; `None`: the one that suits its cause.
    pub asked: Option<How>,
    /// Time 0 of the intervals, on the monotonic clock, ns.
    pub zero_ns: u64,
    /// Readable once the injection is over; it is never cleared.
    pub over: RawFd,
    /// Method of holding its processes.
    pub hold: Hold,
    /// Threads that compute where the rank did while it is held; `None`: the CPUs stay idle.
    pub stand_ins: Option<StandIns>,
    /// Whether the rank is held by freezing its control group.
    pub freezer: bool,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Disturbs a rank until the injection is over. Returns the priority of this thread and the record of the injections.
pub fn disturb(mut target: Target) -> (Urgency, RankDone) {
    exact_timers();
    let urgency = priority::hurry();
    let mut report = RankDone { rank: target.rank, ..RankDone::default() };
    let mut pinned = None;
    let mut next = target.next(&mut report, 0);
    while let Some((away, how)) = next {
        if !target.sleep_until(away.start_ns) {
            break;
        }
        let result = match how {
            How::Burn => target.burn(&away, &mut pinned, &mut report),
            How::Stop | How::Freeze => target.hold_through(away, how, &mut report),
        };
        match result {
            Ok(after) => next = after.or_else(|| target.next(&mut report, away.end_ns)),
            Err(error) => {
                report.complain(format!("rank {}, {}: {error}", target.rank, how.name()));
                next = target.next(&mut report, away.end_ns);
            }
        }
    }
    let _ = target.hold.let_go(); // a failure is already recorded above; then nothing is held
    report.exposed = target.hold.exposed;
    report.busy = target.stand_ins.as_ref().map(StandIns::cpus).unwrap_or_default();
    report.processes.clone_from(&locked(&target.leaders));
    report.cpus = report.processes.first().and_then(|pid| priority::cpus_of(*pid)).unwrap_or_default();
    (urgency, report)
}

impl Target {
    fn now(&self) -> u64 {
        now_ns().saturating_sub(self.zero_ns)
    }

    /// Sleeps until this time. Returns false if the injection is over instead.
    fn sleep_until(&self, time_ns: u64) -> bool {
        loop {
            let left = (self.zero_ns + time_ns).saturating_sub(now_ns()); // time 0 itself may lie ahead
            let mut watched = [watch(self.over, true, false)];
            if wait(&mut watched, Some(left)).is_err() || readable(&watched[0]) {
                return false;
            }
            if left == 0 {
                return true;
            }
        }
    }

    fn is_over(&self) -> bool {
        let mut watched = [watch(self.over, true, false)];
        wait(&mut watched, Some(0)).is_err() || readable(&watched[0])
    }

    fn cause(&self, away: &Away) -> Option<&Cause> {
        self.causes.get(usize::from(away.cause))
    }

    /// Returns the next interval that can be injected, with its method. Counts intervals that have passed or are too
    /// short.
    fn next(&mut self, report: &mut RankDone, after_ns: u64) -> Option<(Away, How)> {
        loop {
            let mut away = self.intervals.next()?;
            let how = self.way(&away);
            let now = self.now().max(after_ns);
            if away.end_ns <= now {
                add(&mut report.missed, away.end_ns - away.start_ns);
                continue;
            }
            if now > away.start_ns + IN_TIME_NS {
                report.missed.1 += now - away.start_ns;
                away.start_ns = now;
            }
            if away.end_ns - away.start_ns < how.shortest_ns() {
                add(&mut report.too_short, away.end_ns - away.start_ns);
                continue;
            }
            return Some((away, how));
        }
    }

    fn way(&self, away: &Away) -> How {
        let ways = self.cause(away).map_or_else(|| vec![How::Stop], |cause| ways(cause, self.asked, self.freezer));
        // Burning takes the CPU from a rank only if the rank has no other CPU.
        let burns = ways[0] == How::Burn && self.only_cpu().is_some();
        if burns { How::Burn } else { *ways.last().unwrap_or(&How::Stop) }
    }

    fn only_cpu(&self) -> Option<usize> {
        let leaders = locked(&self.leaders);
        let mut cpus = leaders.iter().filter_map(|pid| priority::cpus_of(*pid));
        match cpus.next()?.as_slice() {
            [only] if cpus.all(|other| other == [*only]) => Some(*only),
            _ => None,
        }
    }

    /// Computes on the rank's CPU until the interval ends.
    fn burn(
        &mut self,
        away: &Away,
        pinned: &mut Option<usize>,
        report: &mut RankDone,
    ) -> std::io::Result<Option<(Away, How)>> {
        let cpu = self.only_cpu();
        if let Some(cpu) = cpu.filter(|cpu| *pinned != Some(*cpu)) {
            priority::place(0, &[cpu])?;
            *pinned = Some(cpu);
        }
        let start_ns = self.now();
        let mut end_ns = start_ns;
        let until = start_ns + (away.end_ns - away.start_ns);
        let mut look_ns = start_ns + LOOK_NS;
        while end_ns < until {
            if end_ns >= look_ns {
                if self.is_over() {
                    break;
                }
                look_ns = end_ns + LOOK_NS;
            }
            std::hint::spin_loop();
            end_ns = self.now();
        }
        report.done.push(done(away, start_ns, end_ns, How::Burn));
        Ok(None)
    }

    /// Holds the rank until the end of the interval and of those that touch it. Returns the next interval after them.
    fn hold_through(
        &mut self,
        mut away: Away,
        how: How,
        report: &mut RankDone,
    ) -> std::io::Result<Option<(Away, How)>> {
        let leaders = locked(&self.leaders).clone();
        let held = self.hold.take(&leaders, self.zero_ns + away.end_ns)?;
        let mut start_ns = held.since_ns.saturating_sub(self.zero_ns);
        if !held.all {
            report.complain(format!("rank {}: some of its threads ran on for more than 20 ms", self.rank));
        }
        if let Some(stand_ins) = &mut self.stand_ins {
            let length_ns = (self.zero_ns + away.end_ns).saturating_sub(now_ns());
            stand_ins.step_in(self.hold.held(&leaders), length_ns);
        }
        loop {
            let next = self.next(report, away.end_ns); // computed now, while nothing waits for it
            let goes_on = self.sleep_until(away.end_ns);
            if let Some((after, _)) = next.filter(|(after, same)| goes_on && touches(&away, how, after, *same)) {
                let now = self.now();
                report.done.push(done(&away, start_ns, now, how));
                self.hold.take(&leaders, self.zero_ns + after.end_ns)?;
                (away, start_ns) = (after, now);
                continue;
            }
            self.stand_ins.iter().for_each(StandIns::step_back);
            self.hold.let_go()?;
            report.done.push(done(&away, start_ns, self.now(), how));
            return Ok(next);
        }
    }
}

fn touches(away: &Away, how: How, after: &Away, same: How) -> bool {
    same == how && after.start_ns <= away.end_ns + TOUCHING_NS
}

fn add(count: &mut (u64, u64), ns: u64) {
    count.0 += 1;
    count.1 += ns;
}

fn done(away: &Away, start_ns: u64, end_ns: u64, how: How) -> Done {
    Done {
        asked_ns: away.start_ns,
        asked_for_ns: away.end_ns - away.start_ns,
        start_ns,
        end_ns,
        cause: away.cause,
        how,
    }
}
