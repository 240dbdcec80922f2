"""A result of another job, or of other commands, is replaced only by force."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import pytest
from checks import checked
from command_line import crosswind
from costly import comparison, session
from synthetic import measurement

from crosswind.compare import asked_for as asked_of_comparison
from crosswind.cost import asked_for
from crosswind.errors import DescriptionError
from crosswind.files.output import writable

MINE = asked_for(["pid:12"], ["./job", "200"], None, None, "burn", 0.01)
OTHERS = [
    asked_for(["pid:13"], ["./job", "200"], None, None, "burn", 0.01),
    asked_for(["pid:12"], ["taskset", "-c", "1", "./job", "200"], None, None, "burn", 0.01),
    asked_for(["pid:12"], ["./job", "200"], None, "io", "burn", 0.01),
    asked_for(["pid:12"], ["./job", "200"], None, None, "burn", 0.02),
    asked_for(["pid:12"], None, 77, None, "burn", 0.01),
    asked_for(["pid:12"], None, None, None, "triad", 0.01),
]


@pytest.mark.parametrize("other", OTHERS)
def test_the_cost_of_another_job_is_not_replaced(tmp_path, other):
    file = tmp_path / "cost.json"
    session(asked=MINE).save(file)
    writable(file, "cost", option="--out", of={"asked": MINE})
    with pytest.raises(DescriptionError, match=r"but of another: --of pid:12 --margin 1% -- \./job 200") as error:
        writable(file, "cost", option="--out", of={"asked": other})
    assert "--force" in error.value.hint
    writable(file, "cost", option="--out", of={"asked": other}, force=True)


def test_a_comparison_of_other_commands_is_not_replaced(tmp_path):
    file, mine = tmp_path / "comparison.json", asked_of_comparison("./a", "./b", 0.02, "wall", shell=False)
    comparison(asked=mine).save(file)
    writable(file, "comparison", of={"asked": mine})
    for other in (("./a", "./c", 0.02, "wall"), ("./a", "./b", 0.02, "cpu"), ("./a", "./b", 0.05, "wall")):
        with pytest.raises(DescriptionError, match="but of another"):
            writable(file, "comparison", of={"asked": asked_of_comparison(*other, shell=False)})


def test_a_blame_of_another_command_is_not_replaced(tmp_path):
    file = tmp_path / "blame.json"
    file.write_text(json.dumps({"schema_version": 1, "kind": "command-blame", "command": ["./a", "1"]}))
    writable(file, "command-blame", of={"command": ["./a", "1"]})
    with pytest.raises(DescriptionError, match="but of another"):
        writable(file, "command-blame", of={"command": ["./b"]})


EXAMPLES = Path(__file__).parents[3] / "examples"
FORK = EXAMPLES / "fork_of_table_4.toml"
HALF = 'schema_version = 1\nname = "half"\n[[source]]\nkind = "coscheduled"\nquantum_s = 0.01\njobs = 2\n'
STREAMS = (EXAMPLES / "streams_sending_side.toml").read_text().partition("[sweep]")[0]
QUEUES = "plan queues streams.toml --set workload.stream[1].message_bytes=16384 --local-slowdown"
FLOWS = "flows,latency_s\n1,0.001\n1,0.0011\n2,0.0019\n2,0.002\n4,0.004\n4,0.0042\n"
TWICE = {
    "plan": [f"plan {FORK} --task-size-mb 2 --task-work {work} -o r" for work in (5, 6)],
    "plan of ports": [
        f"plan {FORK} --task-size-mb 2 --task-work 5 --ports {ports} -o r" for ports in ("multi", "single")
    ],
    "plan tree": [f"plan tree {name}.toml --task-size-mb 2 --task-work 5 -o r" for name in ("links", "others")],
    "plan queues": [f"{QUEUES} {most} -o r" for most in (2, 3)],
    "fit": [f"fit {name}.parquet -o r" for name in ("a", "b")],
    "fit contention": [f"fit contention {name}.csv -o r" for name in ("flows", "more")],
    "overlap": [f"overlap --on sim --cpus {cpus} --wait event --nice 0 -o r" for cpus in (2, 3)],
    "record": [f"record --seconds 0.05 --how loop --name {name} -o r" for name in ("a", "b")],
    "inject": [f"inject {name}.toml -o r -- true" for name in ("half", "other")],
    "blame": [f"blame {name}.toml --seeds 2 --workers 1 -o r" for name in ("daemons", "quieter")],
    "blame of a command": [f"blame {name}.toml --blocks 2 -o r -- true" for name in ("half", "other")],
}
"""A command, and one with the same name of its result for another job."""
DONE = (0, 3)
"""Exit codes; 3: on a busy host an injected interval is late."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    links = (EXAMPLES / "links_of_two_sites.toml").read_text()
    program = (EXAMPLES / "em3d_under_daemons.toml").read_text().partition("[sweep]")[0]
    program = program.replace("daemons_of_table_1.toml", str(EXAMPLES / "daemons_of_table_1.toml"))
    for field, value in (("steps", 3), ("ranks", 2), ("repetitions", 1)):
        program = re.sub(rf"(?m)^{field} = \d+", f"{field} = {value}", program)
    for name, text in {
        "links.toml": links,
        "others.toml": re.sub(r'(?m)^name = "[^"]*"', 'name = "others"', links, count=1),
        "streams.toml": STREAMS,
        "flows.csv": FLOWS,
        "more.csv": FLOWS,
        "half.toml": HALF,
        "other.toml": HALF.replace("half", "other"),
        "daemons.toml": program,
        "quieter.toml": program.replace("steps = 3", "steps = 2"),
    }.items():
        (folder / name).write_text(text)
    for seed, name in enumerate(("a", "b")):
        measurement(cycles=8, together_cycles=2, seed=seed).save(folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("name", TWICE)
def test_a_verb_does_not_replace_the_result_of_another_job(folder, name):
    mine, others = (words.replace(" -o r", f" -o {name.replace(' ', '-')}").split() for words in TWICE[name])

    def run(words):
        done = crosswind(*words, cwd=folder, env=dict(os.environ))
        return done.returncode, done.stderr

    assert run(mine)[0] in DONE
    assert run(mine)[0] in DONE, "the same job again is replaced"
    code, text = run(others)
    assert (code, "--force" in text) == (2, True), text
    assert "of another" in text or "with other settings or files" in text
    at = others.index("-o")
    assert run([*others[:at], "--force", *others[at:]])[0] in DONE


def test_a_check_of_another_node_or_peer_is_not_replaced(tmp_path):
    content = checked().document
    for host, peer, words in (("node9", None, "host.name is 'node9'"), (socket.gethostname(), "b:1", "peer is 'b:1'")):
        (tmp_path / "good.json").write_text(
            json.dumps(content | {"host": content["host"] | {"name": host}, "peer": peer})
        )
        done = crosswind("check", "--save", "good.json", cwd=tmp_path, env=dict(os.environ))
        assert done.returncode == 2
        assert words in done.stderr


def test_a_measurement_of_another_host_is_not_replaced(folder):
    done = crosswind("measure", "-o", "a.parquet", cwd=folder, env=dict(os.environ))
    assert done.returncode == 2
    assert "but of another: host.name is 'synthetic'" in done.stderr
