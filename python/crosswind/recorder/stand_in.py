"""Stand in for a launcher that a script calls: `python -m crosswind.recorder.stand_in LAUNCHER ARGUMENTS`.

`crosswind record -- ./script` puts a directory in front of PATH that has `mpirun` and its like; each comes here. The
ranks get the recorder; the script and the launcher itself do not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from crosswind.errors import CrosswindError
from crosswind.recorder import build, launcher

PARTS = "CROSSWIND_TRACE_PARTS"
MPICC = "CROSSWIND_TRACE_MPICC"


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def main(words: list[str]) -> int:
    """Run the launcher in this process's place; return only when that fails."""
    parts = os.environ.get(PARTS)
    try:
        found = launcher.find(words[0])
        command = words
        if parts and Path(parts).is_dir():
            shim = build.built(build.mpicc_for(found, os.environ.get(MPICC)), found, _tell)
            command = found.command(launcher.variables(shim, Path(parts)), words[1:])
        os.execv(found.path, command)
    except CrosswindError as error:
        print(f"crosswind record: {error}" + (f"\n  hint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
