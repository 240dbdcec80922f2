//! Commands of a node, event by event.

use crosswind_policy::farm::Command::{Ask, Compute, HandBack, HintRemaining, Hold, Limit, Return, Send};
use crosswind_policy::farm::Event::{
    Arrived, Computed, Drain, Draining, Given, HandedBack, Held, Joined, Left, RemainingHint, Requested, Returned,
    Sent, Started,
};
use crosswind_policy::farm::{ChildSettings, Command, Event, FarmOptions, MeanTask, Node, Settings};
use crosswind_schema::Platform;
use crosswind_schema::experiment::{Order, Policy};
use crosswind_schema::plan::Ports;

/// A root with 10 work units/s that sends at most 10 MB/s, and leaves given as (compute, receive limit, ir_send).
fn platform(leaves: &[(f64, f64, f64)]) -> Platform {
    let mut text = "schema_version = 1\nname = \"star\"\n[[node]]\nname = \"root\"\ncompute_per_s = 10\n\
        send_limit_mb_per_s = 10\n"
        .to_owned();
    for (n, (compute, limit, ir)) in leaves.iter().enumerate() {
        text += &format!(
            "[[node]]\nname = \"leaf{n}\"\nparent = \"root\"\ncompute_per_s = {compute}\n\
             receive_limit_mb_per_s = {limit}\nir_send_s_per_mb = {ir}\n"
        );
    }
    Platform::from_toml(text.as_bytes(), "star").unwrap()
}

fn policy(order: Order, ports: Ports) -> Policy {
    Policy { order, ports: ports.into(), buffer_tasks: Some(2), ..Policy::default() }
}

struct Driven(Node);

impl Driven {
    fn root(platform: &Platform, options: &FarmOptions<'_>) -> Self {
        let tree = platform.tree().unwrap();
        Self(Node::new(Settings::of(platform, &tree, options).swap_remove(0)))
    }

    fn handle(&mut self, event: Event) -> Vec<Command> {
        let mut commands = Vec::new();
        self.0.handle(event, &mut commands);
        commands
    }
}

const TASK: MeanTask = MeanTask { size_mb: 1.0, work: 1.0 };

fn star(order: Order, ports: Ports, leaves: &[(f64, f64, f64)]) -> Driven {
    Driven::root(&platform(leaves), &FarmOptions::of(&policy(order, ports), TASK))
}

/// Returns the children to which a single port sends if all request two tasks at the start and none later.
fn served(mut root: Driven, children: u32) -> Vec<u32> {
    for child in 0..children {
        assert_eq!(root.handle(Requested { child, tasks: 2 }), []);
    }
    let mut commands = root.handle(Given { first: 0, tasks: 100 });
    let mut order = Vec::new();
    while let Some(&Send { child, task, .. }) = commands.last() {
        order.push(child);
        commands = root.handle(Sent { child, task });
    }
    order
}

