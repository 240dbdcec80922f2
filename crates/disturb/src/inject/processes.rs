//! Finds the processes of a command and the rank of each. It reads `/proc` and changes nothing.
//!
//! A process belongs to the command if it descends from it, or if its environment carries the command's mark. A rank
//! that a daemon starts for the launcher (`srun`) has no ancestor here, but inherits the environment. The rank is
//! read from the first of [`VARIABLES`] that any process of the command has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use crosswind_linux::processes::{Pid, all, with_descendants};

/// Environment variables in which launchers pass a process its rank, the most specific first. Inside a batch job
/// every process has `SLURM_PROCID`; those of Open MPI have the first one as well.
pub const VARIABLES: [&str; 8] = [
    "OMPI_COMM_WORLD_RANK", // Open MPI
    "MV2_COMM_WORLD_RANK",  // MVAPICH2
    "PMIX_RANK",            // PRRTE and others
    "PMI_RANK",             // MPICH, Intel MPI
    "PALS_RANKID",          // HPE Cray
    TORCHRUN,               // torchrun, DeepSpeed
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
];
/// A name that other programs use too: it is a rank only together with one of the next two.
const TORCHRUN: &str = "RANK";
const BESIDE_TORCHRUN: [&str; 2] = ["WORLD_SIZE", "LOCAL_RANK"];

/// The variable that marks the processes of a command.
pub const MARK: &str = "CROSSWIND_INJECTED";

/// Returns a process's environment from the start of its program; `None` if it has ended or belongs to another user.
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

/// Returns the owner of the injection under which a process's program started: its mark without the last number,
/// which distinguishes the injections of one process.
#[must_use]
pub fn marked_by(pid: Pid) -> Option<String> {
    let environment = environment(pid)?;
    let mark = std::str::from_utf8(value_of(&environment, MARK)?).ok()?;
    Some(mark.rsplit_once('-')?.0.to_owned())
}

/// Returns each variable that holds the process's rank, as an index into [`VARIABLES`], and the rank.
fn ranks_of(environment: &[u8]) -> Vec<(usize, u32)> {
    let is_torchrun = || BESIDE_TORCHRUN.iter().any(|name| value_of(environment, name).is_some());
    let number = |name| {
        let found = std::str::from_utf8(value_of(environment, name)?).ok()?.parse().ok();
        found.filter(|_| name != TORCHRUN || is_torchrun())
    };
    VARIABLES.iter().enumerate().filter_map(|(place, name)| Some((place, number(name)?))).collect()
}

/// Processes by rank, and the variable that identified the ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// For each rank, the processes from which its other processes descend.
    pub leaders: BTreeMap<u32, Vec<Pid>>,
    /// The variable that identified the ranks; `None`: the whole command is rank 0.
    pub identified_by: Option<&'static str>,
}

/// Finds the processes of a command and their ranks repeatedly. What is known of a process is not read again.
#[derive(Debug)]
pub struct Finder {
    command: Pid,
    mark: String,
    seen: HashMap<Pid, Seen>,
    /// Whether the first scan is done. Unmarked processes that it finds, other than the command, are not examined
    /// again.
    began: bool,
    /// The variable that identified ranks so far, as an index into [`VARIABLES`]. It is kept, since a launcher
    /// outlives its ranks.
    identified_by: Option<usize>,
}

/// Known facts about a process: number of scans, whether it belongs to the command, and its ranks by variable.
#[derive(Debug, Default)]
struct Seen {
    looks: u32,
    is_member: bool,
    ranks: Vec<(usize, u32)>,
}

/// Number of scans of a new process: until it runs its own program, its environment is its parent's.
const LOOKS: u32 = 20;

impl Finder {
    /// Creates a finder for the command with this process id and mark.
    #[must_use]
    pub fn new(command: Pid, mark: String) -> Self {
        Self { command, mark, seen: HashMap::new(), began: false, identified_by: None }
    }

