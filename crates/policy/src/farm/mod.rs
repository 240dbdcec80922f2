//! A farm of independent tasks over a tree of nodes: what one node does next.
//!
//! The autonomous, request-driven protocol of interference-aware-scheduling, section 4: a node asks its parent for tasks
//! when it has room for them, and serves its children in an order of preference. Every node runs the same [`Node`], the
//! root and the leaves too. A node knows task numbers, never their bytes.
//!
//! | file | question |
//! |---|---|
//! | `event` | what happens to a node, and what can it say? |
//! | `node` | what does it do then? |
//! | `single`, `multi` | which send begins, with one port and with many? |
//! | `order/` | which child is served next? |
//! | `waiting`, `queue` | which children and tasks wait? |
//! | `requests` | which child asked first? |
//! | `demand` | how many tasks per second can each child use? |
//! | `buffer` | how many tasks does a node ask for ahead? |
//! | `ending` | which child gets none of the last tasks? |
//! | `last` | when does the end of a run begin? |
//! | `in_time` | near the end, which child would be done first? |
//! | `ledger` | which tasks are out, and what if a child leaves? |
//! | [`giving_up`] | when is a task, or a run, not tried again? |
//! | [`gathering`] | how long are children waited for before time 0? |
//! | [`supplying`] | how far ahead does the root take tasks? |
//! | `options`, `mean_task` | how is the farm to be run, and with what tasks? |
//! | `settings` | what does a node know of itself and its children? |
//! | [`estimate`] | what does it find out while it runs? |

mod buffer;
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
mod queue;
mod requests;
mod settings;
mod single;
pub mod supplying;
mod waiting;

pub use event::{Child, Command, Commands, Event, TaskId};
pub use last::Last;
pub use ledger::Ledger;
pub use mean_task::MeanTask;
pub use node::Node;
pub use options::FarmOptions;
pub use settings::{ChildSettings, Settings, planned_of_a_guest};
