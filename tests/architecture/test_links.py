"""Links between the pages lead to a file and heading that exist; make docs checks them again in the site."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tests.architecture.sources import ROOT, project_files, text

_CODE = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings, as GitHub and the site spell them."""
    headings = _HEADING.findall(_FENCE.sub("", text(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links to files and headings of this repository."""
    yield from (value for value in _LINK.findall(_CODE.sub("", text(page))) if not re.match(r"[a-z]+:", value))


def fault_of(page: Path, target: str) -> str | None:
    """Return why a link leads nowhere; None when it is sound."""
    name, _, anchor = unquote(target).partition("#")
    file = (ROOT / page.parent / name).resolve() if name else ROOT / page
    if not file.is_file():
        return "there is no such file"
    if anchor and anchor not in anchors(file.relative_to(ROOT)):
        return "there is no such heading"
    return None


def test_links_lead_to_a_file_and_heading() -> None:
    pages = [path for path in project_files() if path.suffix == ".md"]
    checked = [(str(page), link, fault_of(page, link)) for page in pages for link in links(page)]
    assert [row for row in checked if row[2]] == []
    assert len(checked) > 100


def test_page_of_decisions_lists_every_decision() -> None:
    listed = set(links(Path("docs/decisions/README.md")))
    assert listed == {path.name for path in (ROOT / "docs/decisions").glob("0*.md")}
