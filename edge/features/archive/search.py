"""Finds jobs in the archive by what identifies them, the newest first."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from edge.app.feature_ports import ArchivedRun
from edge.config import Settings
from edge.features.archive.database import documents_of, reading
from edge.features.archive.record import NOT_IDENTIFIERS, SCOPE, WORK_MASTER, Facts, Term, term_of
from edge.features.archive.settings import ArchiveSettings
from edge.features.archive.titles import NO_TITLES, Titles, titles_of
from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text, stated_in
from edge.model.instant import Instant, milliseconds, parse_instant, rfc3339
from edge.model.job_identifier import job_identifier
from edge.model.localized_text import choose_text
from edge.station.stored_job import NotRecorded, RecordedRun, StoredJob, of_documents, recorded_of_documents
from edge.store.archive_backlog import JobDocuments

MOST_FOUND: Final = 200
"""The most jobs of one answer of the HTTP API and of a call of the MES; the page shows fewer at a time."""
_MOST_OF_A_RARE_TERM: Final = 2000
"""The most jobs with one term that are looked at in the order of the term, not of their ends."""
_LAST: Final = "\U0010ffff"


class Search(Struct, frozen=True, kw_only=True):
    """What jobs are searched for. `text` is an identifier or the beginning of one, `terms` have to be met all.

    `since` is the first and `until` the last instant of their ends, in milliseconds since the epoch. `after` is the
    `next` of the page before.
    """

    text: str = ""
    terms: tuple[Term, ...] = ()
    since: int = 0
    until: int = 1 << 62
    after: str = ""


class PersonDecision(Struct, frozen=True, kw_only=True):
    """What a person decided with which a job is not OK, in the language of the caller.

    `reason` is one of the reasons of the job; `by` of a skipped action has what the person stated, too.
    """

    reason: str
    by: str


class ArchivedAnswer(Struct, frozen=True, kw_only=True):
    """What a person answered to a prompt, in the language of the caller; `answer` of a confirmation is empty."""

    prompt: str
    answer: str
    by: str


class ArchivedJob(Struct, frozen=True, kw_only=True):
    """A job of the archive in a list: `id` is that of its response, `took_ms` counts from its start to its end.

    `identifier` is what was worked on, such as a VIN: the physical asset of the job, else its parameter `vin` or that
    of a serial number. `answers` are those of people to its prompts.

    `outcome` is `completed`, `failed`, `stopped` or `aborted`; `verdict` is that of its recipe, empty without one;
    `remark` says why it is not OK. `step_ms` is how long each step was active last. `reasons` and `step_titles` are in
    the language of the caller; by `violations`, the same in English, a search finds the job. `decided` are those of
    them that people decided.
    """

    id: str
    job_order_id: str
    scope: str
    work_master: str
    started_at: Instant | None
    ended_at: Instant
    took_ms: int | None
    outcome: str
    verdict: str
    remark: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    step_ms: Mapping[str, int] = field(default_factory=dict)
    step_titles: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    decided: tuple[PersonDecision, ...] = ()
    identifier: str = ""
    answers: tuple[ArchivedAnswer, ...] = ()


class ArchivePage(Struct, frozen=True, kw_only=True):
    """Jobs of the archive, the newest first; `next` is where the next page begins, empty at the end."""

    jobs: tuple[ArchivedJob, ...]
    next: str = ""


class ArchivedDetail(Struct, frozen=True):
    """A job of the archive as it was stored."""

    line: ArchivedJob
    stored: StoredJob
    recorded: RecordedRun | NotRecorded


_COLUMNS: Final = (
    "job.number, job.id, job.job_id, job.scope, job.work_master, job.started_at, job.ended_at, job.outcome, "
    "job.verdict, job.remark, job.facts, job.recipe"
)
_Row = tuple[int, str, str, str, str, int | None, int, str, str, str, str, int | None]


def find_jobs(file: Path, search: Search, most: int, language: str = ENGLISH) -> ArchivePage:
    """Return the newest jobs that meet a search, with remarks in a language.

    Raises Refused for a position that is none, and ArchiveFault.
    """
    with reading(file) as connection:
        rows = list(_rows(connection, search, most))
        titles = _titles(connection, {row[-1] for row in rows})
    page = tuple(_line(row, titles[row[-1]], language) for row in rows[:most])
    return ArchivePage(jobs=page, next=f"{rows[most - 1][6]}-{rows[most - 1][0]}" if len(rows) > most else "")


def _rows(connection: sqlite3.Connection, search: Search, most: int) -> Iterator[_Row]:
    conditions, values = ["job.ended_at BETWEEN ? AND ?"], list[object]((search.since, search.until))
    if search.after:
        ended_at, number = _position(search.after)
        conditions.append("(job.ended_at, job.number) < (?, ?)")
        values += (ended_at, number)
    source = "job INDEXED BY job_ended"
    few, many = _by_number(connection, search.terms)
    for condition, given in (*_of_text(connection, search.text), *few):
        source = "job"  # few numbers: their rows are read, and sorted
        conditions.append(f"job.number IN (SELECT number FROM term WHERE {condition})")
        values += given
    for term in many:
        conditions.append("EXISTS (SELECT 1 FROM term WHERE value = ? AND name = ? AND term.number = job.number)")
        values += (term.value, term.name)
    where = " AND ".join(conditions)
    query = f"SELECT {_COLUMNS} FROM {source} WHERE {where} ORDER BY job.ended_at DESC, job.number DESC LIMIT ?"
    yield from connection.execute(query, (*values, most + 1))


_Condition = tuple[str, tuple[str, ...]]


def _by_number(connection: sqlite3.Connection, terms: Sequence[Term]) -> tuple[list[_Condition], list[Term]]:
    """Return the condition of the rarest term if few jobs have it, and the terms that each job is asked for."""
    condition = "value = ? AND name = ?"
    counts = {term: _count(connection, condition, (term.value, term.name)) for term in terms}
    rarest = min(counts, key=counts.__getitem__, default=None)
    if rarest is None or counts[rarest] > _MOST_OF_A_RARE_TERM:
        return [], list(terms)
    return [(condition, (rarest.value, rarest.name))], [term for term in terms if term != rarest]


def _of_text(connection: sqlite3.Connection, text: str) -> list[_Condition]:
    """Return the condition of an identifier: of those that begin so, if they are few, else of those that are it."""
    if not text.strip():
        return []
    value = term_of("", text).value
    names = ", ".join("?" for _ in NOT_IDENTIFIERS)
    prefix = f"value >= ? AND value < ? AND name NOT IN ({names})"
    given = (value, value + _LAST, *NOT_IDENTIFIERS)
    if _count(connection, prefix, given) <= _MOST_OF_A_RARE_TERM:
        return [(prefix, given)]
    return [(f"value = ? AND name NOT IN ({names})", (value, *NOT_IDENTIFIERS))]


def _count(connection: sqlite3.Connection, condition: str, given: Sequence[str]) -> int:
    query = f"SELECT count(*) FROM (SELECT 1 FROM term WHERE {condition} LIMIT ?)"
    (count,) = connection.execute(query, (*given, _MOST_OF_A_RARE_TERM + 1)).fetchone()
    return int(count)


def _position(text: str) -> tuple[int, int]:
    ended_at, _, number = text.partition("-")
    if not (ended_at.isdecimal() and number.isdecimal()):
        raise Refused(
            "invalid_query", Text.of("{before!r} is not a position.", before=text), "Leave it out for the newest jobs."
        )
    return int(ended_at), int(number)


def instant(text: str, default: int) -> int:
    """Return an instant of RFC 3339 in milliseconds since the epoch; Refused for a text that is none."""
    try:
        return milliseconds(parse_instant(text)) if text else default
    except ValueError:
        raise Refused(
            "invalid_query", Text.of("{text!r} is not an instant.", text=text), "As in 2026-11-01T00:00:00Z."
        ) from None


def _titles(connection: sqlite3.Connection, recipes: Iterable[int | None]) -> dict[int | None, Titles]:
    """Return the titles of recipes by their numbers."""
    query = "SELECT text FROM recipe WHERE number = ?"
    texts = {number: connection.execute(query, (number,)).fetchone() for number in recipes}
    return {number: titles_of(found[0]) if found else NO_TITLES for number, found in texts.items()}


def _line(row: _Row, titles: Titles, language: str = ENGLISH) -> ArchivedJob:
    _, id_, job_id, scope, work_master, started_at, ended_at, outcome, verdict, remark, text, _ = row
    facts = msgspec.json.decode(text, type=Facts)
    reasons = _reasons(facts, titles, language)
    if facts.choices:
        remark = facts.choices[0].remark(language, titles)
    elif reasons:
        remark = reasons[0]
    return ArchivedJob(
        id=id_,
        job_order_id=job_id,
        scope=scope,
        work_master=work_master,
        started_at=rfc3339(started_at),
        ended_at=rfc3339(ended_at) or "",
        took_ms=None if started_at is None else max(0, ended_at - started_at),
        outcome=outcome,
        verdict=verdict,
        remark=stated_in(facts.error, language) if facts.error else remark,
        parameters=facts.parameters,
        step_ms=facts.steps,
        step_titles={name: titles.step(name, language) for name in facts.steps},
        reasons=reasons,
        violations=facts.reasons,
        decided=tuple(PersonDecision(reason=choice.text(language, titles), by=choice.by) for choice in facts.choices),
        identifier=job_identifier(facts.assets, facts.parameters),
        answers=tuple(
            ArchivedAnswer(
                prompt=choose_text(answer.prompt, (language,)),
                answer=choose_text(answer.answer, (language,)) if answer.answer else "",
                by=answer.by,
            )
            for answer in facts.answers
        ),
    )


def _reasons(facts: Facts, titles: Titles, language: str) -> tuple[str, ...]:
    chosen = [choice.text(language, titles) for choice in facts.choices]
    named = (replace(text, values=dict(_named(text.values, titles, language))) for text in facts.texts)
    others = [text.in_language(language) for text in named] or facts.reasons[len(chosen) :]
    return (*chosen, *others)


def _named(values: Mapping[str, Any], titles: Titles, language: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        yield name, titles.action(value, language) if name == "action" else value


def load_archived(file: Path, id_: str, language: str = ENGLISH) -> ArchivedDetail:
    """Return a job by the id of its response, or the last one of that JobOrderID, with reasons in a language.

    Raises Refused and ArchiveFault.
    """
    query = f"SELECT {_COLUMNS} FROM job WHERE id = ?"
    of_order = (
        f"SELECT {_COLUMNS} FROM job WHERE number IN "
        "(SELECT number FROM term WHERE value = ? AND name = 'order') AND job_id = ? ORDER BY ended_at DESC LIMIT 1"
    )
    with reading(file) as connection:
        row = connection.execute(query, (id_,)).fetchone()
        row = row or connection.execute(of_order, (term_of("", id_).value, id_)).fetchone()
        documents = documents_of(connection, row[0]) if row else None
        titles = _titles(connection, [row[-1]])[row[-1]] if row else NO_TITLES
    if documents is None:
        raise Refused(
            "unknown_job", Text.of("the archive has no job {job_id!r}", job_id=id_), "Find it: edge results find"
        )
    return ArchivedDetail(_line(row, titles, language), of_documents(documents), recorded_of_documents(documents))


def all_jobs(file: Path, search: Search, at_once: int = 500, language: str = ENGLISH) -> Iterator[ArchivedJob]:
    """Yield every job that meets a search, page by page: few are in memory. Raises ArchiveFault."""
    page = find_jobs(file, search, at_once, language)
    yield from page.jobs
    while page.next:
        page = find_jobs(file, replace(search, after=page.next), at_once, language)
        yield from page.jobs


def newest_runs(settings: Settings, scope: str, work_master: str, most: int) -> list[ArchivedRun]:
    """Return the newest archived jobs of a Work Master that were started. Raises ArchiveFault."""
    file = settings.section(ArchiveSettings).file
    if not file.exists():
        return []
    search = Search(terms=(term_of(WORK_MASTER, work_master), term_of(SCOPE, scope)))
    with reading(file) as connection:
        rows = list(_rows(connection, search, most))
    return [
        ArchivedRun(job_id, run_id, started_at, partial(_documents, file, number))
        for number, run_id, job_id, _, _, started_at, *_ in rows[:most]
        if started_at is not None
    ]


def _documents(file: Path, number: int) -> JobDocuments | None:
    with reading(file) as connection:
        return documents_of(connection, number)
