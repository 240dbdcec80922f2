"""The script `crosswind`: ctrl-C while it is still imported."""

import subprocess
import sys

INTERRUPTED = """
import sys

class Interrupts:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts)
from crosswind.script import main
main()
"""


def test_ctrl_c_before_the_command_line_has_begun_is_a_line_and_a_code():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
