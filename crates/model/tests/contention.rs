//! The contention model, checked against the figures of communication-interactions and its own laws.
use crosswind_model::contention::delay::{Flows, Formula, LocalTarget};
use crosswind_model::contention::{EffectiveRatio, message_rate};
use proptest::prelude::*;

const MEASURED: EffectiveRatio = EffectiveRatio::LinearLatency { per_flow: 0.1 };
const BOTH: [Formula; 2] = [Formula::Literal, Formula::Corrected];

fn flows<'a>(parallel: f64, local: &'a [f64], effective: &'a EffectiveRatio, formula: Formula) -> Flows<'a> {
    let link = message_rate(19.375, 8192.0, Formula::Corrected).unwrap();
    Flows { link, parallel, local, effective, formula }
}

fn of_mg(alpha: f64, beta: f64, hosts: usize, effective: &EffectiveRatio, formula: Formula) -> f64 {
    flows(beta, &vec![alpha; hosts], effective, formula).all_to_all().unwrap().over_managed
}

fn near(seen: f64, expected: f64, off: f64) {
    assert!((seen - expected).abs() <= off, "{seen} is not {expected}");
}

#[test]
fn mg_has_the_values_of_e4_8_with_the_measured_effective_ratio() {
    for (alpha, literal, corrected) in [(500.0, 0.55, 1.13), (1000.0, 1.65, 1.94), (2000.0, 3.86, 3.57)] {
        near(of_mg(alpha, 199.0, 4, &MEASURED, Formula::Literal), literal, 0.01);
        near(of_mg(alpha, 813.0, 4, &MEASURED, Formula::Corrected), corrected, 0.01);
    }
}

#[test]
fn the_printed_form_says_that_hardly_any_local_flow_speeds_a_job_up() {
    near(of_mg(0.0, 813.0, 4, &MEASURED, Formula::Literal), -0.56, 0.005);
    assert!(of_mg(0.0, 813.0, 4, &MEASURED, Formula::Corrected) > 0.0);
    let printed = EffectiveRatio::Literal { messages_per_s: 2480.0 };
    near(of_mg(0.0, 813.0, 4, &printed, Formula::Literal), 58.0, 1.0);
}

#[test]
fn the_ratio_of_4_to_8_hosts_has_the_values_of_e4_9_and_not_1_34() {
    let slope = |hosts, beta, effective: &EffectiveRatio, formula| {
        of_mg(1.0, beta, hosts, effective, formula) - of_mg(0.0, beta, hosts, effective, formula)
    };
    let ratio =
        |effective: &EffectiveRatio, formula| slope(4, 100.0, effective, formula) / slope(8, 200.0, effective, formula);
    let printed = EffectiveRatio::Literal { messages_per_s: 2480.0 };
    near(ratio(&printed, Formula::Literal), 6.11, 0.01);
    near(ratio(&printed, Formula::Corrected), 2.62, 0.01);
    near(ratio(&MEASURED, Formula::Corrected), 1.5, 0.001);
    near(ratio(&EffectiveRatio::Reconstructed { window_messages: 256.0 }, Formula::Corrected), 1.64, 0.01);
}

#[test]
fn many_to_one_is_as_printed_where_its_suppositions_hold() {
    // The input link is congested by the job alone, and is the slower link of every path.
    let local = [100.0, 300.0, 0.0, 200.0];
    let [literal, corrected] =
        BOTH.map(|formula| flows(900.0, &local, &MEASURED, formula).many_to_one(LocalTarget::Same).unwrap());
    near(literal.over_managed, corrected.over_managed, 1e-12);
    near(literal.over_unmanaged, corrected.over_unmanaged, 1e-12);
    near(literal.over_unmanaged, 600.0 / (4.0 * 900.0), 1e-12);
    // (3.6): at alpha = 0 the printed baseline leaves 1 / delta(n) - 1 (E4-12).
    let alone = flows(900.0, &[0.0; 4], &MEASURED, Formula::Literal).many_to_one(LocalTarget::Same).unwrap();
    near(alone.over_managed, 0.3, 1e-12);
    near(alone.over_unmanaged, 0.0, 1e-12);
}

#[test]
fn local_flows_to_other_hosts_cost_a_job_only_what_they_take_of_output_links() {
    let case = |local: &[f64]| {
        flows(1000.0, local, &MEASURED, Formula::Corrected).many_to_one(LocalTarget::Elsewhere).unwrap()
    };
    near(case(&[1000.0, 1000.0]).over_managed, 0.0, 1e-12);
    let beyond = case(&[0.0, 2000.0]);
    assert!(beyond.over_managed > 0.2);
    assert_eq!(beyond.saturated.unwrap().link, "output link of sender 1");
}