#[test]
fn every_order_serves_the_child_that_it_prefers() {
    // cost = ir * 10: leaf 2 costs more than it brings.
    let leaves = [(3.0, 4.0, 0.02), (5.0, 9.0, 0.07), (4.0, 8.0, 0.10), (1.0, 5.0, 0.01)];
    let single = |order| served(star(order, Ports::Single, &leaves), 4);
    // B (1 - cost): 3.2, 2.7, none, 4.5
    assert_eq!(single(Order::Interference), [3, 3, 0, 0, 1, 1]);
    assert_eq!(single(Order::InterferenceRate), [3, 3, 0, 0, 1, 1, 2, 2]);
    assert_eq!(single(Order::Bandwidth), [1, 1, 2, 2, 3, 3, 0, 0]);
    assert_eq!(single(Order::Compute), [1, 1, 2, 2, 0, 0, 3, 3]);
    assert_eq!(single(Order::Arrival), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(single(Order::RootOnly), [0u32; 0]);
    let rates = [0.0, 3.0, 1.5, 0.0, 1.0];
    let options = FarmOptions::of(&policy(Order::Planned, Ports::Single), TASK).with_plan(&rates);
    // Due at 1/3, 2/3; 2/3, 4/3; never; 1, 2.
    assert_eq!(served(Driven::root(&platform(&leaves), &options), 4), [0, 0, 1, 3, 1, 3]);
}

#[test]
fn with_one_port_the_derived_order_weighs_the_link_and_with_many_it_does_not() {
    let leaves = [(99.0, 2.0, 0.01), (99.0, 9.0, 0.05)];
    assert_eq!(served(star(Order::Interference, Ports::Single, &leaves), 2), [1, 1, 0, 0]);
    let mut multi = star(Order::Interference, Ports::Multi, &leaves);
    multi.handle(Requested { child: 0, tasks: 1 });
    multi.handle(Requested { child: 1, tasks: 1 });
    let commands = multi.handle(Given { first: 0, tasks: 3 });
    let [
        Compute { task: 0 },
        Send { child: 0, task: 1, limit_mb_per_s: None },
        Send { child: 1, task: 2, limit_mb_per_s },
    ] = commands[..]
    else {
        panic!("{commands:?}")
    };
    assert_eq!(limit_mb_per_s, Some(8.0));
}

#[test]
fn a_preferred_child_slows_the_last_and_holds_a_child_left_with_nothing() {
    let leaves = [(99.0, 6.0, 0.01), (99.0, 6.0, 0.02), (99.0, 6.0, 0.03)];
    let mut root = star(Order::Interference, Ports::Multi, &leaves);
    root.handle(Given { first: 0, tasks: 9 });
    assert_eq!(root.handle(Requested { child: 2, tasks: 1 }), [Send { child: 2, task: 1, limit_mb_per_s: None }]);
    let commands = root.handle(Requested { child: 1, tasks: 1 });
    assert_eq!(
        commands,
        [Limit { child: 2, limit_mb_per_s: Some(4.0) }, Send { child: 1, task: 2, limit_mb_per_s: None }]
    );
    let commands = root.handle(Requested { child: 0, tasks: 1 });
    let expected = [
        Hold { child: 2 },
        Limit { child: 1, limit_mb_per_s: Some(4.0) },
        Send { child: 0, task: 3, limit_mb_per_s: None },
    ];
    assert_eq!(commands, expected);
    assert_eq!(root.handle(Held { child: 2 }), []);
    // When the first is done, the second gets its whole link back, and the third resumes with the rest.
    let expected = [Limit { child: 1, limit_mb_per_s: None }, Send { child: 2, task: 1, limit_mb_per_s: Some(4.0) }];
    assert_eq!(root.handle(Sent { child: 0, task: 3 }), expected);
}

#[test]
fn a_send_that_ends_before_it_could_be_held_is_over() {
    let leaves = [(99.0, 10.0, 0.01), (99.0, 10.0, 0.02)];
    let mut root = star(Order::Interference, Ports::Multi, &leaves);
    root.handle(Given { first: 0, tasks: 9 });
    root.handle(Requested { child: 1, tasks: 1 });
    assert_eq!(
        root.handle(Requested { child: 0, tasks: 1 }),
        [Hold { child: 1 }, Send { child: 0, task: 2, limit_mb_per_s: None }]
    );
    assert_eq!(root.handle(Sent { child: 1, task: 1 }), []);
    assert_eq!(root.handle(Sent { child: 0, task: 2 }), []);
    assert_eq!(root.handle(Requested { child: 1, tasks: 1 }), [Send { child: 1, task: 3, limit_mb_per_s: None }]);
}

#[test]
fn with_arrival_and_many_ports_all_that_asked_are_served_immediately() {
    let mut root = star(Order::Arrival, Ports::Multi, &[(1.0, 6.0, 0.0); 3]);
    for child in 0..3 {
        root.handle(Requested { child, tasks: 2 });
    }
    let commands = root.handle(Given { first: 0, tasks: 9 });
    let sends: Vec<u32> =
        commands.iter().filter_map(|c| if let Send { child, .. } = c { Some(*child) } else { None }).collect();
    assert_eq!(sends, [0, 1, 2]);
    assert_eq!(root.handle(Sent { child: 1, task: 2 }), [Send { child: 1, task: 4, limit_mb_per_s: None }]);
    assert_eq!(root.handle(Sent { child: 1, task: 4 }), []);
}

fn inner() -> Driven {
    inner_by(Order::Arrival)
}

fn inner_by(order: Order) -> Driven {
    let text = "schema_version = 1\nname = \"chain\"\n[[node]]\nname = \"a\"\ncompute_per_s = 1\n[[node]]\nname = \"b\"\n\
        parent = \"a\"\ncompute_per_s = 1\nreceive_limit_mb_per_s = 1\n[[node]]\nname = \"c\"\nparent = \"b\"\n\
        compute_per_s = 1\nreceive_limit_mb_per_s = 1\n";
    let platform = Platform::from_toml(text.as_bytes(), "chain").unwrap();
    let options = FarmOptions::of(&policy(order, Ports::Single), TASK).with_recovery();
    Driven(Node::new(Settings::of(&platform, &platform.tree().unwrap(), &options).swap_remove(1)))
}

#[test]
fn a_place_is_asked_for_again_when_its_task_starts_to_compute_or_has_left() {
    let mut node = inner();
    assert_eq!(node.handle(Started), [Ask { tasks: 2 }]);
    assert_eq!(node.handle(Arrived { task: 0 }), [Compute { task: 0 }, Ask { tasks: 1 }]);
    assert_eq!(node.handle(Arrived { task: 1 }), []);
    assert_eq!(node.handle(Requested { child: 0, tasks: 2 }), [Send { child: 0, task: 1, limit_mb_per_s: None }]);
    assert_eq!(node.handle(Sent { child: 0, task: 1 }), [Ask { tasks: 1 }]);
    assert_eq!(node.handle(Computed { task: 0 }), [Return { task: 0 }]);
    assert_eq!(node.handle(Arrived { task: 2 }), [Compute { task: 2 }, Ask { tasks: 1 }]);
    assert_eq!(node.handle(Returned { child: 0, task: 1 }), [Return { task: 1 }]);
    assert_eq!(node.handle(Returned { child: 0, task: 1 }), [], "a second result of a task is dropped");
}

#[test]
fn the_tasks_of_a_child_that_left_are_the_first_to_be_done_again() {
    let mut root = Driven::root(
        &platform(&[(1.0, 5.0, 0.0), (1.0, 5.0, 0.0)]),
        &FarmOptions::of(&policy(Order::Arrival, Ports::Single), TASK).with_recovery(),
    );
    root.handle(Given { first: 0, tasks: 9 });
    root.handle(Requested { child: 0, tasks: 3 });
    root.handle(Sent { child: 0, task: 1 });
    root.handle(Sent { child: 0, task: 2 }); // task 3 is in transit
    assert_eq!(root.handle(Requested { child: 1, tasks: 1 }), []);
    assert_eq!(root.handle(Returned { child: 0, task: 1 }), [Return { task: 1 }]);
    assert_eq!(root.handle(Left { child: 0 }), [Send { child: 1, task: 2, limit_mb_per_s: None }]);
    assert_eq!(root.handle(Sent { child: 0, task: 3 }), [], "a child that left says nothing more");
    assert_eq!(root.handle(Computed { task: 0 }), [Return { task: 0 }, Compute { task: 3 }]);
    assert_eq!(
        root.handle(Joined {
            child: ChildSettings {
                key: Some(0.0),
                receive_limit_mb_per_s: 1.0,
                pace_mb_per_s: 1.0,
                uses_tasks_per_s: 1.0,
                empties_tasks_per_s: 1.0,
                send_s: 0.1
            }
        }),
        []
    );
    assert_eq!(root.handle(Sent { child: 1, task: 2 }), []);
    assert_eq!(root.handle(Requested { child: 2, tasks: 1 }), [Send { child: 2, task: 4, limit_mb_per_s: None }]);
}

#[test]
fn a_node_that_computes_nothing_asks_for_nothing_while_no_node_is_below_it() {
    let text = "schema_version = 1\nname = \"relay\"\n[[node]]\nname = \"root\"\ncompute_per_s = 0\n\
        [[node]]\nname = \"relay\"\nparent = \"root\"\ncompute_per_s = 0\nreceive_limit_mb_per_s = 10\n\
        [[node]]\nname = \"leaf\"\nparent = \"relay\"\ncompute_per_s = 1\nreceive_limit_mb_per_s = 10\n";
    let platform = Platform::from_toml(text.as_bytes(), "relay").unwrap();
    let policy = policy(Order::Bandwidth, Ports::Single);
    let settings = Settings::of(&platform, &platform.tree().unwrap(), &FarmOptions::of(&policy, TASK).with_recovery());
    let fresh = || Driven(Node::new(settings[1].clone()));
    let leaf = ChildSettings {
        key: Some(0.0),
        receive_limit_mb_per_s: 10.0,
        pace_mb_per_s: 10.0,
        uses_tasks_per_s: 1.0,
        empties_tasks_per_s: 1.0,
        send_s: 0.1,
    };
    assert_eq!(fresh().handle(Started), [Ask { tasks: 2 }]);
    let mut relay = fresh();
    relay.0.handle(Left { child: 0 }, &mut Vec::new());
    assert_eq!(relay.handle(Started), []);
    assert_eq!(relay.handle(Joined { child: leaf }), [Ask { tasks: 2 }]);
    // A child with no use for tasks does not wait for any.
    assert_eq!(relay.handle(Requested { child: 1, tasks: 0 }), []);
    assert_eq!(relay.handle(Arrived { task: 7 }), []);
    assert_eq!(relay.handle(Requested { child: 1, tasks: 1 }), [Send { child: 1, task: 7, limit_mb_per_s: None }]);
}

#[test]
fn a_child_that_drains_gets_nothing_more_and_what_it_gives_back_is_done_first() {
    for ports in [Ports::Single, Ports::Multi] {
        let options = FarmOptions::of(&policy(Order::Arrival, ports), TASK).with_recovery();
        let mut root = Driven::root(&platform(&[(1.0, 5.0, 0.0), (1.0, 5.0, 0.0)]), &options);
        root.handle(Given { first: 0, tasks: 9 });
        root.handle(Requested { child: 0, tasks: 3 });
        root.handle(Sent { child: 0, task: 1 }); // task 2 is in transit
        assert_eq!(root.handle(Draining { child: 0 }), []);
        assert_eq!(root.handle(Requested { child: 0, tasks: 2 }), [], "it has no more options");
        assert_eq!(root.handle(Sent { child: 0, task: 2 }), [], "what was on its way arrives, and nothing follows");
        assert_eq!(root.handle(HandedBack { child: 0, task: 2 }), []);
        assert_eq!(root.handle(HandedBack { child: 0, task: 2 }), [], "a task comes back once");
        assert_eq!(root.handle(Requested { child: 1, tasks: 2 }), [Send { child: 1, task: 2, limit_mb_per_s: None }]);
        assert_eq!(root.handle(Returned { child: 0, task: 1 }), [Return { task: 1 }]);
        assert_eq!(root.0.ledger().unwrap().lent_to(0), 0);
    }
}

#[test]
fn a_node_that_drains_hands_back_what_waits_and_finishes_what_it_and_its_children_have() {
    let mut node = inner();
    node.handle(Started);
    node.handle(Arrived { task: 0 });
    node.handle(Requested { child: 0, tasks: 2 });
    assert_eq!(node.handle(Arrived { task: 1 }), [Send { child: 0, task: 1, limit_mb_per_s: None }]);
    assert_eq!(node.handle(Arrived { task: 2 }), []);
    assert_eq!(node.handle(Drain), [HandBack { task: 2 }]);
    assert_eq!(node.handle(Sent { child: 0, task: 1 }), [], "it requests nothing and serves no child");
    assert_eq!(node.handle(Arrived { task: 3 }), [HandBack { task: 3 }], "it was on its way");
    assert_eq!(node.handle(Computed { task: 0 }), [Return { task: 0 }]);
    assert_eq!(node.handle(Arrived { task: 4 }), [HandBack { task: 4 }], "its processor is idle, and stays so");
    assert_eq!(node.handle(Returned { child: 0, task: 1 }), [Return { task: 1 }]);
    assert!(node.0.ledger().unwrap().is_empty());
}

#[test]
fn a_child_that_drains_may_be_lost_and_a_node_that_drains_lets_its_children_drain() {
    let mut node = inner();
    node.handle(Started);
    node.handle(Arrived { task: 0 });
    node.handle(Requested { child: 0, tasks: 2 });
    node.handle(Arrived { task: 1 });
    node.handle(Sent { child: 0, task: 1 });
    node.handle(Drain);
    node.handle(Draining { child: 0 });
    assert_eq!(node.handle(HandedBack { child: 0, task: 1 }), [HandBack { task: 1 }], "what comes back goes up");
    node.handle(Computed { task: 0 });
    assert_eq!(node.handle(Left { child: 0 }), []);
    assert!(node.0.ledger().unwrap().is_empty());
}

#[test]
fn where_the_send_limit_is_scarce_no_child_is_sent_to_faster_than_it_can_use() {
    // Of 10 MB/s the first can use 3 of its 8, and the second the rest.
    let leaves = [(3.0, 8.0, 0.01), (20.0, 9.0, 0.02)];
    let mut root = star(Order::Interference, Ports::Multi, &leaves);
    root.handle(Given { first: 0, tasks: 9 });
    root.handle(Requested { child: 0, tasks: 1 });
    assert_eq!(root.handle(Requested { child: 1, tasks: 1 }), [Send { child: 1, task: 2, limit_mb_per_s: Some(7.0) }]);
    // Together they can use less than the limit: the rest is divided in proportion.
    let leaves = [(3.0, 8.0, 0.01), (5.0, 9.0, 0.02)];
    let mut root = star(Order::Interference, Ports::Multi, &leaves);
    root.handle(Given { first: 0, tasks: 9 });
    let commands = root.handle(Requested { child: 0, tasks: 1 });
    assert_eq!(commands, [Send { child: 0, task: 1, limit_mb_per_s: Some(3.75) }]);
}

#[test]
fn in_a_short_run_no_node_asks_ahead_for_more_than_a_tenth_of_its_part_but_one() {
    let platform = platform(&[(40.0, 100.0, 0.0), (1.0, 10.0, 0.0)]);
    let tree = platform.tree().unwrap();
    let policy = Policy { buffer_tasks: None, ..policy(Order::Interference, Ports::Single) };
    let places = |tasks: Option<u64>| -> Vec<u64> {
        let options = FarmOptions { tasks, ..FarmOptions::of(&policy, TASK) };
        Settings::of(&platform, &tree, &options)[1..].iter().map(|node| node.places).collect()
    };
    let unknown = places(None);
    assert!(unknown.iter().all(|&places| places >= 3), "{unknown:?}");
    assert_eq!(places(Some(1_000_000)), unknown);
    // The rates are about 10, 40 and 1 tasks/s: the second leaf does one of 51 tasks, and 20 of 1020.
    assert_eq!(places(Some(51))[1], 1);
    assert_eq!(places(Some(1020))[1], 2);
    assert!(places(Some(51))[0] <= 4);
}

/// A root of 10 tasks/s with 4 tasks, a leaf that uses 1 task/s, and one that uses the 5 of its link.
fn near_the_end(level_end: bool) -> Driven {
    let policy = Policy { level_end, ..policy(Order::Interference, Ports::Single) };
    let platform = platform(&[(1.0, 10.0, 0.0), (10.0, 5.0, 0.01)]);
    let mut root = Driven::root(&platform, &FarmOptions::of(&policy, TASK).with_recovery());
    root.handle(Given { first: 0, tasks: 4 });
    root
}

#[test]
fn one_of_the_last_tasks_goes_to_a_node_that_is_done_with_it_as_early_as_the_others() {
    // The slow leaf is preferred: its link is faster, and its interference lower.
    let mut root = near_the_end(true);
    root.handle(RemainingHint { tasks: 1000 });
    // The end is far.
    assert!(matches!(root.handle(Requested { child: 0, tasks: 1 })[..], [Send { child: 0, .. }]));
    let mut root = near_the_end(true);
    root.handle(RemainingHint { tasks: 0 });
    // Four tasks in all: without this leaf the run takes 0.4 s.
    assert_eq!(root.handle(Requested { child: 0, tasks: 1 }), [], "it would be done last");
    let mut root = near_the_end(true);
    root.handle(RemainingHint { tasks: 100 });
    (4..100).for_each(|task| drop(root.handle(Arrived { task })));
    (0..90).for_each(|task| drop(root.handle(Computed { task })));
    root.handle(RemainingHint { tasks: 0 });
    // Nine wait and one is being computed: all could be done in (9 + 1) / 16 s, and the slow leaf needs 1 s for one.
    assert_eq!(root.handle(Requested { child: 0, tasks: 1 }), [], "it would be done last");
    let commands = root.handle(Requested { child: 1, tasks: 1 });
    // Its share of the eight others is 8 * 5 / 16.
    let expected = [HintRemaining { child: 1, tasks: 4 }, Send { child: 1, task: 91, limit_mb_per_s: None }];
    assert_eq!(commands, expected);
    let mut root = near_the_end(false);
    (4..100).for_each(|task| drop(root.handle(Arrived { task })));
    (0..90).for_each(|task| drop(root.handle(Computed { task })));
    root.handle(RemainingHint { tasks: 0 });
    assert!(matches!(root.handle(Requested { child: 0, tasks: 1 })[..], [Send { child: 0, task: 91, .. }]));
}

#[test]
fn when_nothing_is_left_all_children_are_told_so_once() {
    let mut root = near_the_end(true);
    root.handle(Given { first: 4, tasks: 4 });
    root.handle(RemainingHint { tasks: 0 });
    for child in 0..2 {
        root.handle(Requested { child, tasks: 2 });
    }
    let mut commands = Vec::new();
    for task in 0..8 {
        commands.extend(root.handle(Sent { child: 1, task }));
        commands.extend(root.handle(Computed { task }));
    }
    assert!(commands.contains(&Send { child: 1, task: 3, limit_mb_per_s: None }), "{commands:?}");
    assert!(commands.contains(&Compute { task: 7 }), "{commands:?}");
    let of = |child: u32| {
        commands.iter().rev().find(|c| matches!(c, HintRemaining { child: c, .. } if *c == child)).copied()
    };
    assert!(of(0).is_some() && of(1).is_some(), "{commands:?}");
    let told = commands.len();
    assert!(!root.handle(Requested { child: 0, tasks: 1 }).iter().any(|c| matches!(c, HintRemaining { .. })), "{told}");
}

#[test]
fn the_last_tasks_wait_for_no_node_that_takes_none() {
    // A fast leaf that never requests tasks, like a node that only forwards and has lost all below it. The root
    // computes nothing.
    let text = "schema_version = 1\nname = \"star\"\n[[node]]\nname = \"root\"\ncompute_per_s = 0\n\
        [[node]]\nname = \"fast\"\nparent = \"root\"\ncompute_per_s = 100\nreceive_limit_mb_per_s = 100\n\
        [[node]]\nname = \"slow\"\nparent = \"root\"\ncompute_per_s = 1\nreceive_limit_mb_per_s = 100\n";
    let platform = Platform::from_toml(text.as_bytes(), "star").unwrap();
    let options = FarmOptions::of(&policy(Order::Interference, Ports::Single), TASK).with_recovery();
    let mut root = Driven::root(&platform, &options);
    root.handle(RemainingHint { tasks: 100 });
    root.handle(Given { first: 0, tasks: 100 });
    root.handle(Requested { child: 1, tasks: 2 });
    for task in 0..100 {
        assert_eq!(root.0.ready(), 99 - task, "task {task} is on its way");
        root.handle(Sent { child: 1, task });
        root.handle(Returned { child: 1, task });
        root.handle(Requested { child: 1, tasks: 1 });
    }
    assert!(root.0.ledger().unwrap().is_empty());
}

#[test]
fn a_parent_may_say_that_any_number_is_to_come() {
    let mut node = inner_by(Order::Interference);
    node.handle(Started);
    for task in 0..4 {
        node.handle(Arrived { task });
    }
    node.handle(RemainingHint { tasks: u64::MAX });
    let commands = node.handle(Requested { child: 0, tasks: 1 });
    assert!(matches!(commands[0], HintRemaining { child: 0, tasks } if tasks > u64::MAX / 4), "{commands:?}");
    assert!(matches!(commands[1], Send { child: 0, task: 1, .. }), "{commands:?}");
}

#[test]
fn with_several_ports_arrival_serves_the_child_whose_request_is_the_oldest() {
    // Whatever is added or served meanwhile, open requests are served in order of arrival, except of children being
    // sent to.
    let leaves = [(99.0, 6.0, 0.01); 3];
    for moves in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut root = star(Order::Arrival, Ports::Multi, &leaves);
        let mut line = Vec::new();
        let mut sending = Vec::new();
        let mut served = Vec::new();
        let mut next = 0;
        for round in 0..12u64 {
            for child in moves {
                for _ in 0..=(round + u64::from(child)) % 2 {
                    line.push(child);
                    assert_eq!(root.handle(Requested { child, tasks: 1 }), []);
                }
            }
            // One or two tasks beyond the one that the own processor takes.
            let tasks = 1 + round % 2 + u64::from(round == 0);
            let commands = root.handle(Given { first: next, tasks });
            next += tasks;
            let to =
                |command: &Command| if let Send { child, task, .. } = *command { Some((child, task)) } else { None };
            for (child, task) in commands.iter().filter_map(to) {
                let first = line.iter().position(|c| !sending.iter().any(|(s, _)| s == c)).unwrap();
                assert_eq!(line.remove(first), child, "round {round}");
                sending.push((child, task));
                served.push(child);
            }
            if round % 3 != 1 {
                for (child, task) in sending.drain(..) {
                    assert_eq!(root.handle(Sent { child, task }), []);
                }
            }
        }
        assert!(served.len() > 8, "{served:?}");
    }
}

