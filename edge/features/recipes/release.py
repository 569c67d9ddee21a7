"""Releases drafts and earlier revisions of recipes: checked, with a reason, by one or two persons, in one commit."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.app.features import recipe_checks, settings_kinds
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.drafts import PendingRelease, RecipeDraft, plan_discard, plan_request
from edge.features.recipes.finding import FindingLevel
from edge.features.recipes.revisions import (
    RecipeRevision,
    ReleasedMark,
    load_released_mark,
    load_revision,
    plan_revisions,
)
from edge.features.recipes.workbench_requests import text_of
from edge.foundation.errors import Refused
from edge.foundation.text import Text, join_texts
from edge.model.isa95 import WorkMaster
from edge.model.json_value import plain_value, read_json_text
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.settings import WORK_MASTER, SettingOrigin, SettingsMethod, SettingSource, StationSettings
from edge.store import dedupe
from edge.store.commit import NOTHING, Commit, Committed, join

_MOST_FAULTS: Final = 20
_CALLS: Final = "urn:microdcs-edge:recipes"
"""The source of the marks of releases: one that is sent again is carried out once."""


class Release(Struct, frozen=True):
    """What became of a release: the revision, or the draft that awaits a second person."""

    revision: RecipeRevision | None = None
    draft: RecipeDraft | None = None


class _Intent(Struct, frozen=True):
    """A release that may be written: who wants and confirms it, and why."""

    source: SettingSource
    by: Author
    reason: str
    author: str
    confirmed_by: str = ""
    request: PendingRelease | None = None
    """What a second person confirms."""
    draft: str = ""


async def release_draft(
    desk: Desk, draft_id: str, version: int, reason: str, by: Author, source: SettingSource
) -> Release:
    """Release the current version of a draft as the next revision, or ask a second person where one is needed.

    Raises Refused for a draft with faults, one that another person has changed, and one that another release came
    before: its author has to look at that first.
    """
    if (known := await _released_before(desk, by)) is not None:
        return known
    _require_reason(reason)
    draft = await desk.seen(draft_id, version, by)
    await _require_base(desk, draft)
    await _require_sound(desk, draft.work_master, await desk.text(draft), by.language)
    if desk.bounds.second_person:
        keys = desk.store.keys
        asked = await desk.commit(
            draft, version, by, lambda now: plan_request(keys, now, desk.stamp(by, "release"), reason)
        )
        return Release(draft=asked)
    return await _write_draft(desk, draft, version, _Intent(source, by, reason, by.name, draft=draft.id))


async def confirm_release(desk: Desk, draft_id: str, version: int, by: Author, source: SettingSource) -> Release:
    """Release a draft as another person has asked. Raises Refused for the same person, and without a request."""
    if (known := await _released_before(desk, by)) is not None:
        return known
    draft = await desk.seen(draft_id, version, by)
    if (request := draft.request) is None or request.version != draft.current:
        raise _not_requested()
    if request.by == by.name:
        raise Refused(
            "same_person",
            Text.of("{person} requested this release: another person confirms it", person=by.name),
            "Let another engineer look at the draft and confirm it.",
        )
    await _require_base(desk, draft)
    await _require_sound(desk, draft.work_master, await desk.text(draft), by.language)
    intent = _Intent(source, by, request.reason, request.by, by.name, request, draft.id)
    return await _write_draft(desk, draft, version, intent)


def _not_requested() -> Refused:
    return Refused(
        "no_request",
        "the release of this version was not requested",
        "Read the draft again, and release it with a reason.",
    )


async def roll_back(
    desk: Desk, scope: str, work_master_id: str, number: int, reason: str, by: Author, source: SettingSource
) -> Release:
    """Release an earlier revision again, as a new one; running jobs stay on theirs.

    Where a second person is needed it becomes a draft that awaits the confirmation.
    """
    if (known := await _released_before(desk, by)) is not None:
        return known
    _require_reason(reason)
    desk.require_scope(scope)
    former = await desk.revision(scope, work_master_id, number)
    stated = f"back to {number}: {reason}"
    if desk.bounds.second_person:
        draft = await desk.create(scope, work_master_id, by, text_of(former.work_master.data))
        return await release_draft(desk, draft.id, draft.current, stated, Author(by.name, by.language), source)
    return await _write_master(desk, scope, former.work_master, _Intent(source, by, stated, by.name))


async def release_recipe(
    desk: Desk, scope: str, work_master_id: str, data: Any, reason: str, by: Author, source: SettingSource
) -> Release:
    """Release a recipe (decoded JSON) from a file; where a second person is needed, as a draft that awaits it."""
    _require_reason(reason)
    desk.require_scope(scope)
    text = text_of(plain_value(data))
    await _require_sound(desk, work_master_id, text, by.language)
    if desk.bounds.second_person:
        draft = await desk.create(scope, work_master_id, by, text)
        return await release_draft(desk, draft.id, draft.current, reason, by, source)
    master = await _master_of(desk, scope, work_master_id, text)
    return await _write_master(desk, scope, master, _Intent(source, by, reason, by.name))


async def _write_master(desk: Desk, scope: str, master: WorkMaster, intent: _Intent) -> Release:
    """Write the revision after the released one."""
    while True:
        if (known := await _released_before(desk, intent.by)) is not None:
            return known
        mark = await load_released_mark(desk.store, scope, master.id)
        if await _write(desk, scope, master, mark, intent, NOTHING):
            return Release(revision=await desk.revision(scope, master.id))


async def _write_draft(desk: Desk, draft: RecipeDraft, version: int, intent: _Intent) -> Release:
    """Write the revision and remove the draft in one commit."""
    while True:
        mark = await _require_base(desk, draft)
        master = await _master_of(desk, draft.scope, draft.work_master, await desk.text(draft))
        if await _write(desk, draft.scope, master, mark, intent, plan_discard(desk.store.keys, draft)):
            return Release(revision=await desk.revision(draft.scope, draft.work_master))
        if (known := await _released_before(desk, intent.by)) is not None:
            return known
        draft = await desk.seen(draft.id, version, intent.by)
        if intent.request is not None and intent.request != draft.request:
            # A change takes the request back, also where undo and redo have brought the version back.
            raise _not_requested()


async def _master_of(desk: Desk, scope: str, work_master_id: str, text: str) -> WorkMaster:
    """Return the Work Master with a recipe; its other members stay as they are."""
    stored = await desk.work_master(scope, work_master_id)
    base = stored or WorkMaster(id=work_master_id)
    return replace(base, data=plain_value(read_json_text(text.encode())), dataschema=RECIPE_DATASCHEMA)


async def _write(
    desk: Desk, scope: str, master: WorkMaster, mark: ReleasedMark, intent: _Intent, further: Commit
) -> bool:
    """Write a Work Master with its revision, unless another release came first."""
    origin = SettingOrigin(intent.source, intent.author, intent.reason, intent.confirmed_by)
    record = partial(plan_revisions, desk.settings, origin, draft=intent.draft)
    settings = StationSettings(desk.store, settings_kinds(), recipe_checks=recipe_checks(), recorders=[record])
    payload = msgspec.json.decode(msgspec.json.encode([master]))
    plan, _ = await settings.plan(scope, WORK_MASTER, SettingsMethod.PUT, payload)
    call = intent.by.call
    answer = msgspec.json.encode((scope, master.id)).decode()
    done = dedupe.mark(desk.store.keys, _CALLS, call, answer, _dedupe_ms(desk)) if call else NOTHING
    return isinstance(await desk.store.commit(join((mark.guard, plan, further, done))), Committed)


def _dedupe_ms(desk: Desk) -> int:
    return desk.settings.retention.dedupe * 1000


async def _released_before(desk: Desk, by: Author) -> Release | None:
    """Return what a request has released before: its sender has lost the answer."""
    answer = await dedupe.load_answer(desk.store, _CALLS, by.call) if by.call else None
    if answer is None:
        return None
    scope, work_master_id = dedupe.decode_answer(answer, tuple[str, str])
    return Release(revision=await desk.revision(scope, work_master_id))


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise Refused("invalid_payload", "a release needs a reason", "Say in a few words what is new.")


async def _require_base(desk: Desk, draft: RecipeDraft) -> ReleasedMark:
    """Return the released revision. Raises Refused when it is another one than that with which the draft began."""
    mark = await load_released_mark(desk.store, draft.scope, draft.work_master)
    if mark.number != draft.base:
        newest = await load_revision(desk.store, draft.scope, draft.work_master)
        raise Refused(
            "revision_changed",
            Text.of(
                "{author} has released revision {number} since the draft began with revision {base}: {reason}",
                author=(newest.author if newest else "") or (newest.source.value if newest else ""),
                number=mark.number,
                base=draft.base,
                reason=newest.reason if newest else "",
            ),
            Text.of("Compare the draft with revision {number}, and continue from there.", number=mark.number),
        )
    return mark


async def _require_sound(desk: Desk, work_master_id: str, text: str, language: str) -> None:
    """Raise Refused for a recipe with faults, and for one that a test of it does not pass."""
    result = await desk.check_text(text, language)
    faults: Sequence[str] = [problem.message for problem in result.problems]
    faults = faults or [item.message for item in result.findings if item.level == FindingLevel.FAULT]
    if faults:
        raise Refused("recipe", join_texts("; ", faults[:_MOST_FAULTS]), "Correct the draft: its check names them.")
    report = await desk.test(work_master_id, text, language)
    failed = [f"{result.id}: {', '.join(result.reasons)}" for result in report.results if not result.is_passed]
    if failed:
        reason = Text.of("the tests fail: {tests}", tests=join_texts("; ", failed[:_MOST_FAULTS]))
        raise Refused("tests_failed", reason, "Correct the draft, or the tests where they no longer fit.")
