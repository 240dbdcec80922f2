//! Invariants of buffered coscheduling, for any sequence of posts.

use std::collections::HashMap;

use crosswind_policy::coscheduling::{BufferedCoscheduling, Unpostable};
use proptest::prelude::*;

const NODES: u32 = 4;
const SLICE_BYTES: u64 = 1000;

type Posted = Vec<Vec<(u32, u32, u64)>>;

fn posted() -> impl Strategy<Value = Posted> {
    let message = (0..NODES, 1..NODES, 0u64..3500).prop_map(|(from, step, bytes)| (from, (from + step) % NODES, bytes));
    prop::collection::vec(prop::collection::vec(message, 0..6), 1..12)
}

/// What moved in each slice, and when each message was posted and arrived.
struct Run {
    slices: Vec<Vec<(u64, u32, u32, u64)>>,
    posted: HashMap<u64, (usize, u32, u32, u64)>,
    arrived: Vec<(u64, usize)>,
}

fn run(posts: &Posted) -> Run {
    let mut policy = BufferedCoscheduling::new(NODES, SLICE_BYTES);
    let mut run = Run { slices: Vec::new(), posted: HashMap::new(), arrived: Vec::new() };
    let mut slice = 0;
    while slice < posts.len() || policy.pending() > 0 {
        for &(from, to, bytes) in posts.get(slice).into_iter().flatten() {
            let id = policy.post(from, to, bytes).unwrap();
            run.posted.insert(id, (slice, from, to, bytes.max(1)));
        }
        let next = policy.next_slice();
        run.arrived.extend(next.arrived.iter().map(|&id| (id, slice)));
        run.slices.push(next.transfers.iter().map(|t| (t.id, t.from, t.to, t.bytes)).collect());
        slice += 1;
        assert!(slice < 1000, "a message starves");
    }
    run
}

proptest! {
    #[test]
    fn every_message_arrives_once_with_all_its_bytes(posts in posted()) {
        let run = run(&posts);
        prop_assert_eq!(run.arrived.len(), run.posted.len());
        for (id, (.., bytes)) in &run.posted {
            let moved: u64 = run.slices.iter().flatten().filter(|one| one.0 == *id).map(|one| one.3).sum();
            prop_assert_eq!(moved, *bytes);
        }
    }

    #[test]
    fn no_link_carries_more_in_a_slice_than_it_can(posts in posted()) {
        for slice in &run(&posts).slices {
            for node in 0..NODES {
                let sent: u64 = slice.iter().filter(|one| one.1 == node).map(|one| one.3).sum();
                let received: u64 = slice.iter().filter(|one| one.2 == node).map(|one| one.3).sum();
                prop_assert!(sent <= SLICE_BYTES && received <= SLICE_BYTES);
            }
        }
    }

    #[test]
    fn nothing_arrives_before_the_end_of_the_slice_after_its_own(posts in posted()) {
        let run = run(&posts);
        for (id, at) in &run.arrived {
            let (posted, _, _, bytes) = run.posted[id];
            prop_assert!(*at > posted);
            prop_assert!((*at - posted) as u64 >= bytes.div_ceil(SLICE_BYTES));
        }
    }

    #[test]
    fn messages_of_a_pair_arrive_in_the_order_in_which_they_were_posted(posts in posted()) {
        let run = run(&posts);
        let mut last: HashMap<(u32, u32), u64> = HashMap::new();
        for (id, _) in &run.arrived {
            let (_, from, to, _) = run.posted[id];
            if let Some(before) = last.insert((from, to), *id) {
                prop_assert!(before < *id);
            }
        }
    }

    #[test]
    fn no_room_that_both_ends_of_a_waiting_message_have_is_left(posts in posted()) {
        let run = run(&posts);
        let mut left: HashMap<u64, u64> = run.posted.iter().map(|(id, one)| (*id, one.3)).collect();
        for (slice, moved) in run.slices.iter().enumerate() {
            for one in moved {
                *left.get_mut(&one.0).unwrap() -= one.3;
            }
            let used = |node: u32, end: usize| -> u64 {
                moved.iter().filter(|one| [one.1, one.2][end] == node).map(|one| one.3).sum()
            };
            for (id, &(posted, from, to, _)) in &run.posted {
                if posted <= slice && left[id] > 0 {
                    prop_assert!(used(from, 0) == SLICE_BYTES || used(to, 1) == SLICE_BYTES);
                }
            }
        }
    }
}

#[test]
fn a_message_to_no_node_or_to_its_sender_is_refused() {
    let mut policy = BufferedCoscheduling::new(2, 10);
    assert_eq!(policy.post(0, 2, 1), Err(Unpostable::NoSuchNode));
    assert_eq!(policy.post(1, 1, 1), Err(Unpostable::ToItself));
    assert_eq!((policy.pending(), policy.next_slice().transfers.len()), (0, 0));
}
