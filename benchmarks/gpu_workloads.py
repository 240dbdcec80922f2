"""Claim: functions of PyTorch and CuPy, copying blocks and loading threads are measured as the built-in pairs.

Each part is a file in `gpu/`, made on a machine with a GPU, PyTorch and CuPy; each runs in a process of its own,
so that a fault in one leaves the others. `loading` is no measurement of pairs: it is `crosswind cost` of a process that
loads data (`gpu/load.py`) for a training job (`gpu/train.py`). `--measure DIR` makes them, in about 8 minutes:

    python benchmarks/gpu_workloads.py [--measure DIR [PART...]]

Without it, the record is made of the files in `gpu/`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import record

from crosswind.errors import CrosswindError
from crosswind.gpu import measure_gpu
from crosswind.gpu.fit import GpuFit, fit_gpu
from crosswind.gpu.overlap import plan_overlap, recorded_steps

WORK = record.HERE / "gpu"
COPIES = ("h2d", "d2h", "both", "d2d", "d2h-sm", "loader")
BLOCKS = ("d2h-sm:1", "d2h-sm:2", "d2h-sm:4", "d2h-sm:8", "d2h-sm", "d2h-sm:32", "d2h-sm:64")
LOADERS = ("loader:1", "loader:2", "loader", "loader:8", "h2d")
PARTS: dict[str, dict[str, Any]] = {
    "matmul": {"task": "torch_work:matmul_layernorm", "traffics": COPIES, "max_seconds": 35.0, "seed": 11},
    "train": {"task": "torch_work:train_step", "traffics": COPIES, "max_seconds": 35.0, "seed": 12},
    "loaders": {"kernels": ("step", "tensor", "triad"), "traffics": LOADERS, "max_seconds": 60.0, "seed": 13},
    "blocks": {"kernels": ("tensor", "triad", "chase"), "traffics": BLOCKS, "max_seconds": 70.0, "seed": 14},
    "again": {
        "task": "torch_work:train_step",
        "traffics": ("h2d", "loader", "d2h-sm"),
        "max_seconds": 20.0,
        "seed": 15,
    },
    "cupy_matmul": {"task": "cupy_work:matmul", "traffics": ("h2d", "d2d"), "max_seconds": 20.0, "seed": 16},
    "cupy_scale": {"task": "cupy_work:scale", "traffics": ("h2d", "d2d"), "max_seconds": 20.0, "seed": 17},
}
"""What each file is measured of."""
OTHERS = ("refused", "refused_cupy", "loading")
REFUSED = {
    "refused": ("torch_work:reads_its_loss", "torch_work:elsewhere", "torch_work:none"),
    "refused_cupy": ("cupy_work:reads", "cupy_work:elsewhere"),
}
"""Functions that cannot be measured: what is said of them."""
LOADING_S = 80.0
SETTLED_STEPS = 500
PATIENCE_S = 60.0
"""Beyond a part's own time, for imports and the first calls."""


