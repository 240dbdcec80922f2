"""`make demo`: measure this machine, plan, run the plan, and say what was found. About 90 s.

Each step is a `crosswind` command; all of them, with the files that they write, are listed in demo/steps.txt.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

from crosswind.blame.result import Blame
from crosswind.measurement import Measurement
from crosswind.model.fit import Fit, fit
from crosswind.plan import Plan
from crosswind.run.results import Runs
from crosswind.statistics.digits import half_of, with_half
from crosswind.terminal.consequences import most_consequential

EXAMPLES = Path(__file__).parent
DONE = (0, 3)
"""Exit codes of a step: 3 is done, but not as well known as wanted."""
FORK = "fork of table 4"
NAME, WIDTH = 13, 79


class Demo:
    """The steps, one after the other.

    Parameters
    ----------
    crosswind : sequence of str
        The command line, such as `[".venv/bin/crosswind"]`.
    out : Path
        Directory of the files.
    measure_s : float
        Time limit of the measurement.
    """

    def __init__(self, crosswind: list[str], out: Path, measure_s: float) -> None:
        self.crosswind, self.out, self.measure_s = crosswind, out, measure_s
        self.steps: list[str] = []
        self.number = 0

    def run(self) -> None:
        """Run all steps, then say what was found and what limits it."""
        print(f"make demo: measure this machine, plan, run the plan. About {40 + self.measure_s:.0f} s.\n")
        self.step("doctor", "doctor", lines=1)
        measurement, platform = self.out / "measurement.parquet", self.out / "platform.toml"
        self.step("measure", "measure", "--max-seconds", f"{self.measure_s:g}", "-o", measurement)
        self.step("fit", "fit", measurement, "-o", platform)
        fork, measured = self.out / "fork.plan.json", self.out / "measured.plan.json"
        task = ["--task-size-mb", "2", "--task-work", "5", "--ports", "single", "-o", fork]
        paper = ["A small cluster from a paper, seven nodes:"]
        self.step("plan", "plan", EXAMPLES / "fork_of_table_4.toml", *task, before=paper)
        task = ["--task-size-mb", "10", "--task-work", "50", "--ports", "multi", "-o", measured]
        self.step("", "plan", platform, *task, before=["This machine and its peer:"])
        study = self.out / "study.json"
        corrected = ["--set", "platform=fork_of_table_4_corrected.toml"]
        self.step("simulate", "run", EXAMPLES / "fork_graph.toml", *corrected, "-o", study)
        predicted, run = self.out / "predicted.json", self.out / "run.json"
        emulated = EXAMPLES / "fork_graph_emulated.toml"
        self.step("run", "run", emulated, "--on", "sim", "-o", predicted, shown=False)
        self.step("", "run", emulated, "--on", "local", "-o", run, shown=False)
        trace, perfetto = self.out / "trace.parquet", self.out / "trace.json"
        traced = ["--set", "policy.order=planned", "--on", "local", "--trace", trace, "--perfetto", perfetto]
        self.step("", "run", emulated, *traced, shown=False)
        ran = _orders(predicted, run)
        self.tell("Seven agents with emulated work, seven orders of service:", *ran)
        local, blame = self.out / "local_scheduling.json", self.out / "blame.json"
        own = ["Two programs on 64 nodes, in step (aligned) or not (spread):"]
        self.step("blame", "run", EXAMPLES / "local_scheduling.toml", "-o", local, before=own, lines=1)
        daemons = EXAMPLES / "barriers_under_daemons.toml"
        self.step("", "blame", daemons, "--seeds", "3", "-o", blame, shown=False)
        self.tell(_blamed(blame))
        report = self.out / "report.html"
        files = [measurement, measured, fork, study, predicted, run, trace, local, blame]
        self.step("report", "report", *files, "-o", report, "--figures", self.out / "figures", shown=False)
        self.tell(str(report))
        (self.out / "steps.txt").write_text("\n".join(self.steps) + "\n")
        self.conclude(fit(Measurement.load(measurement)), Plan.load(fork), predicted, run, local, measurement)
        print(f"\nOpen {report}. Every step's command: {self.out / 'steps.txt'}")

    def step(
        self, name: str, *words: str | Path, before: list[str] | None = None, lines: int = 4, shown: bool = True
    ) -> None:
        """Run a command, and show its answer: its output up to the first empty line, at most `lines` lines.

        A step without a name belongs to the one before.
        """
        texts = [str(word) for word in words]
        self.steps.append(shlex.join(["crosswind", *texts]))
        if name:
            self.number += 1
            self.label = f"{self.number} {name}".ljust(NAME)
        waiting = f"{self.label}crosswind {texts[0]} ..."
        if sys.stdout.isatty():
            print(waiting, end="\r", flush=True)
        command = [*self.crosswind, *texts, *(["--force"] if "-o" in texts else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if sys.stdout.isatty():
            print(" " * len(waiting), end="\r")
        if done.returncode not in DONE:
            sys.stderr.write(done.stdout + done.stderr)
            sys.exit(done.returncode)
        if shown:
            answer = done.stdout.partition("\n\n")[0].splitlines()[:lines]
            self.tell(*(before or []), *(_without_bound(line) for line in answer))

    def tell(self, *lines: str) -> None:
        """Print lines beside the name of the step, which stands at the first of them."""
        for line in lines:
            for part in textwrap.wrap(line, WIDTH - NAME, break_on_hyphens=False, break_long_words=False):
                print(f"{self.label}{part}", flush=True)
                self.label = " " * NAME

    def conclude(self, fitted: Fit, fork: Plan, predicted: Path, run: Path, local: Path, measurement: Path) -> None:
        """Say what was found in three lines, and the two reasons to doubt the first."""
        print("\nWhat it found")
        worst = max(fitted.channels, key=lambda one: one.headline.loss if one.headline else 0.0)
        if worst.headline:
            moved = "received" if worst.direction == "receive" else "sent"
            half = half_of(100 * worst.headline.loss, [100 * end for end in worst.headline.ci95])
            share = with_half(100 * worst.headline.loss, half, " %")
            cost = f"costs {share} of what one CPU computes"
            if worst.headline.ci95[0] <= 0:
                cost = f"costs {share} of one CPU: not distinguishable from 0"
            print(f"  Traffic: {worst.headline.mb_per_s:g} MB/s {moved} {cost}.")
        rates = [_planned(path) for path in (predicted, run)]
        print(
            f"  Plan: planned {fork.throughput_tasks_per_s:.2f}, simulated {rates[0]:.2f}, run {rates[1]:.2f} tasks/s."
        )
        slowdowns = [one.slowdown for one in Runs.load(local)]
        print(f"  Disturbances that are not in step cost most: up to {max(slowdowns):.0f} times.")
        if fitted.warnings:
            print("\nBefore you trust the first number")
            for told in most_consequential(fitted.warnings)[:2]:
                print(textwrap.fill(told["message"], WIDTH, initial_indent="  ", subsequent_indent="  "))
            print(f"All {len(fitted.warnings)} warnings: crosswind fit {measurement} --warnings")


def _without_bound(line: str) -> str:
    """Return a plan's line without what it says of other schedules."""
    return line.partition(" No schedule on this tree")[0]


