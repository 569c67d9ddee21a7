"""The pages of *Help*: the contents of the manual, a search in it, its pages; without the manual how to get it.

Files are read in a thread: the disk holds up no job.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from edge.access.web_audit import WebCaller
from edge.app.page_part import PageData
from edge.features.page.manual import (
    CONTENTS,
    INSTALL,
    ManualFile,
    ManualHit,
    ManualPage,
    ManualSite,
    find_site,
    read_file,
    read_page,
    search,
    unknown_page,
)
from edge.features.page.services import WebServices

_LONGEST_SEARCH: Final = 200
_T = TypeVar("_T")


async def help_page(services: WebServices, _: WebCaller, query: Mapping[str, str]) -> PageData:
    """Return the contents of the manual, or what a search finds in it."""
    text = query.get("text", "").strip()[:_LONGEST_SEARCH]

    def read(site: ManualSite | None) -> PageData:
        if site is None:
            return _data()
        return _data(text=text, hits=search(site, text)) if text else _data(page=read_page(site, CONTENTS))

    return await _reading(services, read)


async def manual_page(name: str, services: WebServices, _caller: WebCaller, _query: Mapping[str, str]) -> PageData:
    """Return a page of the manual by its name. Raises Refused for one that it does not have."""
    return await _reading(services, lambda site: _data(page=read_page(site, name)) if site else _data())


async def manual_file(services: WebServices, name: str) -> ManualFile:
    """Return a picture or a file of the manual. Raises Refused for one that it does not have."""

    def read(site: ManualSite | None) -> ManualFile:
        if site is None:
            raise unknown_page(name)
        return read_file(site, name)

    return await _reading(services, read)


async def _reading(services: WebServices, read: Callable[[ManualSite | None], _T]) -> _T:
    return await asyncio.to_thread(lambda: read(find_site(services.manual)))


def _data(page: ManualPage | None = None, text: str = "", hits: list[ManualHit] | None = None) -> PageData:
    return "help.html", {"page": page, "text": text, "hits": hits, "command": INSTALL, "subjects": []}