def measured(directory: Path, names: list[str]) -> None:
    """Make each part in a process of its own, and say what it took."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        began = time.monotonic()
        limit = PARTS.get(name, {}).get("max_seconds", LOADING_S) + PATIENCE_S
        command = [sys.executable, __file__, "--part", name, str(directory)]
        try:
            code: Any = subprocess.run(command, timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            code = "timed out"
        print(f"{name}: {code}, {time.monotonic() - began:.1f} s", flush=True)


def part(name: str, directory: Path) -> None:
    """Make one part: save it first, then print what follows from it."""
    sys.path.insert(0, str(WORK))
    if name in REFUSED:
        said = {one: refusal(one) for one in REFUSED[name]}
        (directory / f"{name}.json").write_text(json.dumps(said, indent=1))
        print(json.dumps(said, indent=1))
        return
    if name == "loading":
        cost_of_loading(directory)
        return
    found = measure_gpu(**PARTS[name])
    found.save(directory / f"{name}.parquet")
    print(found.header["device"]["name"], found.header["ended"], found.header.get("task"))
    for one in found.header["pairs"]:
        print({key: one[key] for key in ("kernel", "traffic", "alone_mb_per_s", "beside_mb_per_s", "cycles")})
    fit = fit_gpu(found)
    print(*fit.warnings, sep="\n")
    print("steps that took what was predicted:", agreeing(fit))


def cost_of_loading(directory: Path) -> None:
    """Measure what the loading process costs the training job, each of which runs already."""
    count = Path("/dev/shm/crosswind-steps")
    count.write_bytes(bytes(8))
    started = [
        subprocess.Popen([sys.executable, str(WORK / script), *words], cwd=WORK)
        for script, words in (("train.py", [str(count)]), ("load.py", []))
    ]
    job, loader = (one.pid for one in started)
    try:
        until = time.monotonic() + PATIENCE_S
        while int.from_bytes(count.read_bytes(), sys.byteorder) < SETTLED_STEPS and time.monotonic() < until:
            time.sleep(0.1)
        where = ["--of", f"pid:{loader}", "--job", f"pid:{job}", "--progress", f"u64:{count}"]
        command = [sys.executable, "-m", "crosswind.cli", "cost", *where, "--seconds", f"{LOADING_S:g}"]
        done = subprocess.run([*command, "-o", str(directory / "loading.json"), "--force"], check=False)
        print("cost:", done.returncode)
    finally:
        for one in started:
            one.kill()
            one.wait()
        count.unlink()


def refusal(task: str) -> str:
    """Return the sentence with which a function is refused."""
    try:
        measure_gpu(task=task, traffics=("h2d",), max_seconds=5.0)
    except CrosswindError as error:
        return f"{error} | {error.hint}"
    return "measured"


def agreeing(fit: GpuFit) -> list[int]:
    """Return how many recorded steps took what a fit that has not seen them predicts, and how many there are."""
    steps = recorded_steps(fit)
    return [sum(step.agrees for step in steps), len(steps)]


def advice(fit: GpuFit) -> list[dict[str, Any]]:
    """Return what is advised for a transfer of 200 MB by 16 blocks beside 20 ms of each kernel."""
    found = []
    for kernel in ("tensor", "triad", "chase"):
        step = plan_overlap(fit, kernel, "d2h-sm", 0.02, 200.0)
        others = {one.by: one.seconds for one in step.choices if one.by != step.traffic}
        found.append({"kernel": kernel, "best": vars(step.best), "decided": step.decided, "others": others})
    return found


def meet(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two intervals have a value in common."""
    return max(one[0], other[0]) <= min(one[1], other[1])


def main() -> None:
    """Make the parts, or the record of those that are there."""
    match sys.argv[1:]:
        case ["--part", name, directory]:
            return part(name, Path(directory))
        case ["--measure", directory, *names]:
            return measured(Path(directory), names or [*PARTS, *OTHERS])
    fits = {name: fit_gpu(WORK / f"{name}.parquet") for name in PARTS if (WORK / f"{name}.parquet").exists()}
    content: dict[str, Any] = {"fits": {name: fit.to_dict() for name, fit in fits.items()}}
    content["tasks"] = {name: fit.measurement.header.get("task") for name, fit in fits.items()}
    content["steps_agree"] = {name: agreeing(fit) for name, fit in fits.items()}
    loading = WORK / "loading.json"
    if loading.exists():
        found = json.loads(loading.read_text())
        content["loading"] = {name: found[name] for name in ("asked", "of", "job", "result")}
    if "blocks" in fits:
        content["advice"] = advice(fits["blocks"])
    if "again" in fits and "train" in fits:
        both = [(fits["train"].pair(one.kernel, one.traffic), one) for one in fits["again"].pairs]
        known = [(a, b) for a, b in both if a is not None]
        overlapping = sum(meet(a.unpaced.ci95, b.unpaced.ci95) for a, b in known)
        content["repeats"] = {"pairs": len(known), "loss_overlaps": overlapping}
    print(record.write("gpu_workloads", ["numpy", "scipy", "pyarrow"], **content))
    print({name: content[name] for name in ("steps_agree", "repeats", "advice") if name in content})
    return None


if __name__ == "__main__":
    main()
