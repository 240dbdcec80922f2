//! Order in which messages are handled: by arrival; messages that arrive at once by sender, and in the order sent.
use crate::programs::{Event, Scripts, cm5, compute, message};
use crosswind_policy::window::WindowSettings;
use crosswind_program::{Kind, Op};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::Network;

fn handled(log: &[Event]) -> Vec<(u32, u64)> {
    let of = |event: &Event| match *event {
        Event::Handled { from, word, .. } => Some((from, word)),
        Event::Answered { .. } => None,
    };
    log.iter().filter_map(of).collect()
}

#[test]
fn the_first_to_arrive_is_handled_first_whatever_its_number() {
    let late = 300;
    for (first, second) in [(1, 2), (2, 1)] {
        let mut ops = vec![vec![Op::WaitStored { bytes: 16 }], Vec::new(), Vec::new()];
        ops[first] = vec![message(0, Kind::Store, 8, 1)];
        ops[second] = vec![compute(late), message(0, Kind::Store, 8, 2)];
        let network = Network { gap_ns: 0, ..cm5() };
        assert!(late < network.latency_ns, "both come within one look at the inbox");
        let run = Scripts::new(ops).run(&network, WindowSettings::default(), &Timelines::undisturbed(3));
        assert_eq!(handled(&run.ranks[0].log), [(first as u32, 1), (second as u32, 2)]);
    }
}

#[test]
fn what_is_sent_at_the_same_time_is_handled_by_sender_and_in_the_order_of_sending() {
    // Sending costs nothing, so all messages arrive in the same nanosecond.
    let network = Network { overhead_ns: 0, gap_ns: 0, gap_per_byte_ns: 0.0, ..cm5() };
    for count in [2, 5, 60] {
        let sends = || (0..count).map(|word| message(0, Kind::Store, 8, word)).collect::<Vec<_>>();
        let all = vec![Op::WaitStored { bytes: 3 * 8 * count }];
        let program = Scripts::new(vec![all, sends(), sends(), sends()]);
        let run = program.run(&network, WindowSettings::default(), &Timelines::undisturbed(4));
        let wanted: Vec<(u32, u64)> = (1..4).flat_map(|from| (0..count).map(move |word| (from, word))).collect();
        assert_eq!(handled(&run.ranks[0].log), wanted);
    }
}
