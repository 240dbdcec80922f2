"""Processes, nodes, files, tasks and links are "it" or named: comments, messages and pages call only people "who"."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
REFUSED = re.compile(r"\b(?:who|whom|whoever|somebody|someone|nobody|anybody|everybody|ours)\b", re.IGNORECASE)
OF_PEOPLE = re.compile(r"\b(?:people|person|users?|readers?|operators?|authors?) who\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|\bNOBODY\b", re.DOTALL)
RUST = re.compile(r'//[^\n]*|r(#*)".*?"\1|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'', re.DOTALL)
PYTHON = re.compile(
    r'''#[^\n]*|"""(?:[^\\]|\\.)*?"""|\'{3}(?:[^\\]|\\.)*?\'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*\'''', re.DOTALL
)
TOML = re.compile(r'#[^\n]*|"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*"', re.DOTALL)

NOT_DONE_YET = (
    # A column of recorded studies: "ours" is what no paper gives.
    "python/crosswind/lab/papers/communication_interactions/calibration.py",
    "CHANGELOG.md",
)


def _python(text: str) -> Iterator[str]:
    strings = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in strings:
            yield token.string


def _matched(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (match.group() for match in pattern.finditer(text))


def written(name: str, text: str) -> Iterator[str]:
    """Yield what a file says to people: comments, sentences among its strings, or a page as a whole."""
    if name.endswith(".md"):
        parts = iter([text])
    elif name.endswith(".py"):
        parts = _python(text)
    else:
        parts = _matched(RUST if name.endswith(".rs") else TOML, text)
    # A string without a space is a key or a name, not a sentence.
    return (CODE.sub("", part) for part in parts if " " in part)


def refused(name: str, text: str) -> list[str]:
    """Return the refused words of a file, each with what stands around it."""
    if not REFUSED.search(text):
        return []
    found = []
    for part in (OF_PEOPLE.sub("", sentence) for sentence in written(name, text)):
        found += [part[max(0, at.start() - 40) : at.end() + 40] for at in REFUSED.finditer(part)]
    return found


def _files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\n") if name.endswith((".rs", ".py", ".md", ".toml"))]
    return [name for name in names if ROOT / name != HERE and (ROOT / name).is_file()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_only_people_are_called_who():
    names = [name for name in _files() if not name.startswith(NOT_DONE_YET)]
    assert len(names) > 500
    found = {name: words for name in names if (words := refused(name, (ROOT / name).read_text()))}
    assert not found, "\n".join(f"{name}: {words}" for name, words in found.items())


# Phrases that read as another language; WRITING.md has the better ones.
MANNERED = re.compile(
    r"\bfor want of\b|\bstands? beside\b|\b(?:is|are) no (?:file|rate|deadlock|result|field|address|platform)\b"
    r"|\bthe links know\b|\bis to be had\b|\bbe had\b|\bsuch a one\b|\bwhat it lacks\b",
    re.IGNORECASE,
)
# The papers' pages and the decisions are records.
RECORDS = ("docs/papers/", "docs/decisions/", "CHANGELOG.md")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_pages_have_no_mannered_phrases():
    pages = [name for name in _files() if name.endswith(".md") and not name.startswith(RECORDS)]
    found = {}
    for name in pages:
        text = CODE.sub("", (ROOT / name).read_text())
        if phrases := [text[max(0, at.start() - 40) : at.end() + 40] for at in MANNERED.finditer(text)]:
            found[name] = phrases
    assert len(pages) > 40
    assert not found, "\n".join(f"{name}: {words}" for name, words in found.items())


# Clauses where English has a noun, and programs that talk; WRITING.md has the better ones.
IDIOM = re.compile(
    r"\b(?:so (?:many|long|few)|as (?:many|much|long) again|told|tells|hears|heard|(?:comes|came|coming) to|goes on"
    r"|go on|went on|lets in|let in|manieth|(?:is|are|was|were) not there|and so[.;]|done without)\b",
    re.IGNORECASE,
)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_pages_are_plain():
    listed = [name for name in _files() if name.endswith(".md") and not name.startswith(RECORDS)]
    pages = [name for name in listed if name.startswith(("docs/", "README"))]
    found = []
    for name in pages:
        lines = CODE.sub("", (ROOT / name).read_text()).splitlines()
        found += [f"{name}: {line}" for line in lines if not line.startswith("    ") and IDIOM.search(line)]
    assert len(pages) > 40
    assert not found, "\n".join(found)


COMMENTED = tokenize.COMMENT
COMMENT = re.compile(r"(?:^|\s)//[/!]?\s(?P<text>.*)", re.MULTILINE)
SHORT_WORDS, MOST_SHORT = 4, 49
"""A doc comment of at most four words mostly repeats the name; those that are left have a unit, or are a schema's."""


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_comments_of_rust_are_plain():
    found, short = [], 0
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        text = path.read_text()
        comments = (CODE.sub("", comment["text"]) for comment in COMMENT.finditer(text))
        found += [f"{path.relative_to(ROOT)}: {comment}" for comment in comments if IDIOM.search(comment)]
        docs = re.findall(r"(?:^[ ]*///.*\n)+", text, re.MULTILINE)
        short += sum(len(doc.replace("///", " ").split()) <= SHORT_WORDS for doc in docs)
    assert not found, "\n".join(found)
    assert short <= MOST_SHORT


