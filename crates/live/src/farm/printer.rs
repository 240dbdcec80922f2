//! What tasks print, on its way to the user: whole lines, as they come, and no faster than people and links can take.
//!
//! A task may print without end. So a node passes on at most [`BURST`] bytes at once and [`RATE`] for long, and counts
//! what it leaves out. A line that is not complete waits for its end, up to [`LONGEST`] bytes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosswind_agent::printed::MOST_PRINTED;
use crosswind_linux::{Waker, now_ns};

/// Bytes that may be passed on at once, and that may wait.
const BURST: f64 = 262_144.0;
/// Bytes that are passed on for long, 1/s.
const RATE: f64 = 131_072.0;
/// Bytes that a node must be allowed to pass on before it continues after it left something out. Otherwise every other
/// line would say that one is missing.
const AGAIN: f64 = BURST / 4.0;
/// Bytes of a line; a longer one is divided.
const LONGEST: usize = 8 << 10;

/// Lines of one task, or of one call of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub task: u64,
    /// The call of a batch, from 1; 0 for another task, and where the call is not known.
    pub call: u32,
    /// Bytes before them that were left out.
    pub left_out: u64,
    pub text: Vec<u8>,
}

/// The lines of a node's tasks until they are sent.
#[derive(Debug)]
pub struct Printer {
    state: Mutex<State>,
    waker: Arc<Waker>,
}

#[derive(Debug)]
struct State {
    task: u64,
    call: u32,
    /// The beginning of a line.
    begun: Vec<u8>,
    waiting: Vec<Lines>,
    waiting_bytes: usize,
    left_out: u64,
    may_pass: f64,
    looked_ns: u64,
}

impl Printer {
    /// Creates a printer that wakes a node when there are lines.
    #[must_use]
    pub fn new(waker: Arc<Waker>) -> Self {
        let state = State {
            task: 0,
            call: 0,
            begun: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            left_out: 0,
            may_pass: BURST,
            looked_ns: now_ns(),
        };
        Self { state: Mutex::new(state), waker }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a task: what is printed from now on is its.
    pub(crate) fn begin(&self, task: u64) {
        self.end();
        let mut state = self.state();
        (state.task, state.call) = (task, 0);
    }

    /// Begins a call of the task, if it is another one: what is printed from now on is its. 0: it is not known whose.
    pub(crate) fn begin_call(&self, call: u32) {
        let wakes = self.state().begin_call(call);
        if wakes {
            self.waker.wake();
        }
    }

    /// Takes what the task printed.
    pub fn print(&self, bytes: &[u8]) {
        let wakes = self.state().print(bytes, now_ns());
        if wakes {
            self.waker.wake();
        }
    }

    /// Ends what the task printed: its last line need not end with a newline.
    pub(crate) fn end(&self) {
        let wakes = self.state().end();
        if wakes {
            self.waker.wake();
        }
    }

    /// Returns the lines that have come since the last call.
    pub(crate) fn take(&self) -> Vec<Lines> {
        let mut state = self.state();
        state.waiting_bytes = 0;
        std::mem::take(&mut state.waiting)
    }
}

impl State {
    /// Returns whether lines wait that did not before.
    fn print(&mut self, bytes: &[u8], now_ns: u64) -> bool {
        let passed_s = now_ns.saturating_sub(self.looked_ns) as f64 * 1e-9;
        (self.may_pass, self.looked_ns) = ((self.may_pass + RATE * passed_s).min(BURST), now_ns);
        let waited = !self.waiting.is_empty();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            for part in piece.chunks(LONGEST) {
                self.begun.extend_from_slice(part);
                if self.begun.ends_with(b"\n") || self.begun.len() >= LONGEST {
                    self.pass_line();
                }
            }
        }
        !waited && !self.waiting.is_empty()
    }

    /// What is left out is counted with the lines that follow, whose ever they are: there may be many calls.
    fn begin_call(&mut self, call: u32) -> bool {
        let waited = !self.waiting.is_empty();
        self.pass_rest();
        self.call = call;
        !waited && !self.waiting.is_empty()
    }

    fn end(&mut self) -> bool {
        let waited = !self.waiting.is_empty();
        self.pass_rest();
        if self.left_out > 0 {
            self.waiting.push(Lines {
                task: self.task,
                call: self.call,
                left_out: std::mem::take(&mut self.left_out),
                text: Vec::new(),
            });
        }
        !waited && !self.waiting.is_empty()
    }

    /// Passes on a line without an end.
    fn pass_rest(&mut self) {
        if !self.begun.is_empty() {
            self.pass_line();
        }
    }

