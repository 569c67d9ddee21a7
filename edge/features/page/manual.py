"""Reads the manual: the pages of the documentation as HTML, which a package of its own or the checkout has.

Names of pages are looked up among the files that the folder has; none is put together from a request.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urljoin

from markupsafe import Markup
from msgspec import Struct

import edge
from edge.foundation.errors import Refused
from edge.foundation.text import Text

ADDRESS: Final = "/help/"
"""The address below which the files of the manual are."""
CONTENTS: Final = "docs/README.html"
_CHECKOUT: Final = Path(edge.__file__).parents[1]
_IS_CHECKOUT: Final = (_CHECKOUT / "pyproject.toml").is_file()
FOLDERS: Final = (
    *((_CHECKOUT / "build" / "site",) if _IS_CHECKOUT else ()),
    Path("/usr/share/doc/microdcs-edge/html"),
)
"""Where the manual may be: `make docs` writes it in a checkout, else the package `microdcs-edge-doc` has it."""
INSTALL: Final = "make docs" if _IS_CHECKOUT else "apt install microdcs-edge-doc"
"""The command after which the manual is there."""
_INDEX: Final = "searchindex.js"
_SERVED: Final = ("_images/", "_downloads/")
_MEDIA: Final = {".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json"}
_OTHER: Final = "application/octet-stream"
_MOST_FILES: Final = 2000
_LARGEST: Final = 4 << 20
_MOST_FOUND: Final = 30
_SHORTEST_STEM: Final = 3
_FOR_PEOPLE: Final = (f"{ADDRESS}docs/how-to/", f"{ADDRESS}docs/reference/")
"""Pages that a search shows before changes and decisions."""
_ARTICLE: Final = re.compile(r'<article role="main"[^>]*>(.*)</article>', re.DOTALL)
_TITLE: Final = re.compile(r"<h1>(.*?)<", re.DOTALL)
_SIGN: Final = re.compile(r'<a class="headerlink"[^>]*>[^<]*</a>')
_REFERENCE: Final = re.compile(r'\b(href|src)="([^"]*)"')


class ManualSite(Struct, frozen=True):
    """The manual as it was built: its folder, and the time of the build in nanoseconds since the epoch."""

    folder: Path
    built: int


class ManualPage(Struct, frozen=True):
    """A page of the manual: its title, and its text as HTML with addresses of the gateway."""

    title: str
    article: Markup


class ManualFile(Struct, frozen=True):
    """A picture or a file of the manual."""

    content: bytes
    name: str
    media_type: str


class ManualHit(Struct, frozen=True):
    """A heading of the manual that a search has found, or a page, with the address and the title of the page."""

    heading: str
    title: str
    address: str


def find_site(folders: Sequence[Path]) -> ManualSite | None:
    """Return the manual of the first folder that has one; None without one."""
    for folder in folders:
        with suppress(OSError):
            return ManualSite(folder, (folder / _INDEX).stat().st_mtime_ns)
    return None


@lru_cache(maxsize=1)
def names_of(site: ManualSite) -> Mapping[str, Path]:
    """Return the files that are served, by their names below the folder; links to others are left out."""
    files: dict[str, Path] = {}
    for directory, _, names in os.walk(site.folder):
        for name in names:
            path = Path(directory, name)
            relative = path.relative_to(site.folder).as_posix()
            if not path.is_symlink() and (relative.endswith(".html") or relative.startswith(_SERVED)):
                files[relative] = path
        if len(files) > _MOST_FILES:
            break
    return files


@lru_cache(maxsize=16)
def read_page(site: ManualSite, name: str) -> ManualPage:
    """Return a page by its name below the folder. Raises Refused for one that the manual does not have."""
    text = _content(site, name).decode(errors="replace")
    found = _ARTICLE.search(text)
    if not found:
        raise unknown_page(name)
    article = _SIGN.sub("", found[1])
    title = _TITLE.search(article)
    address = ADDRESS + name
    return ManualPage(
        title=unescape(title[1]) if title else name,
        article=Markup(_REFERENCE.sub(lambda match: f'{match[1]}="{urljoin(address, match[2])}"', article)),  # noqa: S704 - files of our own package
    )


def read_file(site: ManualSite, name: str) -> ManualFile:
    """Return a picture or another file. Raises Refused for one that the manual does not have."""
    path = PurePosixPath(name)
    return ManualFile(_content(site, name), path.name, _MEDIA.get(path.suffix, _OTHER))


def search(site: ManualSite, text: str) -> list[ManualHit]:
    """Return the headings that have each word of a text, then the pages that do; changes and decisions stand last.

    Raises Refused when the index cannot be read.
    """
    index = _index(site)
    words = text.casefold().split()
    if not words:
        return []
    hits = dict.fromkeys((*_headings(index, words), *_pages(index, words)))
    # The sort is stable: headings stay before pages.
    return sorted(hits, key=lambda hit: not hit.address.startswith(_FOR_PEOPLE))[:_MOST_FOUND]


def _headings(index: Mapping[str, Any], words: Sequence[str]) -> Iterator[ManualHit]:
    for heading, places in index["alltitles"].items():
        if all(word in heading.casefold() for word in words):
            for number, anchor in places:
                yield _hit(index, number, heading, anchor)


def _pages(index: Mapping[str, Any], words: Sequence[str]) -> Iterator[ManualHit]:
    """Yield the pages that have each word, or its stem."""
    found: set[int] | None = None
    for word in words:
        pages: set[int] = set()
        for terms in (index["terms"], index["titleterms"]):
            for term, numbers in terms.items():
                if term.startswith(word) or (word.startswith(term) and len(term) > _SHORTEST_STEM):
                    pages.update([numbers] if isinstance(numbers, int) else numbers)
        found = pages if found is None else found & pages
    for number in sorted(found or ()):
        yield _hit(index, number, index["titles"][number], None)


def _hit(index: Mapping[str, Any], number: int, heading: str, anchor: str | None) -> ManualHit:
    address = f"{ADDRESS}{index['docnames'][number]}.html"
    return ManualHit(heading, index["titles"][number], f"{address}#{anchor}" if anchor else address)


def _index(site: ManualSite) -> Mapping[str, Any]:
    try:
        text = (site.folder / _INDEX).read_text(encoding="utf-8")
        index: Mapping[str, Any] = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    except (OSError, ValueError) as error:
        raise Refused("unreadable", Text.of("the manual cannot be searched: {reason}", reason=error)) from None
    return index


def _content(site: ManualSite, name: str) -> bytes:
    path = names_of(site).get(name)
    try:
        if path is None or path.stat().st_size > _LARGEST:
            raise unknown_page(name)
        return path.read_bytes()
    except OSError:
        raise unknown_page(name) from None


def unknown_page(name: str) -> Refused:
    """Return the refusal of a name that the manual does not have."""
    return Refused(
        "unknown_page",
        Text.of("the manual has no page {name!r}", name=name),
        "Search the manual, or look at its contents.",
    )
