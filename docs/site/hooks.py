"""What mkdocs is told while it builds the site.

The pages are those of the repository, as a forge shows them. Two things differ on a site: what lies outside of `docs/`
is copied beside the pages when one links there, and the reference is written from the code.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from commands import commands_page
from functions import functions_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Lets a page at file:// search in a worker; the offline plugin would fetch it from another host. MIT license, 1.0.4.
SHIM = "site/iframe-worker/index.js"
# Where copies of files from outside of docs/ go on the site.
COPIES = "source"
_LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def _outside(page: Path, target: str) -> str | None:
    """Return the path in the repository that a link of a page leads to, if it leads out of `docs/`."""
    path = (page.parent / target).resolve()
    if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT):
        return None
    return path.relative_to(ROOT).as_posix()


def _copied(name: str) -> str:
    """Return where the copy of a file goes: what no browser shows is shown as text."""
    shown = (".md", ".html", ".png", ".json", ".txt", ".yaml")
    return f"{COPIES}/{name}" if name.endswith(shown) else f"{COPIES}/{name}.txt"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages made from the code, and every file outside of `docs/` that a page links to."""
    for name, text in (("commands", commands_page()), ("python", functions_page())):
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    files.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=str(DOCS / SHIM)))
    waiting = [DOCS / file.src_uri for file in files.documentation_pages() if (DOCS / file.src_uri).is_file()]
    waiting += [ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md")]
    seen: set[str] = set()
    for page in waiting:
        # Of pages outside, links lead on to their neighbours, and to sources that only the repository has.
        if page.parent == ROOT and (name := page.name) not in seen:
            seen.add(name)
            files.append(File.generated(config, _copied(name), abs_src_path=str(page)))
    for page in [page for page in waiting if page.is_relative_to(DOCS)]:
        for _, target, _ in _LINK.findall(page.read_text(encoding="utf-8")):
            name = _outside(page, target)
            if name and name not in seen and (ROOT / name).is_file() and not name.endswith(".md"):
                seen.add(name)
                files.append(File.generated(config, _copied(name), abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links that leave `docs/` into links to the copies, or into plain words where there is none."""
    source = Path(page.file.abs_src_path) if page.file.abs_src_path else DOCS / page.file.src_uri
    here = posixpath.dirname(page.file.src_uri)

    def turned(match: re.Match[str]) -> str:
        before, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        path = (source.parent / target).resolve()
        if source.is_relative_to(DOCS) and path.is_relative_to(DOCS):
            return match.group()
        if path.is_relative_to(DOCS):
            inner = path.relative_to(DOCS).as_posix()
        else:
            inner = _copied(path.relative_to(ROOT).as_posix()) if path.is_relative_to(ROOT) else ""
        if files.get_file_from_path(inner) is None:
            return f"{before}{posixpath.relpath('index.md', here)}#not-on-this-site"
        return f"{before}{posixpath.relpath(inner, here)}{anchor}"

    text = _LINK.sub(turned, markdown)
    text = re.sub(r"\[([^\]]*)\]\([^)]*#not-on-this-site\)", r"\1", text)
    # A forge begins a list right below a paragraph; Python's Markdown wants a blank line.
    return re.sub(r"(?m)^((?![-*] |\d+\. |#|\s|\||$).*)\n(?=(?:[-*]|1\.) )", r"\1\n\n", text)
