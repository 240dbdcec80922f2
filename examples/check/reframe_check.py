"""A ReFrame test: is each node as fast as its baseline? `reframe -c examples/check/reframe_check.py -r`.

CROSSWIND_BASELINE names the baseline (default: good.json where ReFrame is called), CROSSWIND the command.
"""

import os
from pathlib import Path
from typing import ClassVar

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_after, sanity_function


@rfm.simple_test
class CrosswindCheck(rfm.RunOnlyRegressionTest):
    """Passes when healthy, fails when sick or unknown, with the sentence of the check as the reason."""

    valid_systems: ClassVar = ["*"]
    valid_prog_environs: ClassVar = ["*"]
    time_limit = "2m"
    executable = os.environ.get("CROSSWIND", "crosswind")
    baseline = str(Path(os.environ.get("CROSSWIND_BASELINE", "good.json")).resolve())

    @run_after("init")
    def set_options(self):
        """Ask for the JSON document, which has the losses."""
        self.executable_opts = ["check", "--baseline", self.baseline, "--format", "json"]

    @sanity_function
    def is_healthy(self):
        """Healthy by the document, whatever the exit code."""
        outcome = sn.extractsingle(r'"outcome": "(healthy|sick|unknown)",\s+"sentence"', self.stdout, 1)
        said = sn.extractsingle(r'"sentence": "(.*)"', self.stdout, 1)
        return sn.assert_eq(outcome, "healthy", msg=said)

    @performance_function("%")
    def worst_loss(self):
        """Return the largest loss of a measure against its baseline."""
        losses = sn.extractall(r'"loss": (-?[\d.e-]+)', self.stdout, 1, float)
        return 100 * sn.max(losses)
