import json
import resource
import socket
import threading

import pytest
from trees import ONE_GROUP_V2, plant, process, stat

from crosswind.doctor import disturbances, doctor, kernel, network, peer, processor, surroundings
from crosswind.errors import MeasurementError
from crosswind.host.activity import Snapshot
from crosswind.host.route import interface_to, is_same_machine

CPU = "sys/devices/system/cpu"
CLOCK = "sys/devices/system/clocksource/clocksource0"


def allowed(cpus: str) -> dict[str, str]:
    return {"proc/self/status": f"Name:\tx\nCpus_allowed_list:\t{cpus}\n", f"{CPU}/online": "0-7"}


@pytest.mark.parametrize(("cpus", "level"), [("0", "problem"), ("0-1", "note"), ("0-2,5", "ok")])
def test_few_cpus_are_told_with_their_number(tmp_path, cpus, level):
    found = processor.enough_cpus(plant(tmp_path, allowed(cpus)))
    assert found.level == level
    assert f"({cpus})" in found.message


def test_a_quota_below_the_allowed_cpus_is_a_warning_with_the_command_that_lifts_it(tmp_path):
    group = tmp_path / "sys/fs/cgroup/user.slice/job"
    files = {
        "sys/fs/cgroup/user.slice/job/cpu.max": "150000 100000",
        f"{group.relative_to(tmp_path)}/cpu.stat": "nr_throttled 3",
    }
    found = processor.quota(plant(tmp_path, allowed("0-3") | ONE_GROUP_V2 | files))
    assert found.level == "warning"
    assert "1.5 CPUs" in found.message
    assert "3 times" in found.message
    assert f"echo max | sudo tee {group / 'cpu.max'}" in found.hint


def test_a_quota_above_the_allowed_cpus_disturbs_nothing(tmp_path):
    files = {"sys/fs/cgroup/user.slice/job/cpu.max": "800000 100000"}
    assert processor.quota(plant(tmp_path, allowed("0-3") | ONE_GROUP_V2 | files)).level == "note"


@pytest.mark.parametrize(("governor", "level"), [("powersave", "warning"), ("performance", "ok")])
def test_a_governor_that_follows_the_load_is_a_warning(tmp_path, governor, level):
    at = f"{CPU}/cpu0/cpufreq"
    files = {f"{at}/scaling_governor": governor, f"{at}/scaling_driver": "acpi-cpufreq", f"{CPU}/cpufreq/boost": "1"}
    found = processor.frequency(plant(tmp_path, allowed("0") | files))
    assert [f.level for f in found] == [level, "note"]
    assert governor in found[0].message
    assert "boost" in found[1].hint


def test_two_cpus_of_one_core_are_named(tmp_path):
    files = {f"{CPU}/cpu{n}/topology/thread_siblings_list": "0,4" if n in (0, 4) else "1,5" for n in (0, 1, 4, 5)}
    found = processor.threads_per_core(plant(tmp_path, allowed("0-1,4-5") | files))
    assert found.level == "note"
    assert "0,4 and 1,5" in found.message


def watched(tmp_path, ticks, later=(), earlier=()):
    idle = [(0,) * 8] * len(ticks)
    plant(tmp_path, allowed(f"0-{len(ticks) - 1}") | {"proc/stat": stat(*idle), "proc/loadavg": "1 2 3 1/9 7"})
    for files in earlier:
        plant(tmp_path, files)
    before = Snapshot.take(tmp_path)
    plant(tmp_path, {"proc/stat": stat(*ticks)})
    for files in later:
        plant(tmp_path, files)
    return Snapshot.take(tmp_path).since(before)


def test_what_disturbs_is_named_with_pid_and_cpu(tmp_path):
    activity = watched(
        tmp_path, [(90, 0, 0, 10, 0, 0, 0, 0), (0, 0, 0, 100, 0, 0, 0, 0)], [process(77, "miner", 90, 0, 3, cpu=0)]
    )
    [found] = processor.foreign_load(activity, own=[], root=tmp_path)
    assert found.level == "warning"
    assert "0.90 of 2 CPUs" in found.message
    assert "miner (pid 77" in found.message
    assert "kill -STOP 77" in found.hint


