"""The pages of drafts: the list, where one begins, and the editor; and what the editor asks while a person types."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, PageData, PageServices, Render
from edge.features.recipes.api_models import ConditionBody, public_draft
from edge.features.recipes.offers import offers_of
from edge.features.recipes.sources import desk_of, of_draft
from edge.features.recipes.workbench_requests import ConditionFault, ReadCondition
from edge.foundation.errors import Unavailable
from edge.foundation.text import labels
from edge.model.recipe import Qualifier
from edge.model.user import Role

DRAFTS: Final = "/recipe-drafts"
EDITOR: Final = "/recipe-draft"
LINKS: Final = (
    ("/recipe-try", "try_draft"),
    ("/recipe-compare", "compare_draft"),
    ("/recipe-release", "release_draft"),
)
"""The other pages of a draft: their addresses, and the keys of their texts."""
_WORDS: Final = (
    *("ends_here", "implied_transition", "in_past_jobs", "never_asked", "new_action", "new_branch", "new_step"),
    *("no_past_jobs", "place", "saved", "select_first", "selection", "simultaneous"),
    *("value_false", "value_true", "value_unknown"),
)
"""The labels that the scripts of the editor show."""


async def _expression(services: PageServices, call: ApiCall) -> ConditionFault:
    body: ConditionBody = call.body
    source = await of_draft(services, call)
    request = ReadCondition(source.text, body.condition, call.caller.language)
    return await desk_of(services).ask(request, ConditionFault)


async def _editor(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    desk = desk_of(services)
    draft = await desk.draft(query.get("draft", ""))
    try:
        offers = await offers_of(desk, draft.scope, caller.language)
    except Unavailable as error:
        # The program that draws and checks does not answer: the text is in the store.
        shown = {"draft": public_draft(draft), "text": await desk.text(draft), "subjects": []}
        problem = [part.in_language(caller.language) for part in (error.text, error.advice_text)]
        return "recipe-draft-text.html", {**shown, "problem": " ".join(filter(None, problem))}
    return "recipe-draft.html", {
        "draft": public_draft(draft),
        "offers": msgspec.to_builtins(offers),
        "links": LINKS,
        "texts": _texts(caller.language),
        "qualifiers": [qualifier.value for qualifier in Qualifier],
        "subjects": ["recipes"],
    }


def _texts(language: str) -> Mapping[str, Any]:
    label = labels(language)
    return {word: label[word] for word in _WORDS} | {
        "no_name": label["recipe.no_name"],
        "kinds": {
            "step": label["step"],
            "transition": label["transition"],
            "way": label["transition"],
            "action": label["action"],
            "branch": label["branch"],
        },
        "levels": {level: label[f"finding.{level}"] for level in ("fault", "warning", "information")},
    }


async def _drafts(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    desk = desk_of(services)
    scope, work_master = query.get("scope", ""), query.get("id", "")
    drafts = [
        draft for draft in await desk.drafts() if scope in {"", draft.scope} and work_master in {"", draft.work_master}
    ]
    return "recipe-drafts.html", {
        "drafts": [public_draft(draft) for draft in reversed(drafts)],
        "editor": EDITOR,
        "scopes": desk.settings.gateway.scopes,
        "scope": scope,
        "work_master": work_master,
        "subjects": [],
    }


EDITOR_PAGES: Final[Mapping[str, Render]] = {DRAFTS: _drafts, EDITOR: _editor}
"""The pages by their address."""
EDITOR_OPERATIONS: Final = (
    ApiOperation(
        "POST",
        "/recipe-drafts/{draft}/expression",
        "Return why a condition cannot be read with the names of a draft.",
        Role.ENGINEER,
        ConditionFault,
        _expression,
        ConditionBody,
        changes=False,
    ),
)
"""The operations of the editor."""
