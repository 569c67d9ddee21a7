"""The recipe that a page or an operation is about: a draft, or a revision of a Work Master."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from edge.app.page_part import ApiCall, PageServices
from edge.features.recipes.desk import Desk
from edge.features.recipes.drafts import RecipeDraft
from edge.features.recipes.revisions import RecipeRevision
from edge.features.recipes.workbench_requests import text_of
from edge.foundation.errors import Refused
from edge.foundation.text import Text

_MOST_DIGITS: Final = 9
_RELEASED: Final = "released"


class RecipeSource(Struct, frozen=True):
    """A recipe as text; one of `draft` and `revision` says where it is from."""

    scope: str
    work_master: str
    text: str
    draft: RecipeDraft | None = None
    revision: RecipeRevision | None = None

    @property
    def query(self) -> str:
        """The part of the address of a page that names it."""
        if self.draft is not None:
            return f"draft={quote(self.draft.id, safe='')}"
        number = f"&revision={self.revision.number}" if self.revision else ""
        return f"scope={quote(self.scope, safe='')}&id={quote(self.work_master, safe='')}{number}"

    @property
    def address(self) -> str:
        """The beginning of the addresses of its operations."""
        if self.draft is not None:
            return f"/api/v1/recipe-drafts/{quote(self.draft.id, safe='')}"
        number = self.revision.number if self.revision else _RELEASED
        return f"/api/v1/recipes/{quote(self.scope, safe='')}/{quote(self.work_master, safe='')}/revisions/{number}"


def desk_of(services: PageServices) -> Desk:
    """Return the desk of a gateway."""
    desk: Desk = services.ports["recipes"]
    return desk


def number_of(text: str) -> int | None:
    """Return the number of a revision or version; None for the released or current one. Raises Refused."""
    if text in {"", _RELEASED}:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise Refused(
            "invalid_query", Text.of("{text!r} is not a number.", text=text), "Leave it out for the newest one."
        )
    return int(text)


async def of_draft(services: PageServices, call: ApiCall) -> RecipeSource:
    """Return the draft of a request. Raises Refused."""
    return await _draft(desk_of(services), call.path["draft"])


async def of_revision(services: PageServices, call: ApiCall) -> RecipeSource:
    """Return the revision of a request. Raises Refused."""
    return await _revision(desk_of(services), call.path["scope"], call.path["recipe"], call.path["revision"])


async def of_page(services: PageServices, query: Mapping[str, str]) -> RecipeSource:
    """Return what a page shows: `draft`, else `scope`, `id` and `revision` of its query. Raises Refused."""
    desk = desk_of(services)
    if draft := query.get("draft", ""):
        return await _draft(desk, draft)
    return await _revision(desk, query.get("scope", ""), query.get("id", ""), query.get("revision", ""))


async def _draft(desk: Desk, draft_id: str) -> RecipeSource:
    draft = await desk.draft(draft_id)
    return RecipeSource(draft.scope, draft.work_master, await desk.text(draft), draft=draft)


async def _revision(desk: Desk, scope: str, work_master: str, number: str) -> RecipeSource:
    desk.require_scope(scope)
    revision = await desk.revision(scope, work_master, number_of(number))
    return RecipeSource(scope, work_master, text_of(revision.work_master.data), revision=revision)
