//! The queues of an interface: frames are conserved, ordered and weighted as described, and starve only in the printed
//! form.

use crosswind_policy::queue::{Discipline, DoubleQueue, LongestWait, QueueSettings};
use crosswind_schema::Class::{self, Local, Parallel};
use proptest::prelude::*;

const FRAME: u32 = 1024;

fn settings(discipline: Discipline, threshold: u32, literal: bool) -> QueueSettings {
    QueueSettings { discipline, threshold, literal, ..QueueSettings::fifo(FRAME) }
}

fn any_settings() -> impl Strategy<Value = QueueSettings> {
    let discipline = prop::sample::select(Discipline::ALL.to_vec());
    (discipline, 1u32..9, any::<bool>(), 1u32..5).prop_map(|(discipline, threshold, literal, batch)| {
        let batch = if discipline == Discipline::Threshold && !literal { batch } else { 1 };
        QueueSettings { batch, ..settings(discipline, threshold, literal) }
    })
}

fn class(local: bool) -> Class {
    if local { Local } else { Parallel }
}

#[derive(Clone, Debug)]
enum Step {
    Push(Class, u32),
    Pop([bool; 2]),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (any::<bool>(), 1..=FRAME).prop_map(|(local, bytes)| Step::Push(class(local), bytes)),
        any::<[bool; 2]>().prop_map(Step::Pop),
        Just(Step::Pop([true, true])),
    ];
    prop::collection::vec(step, 0..300)
}

#[test]
fn local_frames_of_a_batch_go_together_and_wait_for_no_more_than_the_threshold() {
    let settings = QueueSettings { batch: 3, ..settings(Discipline::Threshold, 2, false) };
    let mut queue = DoubleQueue::new(settings);
    for number in 0..8 {
        queue.push(Parallel, FRAME, number);
        queue.push(Local, FRAME, number);
    }
    let order: String = std::iter::from_fn(|| queue.pop([true; 2])).map(|(class, ..)| &class.name()[..1]).collect();
    assert_eq!(order, "pplllpplllppllpp");
    // A batch ends with the last waiting local frame; the next frame waits for its turn again.
    queue.push(Local, FRAME, 0);
    assert_eq!(queue.pop([true; 2]).map(|(class, ..)| class), Some(Local));
    queue.push(Parallel, FRAME, 0);
    assert_eq!(queue.pop([true; 2]).map(|(class, ..)| class), Some(Parallel));
    queue.push(Parallel, FRAME, 0);
    queue.push(Local, FRAME, 0);
    assert_eq!(queue.pop([true; 2]).map(|(class, ..)| class), Some(Parallel));
}

