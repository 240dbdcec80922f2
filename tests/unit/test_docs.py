"""The reference names every field of every file, and the guides every finding and every option that they use."""

import json
import re
from pathlib import Path

import pytest

from crosswind.host.description import describe
from crosswind.measure.sweep import KINDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = (DOCS / "reference" / "files.md").read_text()
PAGES = sorted(DOCS.rglob("*.md"))
GUIDES = [page for page in PAGES if page.parent.name in ("concepts", "guides")]


def fields(schema: object) -> set[str]:
    """Names of all properties anywhere in a JSON Schema."""
    if isinstance(schema, dict):
        own = set(schema.get("properties", {}))
        return own.union(*(fields(value) for value in schema.values()), set())
    return set().union(*(fields(item) for item in schema)) if isinstance(schema, list) else set()


def choices(schema: object) -> set[str]:
    """All words that a field may have."""
    if isinstance(schema, dict):
        own = {schema["const"]} if isinstance(schema.get("const"), str) else set()
        own |= {word for word in schema.get("enum", []) if isinstance(word, str)}
        return own.union(*(choices(value) for value in schema.values()), set())
    return set().union(*(choices(item) for item in schema)) if isinstance(schema, list) else set()


@pytest.mark.parametrize("path", sorted((DOCS / "reference" / "schemas").glob("*.json")), ids=lambda path: path.stem)
def test_the_reference_names_every_field_and_choice(path):
    schema = json.loads(path.read_text())
    assert {name for name in fields(schema) if f"`{name}`" not in REFERENCE} == set()
    assert {word for word in choices(schema) if not re.search(rf"\b{word}\b", REFERENCE)} == set()


def test_the_reference_names_every_setting_of_a_host():
    settings = {name.removeprefix("lo.") for name in describe(interfaces=["lo"])["settings"]}
    assert {name for name in settings if f"`{name}`" not in REFERENCE} == set()


def test_the_reference_names_every_kind_of_sweep():
    assert {kind for kind in KINDS if kind not in REFERENCE} == set()


def test_the_guide_explains_every_finding_of_the_doctor():
    guide = (DOCS / "guides" / "troubleshoot.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "python" / "crosswind" / "doctor").glob("*.py"))
    codes = set(re.findall(r'Finding\(\s*"([a-z-]+)"', sources)) | set(re.findall(r'code = "([a-z-]+)"', sources))
    assert len(codes) > 15
    assert {code for code in codes if f"`{code}`" not in guide} == set()


def test_the_guide_explains_every_warning():
    guide = (DOCS / "guides" / "troubleshoot.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "python" / "crosswind").rglob("*.py"))
    codes = set(re.findall(r'\bwarn(?:ing)?\(\s*"([a-z-]+)"', sources))
    rust = "".join(path.read_text() for path in (ROOT / "crates").glob("*/src/**/*.rs"))
    codes |= set(re.findall(r'Warning::new\(\s*"([a-z-]+)"', rust))
    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in guide} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)", page.read_text()):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor[1:] in [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_option_in_the_docs_is_one_of_the_command_line(page):
    sources = "".join(path.read_text() for path in (ROOT / "python" / "crosswind" / "cli").glob("*.py"))
    known = set(re.findall(r"--[a-z][a-z-]*", sources)) | {
        "--" + name.replace("_", "-") for name in re.findall(r"^    (\w+): Annotated\[", sources, re.MULTILINE)
    }
    known |= {f"--no-{name}" for name in re.findall(r"^    (\w+): Annotated\[bool", sources, re.MULTILINE)}
    # docker's, mpirun's, cargo's, Dask's, kubectl's
    foreign = {"--cpuset-cpus", "--oversubscribe", "--allow-run-as-root", "--release", "--example"}
    foreign |= {"--host", "--tls-ca-file", "--tls-cert", "--tls-key"}
    foreign |= {"--halt", "--joblog", "--results", "--timeout"}  # parallel's
    # podman's, pip's, rattler-build's
    foreign |= {
        "--network",
        "--rm",
        "--dest",
        "--find-links",
        "--no-index",
        "--interval",
        "--install-completion",
        "--recipe",
        "--channel",
    }
    foreign |= {"--scheduler-port", "--lifetime", "--lifetime-stagger", "--from-file", "--replicas", "--no-nanny"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page.read_text())) <= known | foreign


@pytest.mark.parametrize(
    "words", ["straggler", "noisy neighbour", "OS jitter", "tail", "GOAL", "PyTorch", "loader", "steal"], ids=str
)
def test_what_people_search_for_is_found(words):
    """The site's search finds whole words of pages; people do not know what Crosswind calls things."""
    pages = [page for page in PAGES if page.parent.name in ("start", "guides", "concepts")]
    assert any(re.search(rf"\b{words}\b", page.read_text()) for page in pages)
