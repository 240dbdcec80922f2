//! Injection of the schedule's faults.

use super::{What, World};
use crate::schedule::{Fault, Trouble};

impl World<'_> {
    pub(super) fn trouble(&mut self, number: usize) {
        let Fault { node, trouble, .. } = self.schedule.faults[number];
        if self.ended.is_some() || node >= self.places.len() {
            return;
        }
        self.note(|| format!("FAULT n{node}: {trouble:?}"));
        let (now, local) = (self.now, self.local(node));
        let place = &mut self.places[node];
        match trouble {
            Trouble::Killed { again_ns, notified } => self.die(node, again_ns, notified),
            Trouble::Stopped { for_ns } => {
                if let Some(process) = &mut place.process {
                    place.stopped_until = place.stopped_until.max(now + for_ns);
                    process.token += 1;
                    let (life, token, at) = (process.life, process.token, place.stopped_until);
                    self.at(at, What::Wake { node, life, token });
                }
            }
            Trouble::Cut { after, notified } => {
                if let Some(connection) = place.process.as_ref().and_then(|process| process.parent) {
                    self.cut(connection, after, notified);
                }
            }
            Trouble::Slow { times, for_ns } => place.slow = (times, now + for_ns),
            Trouble::Leaves { times, again_ns } => {
                place.comes_again = Some(again_ns);
                let Some(process) = &mut place.process else { return };
                match &mut process.agent {
                    Some(agent) => {
                        agent.leave(times, local);
                        self.turn(node);
                    }
                    // It exits while it dials.
                    None => {
                        self.places[node].comes_again = None;
                        self.die(node, again_ns, true);
                    }
                }
            }
            Trouble::DiskFull { for_ns } => place.disk_full_until = now + for_ns,
            Trouble::DiskSlow { for_ns } => place.disk_slow_until = now + for_ns,
            Trouble::ClockStands { for_ns } => {
                let clock = &mut place.clock;
                // Account for the time for which it already stands still.
                if let Some((from, until)) = clock.stands.take() {
                    clock.stood_ns += now.min(until) - from;
                }
                clock.stands = Some((now, now + for_ns));
            }
            Trouble::ClockJumps { by_ns } => place.clock.shift_ns += by_ns,
        }
        if self.places[node].process.is_some() && self.places[node].stopped_until <= self.now {
            self.turn(node);
        }
    }
}
