"""The registry of sections: what a new one must be named in, and what is said of files that none shows."""

import re
import shutil
from pathlib import Path

import pytest

from crosswind.errors import DescriptionError
from crosswind.files.kinds import WORDS
from crosswind.report import report
from crosswind.report.sections.order import KINDS

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "python" / "crosswind" / "report"
TEMPLATES = REPORT / "page" / "templates"
OF_THE_PAGE = {"page.html.j2", "parts.html.j2"}


def test_every_template_belongs_to_a_kind_of_section():
    assert {path.name for path in TEMPLATES.glob("*.j2")} - OF_THE_PAGE == {kind.template for kind in KINDS}
    assert len({kind.template for kind in KINDS}) == len(KINDS)


def names_of(kind) -> set[str]:
    """The words by which files can name a kind of section: its template, its constant, what makes it."""
    (module,) = [path for path in (REPORT / "sections").glob("*.py") if f'"{kind.template}"' in path.read_text()]
    text = module.read_text()
    constants = re.findall(r"^([A-Z]+) = Kind\(", text, re.MULTILINE)
    own = next(c for c in constants if f'"{kind.template}"' in text.split(f"{c} = Kind(")[1].split("\n)")[0])
    return {kind.template, own}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.noun)
def test_a_section_is_named_in_its_module_its_template_and_the_list(kind):
    names = names_of(kind)
    sources = [*REPORT.rglob("*.py"), *TEMPLATES.glob("*.j2"), *TEMPLATES.glob("*.toml")]
    naming = {path for path in sources if any(re.search(rf"\b{re.escape(n)}\b", path.read_text()) for n in names)}
    naming.add(TEMPLATES / kind.template)
    # What another section shows beside its own items may name it, too: injections beside simulated runs.
    naming -= {REPORT / "sections" / "injection.py"} if "PROGRAMS" in names else set()
    assert len(naming) <= 3, naming


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("barriers_under_daemons.toml", "experiment"),
        ("daemons_of_table_1.toml", "disturbance"),
        ("links_of_two_sites.toml", "links"),
        ("hosts.toml", "hosts"),
    ],
)
def test_a_file_that_no_section_shows_is_named(tmp_path, file, kind):
    copied = shutil.copy(ROOT / "examples" / file, tmp_path / file)
    with pytest.raises(DescriptionError, match="which a report does not show") as refused:
        report(copied, tmp_path / "report.html")
    assert WORDS[kind] in str(refused.value)
    assert not (tmp_path / "report.html").exists()


def test_a_file_is_recognised_by_what_it_holds_whatever_its_name(tmp_path):
    copied = shutil.copy(ROOT / "examples" / "fork_of_table_4.toml", tmp_path / "tree.txt")
    assert "fork of table 4" in report(copied, tmp_path / "report.html").read_text()
