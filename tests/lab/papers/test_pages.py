"""The pages of the papers: one row for each claim, whose verdict and count of parts are those of the record."""

import json
import re
from pathlib import Path

import disturbed
import forks
import interacting
import pytest

from crosswind.lab.papers.grading import FAILS, HOLDS, OPEN, WRONG
from crosswind.lab.papers.interference_aware_scheduling import fork_claims, model_claims
from crosswind.lab.papers.interference_in_java.study import claims as of_java
from crosswind.lab.papers.scheduling_and_communication.calibration import FULL

ROOT = Path(__file__).parents[3]
PAGES = {
    "scheduling": "scheduling-and-communication",
    "interactions": "communication-interactions",
    "overlap": "quadrics-overlap",
    "fork": "interference-aware-scheduling-runs",
    "java": "interference-in-java",
}
WORDS = {HOLDS: "holds", FAILS: "does not hold", OPEN: "open", WRONG: "paper wrong"}
TODAY = {
    "scheduling": lambda: disturbed.studied(FULL).claims,
    "interactions": lambda: interacting.studied().claims,
    "fork": lambda: [*fork_claims.claims(forks.as_claimed()), *model_claims.claims(forks.as_claimed())],
    "java": of_java,
}


def recorded(study):
    return json.loads((ROOT / f"benchmarks/records/{study}_study.json").read_text())


def rows(page):
    """Return the verdict of each row that is about a claim, by the claim's id."""
    text = (ROOT / f"docs/papers/{page}.md").read_text().split("## Item by item")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    found = {}
    for item, *_, verdict in cells:
        if claim := re.match(r"([KDFN]-\d+): ", item):
            assert claim.group(1) not in found, f"{page} has two rows of {claim.group(1)}"
            found[claim.group(1)] = verdict
    return found


@pytest.mark.parametrize("study", PAGES)
def test_a_page_has_each_claim_once_with_the_verdict_of_the_record(study):
    claims = recorded(study)["claims"]
    wanted = {}
    for claim in claims:
        count = sum(check["verdict"] == HOLDS for check in claim["checks"])
        wanted[claim["id"]] = f"{WORDS[claim['verdict']]} ({count} of {len(claim['checks'])} parts hold)"
    found = rows(PAGES[study])
    assert {claim: found.get(claim, "")[: len(start)] for claim, start in wanted.items()} == wanted
    assert set(found) == set(wanted)


@pytest.mark.parametrize("study", PAGES)
def test_a_record_is_of_a_clean_tree(study):
    assert recorded(study)["uncommitted_changes"] is False
