//! Activities of a run, simulated or live, as columns of bytes in native order: the content of a trace file.

use crosswind_agent::record::{NO_NODE, Row};
use crosswind_agent::settings::LATE_JOINERS;
use crosswind_live::farm::root::RunSummary;
use crosswind_sim::Trace;

/// Names and bytes of the columns: `kind` (1 byte), `node`, `child` (u32; [`NO_NODE`]: none), `task` (u64),
/// `start_s`, `end_s`, `mb`, `work` (f64), `cut` (1 byte; empty if not known).
pub type Columns<'a> = [(&'static str, Column<'a>); 9];

/// A column, as it will lie in memory. A trace has hundreds of megabytes, so values are copied once.
pub enum Column<'a> {
    Bytes(Vec<u8>),
    Places(&'a [u32]),
    Numbers(&'a [u64]),
    Amounts(&'a [f64]),
}

impl Column<'_> {
    /// Returns its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Places(places) => size_of_val(*places),
            Self::Numbers(numbers) => size_of_val(*numbers),
            Self::Amounts(amounts) => size_of_val(*amounts),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes it to `out`.
    ///
    /// # Errors
    /// `out` is not as long as the column.
    pub fn write(&self, out: &mut [u8]) -> std::io::Result<()> {
        fn each<T: Copy, const N: usize>(out: &mut [u8], values: &[T], encode: impl Fn(T) -> [u8; N]) {
            for (place, &value) in out.chunks_exact_mut(N).zip(values) {
                place.copy_from_slice(&encode(value));
            }
        }
        if out.len() != self.len() {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        match self {
            Self::Bytes(bytes) => out.copy_from_slice(bytes),
            Self::Places(places) => each(out, places, u32::to_ne_bytes),
            Self::Numbers(numbers) => each(out, numbers, u64::to_ne_bytes),
            Self::Amounts(amounts) => each(out, amounts, f64::to_ne_bytes),
        }
        Ok(())
    }
}

fn bytes<T, const N: usize>(values: impl Iterator<Item = T>, encode: impl Fn(T) -> [u8; N]) -> Column<'static> {
    Column::Bytes(values.flat_map(encode).collect())
}

#[must_use]
pub fn of_trace(trace: &Trace) -> Columns<'_> {
    [
        ("kind", Column::Bytes(trace.kind.iter().map(|kind| *kind as u8).collect())),
        ("node", Column::Places(&trace.node)),
        ("child", bytes(trace.child.iter(), |child| child.unwrap_or(NO_NODE).to_ne_bytes())),
        ("task", Column::Numbers(&trace.task)),
        ("start_s", Column::Amounts(&trace.start_s)),
        ("end_s", Column::Amounts(&trace.end_s)),
        ("mb", Column::Amounts(&trace.mb)),
        ("work", Column::Amounts(&trace.work)),
        ("cut", Column::Bytes(trace.cut.iter().map(|&cut| u8::from(cut)).collect())),
    ]
}

/// Returns the columns of a live run. Activities of nodes that are not in the platform are left out.
#[must_use]
pub fn of_run(summary: &RunSummary) -> Columns<'_> {
    let known = |number: u32| number < LATE_JOINERS || number == NO_NODE;
    let rows: Vec<&Row> = summary.rows.iter().filter(|row| known(row.node) && known(row.child)).collect();
    let amounts = |of: &dyn Fn(&Row) -> f64| bytes(rows.iter(), |row| of(row).to_ne_bytes());
    [
        ("kind", Column::Bytes(rows.iter().map(|row| row.activity as u8).collect())),
        ("node", bytes(rows.iter(), |row| row.node.to_ne_bytes())),
        ("child", bytes(rows.iter(), |row| row.child.to_ne_bytes())),
        ("task", bytes(rows.iter(), |row| row.task.to_ne_bytes())),
        ("start_s", amounts(&|row| row.start_ns as f64 * 1e-9)),
        ("end_s", amounts(&|row| row.end_ns as f64 * 1e-9)),
        ("mb", amounts(&|row| row.bytes as f64 * 1e-6)),
        ("work", amounts(&|row| row.work)),
        ("cut", Column::Bytes(Vec::new())),
    ]
}
