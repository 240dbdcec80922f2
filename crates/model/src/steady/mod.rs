//! The steady state of a tree: how many tasks per second each node computes and gets, with a proof that no plan is
//! faster.
//!
//! Source: interference-aware-scheduling, section 3.2, with E0-4 and E0-5 of `docs/papers/`. It describes only the
//! steady state: no start-up, no buffers, no discrete tasks. Nodes are visited in loops, so depth and width use no
//! stack.
//!
//! | file | question |
//! |---|---|
//! | `station` | what are the constraints at one node? |
//! | `serve` | what do children get when they are served in an order? |
//! | `ranking` | which child comes before which? |
//! | `balance`, `single` | what if two constraints bind at once? |
//! | `tree` | how is the tree laid out in memory? |
//! | `up` | what can each subtree do at best? |
//! | `down` | what does each node do when the root does its best? |
//! | `gains`, `more` | what is the derivative for more of a limit? |
//! | `named_plan` | the same for a platform with names |
//! | `curved` | what if losses are nonlinear? |
//! | `linear` | which line stands for such a loss at the planned rate? |

mod balance;
mod curved;
mod down;
mod gains;
mod linear;
mod more;
mod named_plan;
mod ranking;
mod serve;
mod single;
mod station;
mod tree;
mod up;

use crosswind_schema::plan::{LimitedBy, Method, Ports};
use crosswind_schema::units::{Megabytes, MegabytesOrNone, Quantity, WorkUnits};

use crate::error::ModelError;

pub use linear::with_planned_lines;
pub use named_plan::plan;
pub(crate) use station::{Offer, Station};
pub(crate) use tree::{permitted, share};
pub(crate) use up::{Bench, best_rate};

/// An independent unit of input, and the result that comes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Size of its input, MB (Z of the paper).
    pub size: Megabytes,
    pub work: WorkUnits,
    /// Size of the result that it sends back to the root, MB.
    pub result: MegabytesOrNone,
}

impl Task {
    /// Creates a task of `size_mb` MB and `work` work units, without a result.
    ///
    /// # Errors
    /// Either is not finite or not greater than 0.
    ///
    /// # Examples
    /// ```
    /// use crosswind_model::Task;
    /// assert!(Task::new(2.0, 5.0).is_ok());
    /// let error = Task::new(0.0, 5.0).unwrap_err().to_string();
    /// assert_eq!(error, "task_size_mb is 0 MB; it must be finite and greater than 0 MB");
    /// ```
    pub fn new(size_mb: f64, work: f64) -> Result<Self, ModelError> {
        Ok(Self {
            size: Megabytes::new(size_mb).map_err(|e| ModelError::argument("task_size_mb", e))?,
            work: WorkUnits::new(work).map_err(|e| ModelError::argument("task_work", e))?,
            result: MegabytesOrNone::default(),
        })
    }

    /// Returns the same task with a result of `result_size_mb` MB, which travels back to the root.
    ///
    /// # Errors
    /// It is not finite or below 0.
    ///
    /// # Examples
    /// ```
    /// use crosswind_model::Task;
    /// assert!(Task::new(2.0, 5.0)?.returning(0.5).is_ok());
    /// let error = Task::new(2.0, 5.0)?.returning(-1.0).unwrap_err().to_string();
    /// assert_eq!(error, "result_size_mb is -1 MB; it must be finite and at least 0 MB");
    /// # Ok::<(), crosswind_model::ModelError>(())
    /// ```
    pub fn returning(self, result_size_mb: f64) -> Result<Self, ModelError> {
        let result = MegabytesOrNone::new(result_size_mb).map_err(|e| ModelError::argument("result_size_mb", e))?;
        Ok(Self { result, ..self })
    }

    pub(crate) fn size_mb(&self) -> f64 {
        self.size.get()
    }

    pub(crate) fn result_mb(&self) -> f64 {
        self.result.get()
    }

    /// Returns what a task moves over each link on its way, in both directions, MB.
    pub(crate) fn moved_mb(&self) -> f64 {
        self.size_mb() + self.result_mb()
    }

    pub(crate) fn work_units(&self) -> f64 {
        self.work.get()
    }
}