def prose_of(source: str) -> list[str]:
    """Return the lines of comments and docstrings of a Python file, without examples and words in backticks."""
    lines = source.splitlines()
    found = [
        token.string for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == COMMENTED
    ]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found += [line for line in lines[node.lineno - 1 : node.end_lineno] if not line.lstrip().startswith(">>>")]
    return [re.sub(r"`[^`]*`", "", line).strip() for line in found]


@pytest.mark.parametrize(("source", "found"), [("x = 1  # told so\n", 1), ('"""Goes on."""\n', 1), ("told = 1\n", 0)])
def test_prose_of_python_is_its_comments_and_docstrings(source, found):
    assert sum(bool(IDIOM.search(line)) for line in prose_of(source)) == found


def test_comments_of_python_are_plain():
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in sorted((ROOT / "python" / "crosswind").rglob("*.py"))
        if IDIOM.search(path.read_text())
        for line in prose_of(path.read_text())
        if IDIOM.search(line)
    ]
    assert not found, "\n".join(found)


# Words in names for which the field has better ones: the left column of the terms in WRITING.md.
TERMS = re.compile(
    "tells?|told|asked|says?|said|hears?|heard|obey|happen|happened|happenings|strangers?|callers?|seats?|bell|stock"
    "|guest|allowance|course|pulse|beat|workshop|maker|keeper|keeping|standing|sealed|door|wishes|desk|looks|quads"
    "|turns|wander|beside|speak"
)
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
MOST_TERMS = {
    "access": 30,
    "agent": 25,
    "disturb": 95,
    "experiment": 20,
    "faults": 15,
    "gpu": 10,
    "linux": 15,
    "live": 110,
    "measure": 45,
    "model": 65,
    "policy": 15,
    "program": 55,
    "py": 5,
    "python": 1_600,
    "recorded": 25,
    "schema": 60,
    "sim": 95,
}
"""Lower a number when you have renamed something; none grows."""


def terms_of(name: str, text: str) -> list[str]:
    """Return the identifiers of a Rust or Python file that hold one of the words; strings and comments do not count."""
    names = IDENTIFIER.findall((RUST if name.endswith(".rs") else PYTHON).sub(" ", text))
    return [one for one in names if any(TERMS.fullmatch(word.lower()) for word in WORD.findall(one))]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.rs", 'let told = heard_ns("told"); // said', ["told", "heard_ns"]),
        ("a.rs", "ToldBy; toldest; retold", ["ToldBy"]),
        ("a.py", "asked = f(say=1)  # told\n", ["asked", "say"]),
    ],
)
def test_terms_are_words_of_identifiers(name, text, found):
    assert terms_of(name, text) == found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_names_use_the_terms_of_the_field():
    found: dict[str, int] = {}
    for name in _files():
        place = name.split("/")[1] if name.startswith("crates/") else "python" if name.startswith("python/") else None
        if place is not None and name.endswith((".rs", ".py")):
            found[place] = found.get(place, 0) + len(terms_of(name, (ROOT / name).read_text()))
    more = {place: count for place, count in found.items() if count > MOST_TERMS.get(place, 0)}
    assert not more, f"more than {MOST_TERMS}: {more}; WRITING.md has the terms"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_no_specification_outside_the_tree_is_cited():
    cited = re.compile(r"\bSPEC [A-Z]?-?\d|\bthe SPEC\b")
    found = [name for name in _files() if cited.search((ROOT / name).read_text())]
    assert not found, f"cite the paper and its section, or docs/papers: {found}"


@pytest.mark.parametrize("name", NOT_DONE_YET)
def test_what_is_done_leaves_the_list(name):
    places = [file for file in _files() if file.startswith(name)]
    assert any(refused(file, (ROOT / file).read_text()) for file in places), f"{name} needs no exception any more"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.rs", 'let who = 1; // the node\nlet a = "nobody";', 0),
        ("a.rs", "/// Whoever asks.\nfn who() {}", 1),
        ("a.rs", 'return Err("nobody is left");', 1),
        ("a.rs", "/// The user who asks; `nobody` is a name.", 0),
        ("a.py", 'ours = {"who": 1}\n', 0),
        ("a.py", 'ours = f"{here} by nobody"  # whose\n', 1),
        ("a.toml", 'who = "nobody"  # who it is\n', 1),
        ("a.md", "Processes who wait.\n\n```\nnobody\n```\n", 1),
    ],
)
def test_comments_and_sentences_are_looked_at_and_names_are_not(name, text, words):
    assert len(refused(name, text)) == words