proptest! {
    #[test]
    fn frames_are_neither_lost_nor_made_and_those_of_a_class_leave_as_they_came(settings in any_settings(), steps in steps()) {
        let mut queue = DoubleQueue::new(settings);
        let (mut came, mut left) = ([0u32; 2], [0u32; 2]);
        let mut bytes = [0u64; 2];
        for step in steps {
            match step {
                Step::Push(class, length) => {
                    queue.push(class, length, (class, came[class as usize], length));
                    came[class as usize] += 1;
                    bytes[class as usize] += u64::from(length);
                }
                Step::Pop(may_send) => {
                    let waits = Class::BOTH.map(|class| may_send[class as usize] && queue.len(class) > 0);
                    match queue.pop(may_send) {
                        None => prop_assert_eq!(waits, [false, false], "a class that may send is never kept waiting"),
                        Some((class, length, frame)) => {
                            prop_assert!(waits[class as usize], "{:?} had no credit", class);
                            prop_assert_eq!(frame, (class, left[class as usize], length));
                            left[class as usize] += 1;
                            bytes[class as usize] -= u64::from(length);
                        }
                    }
                }
            }
            for class in Class::BOTH {
                prop_assert_eq!(queue.len(class) as u32, came[class as usize] - left[class as usize]);
                prop_assert_eq!(queue.bytes(class), bytes[class as usize]);
            }
            prop_assert_eq!(queue.is_empty(), came == left);
        }
    }

    #[test]
    fn one_queue_serves_in_the_order_of_arrival_whatever_the_class(arrivals in prop::collection::vec(any::<bool>(), 0..100)) {
        let mut queue = DoubleQueue::new(QueueSettings::fifo(FRAME));
        for (number, &local) in arrivals.iter().enumerate() {
            queue.push(class(local), 1, number);
        }
        prop_assert_eq!(queue.longest_waiting(), arrivals.first().map(|&local| class(local)));
        let order: Vec<usize> = std::iter::from_fn(|| queue.pop([true, true])).map(|(.., number)| number).collect();
        prop_assert_eq!(order, (0..arrivals.len()).collect::<Vec<_>>());
    }

    /// By bytes, for any frame lengths: the error never exceeds the price of a local frame plus one parallel frame.
    #[test]
    fn weights_hold_within_1_percent_while_both_are_backlogged(
        threshold in 1u32..12, lengths in prop::array::uniform2(prop::collection::vec(1..=FRAME, 1..20))
    ) {
        let mut queue = DoubleQueue::new(settings(Discipline::Drr, threshold, false));
        let mut next = [0usize; 2];
        let mut sent = [0u64; 2];
        while sent[1] < u64::from(FRAME) * 400 {
            for class in Class::BOTH {
                let (at, lengths) = (class as usize, &lengths[class as usize]);
                while queue.len(class) < 2 {
                    queue.push(class, lengths[next[at] % lengths.len()], ());
                    next[at] += 1;
                }
            }
            let (class, bytes, ()) = queue.pop([true, true]).unwrap();
            sent[class as usize] += u64::from(bytes);
        }
        let ratio = sent[0] as f64 / sent[1] as f64;
        prop_assert!((ratio / f64::from(threshold) - 1.0).abs() < 0.01, "{threshold} : 1 became {ratio} : 1");
    }

    /// For any arrivals, and whichever class lacks credit meanwhile: while the first local frame may leave, no more
    /// parallel frames pass it than the bound allows.
    #[test]
    fn no_local_frame_waits_longer_than_the_bound(
        discipline in prop::sample::select(vec![Discipline::Threshold, Discipline::Drr]), threshold in 1u32..40,
        pad in any::<bool>(), script in prop::collection::vec((1..=FRAME, 1..=FRAME, prop::bool::weighted(0.3), prop::bool::weighted(0.2)), 1..400)
    ) {
        let settings = QueueSettings { pad, ..settings(discipline, threshold, false) };
        let mut queue = DoubleQueue::new(settings);
        let (mut frames, mut bytes) = (0u64, 0u64);
        for (parallel, local, comes, no_credit) in script {
            queue.push(Parallel, parallel, ());
            if comes {
                queue.push(Local, local, ());
            }
            let waited = queue.len(Local) > 0;
            match queue.pop([true, !no_credit]) {
                Some((Parallel, length, ())) if waited && !no_credit => {
                    frames += 1;
                    bytes += u64::from(length);
                }
                Some((Local, ..)) => (frames, bytes) = (0, 0),
                _ => {}
            }
            match settings.longest_wait() {
                LongestWait::Frames(most) => prop_assert!(frames <= most, "{frames} frames"),
                LongestWait::Bytes(most) => prop_assert!(bytes <= most, "{bytes} bytes"),
                _ => unreachable!(),
            }
        }
    }

    /// E4-14: if the parallel class is not backlogged, all of them give the same order.
    #[test]
    fn beside_a_parallel_class_that_never_queues_all_priorities_are_the_same(gaps in prop::collection::vec(1usize..6, 1..60)) {
        let order = |discipline, literal| {
            let mut queue = DoubleQueue::new(settings(discipline, 4, literal));
            let mut order = Vec::new();
            for &gap in &gaps {
                queue.push(Parallel, FRAME, ());
                (0..gap).for_each(|_| queue.push(Local, FRAME, ()));
                for _ in 0..=gap {
                    order.extend(queue.pop([true, true]).map(|(class, ..)| class));
                }
            }
            order
        };
        let strict = order(Discipline::Strict, false);
        prop_assert_eq!(&order(Discipline::Drr, false), &strict);
        prop_assert_eq!(&order(Discipline::Threshold, false), &strict);
    }
}