def test_our_own_process_is_not_foreign(tmp_path):
    start = process(77, "python", 0, 0, 3)
    activity = watched(tmp_path, [(0, 0, 0, 100, 0, 0, 0, 0)], [process(77, "python", 40, 0, 3)], [start])
    [found] = processor.foreign_load(activity, own=[77], root=tmp_path)
    assert found.level == "ok"


def test_load_of_no_visible_process_is_told_too(tmp_path):
    activity = watched(tmp_path, [(50, 0, 0, 50, 0, 0, 0, 0)])
    [found] = processor.foreign_load(activity, own=[], root=tmp_path)
    assert found.level == "warning"
    assert "no process" in found.message


def test_a_cpu_full_of_softirqs_is_named(tmp_path):
    activity = watched(tmp_path, [(0, 0, 0, 100, 0, 0, 0, 0), (0, 0, 0, 80, 0, 0, 20, 0)])
    [_, found] = processor.foreign_load(activity, own=[], root=tmp_path)
    assert (found.code, found.level) == ("softirq-load", "warning")
    assert found.message.startswith("CPU 1 spends 20 %")
    assert "--compute-cpus 0" in found.hint


@pytest.mark.parametrize(("stolen", "level"), [(0, "ok"), (5, "warning")])
def test_steal_is_a_warning_from_1_percent(tmp_path, stolen, level):
    assert processor.steal(watched(tmp_path, [(0, 0, 0, 100 - stolen, 0, 0, 0, stolen)]), tmp_path).level == level


@pytest.mark.parametrize(("mode", "level"), [("[always] madvise never", "note"), ("always [madvise] never", "ok")])
def test_huge_pages_that_come_unasked_are_a_note(tmp_path, mode, level):
    [found] = kernel.huge_pages(plant(tmp_path, {"sys/kernel/mm/transparent_hugepage/enabled": mode}))
    assert (found.code, found.level) == ("huge-pages", level)
    assert kernel.huge_pages(tmp_path / "nothing") == []


@pytest.mark.parametrize(("nodes", "balancing", "count"), [("0-1", "1", 1), ("0-1", "0", 0), ("0", "1", 0)])
def test_numa_balancing_is_a_note_where_there_are_nodes_to_balance(tmp_path, nodes, balancing, count):
    files = {"sys/devices/system/node/online": nodes, "proc/sys/kernel/numa_balancing": balancing}
    found = kernel.numa_balancing(plant(tmp_path, files))
    assert len(found) == count
    assert all("with 2 nodes" in one.message for one in found)


@pytest.mark.parametrize(
    ("disabled", "level", "name"), [("0", "note", "133 us to wake (C6)"), ("1", "ok", "2 us to wake (C1)")]
)
def test_the_deepest_permitted_idle_state_says_how_late_a_cpu_wakes(tmp_path, disabled, level, name):
    at = f"{CPU}/cpu0/cpuidle"
    files = {f"{at}/state0/name": "C1", f"{at}/state0/latency": "2", f"{at}/state0/disable": "0"}
    files |= {f"{at}/state1/name": "C6", f"{at}/state1/latency": "133", f"{at}/state1/disable": disabled}
    [found] = kernel.idle_states(plant(tmp_path, allowed("0") | files))
    assert found.level == level
    assert name in found.message
    assert kernel.idle_states(tmp_path / "nothing") == []


@pytest.mark.parametrize(("kept", "count"), [("2-3", 1), ("(null)", 0)])
def test_cpus_without_ticks_are_named(tmp_path, kept, count):
    found = kernel.without_ticks(plant(tmp_path, {f"{CPU}/nohz_full": kept}))
    assert len(found) == count
    assert all("taskset -c 2-3" in one.hint for one in found)