/// A platform without names: one value per node in each slice.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// Index of each node's parent. -1 at the root.
    pub parent: &'a [i32],
    /// Work units per second, at least 0.
    pub compute_per_s: &'a [f64],
    /// MB/s to all children together, greater than 0. Infinite means no limit.
    pub send_limit_mb_per_s: &'a [f64],
    /// MB/s from the parent, greater than 0. Ignored at the root.
    pub receive_limit_mb_per_s: &'a [f64],
    /// MB/s of receive limit lost per MB/s sent, at least 0.
    pub receive_limit_drop: &'a [f64],
    /// Interference of receiving, s/MB, at least 0.
    pub ir_receive_s_per_mb: &'a [f64],
    /// s/MB at the parent, at least 0. Ignored at the root.
    pub ir_send_s_per_mb: &'a [f64],
}

/// The steady state, one value per node in the order of the input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Tasks per second that the whole tree computes.
    pub throughput_tasks_per_s: f64,
    /// An upper bound on any schedule's throughput, from the dual; at least the throughput.
    pub bound_tasks_per_s: f64,
    /// Tasks per second that the root computes when it sends nothing.
    pub root_only_tasks_per_s: f64,
    /// Tasks per second computed on each node.
    pub computed_tasks_per_s: Vec<f64>,
    /// Tasks per second received. At the root, taken from its store.
    pub received_tasks_per_s: Vec<f64>,
    /// Position in the parent's order of service, from 1. 0 at the root and on the never-send list.
    pub rank: Vec<u32>,
    /// Whether sending to it costs the parent more than it brings.
    pub never_send: Vec<bool>,
    pub limited_by: Vec<LimitedBy>,
    /// Gain of the whole tree, tasks/s, per MB/s of the node's receive limit. Like all gains, the derivative for more.
    pub gain_per_receive_mb_per_s: Vec<f64>,
    /// Gain of the whole tree, tasks/s, per MB/s of the node's send limit.
    pub gain_per_send_mb_per_s: Vec<f64>,
    /// Gain of the whole tree, tasks/s, per work unit/s of the node's compute rate. Minus infinity if the node computes
    /// nothing and any compute rate above 0 would make the tree's rate jump down.
    pub gain_per_work_per_s: Vec<f64>,
}

impl Rates {
    /// Returns (bound - throughput) / bound, within 0 to 1.
    ///
    /// Values below 1e-12 are rounding and count as 0.
    #[must_use]
    pub fn gap_to_exact(&self) -> f64 {
        let gap = (self.bound_tasks_per_s - self.throughput_tasks_per_s) / self.bound_tasks_per_s;
        if gap > 1e-12 { gap } else { 0.0 } // 0 / 0, if nothing computes, is no gap either
    }
}

/// Computes the steady state of a platform given as columns.
///
/// Ten times leaner than [`plan`], for a million nodes.
///
/// # Errors
/// Columns differ in length, a value is out of range, or the parents do not form one tree.
///
/// # Examples
/// The counter-example of E0-4: the paper's rule reaches 2 tasks/s where 5.16 are possible.
/// ```
/// use crosswind_model::{Columns, Task, plan_columns};
/// use crosswind_schema::plan::{Method, Ports};
/// let columns = Columns {
///     parent: &[-1, 0, 0],
///     compute_per_s: &[1.0, 100.0, 100.0],
///     send_limit_mb_per_s: &[f64::INFINITY; 3],
///     receive_limit_mb_per_s: &[0.0, 10.0, 4.0],
///     receive_limit_drop: &[0.0; 3],
///     ir_receive_s_per_mb: &[0.0; 3],
///     ir_send_s_per_mb: &[0.0, 0.5, 0.01],
/// };
/// let task = Task::new(1.0, 1.0)?;
/// let exact = plan_columns(&columns, task, Ports::Single, Method::Exact)?;
/// let greedy = plan_columns(&columns, task, Ports::Single, Method::Greedy)?;
/// assert!((exact.throughput_tasks_per_s - 5.161).abs() < 1e-3);
/// assert!((greedy.throughput_tasks_per_s - 2.0).abs() < 1e-12);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn plan_columns(columns: &Columns<'_>, task: Task, ports: Ports, method: Method) -> Result<Rates, ModelError> {
    Ok(Prepared::new(columns, task, ports)?.rates(method))
}

/// A platform prepared for planning. The columns that it was made from may be freed.
#[derive(Clone, Debug)]
pub struct Prepared(tree::Walk);

impl Prepared {
    /// Checks the columns and prepares them for planning.
    ///
    /// # Errors
    /// Those of [`plan_columns`].
    pub fn new(columns: &Columns<'_>, task: Task, ports: Ports) -> Result<Self, ModelError> {
        let shape = tree::shape_of(columns)?;
        Ok(Self(tree::Walk::new(columns, shape, task, ports)?))
    }

    #[must_use]
    pub fn rates(&self, method: Method) -> Rates {
        self.0.rates(method)
    }
}