def _planned(path: Path) -> float:
    return next(run.throughput_tasks_per_s for run in Runs.load(path) if run.data["order"] == "planned")


def _orders(predicted: Path, run: Path) -> list[str]:
    """Return the makespan of each order, simulated and run, and the share of the upper bound that it reaches."""
    simulated = {one.data["order"]: one.makespan_s for one in Runs.load(predicted)}
    lines = [f"{'order':18} {'simulated, s':>13} {'run, s':>8} {'% of upper bound':>18}"]
    for one in sorted(Runs.load(run), key=lambda one: one.makespan_s):
        order = one.data["order"]
        lines.append(f"{order:18} {simulated[order]:13.1f} {one.makespan_s:8.1f} {100 * one.of_bound:18.1f}")
    return lines


def _blamed(path: Path) -> str:
    """Return what the daemons cost, and which costs most."""
    found = Blame.load(path)
    whole = found.undisturbed.mean
    half = half_of(found.cost.mean, (found.cost.low, found.cost.high))
    cost = with_half(100 * found.cost.mean / whole, 100 * half / whole, " %")
    most = max(found.by_cause, key=lambda one: one.best.mean)
    return (
        f"{len(found.by_cause)} daemons slow {found.runs[0].data['ranks']} ranks by {cost}; `{most.cause}` causes most."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crosswind", default="crosswind", help="The command line.")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="Directory of the files.")
    parser.add_argument("--measure-s", type=float, default=50.0, help="Time limit of the measurement, s.")
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    Demo(shlex.split(given.crosswind), given.out, given.measure_s).run()