/// Returns the parallel share of the bytes, for backlogged queues with frames of one length per class.
fn parallel_share(settings: QueueSettings, bytes: [u32; 2]) -> f64 {
    let mut queue = DoubleQueue::new(settings);
    let mut sent = [0u64; 2];
    for _ in 0..10_000 {
        for class in Class::BOTH {
            if queue.len(class) < 2 {
                queue.push(class, bytes[class as usize], ());
            }
        }
        let (class, bytes, ()) = queue.pop([true, true]).unwrap();
        sent[class as usize] += u64::from(bytes);
    }
    sent[0] as f64 / (sent[0] + sent[1]) as f64
}

#[test]
fn four_to_one_by_frames_is_80_percent_of_the_bytes_only_where_all_frames_are_alike() {
    for literal in [false, true] {
        let by_frames = settings(Discipline::Threshold, 4, literal);
        assert!((parallel_share(by_frames, [FRAME, FRAME]) - 0.8).abs() < 0.001);
        let share = parallel_share(by_frames, [64, FRAME]);
        assert!((share - 0.2).abs() < 0.001, "E4-14: 20 % of the bytes, not {share}");
    }
    let by_bytes = settings(Discipline::Drr, 4, false);
    assert!((parallel_share(by_bytes, [64, FRAME]) - 0.8).abs() < 0.001);
}

#[test]
fn where_every_frame_takes_the_same_time_bytes_are_counted_as_frames_are() {
    let padded = QueueSettings { pad: true, ..settings(Discipline::Drr, 4, false) };
    assert_eq!(padded.longest_wait(), LongestWait::Frames(4));
    for lengths in [[64, FRAME], [FRAME, 64], [1, 1]] {
        assert_eq!(parallel_share(padded, lengths), parallel_share(settings(Discipline::Threshold, 4, false), lengths));
    }
}

#[test]
fn as_printed_a_count_from_before_breaks_the_next_burst_and_repaired_it_does_not() {
    let first_local_in = |literal| {
        let mut queue = DoubleQueue::new(settings(Discipline::Threshold, 4, literal));
        // A burst while no local frame waits: the printed count grows beyond the threshold.
        (0..50).for_each(|_| queue.push(Parallel, FRAME, ()));
        while queue.pop([true, true]).is_some() {}
        (0..10).for_each(|_| queue.push(Parallel, FRAME, ()));
        queue.push(Local, FRAME, ());
        let order: Vec<Class> = std::iter::from_fn(|| queue.pop([true, true])).map(|(class, ..)| class).collect();
        order.iter().position(|&class| class == Local).unwrap()
    };
    assert_eq!(first_local_in(true), 1);
    assert_eq!(first_local_in(false), 4);
}

#[test]
fn a_threshold_without_end_starves_the_local_class_as_the_paper_says() {
    for literal in [false, true] {
        let share = parallel_share(settings(Discipline::Threshold, u32::MAX, literal), [FRAME, FRAME]);
        assert_eq!(share, 1.0);
    }
    assert_eq!(parallel_share(settings(Discipline::Strict, 1, false), [FRAME, FRAME]), 1.0);
    assert_eq!(settings(Discipline::Strict, 1, false).longest_wait(), LongestWait::Unbounded);
}

#[test]
fn a_local_frame_without_credit_keeps_its_turn_and_saves_up_no_second_one() {
    for discipline in [Discipline::Threshold, Discipline::Drr] {
        let mut queue = DoubleQueue::new(settings(discipline, 4, false));
        (0..3).for_each(|_| queue.push(Local, FRAME, ()));
        (0..40).for_each(|_| queue.push(Parallel, FRAME, ()));
        for _ in 0..20 {
            assert_eq!(queue.pop([true, false]).unwrap().0, Parallel);
        }
        let order: Vec<Class> = (0..6).filter_map(|_| queue.pop([true, true])).map(|(class, ..)| class).collect();
        assert_eq!(order, [Local, Parallel, Parallel, Parallel, Parallel, Local], "{discipline:?}");
    }
}
