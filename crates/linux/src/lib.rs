//! Linux system calls and `/proc` interfaces that std does not offer.
//!
//! rustix makes the calls where it has them. The `unsafe` blocks here are for those that it leaves to the C library or
//! does not have: fork, signal actions and masks, tracing, scheduling policies, clocks of other processes, `tcp_info`.
//!
//! | question | module |
//! |---|---|
//! | what time is it, and how does a thread sleep until a time? | [`time`] |
//! | where does a thread run, and how much CPU time has it used? | [`threads`] |
//! | which of many descriptors is ready? | [`waiting`] |
//! | how does a thread enter a network namespace? | [`namespace`] |
//! | how are processes frozen such that they are thawed however a command ends? | [`freezer`] |
//! | how does a process survive what ends the command that forked it? | [`hardened`] |
//! | which processes exist, and which descends from which? | [`processes`] |
//! | how does a child start and end, and what did it use? | [`children`] |
//! | how is a process signalled, and what does it do with signals? | [`signals`] |
//! | which process left an object in the kernel? | [`owner`] |
//! | what undoes the changes of a process, however it ends? | [`watchdog`] |
//! | what is in another process's memory? | [`memory`] |
//! | what is still in a socket's buffer, and how are bytes sent without a copy? | [`sockets`] |
//! | how many bytes has another process's connection moved? | [`tcp_counts`] |

pub mod children;
pub mod freezer;
pub mod hardened;
pub mod memory;
pub mod namespace;
pub mod owner;
pub mod processes;
pub mod signals;
pub mod sockets;
pub mod spare;
pub mod tcp_counts;
pub mod threads;
pub mod time;
pub mod waiting;
pub mod watchdog;

pub use namespace::in_namespace;
pub use sockets::{
    Sending, TcpInfo, limit_unsent, memory_file, option, queue_up_to, read_file, send_both, send_file, sending,
};
pub use threads::{
    account_for, account_for_all, affinity, boot_id, continue_at_end_of_starter, end_with_parent, end_with_starter,
    host_name, policy, process_cpu_ns, set_affinity, set_nice, set_policy, thread_cpu_ns, thread_id,
};
pub use time::{exact_timers, now_ns, own_cpu_ns, sleep_until};
pub use waiting::{
    Waker, Watched, ended, input_ended, input_has_ended, make_room, readable, take_waiting, wait, watch, writable,
};