    /// Returns the current processes of each rank. Until a process with a launcher's rank is found, the whole command
    /// is rank 0.
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
                seen.ranks = if seen.is_member { ranks_of(&environment) } else { Vec::new() };
            }
            if is_stranger && !seen.is_member {
                seen.looks = LOOKS;
            }
        }
        self.began = true;
        self.ranks()
    }

    fn ranks(&mut self) -> Ranks {
        let found: Vec<(Pid, &Vec<(usize, u32)>)> =
            self.seen.iter().filter(|(_, seen)| seen.is_member).map(|(pid, seen)| (*pid, &seen.ranks)).collect();
        let places = found.iter().flat_map(|(_, ranks)| ranks.iter().map(|(place, _)| *place));
        self.identified_by = places.chain(self.identified_by).min();
        let Some(place) = self.identified_by else {
            return Ranks { leaders: BTreeMap::from([(0, vec![self.command])]), identified_by: None };
        };
        let mut leaders: BTreeMap<u32, Vec<Pid>> = BTreeMap::new();
        for (pid, ranks) in found {
            if let Some((_, rank)) = ranks.iter().find(|(at, _)| *at == place) {
                leaders.entry(*rank).or_default().push(pid);
            }
        }
        leaders.values_mut().for_each(|pids| pids.sort_unstable());
        Ranks { leaders, identified_by: Some(VARIABLES[place]) }
    }

    /// Returns all processes of the command: those that descend from it and those that carry its mark.
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
        // The parent may continue a moment before the child's variables can be read.
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
        assert_eq!(ranks, Ranks { leaders: BTreeMap::from([(0, vec![pid])]), identified_by: None });
        end(child);
    }

    #[test]
    fn the_most_specific_variable_that_anybody_has_tells_the_ranks() {
        let launcher = sleeper(&[(MARK, "job"), ("SLURM_PROCID", "0")]);
        let first = sleeper(&[(MARK, "job"), ("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "0")]);
        let second = sleeper(&[(MARK, "job"), ("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "1")]);
        let others = sleeper(&[(MARK, "another job"), ("OMPI_COMM_WORLD_RANK", "2")]);
        let ranks = Finder::new(launcher.id() as Pid, "job".into()).look();
        assert_eq!(ranks.identified_by, Some("OMPI_COMM_WORLD_RANK"));
        assert_eq!(ranks.leaders, BTreeMap::from([(0, vec![first.id() as Pid]), (1, vec![second.id() as Pid])]));
        [launcher, first, second, others].into_iter().for_each(end);
    }

    #[test]
    fn the_rank_of_each_usual_launcher_is_read() {
        for name in VARIABLES {
            let first = sleeper(&[(MARK, name), (name, "0"), ("WORLD_SIZE", "2")]);
            let second = sleeper(&[(MARK, name), (name, "1"), ("WORLD_SIZE", "2")]);
            let ranks = Finder::new(first.id() as Pid, name.into()).look();
            let leaders = BTreeMap::from([(0, vec![first.id() as Pid]), (1, vec![second.id() as Pid])]);
            assert_eq!(ranks, Ranks { leaders, identified_by: Some(name) });
            [first, second].into_iter().for_each(end);
        }
    }

    #[test]
    fn a_variable_called_rank_is_none_without_the_others_of_torchrun() {
        let found = |text: &[u8]| ranks_of(text);
        let place = VARIABLES.iter().position(|name| *name == TORCHRUN).expect("one of them");
        assert_eq!(found(b"RANK=1\0HOME=/\0"), []);
        assert_eq!(found(b"RANK=1\0LOCAL_RANK=0\0"), [(place, 1)]);
        assert_eq!(found(b"WORLD_SIZE=2\0RANK=x\0"), []);
    }

    #[test]
    fn a_launcher_that_outlives_its_ranks_is_not_a_rank() {
        let launcher = sleeper(&[(MARK, "outlived")]);
        let only = sleeper(&[(MARK, "outlived"), ("PMI_RANK", "0")]);
        let mut finder = Finder::new(launcher.id() as Pid, "outlived".into());
        assert_eq!(finder.look().leaders, BTreeMap::from([(0, vec![only.id() as Pid])]));
        end(only);
        assert_eq!(finder.look(), Ranks { leaders: BTreeMap::new(), identified_by: Some("PMI_RANK") });
        end(launcher);
    }
}
