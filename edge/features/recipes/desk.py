"""The work on drafts of recipes: begin one, change it, undo, compare, discard; the same for the page and commands."""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from edge.app.features import mirrored_sets
from edge.config import Settings
from edge.features.recipes.changes import Change
from edge.features.recipes.drafts import (
    MOST_BYTES,
    MOST_FILE_BYTES,
    Edit,
    RecipeDraft,
    load_draft,
    load_drafts,
    load_text,
    plan_base,
    plan_creation,
    plan_discard,
    plan_save,
    plan_step,
)
from edge.features.recipes.known_types import declared_types
from edge.features.recipes.past_decisions import (
    ConditionValue,
    ConditionValues,
    DraftReplay,
    OfferedNames,
    PastNames,
    ReplayedJob,
    merged_names,
    replay_of,
)
from edge.features.recipes.past_jobs import MOST_REPLAYED, MOST_SHOWN, PastJob, PastJobs
from edge.features.recipes.recipe_tests import load_tests
from edge.features.recipes.revisions import RecipeRevision, load_released_mark, load_revision
from edge.features.recipes.settings import RecipesSettings
from edge.features.recipes.workbench_requests import (
    MEMBER_CHANGED,
    CheckText,
    CompareTexts,
    DraftCheck,
    DraftView,
    EditText,
    EvaluateCondition,
    NameJob,
    OfferNames,
    RecipeComparison,
    RecipeTestReport,
    ReplayJob,
    Request,
    RunTests,
    ViewText,
    is_xml,
    text_of,
)
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock, now_ms
from edge.foundation.text import ENGLISH, Text, join_texts
from edge.model.acceptance import validate_id
from edge.model.instant import rfc3339
from edge.model.isa95 import WorkMaster
from edge.model.recipe import is_recipe_schema
from edge.store.client import Store
from edge.store.commit import Commit, Committed
from edge.store.resources import load_allowed, load_work_masters

_T = TypeVar("_T", bound=Struct)
_EMPTY: Final = {"steps": [{"name": "Start", "initial": True}]}
"""The recipe of a draft that begins with nothing."""
_MOST_WORDS: Final = 20
_MOST_DIGITS: Final = 16
_NAMES_S: Final = 60.0
"""How long the values of the same jobs are used again: a job may still run."""
_PORTION_S: Final = 2.0
"""How long a portion of a replay takes, apart from its last job."""


class Ask(Protocol):
    """Answers a request of the workbench, here or in another process. Raises Refused, and Unavailable of a process."""

    async def __call__(self, request: Request, answer: type[_T], /) -> _T:
        """Return the answer, which is of this type."""
        ...


class Author(Struct, frozen=True):
    """A person who works on drafts; `call` is the id of the request: one that is repeated is carried out once."""

    name: str
    language: str
    call: str = ""


