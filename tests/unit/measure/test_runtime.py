"""Which runtime is meant, how it is started, and when it is quiet."""

import sys

import pytest

from crosswind.errors import DescriptionError, MeasurementError
from crosswind.measure.options import Options
from crosswind.measure.runtime import RUNTIMES, at_hand, go, java, launched, parse_runtime, python, warm_up
from crosswind.measure.runtime.spec import PROBES


def test_a_runtime_is_named_with_its_options_and_anything_else_is_a_command():
    assert parse_runtime("java threads=virtual io=direct").text == "java io=direct threads=virtual"
    assert parse_runtime("./my-probe 'a b'").command == ("./my-probe", "a b")
    assert parse_runtime("./my-probe 'a b'").text == "./my-probe 'a b'"
    assert {parse_runtime(name).name for name in RUNTIMES} == set(RUNTIMES)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("java io=fast", "'fast'; it must be one of stream, direct, heap"),
        ("java speed=9", "no option 'speed=9'"),
        ("java direct", "no option 'direct'"),
        ("java carriers=0", "'0'; it must be 1 to 1024"),
        ("python switch_interval=20", "'20'; it must be 1e-6 to 10 s"),
        ("python switch_interval=soon", "'soon'"),
        ("python python=", "the path of a program"),
        ("java 'io", "No closing quotation"),
    ],
)
def test_an_option_that_is_not_permitted_is_refused_by_name(text, complaint):
    with pytest.raises(DescriptionError, match=complaint.replace("(", r"\(")):
        parse_runtime(text)


def test_a_runtime_that_is_not_there_is_one_clear_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for name in ("java", "go"):
        with pytest.raises(DescriptionError, match=f"{name}: there is no `{name}` on this machine") as caught:
            launched(parse_runtime(name), tmp_path)
        assert "install" in caught.value.hint
    with pytest.raises(DescriptionError, match="'/no/such/java' is not a program"):
        launched(parse_runtime("java java=/no/such/java"), tmp_path)


def program(directory, name, script):
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_java_too_old_is_refused_before_anything_is_compiled(tmp_path):
    old = program(tmp_path, "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    with pytest.raises(DescriptionError, match="is Java 11; 17 or later is needed"):
        java.command({"java": str(old)}, PROBES, tmp_path)
    older = program(tmp_path, "java17", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    with pytest.raises(DescriptionError, match="virtual threads need Java 21 or later"):
        java.command({"java": str(older), "threads": "virtual"}, PROBES, tmp_path)
    with pytest.raises(DescriptionError, match="carriers are given without virtual threads"):
        java.command({"java": str(older), "carriers": "2"}, PROBES, tmp_path)


def test_options_reach_the_command(tmp_path, monkeypatch):
    virtual = program(tmp_path, "java", "echo 'openjdk version \"25\" 2025-09-16' >&2")
    program(tmp_path, "javac", "exit 0")
    options = {"java": str(virtual), "threads": "virtual", "carriers": "1", "gc": "serial", "io": "heap"}
    words, _ = java.command(options, PROBES, tmp_path)
    assert "-XX:+UseSerialGC" in words
    assert "-Djdk.virtualThreadScheduler.parallelism=1" in words
    assert words[words.index("Probe") :] == ["Probe", "threads=virtual", "io=heap"]
    words, _ = python.command({"switch_interval": "0.001"}, PROBES, tmp_path)
    assert words[0] == sys.executable
    assert words[-1] == "switch_interval=0.001"
    compiler = program(tmp_path, "go", "exit 0")
    assert go.command({"go": str(compiler), "gomaxprocs": "2"}, PROBES, tmp_path)[1] == {"GOMAXPROCS": "2"}


def test_a_compiler_that_fails_is_shown_with_what_it_says(tmp_path):
    broken = program(tmp_path, "broken", "echo no such flag >&2; exit 2")
    with pytest.raises(MeasurementError, match="exit status 2: no such flag"):
        at_hand.said([str(broken), "build"])


def row(work, jit=0.0, mb=0.0, settling=False):
    return {
        "settling": settling,
        "dt_s": 0.03,
        "work": work,
        "jit_cpu_s": jit,
        "foreign_cpu_s": 0.0,
        "channel0_mb": mb,
    }


def test_a_runtime_is_quiet_once_it_neither_compiles_nor_changes():
    steady = [row(100 + i % 2) for i in range(warm_up.BLOCKS)]
    assert warm_up.quiet(steady, 1)
    assert not warm_up.quiet(steady[1:], 1), "too few blocks"
    assert not warm_up.quiet([*steady[1:], row(100, jit=0.001)], 1), "it compiles"
    assert warm_up.quiet([row(1, jit=0.03), *steady], 1), "it did, before"
    assert not warm_up.quiet([row(100 + 5 * i) for i in range(warm_up.BLOCKS)], 1), "it computes ever faster"
    assert not warm_up.quiet([row(100, mb=1 + 0.1 * i) for i in range(warm_up.BLOCKS)], 1), "it moves ever more"
    assert not warm_up.quiet([row(0) | {"foreign_cpu_s": 0.03} for _ in range(warm_up.BLOCKS)], 1), "nothing is known"


def asked(**given):
    import inspect

    from crosswind.measure import measure

    usual = {name: one.default for name, one in inspect.signature(measure).parameters.items()}
    return Options({**usual, **given})


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"runtime": "java", "task": "true"}, "task is given beside a runtime"),
        ({"runtime": "java", "paced_by": "sender"}, "the peer keeps the rates"),
        ({"runtime": "java", "variation": "contention"}, "must be 'paced'"),
        ({"runtime": "java", "placement": "other-core"}, "cannot be put on different CPUs"),
        ({"runtime": "java", "forks": 0}, "forks is 0; it must be 1 to 50"),
        ({"runtime": "java", "traffic_nice": 5}, "share one nice level"),
        ({"runtime": "./p", "own_work": True, "beside": "native"}, "no native version"),
        ({"forks": 2}, "forks is given without a runtime"),
        ({"beside": "native"}, "beside is given without a runtime"),
        ({"pin": "threads"}, "pin is given without a runtime"),
        ({"runtime": "java", "pin": "cores"}, "must be one of process, threads"),
    ],
)
def test_what_does_not_go_with_a_runtime_is_refused(given, complaint):
    with pytest.raises(DescriptionError, match=complaint):
        asked(**given)


def test_with_a_runtime_the_peer_keeps_the_rates_and_there_are_several_forks():
    assert (asked(runtime="java")["paced_by"], asked(runtime="java").forks) == ("peer", 5)
    assert (asked()["paced_by"], asked().forks) == ("sender", 1)