/// A node below the root with compute rate `compute` and `leaves` leaves. The node and all leaves have requested tasks.
fn relay(compute: f64, leaves: u32) -> Driven {
    let mut text = format!(
        "schema_version = 1\nname = \"chain\"\n[[node]]\nname = \"root\"\ncompute_per_s = 1\n[[node]]\n\
         name = \"relay\"\nparent = \"root\"\ncompute_per_s = {compute}\nreceive_limit_mb_per_s = 5\n"
    );
    for n in 0..leaves {
        text += &format!(
            "[[node]]\nname = \"leaf{n}\"\nparent = \"relay\"\ncompute_per_s = 1\nreceive_limit_mb_per_s = 5\n"
        );
    }
    let platform = Platform::from_toml(text.as_bytes(), "chain").unwrap();
    let options = FarmOptions::of(&policy(Order::Bandwidth, Ports::Single), TASK).with_recovery();
    let mut relay = Driven(Node::new(Settings::of(&platform, &platform.tree().unwrap(), &options).swap_remove(1)));
    assert_eq!(relay.handle(Started), [Ask { tasks: 2 }]);
    for child in 0..leaves {
        relay.handle(Requested { child, tasks: 1 });
    }
    relay
}

#[test]
fn a_relay_below_which_nothing_computes_any_more_gives_its_tasks_back() {
    let mut node = relay(0.0, 2);
    assert_eq!(node.handle(Arrived { task: 7 })[0], Send { child: 0, task: 7, limit_mb_per_s: None });
    node.handle(Arrived { task: 8 });
    assert!(!node.handle(Left { child: 1 }).iter().any(|command| matches!(command, HandBack { .. })));
    assert_eq!(node.handle(Left { child: 0 }), [HandBack { task: 7 }, HandBack { task: 8 }]);
    // Tasks in transit follow, and nothing is requested until something below computes again.
    assert_eq!(node.handle(Arrived { task: 9 }), [HandBack { task: 9 }]);
    let child = ChildSettings {
        key: Some(1.0),
        receive_limit_mb_per_s: 5.0,
        pace_mb_per_s: 5.0,
        uses_tasks_per_s: 1.0,
        empties_tasks_per_s: 1.0,
        send_s: 0.2,
    };
    assert_eq!(node.handle(Joined { child }), [Ask { tasks: 2 }]);
    // A node that computes keeps them.
    let mut node = relay(1.0, 1);
    assert_eq!(node.handle(Arrived { task: 7 }), [Compute { task: 7 }, Ask { tasks: 1 }]);
    node.handle(Arrived { task: 8 });
    assert_eq!(node.handle(Left { child: 0 }), []);
}

