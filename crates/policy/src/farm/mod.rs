//! Farms of independent tasks on a tree of nodes: what one node does next.
//!
//! This is the autonomous, request-driven protocol of interference-aware-scheduling, section 4. A node requests tasks
//! from its parent when it has room for them, and serves its children in an order of preference. Every node runs the
//! same [`Node`], from the root to the leaves. A node handles task numbers, never task bytes.
//!
//! | module | contents |
//! |---|---|
//! | `event` | events and commands of a node |
//! | `node` | the state machine |
//! | `decide`, [`own`] | what a simulator needs of a node; a policy of the user's own |
//! | [`classed`] | a node whose tasks have classes |
//! | `single`, `multi` | which send begins, with one port or several |
//! | `order/` | which child is served next |
//! | `waiting`, `queue` | waiting children and waiting tasks |
//! | `requests` | first come, first served |
//! | `demand` | task rate that each child can use |
//! | `buffer` | number of tasks that a node requests ahead |
//! | `ending` | which children get none of the last tasks |
//! | `last` | when the end of a run begins |
//! | `in_time` | near the end, which child would finish first |
//! | `ledger` | outstanding tasks, and their recovery when a child leaves |
//! | [`giving_up`] | when a task or a run is given up |
//! | [`gathering`] | how long a node waits for its children before time 0 |
//! | [`supplying`] | how far ahead the root takes tasks |
//! | `options`, `mean_task` | options of a farm, and its mean task |
//! | `settings` | settings of a node and of its children |
//! | `basis`, `outside` | values from which the settings of all nodes follow, also of those of a subtree |
//! | [`estimate`] | what a node learns while it runs |

mod basis;
mod buffer;
pub mod classed;
mod decide;
mod demand;
mod ending;
pub mod estimate;
mod event;
pub mod gathering;
pub mod giving_up;
mod in_time;
mod last;
mod ledger;
mod mean_task;
mod multi;
mod node;
mod options;
pub mod order;
mod outside;
pub mod own;
mod queue;
mod requests;
mod settings;
mod single;
pub mod supplying;
mod waiting;

pub use basis::Basis;
pub use decide::Decide;
pub use event::{Child, Command, Commands, Event, TaskId};
pub use last::Last;
pub use ledger::Ledger;
pub use mean_task::MeanTask;
pub use node::Node;
pub use options::FarmOptions;
pub use outside::Outside;
pub use settings::{ChildSettings, Settings, planned_of_a_late_joiner};
