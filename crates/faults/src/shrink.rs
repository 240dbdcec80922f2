//! Reduction of a failing schedule: removes faults, then recalls, tasks and nodes.

use crate::schedule::Schedule;
use crate::world::run;

fn fails(schedule: &Schedule) -> bool {
    !run(schedule, false).violations.is_empty()
}

/// Removes parts for as long as the schedule still fails.
#[must_use]
pub fn shrunk(mut schedule: Schedule) -> Schedule {
    loop {
        let size = |schedule: &Schedule| {
            (schedule.faults.len(), schedule.recalls.len(), schedule.tasks.len(), schedule.nodes.len())
        };
        let before = size(&schedule);
        schedule = without(
            schedule,
            |schedule| schedule.faults.len(),
            |schedule, from, to| {
                schedule.faults.drain(from..to);
            },
        );
        schedule = without(
            schedule,
            |schedule| schedule.recalls.len(),
            |schedule, from, to| {
                schedule.recalls.drain(from..to);
            },
        );
        schedule = without(
            schedule,
            |schedule| schedule.tasks.len(),
            |schedule, from, to| {
                for gone in schedule.tasks.drain(from..to) {
                    schedule.recalls.retain(|(_, task)| *task != gone.task);
                }
            },
        );
        // From the last node on, which has no children.
        while schedule.nodes.len() > 2 {
            let last = schedule.nodes.len() - 1;
            let mut fewer = schedule.clone();
            fewer.nodes.pop();
            fewer.faults.retain(|fault| fault.node < last);
            // A farm in which nothing computes fails for a different reason.
            if !fewer.nodes.iter().any(|node| node.computes) || !fails(&fewer) {
                break;
            }
            schedule = fewer;
        }
        if before == size(&schedule) {
            return schedule;
        }
    }
}

/// Removes ranges of items, long ones first.
fn without(
    mut schedule: Schedule,
    count: impl Fn(&Schedule) -> usize,
    leave_out: impl Fn(&mut Schedule, usize, usize),
) -> Schedule {
    let mut length = count(&schedule).div_ceil(2);
    while length > 0 {
        let mut from = 0;
        while from < count(&schedule) {
            let mut fewer = schedule.clone();
            leave_out(&mut fewer, from, (from + length).min(count(&schedule)));
            if fails(&fewer) {
                schedule = fewer;
            } else {
                from += length;
            }
        }
        length /= 2;
    }
    schedule
}