#[test]
fn a_child_that_gave_a_task_back_gets_none_until_it_asks_again() {
    let mut node = relay(0.0, 1);
    node.handle(Requested { child: 0, tasks: 3 });
    node.handle(Arrived { task: 7 });
    node.handle(Sent { child: 0, task: 7 });
    // The whole subtree computes nothing: the task and later ones are handed back up.
    assert_eq!(node.handle(HandedBack { child: 0, task: 7 }), [HandBack { task: 7 }]);
    assert_eq!(node.handle(Arrived { task: 8 }), [HandBack { task: 8 }]);
    assert_eq!(node.handle(Requested { child: 0, tasks: 1 }), [Ask { tasks: 2 }]);
    assert_eq!(node.handle(Arrived { task: 9 })[0], Send { child: 0, task: 9, limit_mb_per_s: None });
}

#[test]
fn a_relay_hands_its_tasks_back_when_its_other_child_has_nothing_and_requests_nothing() {
    // The second child only forwards tasks, and nothing below it computes. It has no task to hand back.
    let mut node = relay(0.0, 1);
    let child = ChildSettings {
        key: Some(2.0),
        receive_limit_mb_per_s: 5.0,
        pace_mb_per_s: 5.0,
        uses_tasks_per_s: 0.0,
        empties_tasks_per_s: 0.0,
        send_s: 0.2,
    };
    node.handle(Joined { child });
    node.handle(Arrived { task: 7 });
    node.handle(Arrived { task: 8 });
    assert_eq!(node.handle(Left { child: 0 }), [HandBack { task: 7 }, HandBack { task: 8 }]);
    assert_eq!(
        node.handle(Requested { child: 1, tasks: 1 }),
        [Ask { tasks: 2 }],
        "a node that computes joined below it"
    );
    // It has taken a task and computes it, so tasks wait for it until its last result is back and it requests no more.
    assert_eq!(node.handle(Arrived { task: 9 })[0], Send { child: 1, task: 9, limit_mb_per_s: None });
    node.handle(Sent { child: 1, task: 9 });
    assert_eq!(node.handle(Arrived { task: 10 }), []);
    assert_eq!(node.handle(Returned { child: 1, task: 9 }), [Return { task: 9 }, HandBack { task: 10 }]);
}
