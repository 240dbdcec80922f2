//! Which processes belong to a command, and which rank each of them is. Read from `/proc`; nothing is changed here.
//!
//! A process belongs to the command when it descends from it, or when its environment carries the command's mark: a rank
//! that a daemon starts on the launcher's behalf (`srun`) has no ancestor here, but inherits the environment.
//! A rank is told by the first of [`VARIABLES`] that any process of the command has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

/// Number of a process.
pub type Pid = libc::pid_t;

/// The variables in which launchers tell a process its rank, the most specific first: inside a batch job every process
/// has `SLURM_PROCID`, those of Open MPI the first one as well.
pub const VARIABLES: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

/// The variable that marks the processes of a command.
pub const MARK: &str = "CROSSWIND_INJECTED";

/// Children of a process, of all its threads. Empty when it is gone.
fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        if let Ok(text) = fs::read_to_string(thread.path().join("children")) {
            found.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<Pid>().ok()));
        }
    }
    found
}

/// Whether this kernel lists children (`CONFIG_PROC_CHILDREN`).
fn lists_children() -> bool {
    fs::metadata("/proc/self/task").is_ok() && fs::read_to_string("/proc/thread-self/children").is_ok()
}

/// Parent and state of a process; none when it is gone.
#[must_use]
pub fn parent_and_state(pid: Pid) -> Option<(Pid, char)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?; // its name may hold anything
    let mut words = after.split_ascii_whitespace();
    Some((words.next().and_then(|state| state.chars().next())?, words.next()?.parse().ok()?)).map(|(s, p)| (p, s))
}

