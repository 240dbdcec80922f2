//! The skeletons send what communication-interactions, section 4.3, counted, in any order of ranks and messages.

use crosswind_program::nas::Skeleton;
use crosswind_program::{Program, plain};
use crosswind_schema::experiment::parameters::{
    EpParameters, FtParameters, IsParameters, MgParameters, NasParameters, Partners, Whole,
};
use proptest::prelude::*;

/// The paper's MB (E4-4): see `nas/steps.rs`.
const PRINTED_MB: f64 = 1_048_576.0;

fn mg() -> NasParameters {
    NasParameters::Mg(MgParameters::default())
}

fn ft() -> NasParameters {
    NasParameters::Ft(FtParameters::default())
}

#[test]
fn mg_and_ft_send_the_messages_and_bytes_that_the_paper_prints() {
    for (parameters, hosts, messages, printed) in
        [(mg(), 4, 816, "24.5"), (mg(), 8, 1472, "48.8"), (ft(), 4, 186, "336.0"), (ft(), 8, 826, "392.0")]
    {
        let skeleton = Skeleton::new(&parameters, hosts);
        assert_eq!(skeleton.messages(), messages, "{parameters:?} on {hosts}");
        assert_eq!(format!("{:.1}", skeleton.bytes() as f64 / PRINTED_MB), printed, "{parameters:?} on {hosts}");
    }
}

#[test]
fn ft_moves_whole_transpositions_and_its_checksums_nothing_else() {
    for hosts in [2, 4, 8, 16] {
        let transposed = 14 * (1u64 << 25) / u64::from(hosts) * u64::from(hosts - 1);
        assert_eq!(Skeleton::new(&ft(), hosts).bytes(), transposed + 6 * 16 * u64::from(hosts - 1));
    }
}

#[test]
fn mg_to_all_others_on_8_hosts_would_send_twice_what_was_counted() {
    let all = |partners| NasParameters::Mg(MgParameters { partners, ..Default::default() });
    assert_eq!(Skeleton::new(&all(Partners::All), 4).messages(), Skeleton::new(&all(Partners::Three), 4).messages());
    assert_eq!(Skeleton::new(&all(Partners::All), 8).messages(), 4 * (14 * 56 + 32));
}

#[test]
fn twice_the_hosts_compute_half_as_long() {
    for parameters in
        [mg(), ft(), NasParameters::Ep(EpParameters::default()), NasParameters::Is(IsParameters::default())]
    {
        let [four, eight] = [4, 8].map(|hosts| Skeleton::new(&parameters, hosts).compute_s());
        assert!((four / eight - 2.0).abs() < 1e-9, "{parameters:?}: {four} {eight}");
    }
}

#[test]
fn ep_sends_44_bytes_from_each_to_one_at_the_end() {
    let skeleton = Skeleton::new(&NasParameters::Ep(EpParameters::default()), 8);
    let steps: Vec<_> = skeleton.supersteps().collect();
    assert_eq!((steps.len(), steps[0].messages.len()), (1, 7));
    assert!(steps[0].messages.iter().all(|message| message.to == 0 && message.bytes == 44));
}

#[test]
fn one_host_sends_nothing() {
    for parameters in
        [mg(), ft(), NasParameters::Ep(EpParameters::default()), NasParameters::Is(IsParameters::default())]
    {
        let alone = Skeleton::new(&parameters, 1);
        assert_eq!((alone.messages(), alone.bytes()), (0, 0));
        alone.check(&plain::run(&alone, 1).unwrap().results).unwrap();
    }
}

fn any_kernel() -> impl Strategy<Value = NasParameters> {
    let small = |from: u64, to: u64| from..=to;
    prop_oneof![
        (small(2, 6), small(1, 3), any::<bool>()).prop_map(|(side, cycles, all)| NasParameters::Mg(MgParameters {
            side_log2: Whole::new(side).unwrap(),
            cycles: Whole::new(cycles).unwrap(),
            partners: if all { Partners::All } else { Partners::Three },
            ..Default::default()
        })),
        (small(1, 12), small(1, 4)).prop_map(|(points, iterations)| NasParameters::Ft(FtParameters {
            points_log2: Whole::new(points).unwrap(),
            iterations: Whole::new(iterations).unwrap(),
            ..Default::default()
        })),
        small(1, 20).prop_map(|pairs| NasParameters::Ep(EpParameters {
            pairs_log2: Whole::new(pairs).unwrap(),
            ..Default::default()
        })),
        small(1, 4).prop_map(|rankings| NasParameters::Is(IsParameters {
            rankings: Whole::new(rankings).unwrap(),
            ..Default::default()
        })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ranks_send_the_supersteps_and_every_message_arrives_once(
        (parameters, hosts, order) in (any_kernel(), 1u32..12, any::<u64>()),
    ) {
        let skeleton = Skeleton::new(&parameters, hosts);
        let outcome = plain::run(&skeleton, order).map_err(|stuck| TestCaseError::fail(stuck.to_string()))?;
        skeleton.check(&outcome.results).map_err(TestCaseError::fail)?;
        let mut all = plain::Tally::default();
        outcome.tallies.iter().for_each(|tally| all.add(tally));
        prop_assert_eq!((all.all_messages(), all.all_bytes()), (skeleton.messages(), skeleton.bytes()));
        let sent: u64 = skeleton.supersteps().flat_map(|step| step.messages).map(|message| message.bytes).sum();
        prop_assert_eq!(sent, skeleton.bytes());
        let compute: u64 = outcome.tallies.iter().map(|tally| tally.compute_ns).max().unwrap();
        prop_assert!((compute as f64 / 1e9 - skeleton.compute_s()).abs() < 1e-6);
    }
}

#[test]
fn a_message_lost_or_doubled_is_noticed() {
    let skeleton = Skeleton::new(&mg(), 4);
    let mut results = plain::run(&skeleton, 1).unwrap().results;
    results[2][0] ^= 1;
    assert!(skeleton.check(&results).unwrap_err().starts_with("rank 2 ends with"));
}
