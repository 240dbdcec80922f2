//! Which process a thread belongs to, looked up while it still runs: its command, its control group, its container.

use std::fs;

use serde_json::{Value, json};

/// Longest command kept, bytes.
const LONGEST: usize = 80;
/// Words of a command kept: its options may hold what should not be in a file.
const WORDS: usize = 2;
/// Digits of a container's id that its tools print.
const DIGITS: usize = 12;
/// What runtimes write before a container's id in the name of a systemd scope.
const RUNTIMES: [(&str, &str); 6] = [
    ("docker-", "docker"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("libpod-", "podman"),
    ("crio-", "cri-o"),
    ("lxc.payload.", "lxc"),
];

/// A process of a program, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub command: String,
    /// Of version 2, or of the CPU controller; empty: not known.
    pub cgroup: String,
}

impl Process {
    /// Looks up the process of a thread; `None` for a thread of the kernel, and one that has ended.
    #[must_use]
    pub fn of_thread(tid: i32) -> Option<Self> {
        let status = fs::read(format!("/proc/{tid}/status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())?;
        if !status.lines().any(|line| line.starts_with("VmSize:")) {
            return None; // threads of the kernel have no memory of their own
        }
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        Some(Self { pid, command: command_of(&words), cgroup: cgroup_of(tid) })
    }

    /// Returns what distinguishes its causes from others of the same name: its container, or the end of its group.
    #[must_use]
    pub fn place(&self) -> String {
        let end = || self.cgroup.rsplit('/').next().unwrap_or_default().to_owned();
        container_of(&self.cgroup).map_or_else(end, |(runtime, id)| format!("{runtime} {id}"))
    }

    #[must_use]
    pub fn as_json(&self) -> Value {
        let container = container_of(&self.cgroup).map(|(runtime, id)| format!("{runtime} {id}"));
        json!({"pid": self.pid, "command": self.command, "cgroup": self.cgroup, "container": container})
    }
}

fn command_of(words: &[u8]) -> String {
    let words = String::from_utf8_lossy(words);
    let shown: Vec<&str> = words.split('\0').filter(|word| !word.is_empty()).take(WORDS).collect();
    let mut command = shown.join(" ").replace(char::is_control, "?");
    let end = (0..=LONGEST.min(command.len())).rev().find(|at| command.is_char_boundary(*at)).unwrap_or(0);
    command.truncate(end);
    command
}

/// Returns a thread's control group of version 2, or of the CPU controller; empty: not known.
#[must_use]
pub fn cgroup_of(tid: i32) -> String {
    let text = fs::read_to_string(format!("/proc/{tid}/cgroup")).unwrap_or_default();
    group_in(&text).to_owned()
}

fn group_in(text: &str) -> &str {
    let parts = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let unified = parts().find(|(controllers, _)| controllers.is_empty());
    let of_cpu = parts().find(|(controllers, _)| controllers.split(',').any(|one| one == "cpu"));
    of_cpu.or(unified).map_or("", |(_, group)| group)
}

/// Returns the runtime and the id of the innermost container in a control group's path.
///
/// Runtimes name its group after the container: `docker-ID.scope` and the like under systemd, `/docker/ID` and
/// `/kubepods/.../ID` without, `lxc.payload.NAME`, `machine-NAME.scope` of systemd-machined.
#[must_use]
pub fn container_of(cgroup: &str) -> Option<(&'static str, String)> {
    let parts: Vec<&str> = cgroup.split('/').collect();
    (0..parts.len()).rev().find_map(|at| container_in(parts[at], &parts[..at]))
}

fn container_in(part: &str, above: &[&str]) -> Option<(&'static str, String)> {
    let by_containerd = part.split_once(":cri-containerd:").map(|(_, id)| id); // without systemd
    if let Some(id) = by_containerd.filter(|id| is_id(id)) {
        return Some(("containerd", id[..DIGITS].to_owned()));
    }
    let name = part.strip_suffix(".scope").unwrap_or(part);
    if let Some(machine) = name.strip_prefix("machine-").filter(|_| name != part) {
        return Some(("machine", machine.to_owned()));
    }
    for (before, runtime) in RUNTIMES {
        match name.strip_prefix(before) {
            Some(id) if runtime == "lxc" => return Some((runtime, id.to_owned())),
            Some(id) if is_id(id) => return Some((runtime, id[..DIGITS].to_owned())),
            _ => {}
        }
    }
    let holds = |one: &&&str| matches!(**one, "docker" | "libpod_parent") || one.starts_with("kubepods");
    let holder = above.iter().rev().find(holds);
    let runtime = match *holder? {
        "docker" => "docker",
        "libpod_parent" => "podman",
        _ => "kubernetes",
    };
    is_id(name).then(|| (runtime, name[..DIGITS].to_owned()))
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2a9c41d07be6588a1f0c2d3e4b5a697887a6b5c4d3e2f1f0e1d2c3b4a59687";

    #[test]
    fn the_group_is_that_of_the_cpu_controller_or_of_version_2() {
        assert_eq!(group_in("0::/system.slice/x.service\n"), "/system.slice/x.service");
        assert_eq!(group_in("5:cpu,cpuacct:/a:b\n1:name=systemd:/c\n0::/\n"), "/a:b");
        assert_eq!(group_in(""), "");
    }

    #[test]
    fn each_runtime_s_groups_are_known() {
        let groups = [
            (format!("/system.slice/docker-{ID}.scope"), "docker"),
            (format!("/docker/{ID}"), "docker"),
            (format!("/docker/{ID}/init.scope"), "docker"),
            (format!("/machine.slice/libpod-{ID}.scope/container"), "podman"),
            (format!("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope"), "podman"),
            (format!("/libpod_parent/{ID}"), "podman"),
            (format!("/system.slice/nerdctl-{ID}.scope"), "containerd"),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-{ID}.scope"
                ),
                "containerd",
            ),
            (
                format!("/system.slice/containerd.service/kubepods-burstable-pod1.slice:cri-containerd:{ID}"),
                "containerd",
            ),
            (format!("/kubepods-besteffort-pod1.slice/crio-{ID}.scope"), "cri-o"),
            (format!("/kubepods/burstable/pod1-2/{ID}"), "kubernetes"),
        ];
        for (group, runtime) in &groups {
            assert_eq!(container_of(group), Some((*runtime, "3f2a9c41d07b".into())), "{group}");
        }
        assert_eq!(container_of("/lxc.payload.web/system.slice"), Some(("lxc", "web".into())));
        assert_eq!(container_of("/machine.slice/machine-build.scope"), Some(("machine", "build".into())));
    }

