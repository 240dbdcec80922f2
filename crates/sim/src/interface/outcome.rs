//! Runs the three measurements of an experiment and combines their results.

use std::collections::BTreeMap;

use crosswind_schema::experiment::Params;
use crosswind_schema::experiment::streams::StreamsExperiment;
use crosswind_schema::streams_run::{JobOutcome, Latencies, Latency, StreamOutcome, StreamsRun};
use crosswind_schema::{Class, Warning};

use super::engine::{Engine, Present};
use super::job::Job;
use super::observer::Observer;
use super::traffic::{Measured, MeasuredStream};
use crate::error::SimError;
use crate::time::{NEVER, Nanos, seconds};

/// Patience of a run with everything present, as a multiple of the longest time alone.
const PATIENCE: Nanos = 100;

/// Runs one measurement of the streams and jobs present, through the queues of the policy or through one queue.
///
/// `patience_ns`: the measurement is abandoned after this long without timed progress; `None` means never. `watch` is
/// called periodically with the number of frames that have arrived. Returning `false` ends the measurement.
///
/// # Errors
/// [`SimError::Overrun`] when messages are generated faster than links carry them, without end; [`SimError::Jobs`] when
/// the jobs are not those of the experiment; [`SimError::NoSuchHost`] when a job runs on a host that does not exist;
/// [`SimError::Interrupted`].
pub fn measure<O: Observer>(
    experiment: &StreamsExperiment,
    jobs: &[Job],
    present: Present,
    queued: bool,
    patience_ns: Option<Nanos>,
    observer: &mut O,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Measured, SimError> {
    let asked = experiment.workload.jobs.len();
    if asked != jobs.len() {
        return Err(SimError::Jobs { asked, given: jobs.len() });
    }
    let hosts = experiment.workload.hosts.get() as u32;
    if let Some(&host) = jobs.iter().flat_map(|job| &job.hosts).find(|&&host| host >= hosts) {
        return Err(SimError::NoSuchHost { host, hosts });
    }
    let patience = patience_ns.unwrap_or(NEVER - 1).min(NEVER - 1);
    let mut engine = Engine::new(experiment, jobs, present, queued, patience, observer);
    let is_complete = engine.run(0, watch)?;
    Ok(engine.measured(is_complete))
}

/// Simulates one point of an experiment of kind streams: each stream and each job alone, then all through one queue,
/// then all through the queues of the policy. `jobs` holds the messages of the experiment's jobs, in their order.
///
/// A measurement that a discipline starves is abandoned after a hundred times the longest time alone. Its times are
/// then lower bounds, and a warning reports this. `watch` is called periodically, and at the end of each measurement,
/// with the number of frames that have arrived in all measurements. Returning `false` ends the run.
///
/// # Errors
/// Those of [`measure`], and [`SimError::Endless`] when a stream or job does not end alone.
pub fn simulate_streams(
    experiment: &StreamsExperiment,
    jobs: &[Job],
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<StreamsRun, SimError> {
    let mut frames = 0;
    let mut once = |present, queued, patience| {
        let mut further = |more: u64| watch(frames + more);
        let measured = measure(experiment, jobs, present, queued, patience, &mut (), &mut further)?;
        frames += measured.frames;
        if watch(frames) { Ok(measured) } else { Err(SimError::Interrupted) }
    };
    let to_the_end = |measured: Measured| if measured.is_complete { Ok(measured) } else { Err(SimError::Endless) };
    let streams = &experiment.workload.streams;
    let mut streams_alone = Vec::with_capacity(streams.len());
    for at in 0..streams.len() {
        let mut measured = to_the_end(once(Present::Stream(at), false, None)?)?;
        streams_alone.push(measured.streams.swap_remove(at));
    }
    let mut jobs_alone = Vec::with_capacity(jobs.len());
    for at in 0..jobs.len() {
        let measured = to_the_end(once(Present::Job(at), false, None)?)?;
        jobs_alone.push(measured.jobs[at].unwrap_or(measured.ended));
    }
    let longest = streams_alone.iter().filter_map(|stream| stream.ended).chain(jobs_alone.iter().copied()).max();
    let patience = longest.unwrap_or_default().saturating_mul(PATIENCE);
    let fifo = once(Present::All, false, Some(patience))?;
    let queued = once(Present::All, true, Some(patience))?;
    let mut warnings = Vec::new();
    starved(experiment, &fifo, "one queue", &mut warnings);
    starved(experiment, &queued, "the queues of the policy", &mut warnings);
    let named = streams.iter().enumerate().map(|(at, stream)| {
        let name = (stream.name.clone(), stream.class);
        stream_outcome(name, &streams_alone[at], (&fifo, &fifo.streams[at]), (&queued, &queued.streams[at]))
    });
    let ratio = |beside: f64, alone: f64| if alone > 0.0 { (beside - alone) / alone } else { 0.0 };
    let named_jobs = experiment.workload.jobs.iter().enumerate().map(|(at, job)| {
        let time = |measured: &Measured| seconds(measured.jobs[at].unwrap_or(measured.ended));
        let (alone_s, fifo_s, queued_s) = (seconds(jobs_alone[at]), time(&fifo), time(&queued));
        JobOutcome {
            name: job.name().into(),
            program: job.program,
            hosts: job.hosts.len() as u32,
            messages: jobs[at].messages(),
            bytes: jobs[at].bytes(),
            alone_s,
            fifo_s,
            queued_s,
            eta_fifo: ratio(fifo_s, alone_s),
            eta_queued: ratio(queued_s, alone_s),
        }
    });
    Ok(StreamsRun {
        params: Params::default(),
        seed: experiment.seed,
        hosts: experiment.workload.hosts.get() as u32,
        queue: experiment.policy.queue,
        makespan_s: seconds(queued.ended),
        streams: named.collect(),
        jobs: named_jobs.collect(),
        bounds: BTreeMap::new(),
        frames: queued.frames,
        dropped: queued.dropped,
        warnings,
    })
}

fn stream_outcome(
    (name, class): (String, Class),
    alone: &MeasuredStream,
    fifo: (&Measured, &MeasuredStream),
    queued: (&Measured, &MeasuredStream),
) -> StreamOutcome {
    let time = |(measured, stream): (&Measured, &MeasuredStream)| seconds(stream.ended.unwrap_or(measured.ended));
    let latency = |stream: &MeasuredStream| {
        Latency::of(&mut stream.latencies.iter().map(|&latency| seconds(latency)).collect::<Vec<_>>())
    };
    let alone_s = alone.ended.map(seconds).unwrap_or_default();
    let (fifo_s, queued_s) = (time(fifo), time(queued));
    let ratio = |beside: f64| if alone_s > 0.0 { beside / alone_s } else { 1.0 };
    StreamOutcome {
        name,
        class,
        messages: alone.latencies.len() as u64,
        bytes: alone.bytes,
        alone_s,
        fifo_s,
        queued_s,
        slowdown_fifo: ratio(fifo_s),
        slowdown_queued: ratio(queued_s),
        latency_s: Latencies { alone: latency(alone), fifo: latency(fifo.1), queued: latency(queued.1) },
    }
}

fn starved(experiment: &StreamsExperiment, measured: &Measured, through: &str, warnings: &mut Vec<Warning>) {
    let hint = "a discipline with a threshold (threshold, drr) and credits without literal bound the wait";
    for (stream, found) in experiment.workload.streams.iter().zip(&measured.streams) {
        if found.ended.is_none() {
            let message = format!(
                "stream {:?} starves through {through}: {} of {} messages after {} s; its times are lower bounds",
                stream.name,
                found.latencies.len(),
                stream.messages.get(),
                seconds(measured.ended)
            );
            warnings.push(Warning::new("starved", message, hint));
        }
    }
    for (job, ended) in experiment.workload.jobs.iter().zip(&measured.jobs) {
        if ended.is_none() {
            let message = format!(
                "job {:?} starves through {through}: not at its end after {} s; its times are lower bounds",
                job.name(),
                seconds(measured.ended)
            );
            warnings.push(Warning::new("starved", message, hint));
        }
    }
}