@pytest.mark.parametrize(("now", "level"), [("tsc", "ok"), ("kvm-clock", "ok"), ("hpet", "warning")])
def test_a_slow_clock_is_a_warning(tmp_path, now, level):
    files = {f"{CLOCK}/current_clocksource": now, f"{CLOCK}/available_clocksource": "tsc hpet"}
    found = processor.clock(plant(tmp_path, files))
    assert found.level == level
    assert level == "ok" or "echo tsc" in found.hint


@pytest.mark.parametrize(("state", "level"), [("1", "note"), ("0", "ok")])
def test_autogroup_is_told(tmp_path, state, level):
    assert processor.autogroup(plant(tmp_path, {"proc/sys/kernel/sched_autogroup_enabled": state})).level == level


def test_a_kernel_that_hides_the_threads_times_is_a_problem(tmp_path):
    assert [f.level for f in processor.accounting(tmp_path)] == ["problem"]
    for zeros in ("0 0 0\n", "0 0 0", ""):
        (found,) = processor.accounting(plant(tmp_path, {"proc/self/schedstat": zeros}))
        assert found.level == "problem"
        assert "kernel.task_delayacct=1" in found.hint


@pytest.mark.parametrize(("name", "level"), [("bbr", "note"), ("cubic", "ok")])
def test_bbr_as_the_default_is_told_with_the_flag_that_avoids_it(tmp_path, name, level):
    found = network.congestion_control(plant(tmp_path, {"proc/sys/net/ipv4/tcp_congestion_control": name}))
    assert found.level == level
    assert level == "ok" or "--congestion-control cubic" in found.hint


def test_offloads_that_are_off_are_a_warning_with_the_command_that_turns_them_on():
    found = network.offloads("eth0", {"tso": "off", "gso": "on", "gro": "off"})
    assert found.level == "warning"
    assert found.hint == "`sudo ethtool -K eth0 tso on gro on`"


def test_on_loopback_the_softirq_is_said_to_be_elsewhere_than_with_a_card(tmp_path):
    found = network.softirq_placement("lo", plant(tmp_path, {"sys/class/net/lo/type": "772"}))
    assert found.level == "note"
    assert "sender's CPU" in found.message


@pytest.mark.parametrize(("limit", "level"), [("212992", "note"), ("4194304", "ok")])
def test_a_small_limit_of_socket_buffers_is_told(tmp_path, limit, level):
    files = {"proc/sys/net/core/rmem_max": limit, "proc/sys/net/core/wmem_max": "4194304"}
    found = network.socket_buffers(plant(tmp_path, files))
    assert found.level == level
    assert limit in found.message


def memory(available_kb: int, waited: str) -> dict[str, str]:
    swap = "SwapTotal: 2000000 kB\nSwapFree: 1000000 kB\n"
    some = f"some avg10={waited} avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    return {"proc/meminfo": f"MemAvailable: {available_kb} kB\n{swap}", "proc/pressure/memory": some}


@pytest.mark.parametrize(
    ("available_kb", "waited", "level"),
    [(8_000_000, "0.00", "ok"), (100_000, "0.00", "warning"), (8_000_000, "7.50", "warning")],
)
def test_short_memory_and_waiting_for_it_are_warnings(tmp_path, available_kb, waited, level):
    found = surroundings.memory(plant(tmp_path, memory(available_kb, waited)))
    assert found.level == level
    assert "1024 MB swapped out" in found.message


def limits(nice, rtprio):
    return {resource.RLIMIT_NICE: (nice, nice), resource.RLIMIT_RTPRIO: (rtprio, rtprio)}.__getitem__


