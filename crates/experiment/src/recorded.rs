//! A recorded program's point in virtual time: on disturbed processors, with transfers as recorded or on a network.

use crosswind_program::ProgramVisitor;
use crosswind_recorded::Recording;
use crosswind_schema::disturbance::{NEVER, Timeline, Timelines};
use crosswind_schema::experiment::Parameters;
use crosswind_schema::experiment::parameters::{RecordedParameters, Transfers};
use crosswind_schema::{ComputedBy, ProgramRun, RecordedTimes, Spread, Warning};
use crosswind_sim::SimError;

use crate::ExperimentError;
use crate::program::{ProgramPoint, Ran, Simulation, away, closed_forms, seconds};

/// Part of the run from which on absences while it was recorded are worth a warning.
const MUCH_AWAY: f64 = 0.02;

/// A recording and its identity: a digest of its files.
pub struct Identified {
    pub recording: Recording,
    pub identity: String,
}

/// Simulates a point whose program was recorded. `dedicated_s` is the time of the undisturbed program, s, if known.
pub(crate) fn simulate(
    point: &ProgramPoint<'_>,
    recording: &Recording,
    dedicated_s: Option<f64>,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<ProgramRun, ExperimentError> {
    let Parameters::Recorded(RecordedParameters { transfers, .. }) = point.experiment.workload.parameters()? else {
        return Err(ExperimentError::Recording("the program is not a recorded one".into()));
    };
    let mut run = match transfers {
        Transfers::Recorded => replayed(point, recording, watch)?,
        Transfers::Network => {
            let program = recording.on_network().map_err(ExperimentError::Recording)?;
            let meetings = Some(recording.meetings_of_all());
            Simulation { point, dedicated_s, meetings, watch }.visit(program)?
        }
    };
    let away_s = recording.away_ns().into_iter().max().map_or(0.0, seconds);
    let recorded_s = seconds(recording.recorded_ns());
    if away_s > MUCH_AWAY * recorded_s {
        let message = format!(
            "while it was recorded, a rank could run and did not for {away_s:.3} s of {recorded_s:.3} s; that counts as \
             computing"
        );
        run.warnings.push(Warning::new("recorded-absences", message, "record on a quieter machine"));
    }
    let replayed_s = seconds(recording.replayed_ns());
    run.recorded = Some(RecordedTimes { recorded_s, replayed_s, away_s, transfers });
    Ok(run)
}

/// Replays it with transfers that take as long as recorded.
fn replayed(
    point: &ProgramPoint<'_>,
    recording: &Recording,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<ProgramRun, ExperimentError> {
    if !watch(0) {
        return Err(SimError::Interrupted.into());
    }
    let ranks = recording.ranks();
    let timelines = point.timelines(ranks)?;
    let makespan_ns = end_of(recording, &timelines)?;
    let dedicated_s = seconds(recording.replayed_ns());
    Ok(point.entry(Ran {
        compute: ComputedBy::Simulated,
        ranks,
        makespan_s: seconds(makespan_ns),
        dedicated_s,
        messages: recording.messages(),
        packets: 0,
        stalled_s: 0.0,
        bounds: closed_forms(point.disturbance, ranks, dedicated_s, recording.meetings_of_all()),
        busy_s: Spread::of(recording.busy_ns().into_iter().map(seconds)),
        away_s: away(&timelines, makespan_ns),
    }))
}

fn end_of(recording: &Recording, timelines: &Timelines) -> Result<u64, SimError> {
    let mut processors: Vec<Timeline> = (0..recording.ranks()).map(|rank| timelines.rank(rank)).collect();
    let end = recording.replay_on(&mut |rank, from, ns| {
        let processor = &mut processors[rank as usize];
        let on = processor.next_on(from.max(0) as u64);
        processor.work(on, ns.max(0) as u64).min(NEVER) as i64
    });
    let end = end.max(0) as u64;
    if end < NEVER { Ok(end) } else { Err(SimError::Endless) }
}