    /// Passes on the line that has begun, as a terminal would show it at its end.
    fn pass_line(&mut self) {
        let mut line = shown(&self.begun).to_vec();
        self.begun.clear();
        line.push(b'\n');
        let needed = if self.left_out > 0 { AGAIN } else { line.len() as f64 };
        if self.may_pass < needed || self.waiting_bytes + line.len() > BURST as usize {
            self.left_out += line.len() as u64;
            return;
        }
        self.may_pass -= line.len() as f64;
        self.waiting_bytes += line.len();
        let left_out = std::mem::take(&mut self.left_out);
        match self.waiting.last_mut() {
            Some(last)
                if (last.task, last.call) == (self.task, self.call)
                    && left_out == 0
                    && last.text.len() + line.len() <= MOST_PRINTED =>
            {
                last.text.extend(line);
            }
            _ => {
                self.waiting_bytes += size_of::<Lines>(); // calls that print a letter each must not fill memory either
                self.waiting.push(Lines { task: self.task, call: self.call, left_out, text: line });
            }
        }
    }
}

/// Returns what remains of a line: a carriage return, as of a progress bar, begins it anew.
fn shown(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.iter().rposition(|byte| *byte == b'\r').map_or(line, |at| &line[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printer() -> Printer {
        Printer::new(Arc::new(Waker::new().expect("creating a waker")))
    }

    fn text(lines: &[Lines]) -> String {
        lines.iter().map(|lines| format!("{}:{}", lines.task, String::from_utf8_lossy(&lines.text))).collect()
    }

    #[test]
    fn lines_are_passed_on_whole_and_each_with_its_task() {
        let printer = printer();
        printer.begin(1);
        printer.print(b"one\ntw");
        assert_eq!(text(&printer.take()), "1:one\n");
        printer.print(b"o\nth");
        printer.print(b"ree");
        assert_eq!(text(&printer.take()), "1:two\n");
        printer.begin(2);
        printer.print(b"\nother\n");
        printer.end();
        assert_eq!(text(&printer.take()), "1:three\n2:\nother\n");
        printer.end();
        assert_eq!(printer.take(), []);
    }

    #[test]
    fn lines_of_a_batch_are_passed_on_each_with_its_call() {
        let printer = printer();
        printer.begin(1);
        for call in 1..=3 {
            printer.begin_call(call);
            printer.print(b"one\nand ");
            printer.print(format!("{call}").as_bytes());
        }
        printer.begin_call(0);
        printer.print(b"whose\n");
        printer.begin(2);
        printer.print(b"other\n");
        let calls: Vec<_> = printer.take().into_iter().map(|lines| (lines.task, lines.call, lines.text)).collect();
        let of_call = |call: u32| (1, call, format!("one\nand {call}\n").into_bytes());
        let others = [(1, 0, b"whose\n".to_vec()), (2, 0, b"other\n".to_vec())];
        assert_eq!(calls, [of_call(1), of_call(2), of_call(3)].into_iter().chain(others).collect::<Vec<_>>());
    }

    #[test]
    fn a_progress_bar_is_shown_as_a_terminal_shows_it_at_last() {
        assert_eq!(shown(b" 10%\r 50%\r100%\n"), b"100%");
        assert_eq!(shown(b"of windows\r\n"), b"of windows");
        assert_eq!(shown(b"\n"), b"");
    }

    #[test]
    fn a_line_without_end_is_divided_and_takes_no_memory() {
        let printer = printer();
        printer.begin(1);
        printer.print(&[b'x'; 3 * LONGEST]);
        let lines = printer.take();
        let text: Vec<u8> = lines.into_iter().flat_map(|lines| lines.text).collect();
        assert_eq!(
            text.split(|byte| *byte == b'\n').map(<[u8]>::len).collect::<Vec<_>>(),
            [LONGEST, LONGEST, LONGEST, 0]
        );
        assert!(printer.state().begun.is_empty());
    }

    #[test]
    fn a_task_that_prints_without_end_passes_on_a_burst_and_then_a_rate_and_counts_the_rest() {
        let mut state = printer().state.into_inner().expect("not poisoned");
        let begun_ns = state.looked_ns;
        let line = [b"x".repeat(999).as_slice(), b"\n"].concat();
        let mut passed = 0;
        // 10 s in which 100 MB are printed, and taken at once.
        for step in 0..1_000 {
            for _ in 0..100 {
                state.print(&line, begun_ns + step * 10_000_000);
            }
            passed += std::mem::take(&mut state.waiting).iter().map(|lines| lines.text.len()).sum::<usize>();
            state.waiting_bytes = 0;
        }
        let most = BURST + 10.0 * RATE;
        assert!(passed as f64 <= most && passed as f64 > 0.9 * (most - AGAIN), "{passed}");
        // A node that cannot send keeps a burst at most.
        for step in 0..1_000 {
            state.print(&line, begun_ns + (1_000 + step) * 1_000_000_000);
        }
        assert!(state.waiting.iter().map(|lines| lines.text.len()).sum::<usize>() <= BURST as usize);
        state.end();
        let last = state.waiting.last().expect("a note");
        assert!(last.text.is_empty() && last.left_out > 0);
    }
}