def test_without_the_capability_the_limits_say_which_nice_levels_are_permitted(tmp_path):
    plant(tmp_path, {"proc/self/status": "CapEff:\t0000000000000000\n"})
    assert [f.level for f in surroundings.permissions(tmp_path, limits(0, 0))] == ["note", "note"]
    nice, real_time = surroundings.permissions(tmp_path, limits(30, 1))
    assert (nice.level, real_time.level) == ("ok", "ok")
    assert "-10" in nice.message


def test_with_the_capability_all_nice_levels_are_permitted(tmp_path):
    plant(tmp_path, {"proc/self/status": "CapEff:\t0000000000800000\n"})
    assert [f.level for f in surroundings.permissions(tmp_path, limits(0, 0))] == ["ok", "ok"]


def test_a_low_limit_of_open_files_is_a_warning():
    assert surroundings.open_files(lambda _: (256, 4096)).hint == "`ulimit -n 1024` in the shell that will measure"
    assert surroundings.open_files(lambda _: (1024, 4096)).level == "ok"


def test_missing_programs_are_only_notes():
    assert {f.level for f in surroundings.programs(lambda _: None)} == {"note"}
    assert {f.level for f in surroundings.programs(lambda name: f"/usr/bin/{name}")} == {"ok"}


@pytest.mark.parametrize(("why", "level"), [(None, "ok"), ("this kernel has no tracefs", "note")])
def test_whether_noise_gets_names_is_told_with_the_reason(why, level):
    found = disturbances.recording(lambda: why)
    assert found.level == level
    assert why is None or why in found.message


@pytest.mark.parametrize(
    ("priority", "no_freezer", "levels", "seen"),
    [
        ("real-time", None, ["ok", "ok"], "real-time priority"),
        ("nice -20", "no such hierarchy", ["note", "note"], "98.9 %"),
        ("ordinary", None, ["note", "ok"], "half of the CPU"),
    ],
)
def test_what_injection_can_do_here_is_told(priority, no_freezer, levels, seen):
    found = disturbances.injecting(lambda: {"priority": priority, "no_freezer": no_freezer})
    assert [f.level for f in found] == levels
    assert seen in found[0].message
    assert no_freezer is None or no_freezer in found[1].message


@pytest.mark.parametrize(("runtime", "level"), [("950000", "ok"), ("-1", "ok"), ("100000", "note"), ("", "note")])
def test_how_long_real_time_threads_may_run_is_told(tmp_path, runtime, level):
    files = {"proc/sys/kernel/sched_rt_runtime_us": runtime, "proc/sys/kernel/sched_rt_period_us": "1000000"}
    assert disturbances.real_time_limit(plant(tmp_path, files)).level == level


def test_this_machine_can_be_examined_and_the_worst_stands_first():
    found = doctor(seconds=0.05)
    order = ["problem", "warning", "note", "ok"]
    ranks = [order.index(f.level) for f in found]
    assert ranks == sorted(ranks)
    assert {"cpus", "cpu-quota", "frequency", "steal", "foreign-load", "memory", "peer"} <= {f.code for f in found}
    assert all(f.hint for f in found if f.level in ("warning", "problem"))
    json.dumps([f.to_dict() for f in found])


def test_an_empty_machine_can_be_examined(tmp_path):
    assert all(f.message for f in doctor(seconds=0.0, root=tmp_path))