#[test]
fn beyond_saturation_the_model_says_so_and_below_it_does_not() {
    for formula in BOTH {
        let at = |alpha: f64| {
            let local = [alpha];
            flows(500.0, &local, &MEASURED, formula).one_to_many().unwrap()
        };
        assert_eq!(at(1800.0).saturated, None);
        let beyond = at(2000.0).saturated.unwrap();
        assert_eq!((beyond.link.as_str(), beyond.wanted), ("output link of sender 0", 2500.0));
        near(beyond.carries, 2365.1, 0.1);
    }
}

#[test]
fn wrong_input_is_named() {
    let said = |result: Result<_, crosswind_model::ModelError>| result.map(drop).unwrap_err().to_string();
    let one = |local: &[f64], parallel: f64| said(flows(parallel, local, &MEASURED, Formula::Corrected).one_to_many());
    assert!(one(&[1.0, 2.0], 1.0).starts_with("local has 2 rates"));
    assert!(one(&[-1.0], 1.0).starts_with("local[0] is -1"));
    assert!(one(&[1.0], 0.0).starts_with("parallel is 0"));
    assert!(one(&[], 1.0).starts_with("local is empty"));
    let each =
        |targets: &[Vec<u32>]| said(flows(1.0, &[1.0, 1.0], &MEASURED, Formula::Corrected).each_to_many(targets));
    assert!(each(&[vec![1]]).starts_with("at_targets has 1 senders"));
    assert!(each(&[vec![1], vec![]]).starts_with("at_targets[1] is empty"));
    assert!(each(&[vec![1], vec![0]]).starts_with("flows is 0"));
    assert!(said(flows(1.0, &[1.0], &MEASURED, Formula::Corrected).all_to_all()).starts_with("local has 1 rates"));
}

prop_compose! {
    fn any_effective()(kind in 0..3, c in 0.0..1.0_f64, window in 300.0..4000.0_f64) -> EffectiveRatio {
        match kind {
            0 => EffectiveRatio::LinearLatency { per_flow: c },
            1 => EffectiveRatio::Reconstructed { window_messages: window },
            _ => EffectiveRatio::Fitted {
                measured: vec![(2, 1.0 / (1.0 + c))],
                elsewhere: Box::new(EffectiveRatio::LinearLatency { per_flow: c }),
            },
        }
    }
}

proptest! {
    #[test]
    fn corrected_local_flows_never_speed_a_job_up_and_more_of_them_never_help(
        effective in any_effective(),
        parallel in 1.0..5000.0_f64,
        local in prop::collection::vec(0.0..5000.0_f64, 2..12),
        more in 0.0..2000.0_f64,
        at in 0..12_usize,
    ) {
        let at = at % local.len();
        let mut greater = local.clone();
        greater[at] += more;
        for target in [LocalTarget::Same, LocalTarget::Elsewhere] {
            let with = |local: &[f64]| {
                flows(parallel, local, &effective, Formula::Corrected).many_to_one(target).unwrap()
            };
            prop_assert!(with(&local).over_managed >= -1e-12);
            prop_assert!(with(&local).over_unmanaged >= -1e-12);
            prop_assert!(with(&greater).over_managed >= with(&local).over_managed - 1e-12);
        }
        let one = |local: f64| flows(parallel, &[local], &effective, Formula::Corrected).one_to_many().unwrap();
        prop_assert!(one(local[0]).over_managed >= -1e-12);
        prop_assert!(one(local[0] + more).over_managed >= one(local[0]).over_managed - 1e-12);
        let all = |local: &[f64]| flows(parallel, local, &effective, Formula::Corrected).all_to_all().unwrap();
        prop_assert!(all(&local).over_managed >= all(&local).over_unmanaged);
        prop_assert!(all(&local).over_unmanaged >= -1e-12);
        prop_assert!(all(&greater).over_managed >= all(&local).over_managed - 1e-12);
    }

    #[test]
    fn rates_may_be_in_any_unit(
        parallel in 1.0..5000.0_f64,
        local in prop::collection::vec(0.0..5000.0_f64, 2..6),
        unit in 1e-3..1e3_f64,
    ) {
        for formula in BOTH {
            let one = flows(parallel, &local, &MEASURED, formula);
            let scaled: Vec<f64> = local.iter().map(|rate| rate * unit).collect();
            let other = Flows { link: one.link * unit, parallel: parallel * unit, local: &scaled, ..one };
            let (a, b) = (one.many_to_one(LocalTarget::Same).unwrap(), other.many_to_one(LocalTarget::Same).unwrap());
            prop_assert!((a.over_managed - b.over_managed).abs() < 1e-9 * (1.0 + a.over_managed.abs()));
            let (a, b) = (one.all_to_all().unwrap(), other.all_to_all().unwrap());
            prop_assert!((a.over_managed - b.over_managed).abs() < 1e-9 * (1.0 + a.over_managed.abs()));
        }
    }
}
