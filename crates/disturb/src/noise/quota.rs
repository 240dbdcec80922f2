//! Quotas of CPU time that apply to a process, and how often they throttled it.

use std::fs;
use std::path::{Path, PathBuf};

/// The control groups around a process that have a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota(Vec<PathBuf>);

impl Quota {
    #[must_use]
    pub fn own() -> Self {
        Self::of("self")
    }

    /// Returns those around a process, given by its number.
    #[must_use]
    pub fn of(process: &str) -> Self {
        let own = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self(own.lines().flat_map(|line| groups(line, &mounts)).filter(|group| has_quota(group)).collect())
    }

    #[must_use]
    pub fn holds(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the periods so far in which a quota was used up.
    #[must_use]
    pub fn throttled(&self) -> u64 {
        let count = |group: &PathBuf| {
            let text = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
            text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        self.0.iter().map(count).sum()
    }
}

/// Returns the directories of the group in a line of `/proc/self/cgroup` and of its ancestors, if they limit CPU
/// time.
fn groups(line: &str, mounts: &str) -> Vec<PathBuf> {
    let Some((controllers, path)) = line.split_once(':').and_then(|(_, rest)| rest.split_once(':')) else {
        return Vec::new();
    };
    if !(controllers.is_empty() || controllers.split(',').any(|one| one == "cpu")) {
        return Vec::new();
    }
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut kind = after.split(' ');
        let found = match kind.next()? {
            "cgroup2" => controllers.is_empty(),
            "cgroup" => !controllers.is_empty() && kind.nth(1)?.split(',').any(|option| option == "cpu"),
            _ => false,
        };
        let mut fields = before.split(' ').skip(3);
        found.then(|| Some((fields.next()?, PathBuf::from(fields.next()?)))).flatten()
    });
    let Some((root, at)) = mount else { return Vec::new() };
    // In a container the mount shows only part of the hierarchy: the group's path is relative to that part.
    let inside = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    let inside = inside.strip_prefix("/").unwrap_or(inside);
    inside.ancestors().map(|part| if part == Path::new("") { at.clone() } else { at.join(part) }).collect()
}

fn has_quota(group: &Path) -> bool {
    let read = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    let limit = read("cpu.max"); // version 2: "max 100000" means no quota
    let old = read("cpu.cfs_quota_us").trim().parse::<i64>().is_ok_and(|quota| quota > 0); // version 1: -1
    old || limit.split_ascii_whitespace().next().is_some_and(|word| word.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_both_versions_and_those_above_them_are_looked_at() {
        let mounts = "31 24 0:27 / /cg rw - cgroup2 cgroup2 rw\n32 24 0:28 /docker/x /v1/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let of = |line| groups(line, mounts);
        assert_eq!(of("0::/a/b"), ["/cg/a/b", "/cg/a", "/cg"].map(PathBuf::from));
        assert_eq!(of("0::/"), ["/cg"].map(PathBuf::from));
        assert_eq!(of("4:cpu,cpuacct:/docker/x/y"), ["/v1/cpu/y", "/v1/cpu"].map(PathBuf::from));
        assert_eq!(of("5:memory:/a"), Vec::<PathBuf>::new());
        assert_eq!(of(""), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_group_has_a_quota_where_its_file_names_a_number() {
        let directory = std::env::temp_dir().join(format!("crosswind-quota-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("made");
        for (file, text, expected) in [
            ("cpu.max", "max 100000\n", false),
            ("cpu.max", "50000 100000\n", true),
            ("cpu.cfs_quota_us", "-1\n", false),
            ("cpu.cfs_quota_us", "50000\n", true),
        ] {
            fs::write(directory.join(file), text).expect("written");
            assert_eq!(has_quota(&directory), expected, "{file} {text}");
            fs::remove_file(directory.join(file)).expect("removed");
        }
        fs::write(directory.join("cpu.stat"), "nr_periods 9\nnr_throttled 4\nthrottled_usec 77\n").expect("written");
        assert_eq!(Quota(vec![directory.clone(), directory.clone()]).throttled(), 8);
        fs::remove_dir_all(directory).expect("removed");
    }
}
