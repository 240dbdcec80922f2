//! Runs many simulations in parallel, on threads that take the next job as soon as they are free.
//!
//! The caller numbers the jobs and reorders the results, which arrive as they are completed. Threads of `std` and two
//! channels are enough: jobs share nothing and are not split, so rayon has no use here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Callback that a simulation calls periodically; `false` ends the simulation.
pub type Watch<'a> = &'a mut dyn FnMut(u64) -> bool;

type Job<R> = Box<dyn FnOnce(Watch<'_>) -> R + Send>;

/// A completed job: its number, and its result or panic payload.
pub type Done<R> = (u64, thread::Result<R>);

/// Threads that simulate. Dropping it ends the running jobs and waits for its threads.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use crosswind_experiment::pool::Pool;
///
/// let pool = Pool::new(2)?;
/// for number in 0..4 {
///     pool.put(number, move |_| number * number);
/// }
/// let mut squares: Vec<u64> = Vec::new();
/// while squares.len() < 4 {
///     squares.extend(pool.next(Duration::from_secs(1)).map(|(_, square)| square.expect("it did not panic")));
/// }
/// squares.sort_unstable();
/// assert_eq!(squares, [0, 1, 4, 9]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Pool<R> {
    jobs: Option<Sender<(u64, Job<R>)>>,
    done: Mutex<Receiver<Done<R>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl<R: Send + 'static> Pool<R> {
    /// Starts `threads` threads, which wait for jobs.
    ///
    /// # Errors
    /// When the system refuses to create a thread.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let (jobs, to_do) = channel::<(u64, Job<R>)>();
        let (results, done) = channel();
        let to_do = Arc::new(Mutex::new(to_do));
        // Created before its threads: if the system refuses one, those before it end with the pool.
        let stop = Arc::new(AtomicBool::new(false));
        let mut pool = Self { jobs: Some(jobs), done: Mutex::new(done), stop, threads: Vec::new() };
        for _ in 0..threads {
            let (to_do, results, stop) = (Arc::clone(&to_do), results.clone(), Arc::clone(&pool.stop));
            let work = move || simulate_all(&to_do, &results, &stop);
            pool.threads.push(thread::Builder::new().name("simulation".into()).spawn(work)?);
        }
        Ok(pool)
    }

    pub fn put(&self, number: u64, job: impl FnOnce(Watch<'_>) -> R + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            // Threads live as long as the pool, so one receives.
            let _ = jobs.send((number, Box::new(job)));
        }
    }

    /// Returns the next completed job; `None` after waiting for `wait`.
    pub fn next(&self, wait: Duration) -> Option<Done<R>> {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.recv_timeout(wait).ok()
    }
}

impl<R> Drop for Pool<R> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // it catches the panics of its jobs
        }
    }
}

fn simulate_all<R>(to_do: &Mutex<Receiver<(u64, Job<R>)>>, results: &Sender<Done<R>>, stop: &AtomicBool) {
    loop {
        let next = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, job)) = next else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let mut watch = |_| !stop.load(Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| job(&mut watch)));
        if results.send((number, result)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn every_job_comes_back_with_its_number_and_a_panic_is_one_jobs_own() {
        let pool = Pool::new(3).expect("threads");
        for number in 0..20 {
            pool.put(number, move |_| {
                assert!(number != 7, "seven");
                number + 100
            });
        }
        let mut found: Vec<_> = (0..20).map(|_| pool.next(LONG).expect("a job is done")).collect();
        found.sort_by_key(|(number, _)| *number);
        for (number, (done, result)) in (0..).zip(found) {
            assert_eq!(done, number);
            assert_eq!(result.ok(), (number != 7).then_some(number + 100));
        }
    }

    #[test]
    fn a_pool_that_is_dropped_ends_what_is_under_way_and_begins_nothing_more() {
        let (starts, begun) = channel();
        let pool = Pool::new(1).expect("a thread");
        for number in 0..2 {
            let starts = starts.clone();
            pool.put(number, move |watch| {
                starts.send(number).expect("the test waits");
                while watch(0) {
                    thread::yield_now();
                }
            });
        }
        drop(starts);
        assert_eq!(begun.recv(), Ok(0));
        drop(pool); // would otherwise block forever
        assert!(begun.recv().is_err());
    }
}