    #[test]
    fn a_container_in_a_container_is_the_inner_one() {
        let inner = "0".repeat(64);
        let group = format!("/system.slice/docker-{ID}.scope/docker/{inner}");
        assert_eq!(container_of(&group), Some(("docker", "0".repeat(12))));
    }

    #[test]
    fn other_groups_are_no_containers() {
        let short = format!("/system.slice/docker-{}.scope", &ID[..12]);
        for group in
            ["", "/", "/system.slice/docker.service", "/user.slice/user-0.slice", &short, "/kubepods/burstable"]
        {
            assert_eq!(container_of(group), None, "{group}");
        }
    }

    #[test]
    fn only_the_first_words_of_a_command_are_kept() {
        assert_eq!(command_of(b"python3\0/opt/agent.py\0--password=x\0"), "python3 /opt/agent.py");
        assert_eq!(command_of(&"\u{e9}".repeat(100).into_bytes()).len(), LONGEST);
        assert_eq!(command_of(b""), "");
    }

    #[test]
    fn a_thread_of_this_process_belongs_to_it() {
        let tid = crosswind_linux::thread_id();
        assert_eq!(Process::of_thread(tid).map(|found| found.pid), Some(std::process::id() as i32));
        assert_eq!(Process::of_thread(i32::MAX), None);
    }
}
