"""The call of the MES that finds archived jobs."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, field

from edge.features.archive.record import PARAMETER, term_of
from edge.features.archive.search import MOST_FOUND, ArchivedJob, Search, find_jobs, instant
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import RESULTS_METHOD_TYPE
from edge.model.isa95 import Payload, ReturnStatus
from edge.northbound.reply import Handler, arguments_of, replying


class ResultsCall(Payload, frozen=True, kw_only=True):
    """What ended jobs are searched for; what is left out matches every job.

    `text` is an identifier or its beginning, `parameters` are those of the order, `terms` are `work_master`, `scope`,
    `equipment`, `person`, `code`, `material`, `asset`, `outcome`, `verdict`, `violation`. `since` and `until` bound the
    end. `after` is the `Next` of an answer: for the next page.

    Example: {"Text": "WVWZZZ1JZXW000215", "Terms": {"verdict": "not_ok"}, "Since": "2026-11-01T00:00:00Z"}
    """

    text: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    terms: Mapping[str, str] = field(default_factory=dict)
    since: str = ""
    until: str = ""
    after: str = ""
    most: Annotated[int, Meta(ge=1, le=MOST_FOUND)] = 50


class ResultsAnswer(Payload, frozen=True, kw_only=True):
    """Ended jobs, the newest first; `next` is set when there are more.

    Example: {"ReturnStatus": 1, "Jobs": []}
    """

    return_status: ReturnStatus
    jobs: tuple[ArchivedJob, ...]
    next: str = ""


def calls_of(file: Path) -> Mapping[str, Handler]:
    """Return the calls by their CloudEvents type."""
    return {RESULTS_METHOD_TYPE.format("Find"): replying(partial(find, file))}


async def find(file: Path, event: CloudEvent, _origin: str) -> ResultsAnswer:
    """Return a page of what is found. Raises Refused for wrong arguments, and ArchiveFault."""
    call = arguments_of(event, ResultsCall, "Send Text, Parameters or Terms.", {})
    terms = [term_of(name, value) for name, value in call.terms.items()]
    terms += [term_of(PARAMETER + name, value) for name, value in call.parameters.items()]
    search = Search(
        text=call.text,
        terms=tuple(terms),
        since=instant(call.since, 0),
        until=instant(call.until, Search().until),
        after=call.after,
    )
    page = await asyncio.to_thread(find_jobs, file, search, call.most)
    return ResultsAnswer(return_status=ReturnStatus.NO_ERROR, jobs=page.jobs, next=page.next)
