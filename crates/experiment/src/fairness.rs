//! Fairness over time: how evenly a farm served those whose tasks were waiting, window by window.
//!
//! In a window count the groups (users, or classes of tasks) that had an unfinished task at every moment of it: the others
//! could not have been given more. What a group got is the work of its tasks that ended in the window.

use crosswind_schema::experiment::Tasks;
use crosswind_schema::run::{Fairness, FairnessOf};

use crate::flow::jain;

/// Windows of a run where their length is not given.
const WINDOWS: usize = 20;
/// Most windows of a run: with more, the file would be longer than that of the tasks.
pub(crate) const MOST_WINDOWS: usize = 10_000;

/// Returns Jain's index over windows for users and for classes; only for what there are at least two of.
///
/// # Errors
/// The number of windows, if it is above [`MOST_WINDOWS`].
pub(crate) fn fairness(
    tasks: &Tasks,
    window_s: Option<f64>,
    makespan_s: f64,
    done_s: &[f64],
) -> Result<Vec<Fairness>, f64> {
    let users = tasks.users.as_ref().map(|users| (FairnessOf::Users, users.names.len()));
    let classes = tasks.classes.as_ref().map(|classes| (FairnessOf::Classes, classes.names.len()));
    let groupings: Vec<_> = [users, classes].into_iter().flatten().filter(|(_, groups)| *groups > 1).collect();
    if groupings.is_empty() || done_s.is_empty() || makespan_s <= 0.0 {
        return Ok(Vec::new());
    }
    let length_s = window_s.unwrap_or(makespan_s / WINDOWS as f64);
    let windows = if window_s.is_some() { (makespan_s / length_s).floor() } else { WINDOWS as f64 };
    if windows > MOST_WINDOWS as f64 {
        return Err(windows);
    }
    let group_of = |of: FairnessOf, task: usize| match of {
        FairnessOf::Users => tasks.users.as_ref().map_or(0, |users| users.of_task[task] as usize),
        FairnessOf::Classes => tasks.classes.as_ref().map_or(0, |classes| usize::from(classes.of_task[task])),
    };
    let mut found = Vec::new();
    for (of, groups) in groupings {
        let mut by_group = vec![Vec::new(); groups];
        for task in 0..done_s.len() {
            by_group[group_of(of, task)].push(task);
        }
        let mut got = vec![Vec::new(); windows as usize];
        for members in &by_group {
            serve(&mut got, tasks, members, length_s, done_s);
        }
        let index = |got: &Vec<f64>| {
            let is_known = got.len() > 1 && got.iter().any(|&work| work > 0.0);
            is_known.then(|| jain(got.iter().copied()))
        };
        let index: Vec<Option<f64>> = got.iter().map(index).collect();
        let known: Vec<f64> = index.iter().flatten().copied().collect();
        if known.is_empty() {
            continue;
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let least = known.iter().copied().fold(1.0, f64::min);
        found.push(Fairness { of, window_s: length_s, mean, least, index });
    }
    Ok(found)
}

/// Adds to each window what a group got in it, if it had an unfinished task all the time.
fn serve(got: &mut [Vec<f64>], tasks: &Tasks, members: &[usize], length_s: f64, done_s: &[f64]) {
    let release = tasks.arrivals.as_ref().map_or(&[][..], |arrivals| &arrivals.release_s);
    let released = |task: usize| release.get(task).copied().unwrap_or(0.0);
    let mut work = vec![0.0; got.len()];
    let mut spans: Vec<(f64, f64)> = Vec::with_capacity(members.len());
    for &task in members {
        // What ends with a window belongs to it.
        let window = (done_s[task] / length_s * (1.0 - 1e-12)).floor() as usize;
        if let Some(work) = work.get_mut(window) {
            *work += tasks.work.get(task as u64);
        }
        spans.push((released(task), done_s[task]));
    }
    spans.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut spans = spans.into_iter();
    let Some(mut busy) = spans.next() else { return };
    let mut close = |(from, to): (f64, f64)| {
        let first = (from / length_s).ceil() as usize;
        let end = (to / length_s * (1.0 + 1e-12)).floor() as usize;
        for window in first..end.min(got.len()) {
            got[window].push(work[window]);
        }
    };
    for (from, to) in spans {
        if from <= busy.1 {
            busy.1 = busy.1.max(to);
        } else {
            close(busy);
            busy = (from, to);
        }
    }
    close(busy);
}

#[cfg(test)]
mod tests {
    use crosswind_schema::experiment::draw::{Arrivals, Column, Users};

    use super::*;

    fn two_users(of_task: Vec<u32>, release_s: Vec<f64>) -> Tasks {
        let users = Users { names: vec!["a".into(), "b".into()], of_task };
        let arrivals = Arrivals { release_s, deadline_s: Vec::new() };
        Tasks {
            count: users.of_task.len() as u64,
            size_mb: Column::Same(1.0),
            work: Column::Same(2.0),
            arrivals: Some(arrivals),
            users: Some(users),
            ..Tasks::default()
        }
    }

    #[test]
    fn alternating_service_is_fair_and_one_after_the_other_is_not() {
        let windows = |of_task: [u32; 8]| {
            let done: Vec<f64> = (1..=8).map(f64::from).collect();
            fairness(&two_users(of_task.to_vec(), vec![0.0; 8]), Some(2.0), 8.0, &done).expect("few windows")
        };
        let rounds = windows([0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(rounds[0].index, [Some(1.0), Some(1.0), Some(1.0), None], "a has ended in the last one");
        assert_eq!((rounds[0].mean, rounds[0].least, rounds[0].window_s), (1.0, 1.0, 2.0));
        let one_by_one = windows([0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(one_by_one[0].index, [Some(0.5), Some(0.5), None, None], "then b is alone");
    }

    #[test]
    fn only_those_count_that_have_a_task_all_the_time() {
        // b has none from 3 to 5 s.
        let tasks = two_users(vec![0, 0, 0, 1, 1], vec![0.0, 0.0, 0.0, 0.0, 5.0]);
        let found = fairness(&tasks, Some(2.0), 8.0, &[2.0, 4.0, 8.0, 3.0, 8.0]).expect("few windows");
        assert_eq!(found[0].index, [Some(0.5), None, None, Some(1.0)]);
        assert_eq!(found[0].of, FairnessOf::Users);
    }

    #[test]
    fn a_run_has_twenty_windows_unless_their_length_is_given_and_not_too_many() {
        let tasks = two_users((0..200).map(|task| task % 2).collect(), vec![0.0; 200]);
        let done: Vec<f64> = (1..=200).map(|task| f64::from(task) * 0.1).collect();
        let found = fairness(&tasks, None, 20.0, &done).expect("few windows");
        assert_eq!((found[0].index.len(), found[0].window_s, found[0].least), (20, 1.0, 1.0));
        assert_eq!(fairness(&tasks, Some(1e-3), 20.0, &done).expect_err("too many"), 20_000.0);
    }

    #[test]
    fn one_user_alone_has_none() {
        let mut tasks = two_users(vec![0, 0], vec![0.0; 2]);
        tasks.users = None;
        assert_eq!(fairness(&tasks, None, 2.0, &[1.0, 2.0]), Ok(Vec::new()));
    }
}