/// All processes that there are.
pub fn all() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// These processes and all that descend from them.
#[must_use]
pub fn with_descendants(roots: &[Pid]) -> BTreeSet<Pid> {
    let mut found: BTreeSet<Pid> = BTreeSet::new();
    let mut waiting: Vec<Pid> = roots.to_vec();
    if lists_children() {
        while let Some(pid) = waiting.pop() {
            if found.insert(pid) {
                waiting.extend(children(pid));
            }
        }
        return found;
    }
    let mut below: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for pid in all() {
        if let Some((parent, _)) = parent_and_state(pid) {
            below.entry(parent).or_default().push(pid);
        }
    }
    while let Some(pid) = waiting.pop() {
        if found.insert(pid) {
            waiting.extend(below.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// A process's environment as it was when its program began; none when it is gone or another user's.
fn environment(pid: Pid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

fn value_of<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let has_name =
        |entry: &&[u8]| entry.len() > name.len() && entry.starts_with(name.as_bytes()) && entry[name.len()] == b'=';
    environment.split(|byte| *byte == 0).find(has_name).map(|entry| &entry[name.len() + 1..])
}

/// Whether a process carries a command's mark.
#[must_use]
pub fn is_marked(pid: Pid, mark: &str) -> bool {
    environment(pid).is_some_and(|environment| value_of(&environment, MARK) == Some(mark.as_bytes()))
}

/// Which variable tells a process its rank, as a place in [`VARIABLES`], and the rank.
fn told_rank(environment: &[u8]) -> Vec<(usize, u32)> {
    let number = |name| std::str::from_utf8(value_of(environment, name)?).ok()?.parse().ok();
    VARIABLES.iter().enumerate().filter_map(|(place, name)| Some((place, number(name)?))).collect()
}

/// Which processes are which rank, and whether a launcher told so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// Of each rank the processes from which its others descend.
    pub leaders: BTreeMap<u32, Vec<Pid>>,
    /// The variable that told; none: the whole command is rank 0.
    pub told_by: Option<&'static str>,
}

/// Finds the processes of a command and their ranks, again and again: what is known of a process is not read twice.
#[derive(Debug)]
pub struct Finder {
    command: Pid,
    mark: String,
    seen: HashMap<Pid, Seen>,
    /// Whether those that were there before the command have been seen: they stay strangers.
    began: bool,
}

/// What is known of a process: how often it was looked at, whether it is the command's, its ranks as told.
#[derive(Debug, Default)]
struct Seen {
    looks: u32,
    is_member: bool,
    ranks: Vec<(usize, u32)>,
}

/// A process's environment is the one of its parent until it runs its own program: a new process is looked at so often.
const LOOKS: u32 = 20;

impl Finder {
    /// For the command that is this process, with that mark.
    #[must_use]
    pub fn new(command: Pid, mark: String) -> Self {
        Self { command, mark, seen: HashMap::new(), began: false }
    }

    /// The processes of each rank now. Until a launcher has told any process its rank, the whole command is rank 0.
    pub fn look(&mut self) -> Ranks {
        let present: BTreeSet<Pid> = all().collect();
        self.seen.retain(|pid, _| present.contains(pid));
        for pid in present {
            let seen = self.seen.entry(pid).or_default();
            if seen.looks >= LOOKS {
                continue;
            }
            seen.looks += 1;
            let is_stranger = !self.began && pid != self.command;
            if let Some(environment) = environment(pid) {
                seen.is_member = value_of(&environment, MARK) == Some(self.mark.as_bytes());
                seen.ranks = if seen.is_member { told_rank(&environment) } else { Vec::new() };
            }
            if is_stranger && !seen.is_member {
                seen.looks = LOOKS;
            }
        }
        self.began = true;
        self.ranks()
    }

    fn ranks(&self) -> Ranks {
        let told: Vec<(Pid, &Vec<(usize, u32)>)> =
            self.seen.iter().filter(|(_, seen)| seen.is_member).map(|(pid, seen)| (*pid, &seen.ranks)).collect();
        let Some(place) = told.iter().flat_map(|(_, ranks)| ranks.iter().map(|(place, _)| *place)).min() else {
            return Ranks { leaders: BTreeMap::from([(0, vec![self.command])]), told_by: None };
        };
        let mut leaders: BTreeMap<u32, Vec<Pid>> = BTreeMap::new();
        for (pid, ranks) in told {
            if let Some((_, rank)) = ranks.iter().find(|(at, _)| *at == place) {
                leaders.entry(*rank).or_default().push(pid);
            }
        }
        leaders.values_mut().for_each(|pids| pids.sort_unstable());
        Ranks { leaders, told_by: Some(VARIABLES[place]) }
    }

    /// All processes of the command, those that descend from it and those that carry its mark.
    pub fn members(&mut self) -> BTreeSet<Pid> {
        self.look();
        let marked: Vec<Pid> = self.seen.iter().filter(|(_, seen)| seen.is_member).map(|(pid, _)| *pid).collect();
        with_descendants(&[vec![self.command], marked].concat())
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(variables: &[(&str, &str)]) -> Child {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null()).envs(variables.iter().copied());
        for name in VARIABLES.iter().filter(|name| !variables.iter().any(|(other, _)| other == *name)) {
            command.env_remove(name);
        }
        let child = command.spawn().expect("sleep is there");
        // The parent may go on a moment before the child's variables can be read.
        let variables = format!("/proc/{}/environ", child.id());
        while fs::read(&variables).is_ok_and(|bytes| bytes.is_empty()) {
            std::thread::yield_now();
        }
        child
    }

    fn end(mut child: Child) {
        child.kill().expect("runs");
        child.wait().expect("a child of this process");
    }

    #[test]
    fn a_command_without_a_launcher_is_rank_0() {
        let child = sleeper(&[(MARK, "lonely")]);
        let pid = child.id() as Pid;
        let ranks = Finder::new(pid, "lonely".into()).look();
        assert_eq!(ranks, Ranks { leaders: BTreeMap::from([(0, vec![pid])]), told_by: None });
        end(child);
    }

    #[test]
    fn the_most_specific_variable_that_anybody_has_tells_the_ranks() {
        let launcher = sleeper(&[(MARK, "job"), ("SLURM_PROCID", "0")]);
        let first = sleeper(&[(MARK, "job"), ("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "0")]);
        let second = sleeper(&[(MARK, "job"), ("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "1")]);
        let others = sleeper(&[(MARK, "another job"), ("OMPI_COMM_WORLD_RANK", "2")]);
        let ranks = Finder::new(launcher.id() as Pid, "job".into()).look();
        assert_eq!(ranks.told_by, Some("OMPI_COMM_WORLD_RANK"));
        assert_eq!(ranks.leaders, BTreeMap::from([(0, vec![first.id() as Pid]), (1, vec![second.id() as Pid])]));
        [launcher, first, second, others].into_iter().for_each(end);
    }

    #[test]
    fn descendants_are_found_whether_or_not_the_kernel_lists_children() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().expect("a shell");
        let pid = child.id() as Pid;
        while with_descendants(&[pid]).len() < 2 {
            std::thread::yield_now();
        }
        let found = with_descendants(&[pid]);
        for other in &found {
            // SAFETY: our own child and grandchild, which were alive a moment ago.
            unsafe { libc::kill(*other, libc::SIGKILL) };
        }
        child.wait().expect("a child of this process");
        assert!(found.contains(&pid));
    }

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_hide_the_parent() {
        let (parent, state) = parent_and_state(std::process::id() as Pid).expect("we are here");
        assert!(parent > 0 && "RS".contains(state));
    }
}