@pytest.fixture
def listener():
    """A server that accepts and closes, as `host:port`."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def by_code(findings):
    return {f.code: f for f in findings}


def test_a_peer_on_loopback_is_reached_but_is_a_warning(listener):
    found = by_code(peer.reachable(listener))
    assert found["peer"].level == "ok"
    assert "ms" in found["peer"].message
    assert found["peer-place"].level == "warning"
    assert "this same machine" in found["peer-place"].message


def test_a_peer_that_does_not_listen_is_a_problem_with_the_command_that_starts_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    [found] = peer.reachable(f"127.0.0.1:{port}")
    assert found.level == "problem"
    assert f"crosswind serve --listen 0.0.0.0:{port}" in found.hint


@pytest.mark.parametrize("address", ["no-such-host.invalid:7117", "node:port"])
def test_an_address_that_is_none_is_a_finding_not_an_error(address):
    findings = doctor(address, seconds=0.0)
    assert by_code(findings)["peer"].level == "problem"
    assert findings[0].code == "peer"


def test_a_peer_that_speaks_another_language_is_a_problem(listener):
    def greet(address):
        raise MeasurementError(f"{address} speaks version 2 of the protocol; this build speaks 1", "peer", "mend it so")

    [found] = peer.greeting(listener, greet)
    assert found.level == "problem"
    assert "version 2" in found.message
    assert found.hint == "mend it so"


def test_a_peer_that_hangs_up_is_a_problem(listener):
    findings = doctor(listener, seconds=0.0, greet=lambda address: (_ for _ in ()).throw(ConnectionResetError()))
    assert by_code(findings)["peer-handshake"].level == "problem"


def test_a_peer_on_the_same_kernel_behind_another_address_is_found_out():
    answer = {"host": "n", "loopback": True, "rtt_s": 0.0002}
    found = by_code(peer.greeting("203.0.113.1:7117", lambda _: answer))
    assert found["peer-kernel"].level == "warning"
    assert "0.200 ms" in found["peer-handshake"].message
    assert "peer-kernel" not in by_code(peer.greeting("203.0.113.1:7117", lambda _: answer | {"loopback": False}))
    assert "peer-kernel" not in by_code(peer.greeting("127.0.0.1:7117", lambda _: answer))  # peer-place says so


def test_the_peers_own_interface_is_the_one_that_is_looked_at(listener):
    assert is_same_machine(listener)
    assert interface_to(listener) == "lo"
    assert "lo is a loopback" in by_code(doctor(listener, seconds=0.0))["softirq-placement"].message


def test_runtimes_that_decide_by_their_cpus_are_told_where_they_are():
    assert surroundings.runtimes_at_start(lambda _: None) == []
    [found] = surroundings.runtimes_at_start(lambda name: f"/usr/bin/{name}" if name == "java" else None)
    assert (found.code, found.level) == ("runtime-ergonomics", "note")
    assert found.message.startswith("java: decided by the CPUs")
    assert "--pin threads" in found.hint


def test_what_killed_commands_left_is_named_with_the_command_that_removes_it():
    assert disturbances.left_behind(list).level == "ok"
    left = [
        {"kind": "trace", "name": "/sys/kernel/tracing/instances/crosswind-7-8-9"},
        {"kind": "frozen-group", "name": "/sys/fs/cgroup/crosswind-7-8-9"},
        {"kind": "stopped", "name": "71"},
    ]
    found = disturbances.left_behind(lambda: left)
    assert found.level == "warning"
    assert all(one["name"] in found.message for one in left)
    assert "rmdir /sys/kernel/tracing/instances/crosswind-7-8-9" in found.hint
    assert "kill -CONT 71" in found.hint
    found = disturbances.left_behind(lambda: left * 100)
    assert "and 295 more" in found.message
    assert len(found.message) < 600
    assert disturbances.left_behind(lambda: left[2:]).hint == "if you did not stop it: `kill -CONT 71`"


def test_no_command_is_named_that_cannot_remove_what_was_left():
    group = "/sys/fs/cgroup/crosswind-7-8-9"
    held = disturbances.left_behind(lambda: [{"kind": "occupied-group", "name": group}])
    assert "holds processes" in held.message
    assert "next" not in held.hint
    assert "rmdir" not in held.hint
    assert f"cat {group}/cgroup.procs" in held.hint
    # Its groups of ranks, which may hold processes, would refuse to be removed.
    assert "rmdir" not in disturbances.left_behind(lambda: [{"kind": "group", "name": group}]).hint
    # What is frozen are its groups of ranks.
    frozen = disturbances.left_behind(lambda: [{"kind": "frozen-group", "name": group}])
    assert f"{group}/*/cgroup.freeze" in frozen.hint