class Desk:
    """The drafts of a store.

    desk = Desk(store, settings, ask)
    draft = await desk.create("station-1", "WM-AXLE-FIT-001", Author("anna", "en"))
    draft, seen = await desk.edit(draft.id, draft.current, InsertAfter("Tighten", "Verify"), Author("anna", "en"))
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        ask: Ask,
        clock: Clock = now_ms,
        findings: Callable[[str], Sequence[Text]] = lambda _: (),
    ) -> None:
        """Create the desk; `findings` returns what is found in a stored recipe, by its hash."""
        self.findings = findings
        self.store = store
        self.settings = settings
        self.ask = ask
        self.clock = clock
        self.bounds = settings.section(RecipesSettings)
        self._past = PastJobs(store, settings)
        self._names: tuple[float, tuple[str, ...], PastNames] = (0.0, (), PastNames())
        """The values of the jobs that were asked for last, until when, and the runs of these jobs."""

    async def create(
        self, scope: str, work_master_id: str, by: Author, text: str | None = None, number: int | None = None
    ) -> RecipeDraft:
        """Begin a draft of a Work Master: with a text, else with a revision, by default the released one.

        A Work Master that is not stored begins with one step. Raises Refused for an unknown scope or revision.
        """
        self.require_scope(scope)
        if faults := list(validate_id(Text.of("the Work Master's ID"), work_master_id)):
            raise Refused("invalid_payload", join_texts("; ", faults), "Name the Work Master of the draft.")
        draft_id = hashlib.sha256(by.call.encode()).hexdigest()[:12] if by.call else secrets.token_hex(6)
        if (known := await load_draft(self.store, draft_id)) is not None:
            return known
        mark = await load_released_mark(self.store, scope, work_master_id)
        begin = text if text is not None else await self._begin(scope, work_master_id, number)
        _require_length(begin)
        begin = (await self.ask(ViewText(begin), DraftView)).text
        _require_length(begin)
        target = (scope, work_master_id, mark.number)
        draft, commit = plan_creation(
            self.store.keys, draft_id, target, begin, self.stamp(by, "create"), self.bounds.drafts
        )
        if not isinstance(await self.store.commit(commit), Committed):
            raise Refused(
                "too_many_drafts",
                Text.of("there are {drafts} drafts already", drafts=self.bounds.drafts),
                "Release or discard some of them.",
            )
        return draft

    async def _begin(self, scope: str, work_master_id: str, number: int | None) -> str:
        if number is not None:
            return text_of((await self.revision(scope, work_master_id, number)).work_master.data)
        master = await self.work_master(scope, work_master_id)
        return text_of(_EMPTY if master is None else master.data)

    def require_scope(self, scope: str) -> None:
        """Raise Refused for a scope that this gateway does not serve."""
        if scope not in self.settings.gateway.scopes:
            raise Refused(
                "unknown_scope", Text.of("this gateway has no scope {scope!r}.", scope=scope), "Look at the status."
            )

    async def work_master(self, scope: str, work_master_id: str) -> WorkMaster | None:
        """Return a stored Work Master that has a recipe."""
        if work_master_id not in (await load_allowed(self.store, scope)).work_masters:
            return None
        stored = next(iter(await load_work_masters(self.store, scope, [work_master_id])), None)
        return stored if stored is not None and is_recipe_schema(stored.dataschema) else None

    async def revision(self, scope: str, work_master_id: str, number: int | None = None) -> RecipeRevision:
        """Return a revision, by default the released one. Raises Refused when it is not kept."""
        found = await load_revision(self.store, scope, work_master_id, number)
        if found is None:
            raise Refused(
                "unknown_revision",
                Text.of("there is no such revision of {work_master!r}", work_master=work_master_id),
                Text.of("List them: edge recipes history {work_master}", work_master=work_master_id),
            )
        return found

    async def drafts(self) -> Sequence[RecipeDraft]:
        """Return all drafts of the scopes of this gateway, the oldest first."""
        scopes = self.settings.gateway.scopes
        return [draft for draft in await load_drafts(self.store) if draft.scope in scopes]

    async def draft(self, draft_id: str) -> RecipeDraft:
        """Return a draft. Raises Refused when there is none."""
        found = await load_draft(self.store, draft_id)
        if found is None or found.scope not in self.settings.gateway.scopes:
            raise Refused(
                "unknown_draft",
                Text.of("there is no draft {draft!r}", draft=draft_id),
                "It was released or discarded: look at the list of drafts.",
            )
        return found

    async def text(self, draft: RecipeDraft, version: int | None = None) -> str:
        """Return the text of a draft, by default of the current version. Raises Refused when it is gone."""
        text = await load_text(self.store, draft.id, draft.current if version is None else version)
        if text is None:
            raise Refused(
                "unknown_version",
                Text.of("version {version} of the draft is not kept", version=version or draft.current),
                "Read the draft again.",
            )
        return text

    async def read(self, text: str, language: str, pou: str = "") -> DraftView:
        """Return a text that a draft may begin with; of a file of PLCopen XML the chart that `pou` names."""
        _require_length(text)
        return await self.ask(ViewText(text, pou, language), DraftView)

    async def view(self, draft: RecipeDraft, language: str = ENGLISH) -> DraftView:
        """Return a draft with its faults and its chart."""
        return await self.ask(ViewText(await self.text(draft), language=language), DraftView)

    async def check(self, draft: RecipeDraft, language: str) -> DraftCheck:
        """Return what a check finds in a draft."""
        return await self.check_text(await self.text(draft), language)

    async def check_text(self, text: str, language: str) -> DraftCheck:
        """Return what a check finds in a text, and which commands the equipment of the station does not take."""
        return await self.ask(CheckText(text, language, declared_types(self.settings)), DraftCheck)

    async def test(self, work_master_id: str, text: str, language: str) -> RecipeTestReport:
        """Return the results of the tests of a Work Master with a text. Raises Refused when it is not JSON."""
        tests = tuple(await load_tests(self.store, work_master_id))
        return await self.ask(RunTests(text, tests, language), RecipeTestReport)

    async def replay(
        self, scope: str, work_master_id: str, text: str, language: str, after: str = "", within_s: float = _PORTION_S
    ) -> DraftReplay:
        """Return what the newest jobs of a Work Master would have done with a text, those after the `next` of before.

        It returns the jobs that it has replayed after some seconds. Raises Refused for a text that cannot run.
        """
        done, place = _place_of(after) if after else (0, None)
        listed = await self._past.newest(scope, work_master_id, max(0, MOST_REPLAYED - done), place)
        until, jobs = time.monotonic() + within_s, list[ReplayedJob]()
        for job in listed:
            if (documents := await job.load()) is None:
                jobs.append(ReplayedJob(job_order_id=job.job_id, reason="the job is gone"))
            else:
                jobs.append(await self.ask(ReplayJob(text, job.job_id, documents, language), ReplayedJob))
            if time.monotonic() >= until:
                break
        following = _next_of(done + len(jobs), listed[len(jobs) - 1]) if len(jobs) < len(listed) else None
        return replay_of(jobs, done + len(listed), following)

    async def condition(self, draft: RecipeDraft, condition: str, step: str) -> ConditionValues:
        """Return the values that a condition had in the newest jobs of the Work Master of a draft.

        Raises Refused for a condition that cannot be read in any of the recipes that the jobs had.
        """
        values, refusals = list[ConditionValue](), list[Refused]()
        for job in await self._past.newest(draft.scope, draft.work_master, MOST_SHOWN):
            if (documents := await job.load()) is None:
                continue
            try:
                request = EvaluateCondition(condition, step, job.job_id, documents)
                values += (await self.ask(request, ConditionValues)).values
            except Refused as refused:
                refusals.append(refused)
        if refusals and not values:
            raise refusals[0]
        return ConditionValues(values=tuple(values))

    async def names(self, draft: RecipeDraft) -> OfferedNames:
        """Return the names that conditions of a draft may have; of its steps and actions while it can be read."""
        master = await self.work_master(draft.scope, draft.work_master)
        parameters = tuple(parameter.id for parameter in (master.parameters or () if master else ()))
        past = await self._past_names(draft.scope, draft.work_master)
        request = OfferNames(await self.text(draft), past, parameters, mirrored_sets(self.settings))
        return await self.ask(request, OfferedNames)

    async def _past_names(self, scope: str, work_master: str) -> PastNames:
        """Return the values of the newest jobs. They are read once a minute: an editor asks after each change."""
        jobs = await self._past.newest(scope, work_master, MOST_SHOWN)
        about = (scope, *(job.run_id for job in jobs))
        until, known, names = self._names
        if about == known and time.monotonic() < until:
            return names
        found = [
            await self.ask(NameJob(replace(documents, decisions=())), PastNames)
            for job in jobs
            if (documents := await job.load())
        ]
        names = merged_names(found)
        self._names = (time.monotonic() + _NAMES_S, about, names)
        return names

    async def compare(self, old: str, new: str, language: str) -> RecipeComparison:
        """Return what differs between two texts. Raises Refused when one cannot be read."""
        return await self.ask(CompareTexts(old, new, language), RecipeComparison)

    async def edit(
        self, draft_id: str, version: int, change: Change, by: Author, seen: Change | None = None
    ) -> tuple[RecipeDraft, DraftView]:
        """Apply a change to a version of a draft. Raises Refused when it is not possible or not the current one.

        `seen` is the change that would leave the element as its author saw it: what another person has set otherwise
        since then is refused, too.
        """
        draft = await self.seen(draft_id, version, by)
        if _is_repeated(draft, by):
            return draft, await self.view(draft, by.language)
        try:
            view = await self.ask(EditText(await self.text(draft), change, seen, by.language), DraftView)
        except Refused as refused:
            if refused.kind != MEMBER_CHANGED:
                raise
            raise _overwriting(draft, refused) from None
        kind = str(change.__struct_config__.tag)
        return await self._save(draft, version, view.text, by, kind), view

    async def write(self, draft_id: str, version: int, text: str, by: Author) -> tuple[RecipeDraft, DraftView]:
        """Replace the text of a draft; it may have faults. Raises Refused when the version is not the current one."""
        _require_length(text)
        draft = await self.seen(draft_id, version, by)
        if _is_repeated(draft, by):
            return draft, await self.view(draft, by.language)
        view = await self.ask(ViewText(text, language=by.language), DraftView)
        return await self._save(draft, version, view.text, by, "text"), view

    async def _save(self, draft: RecipeDraft, version: int, text: str, by: Author, change: str) -> RecipeDraft:
        most = self.bounds.draft_versions
        return await self.commit(
            draft, version, by, lambda now: plan_save(self.store.keys, now, text, self.stamp(by, change), most)
        )

    async def step(self, draft_id: str, version: int, by: Author, *, back: bool) -> tuple[RecipeDraft, DraftView]:
        """Undo the last change of a draft, or redo the one that was undone. Raises Refused where there is none."""
        draft = await self.seen(draft_id, version, by)
        if not _is_repeated(draft, by):
            draft = await self.commit(draft, version, by, lambda now: self._step(now, by, back=back))
        return draft, await self.view(draft, by.language)

    def _step(self, draft: RecipeDraft, by: Author, *, back: bool) -> tuple[RecipeDraft, Commit]:
        to = draft.place + (-1 if back else 1)
        if not 0 <= to < len(draft.versions):
            reason = Text.of("there is nothing to undo") if back else Text.of("there is nothing to redo")
            raise Refused("impossible_edit", reason, "The draft stays as it is.")
        return plan_step(self.store.keys, draft, self.stamp(by, "undo" if back else "redo"), to)

    async def rebase(self, draft_id: str, version: int, number: int, by: Author) -> RecipeDraft:
        """Set the revision that a draft was compared with. Raises Refused when it is not the released one."""
        draft = await self.seen(draft_id, version, by)
        mark = await load_released_mark(self.store, draft.scope, draft.work_master)
        if mark.number != number:
            raise Refused(
                "revision_changed",
                Text.of("revision {number} is released", number=mark.number),
                "Compare the draft with it.",
            )
        if draft.base == number:
            return draft
        keys = self.store.keys
        return await self.commit(draft, version, by, lambda now: plan_base(keys, now, self.stamp(by, "rebase"), number))

    async def discard(self, draft_id: str, version: int, by: Author) -> RecipeDraft:
        """Remove a draft. Raises Refused when the version is not the current one."""
        draft = await self.seen(draft_id, version, by)
        return await self.commit(draft, version, by, lambda now: (now, plan_discard(self.store.keys, now)))

    async def seen(self, draft_id: str, version: int, by: Author) -> RecipeDraft:
        """Return a draft whose author has seen its current version. Raises Refused with the difference otherwise."""
        draft = await self.draft(draft_id)
        if draft.current != version and not _is_repeated(draft, by):
            raise await self._conflict(draft, version, by)
        return draft

    async def commit(
        self, draft: RecipeDraft, version: int, by: Author, plan: Callable[[RecipeDraft], tuple[RecipeDraft, Commit]]
    ) -> RecipeDraft:
        """Write a change of a draft; when another one came first, of the draft afterwards, or refuse it."""
        while True:
            changed, commit = plan(draft)
            if isinstance(await self.store.commit(commit), Committed):
                return changed
            draft = await self.seen(draft.id, version, by)

    async def _conflict(self, draft: RecipeDraft, version: int, by: Author) -> Refused:
        words: Sequence[str | Text] = ()
        before = await load_text(self.store, draft.id, version)
        if before is not None:
            try:
                words = (await self.compare(before, await self.text(draft), by.language)).words
            except Refused:
                words = (Text.of("the text"),)
        named = [*words[:_MOST_WORDS], *(["…"] if len(words) > _MOST_WORDS else [])]
        return Refused(
            "draft_changed",
            Text.of(
                "{person} has changed the draft at {at}, it is at version {version} now: {differences}",
                person=draft.changed_by or Text.of("a person"),
                at=rfc3339(draft.changed_at),
                version=draft.current,
                differences=join_texts("; ", named) if named else Text.of("nothing differs"),
            ),
            "Read the draft again and repeat the change, or save your text as a draft of its own.",
        )

    def stamp(self, by: Author, change: str) -> Edit:
        """Return who changes a draft now."""
        return Edit(author=by.name, at=self.clock(), change=change, call=by.call)


def _overwriting(draft: RecipeDraft, refused: Refused) -> Refused:
    reason = Text.of(
        "{person} has changed this meanwhile: {differences}",
        person=draft.changed_by or Text.of("a person"),
        differences=refused.text,
    )
    return Refused("draft_changed", reason, "Read the draft again and repeat the change.")


def _is_repeated(draft: RecipeDraft, by: Author) -> bool:
    """Return whether the last change of a draft was made by this request: its sender has lost the answer."""
    return bool(by.call) and draft.last_call == by.call


def _next_of(done: int, job: PastJob) -> str:
    """Return where a replay continues: the number of its jobs so far, and the place of the last one."""
    return f"{done}.{job.started_at}.{job.run_id}"


def _place_of(text: str) -> tuple[int, tuple[int, str]]:
    done, _, place = text.partition(".")
    started_at, _, run_id = place.partition(".")
    if not (_is_number(done) and _is_number(started_at)):
        raise Refused("invalid_query", Text.of("{text!r} is not a place in a replay.", text=text), "Begin without it.")
    return int(done), (-int(started_at), run_id)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def _require_length(text: str) -> None:
    most = MOST_FILE_BYTES if is_xml(text) else MOST_BYTES
    if len(text.encode()) > most:
        raise Refused(
            "too_long",
            Text.of("the text has more than {bytes} bytes", bytes=most),
            "Divide the recipe, or shorten its parameters.",
        )
