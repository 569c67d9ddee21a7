"""Copies the archive of a gateway into the PostgreSQL of the plant: stored here first, and forwarded when it answers.

How far a file was forwarded stands in the database, in the transaction of its jobs, and the id of a response is the key
of a job: interrupted anywhere, none is lost and none is there twice. Nothing is written to the disk of the gateway.
"""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
import structlog
from msgspec import Struct

from edge.features.archive.database import Archived, ArchiveFault, archived_after, file_id, reading
from edge.foundation.errors import Unavailable
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.text import Text

logger = structlog.get_logger(__name__)

_BATCH: Final = 200
_CONNECT_S: Final = 10
_STATEMENT_MS: Final = 60_000
_VERSION: Final = 1
_LOCK: Final = 0x6D64_6373
"""Gateways that begin at once make the tables one after the other."""
_SCHEMA: Final = """
CREATE SCHEMA IF NOT EXISTS microdcs;
CREATE TABLE IF NOT EXISTS microdcs.recipe (digest text PRIMARY KEY, text text NOT NULL);
CREATE TABLE IF NOT EXISTS microdcs.job (
  id text PRIMARY KEY, gateway text NOT NULL, job_order_id text NOT NULL, scope text NOT NULL,
  work_master text NOT NULL, started_at timestamptz, ended_at timestamptz NOT NULL, outcome text NOT NULL,
  verdict text NOT NULL, remark text NOT NULL, recipe text REFERENCES microdcs.recipe, facts json NOT NULL,
  documents json NOT NULL);
CREATE INDEX IF NOT EXISTS job_ended ON microdcs.job (ended_at);
CREATE TABLE IF NOT EXISTS microdcs.term (
  value text, name text, job text REFERENCES microdcs.job ON DELETE CASCADE, PRIMARY KEY (value, name, job));
CREATE INDEX IF NOT EXISTS term_job ON microdcs.term (job);
CREATE TABLE IF NOT EXISTS microdcs.forwarded (
  file text PRIMARY KEY, gateway text NOT NULL, number bigint NOT NULL, change bigint NOT NULL);
CREATE TABLE IF NOT EXISTS microdcs.version (number integer PRIMARY KEY);
"""
_PUT_JOB: Final = """
INSERT INTO microdcs.job VALUES (%s, %s, %s, %s, %s, to_timestamp(%s), to_timestamp(%s), %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET gateway = excluded.gateway, ended_at = excluded.ended_at, outcome = excluded.outcome,
  verdict = excluded.verdict, remark = excluded.remark, facts = excluded.facts, documents = excluded.documents
"""


class ForwardedTo(Struct, frozen=True):
    """How far a file was forwarded: the number of its last job, and of the last job that was replaced."""

    number: int = 0
    change: int = 0


class PlantUnavailable(Unavailable):
    """The database of the plant cannot be reached or written: the jobs wait in the archive of the gateway."""

    def __init__(self, error: psycopg.Error) -> None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = Text.of("the PostgreSQL of the plant does not take results: {reason}", reason=lines[0])
        super().__init__(reason, "Check [archive] url, the network and the server.")


def forward(file: Path, url: str, password: str, gateway: str) -> int:
    """Copy the next jobs of a file in one transaction; return how many. Raises PlantUnavailable and ArchiveFault."""
    with _connected(url, password) as plant:
        return _forward(file, plant, gateway)


def count_waiting(file: Path, url: str, password: str) -> int:
    """Return how many jobs of a file the plant does not have yet. Raises PlantUnavailable and ArchiveFault."""
    with _connected(url, password) as plant, reading(file) as connection:
        exists = plant.execute("SELECT to_regclass('microdcs.version') IS NOT NULL").fetchone()
        before = _reached(plant, file_id(connection)) if exists and exists[0] else ForwardedTo()
        (count,) = connection.execute("SELECT count(*) FROM job WHERE number > ?", (before.number,)).fetchone()
        return int(count)


@contextmanager
def _connected(url: str, password: str) -> Iterator["psycopg.Connection[Any]"]:
    login: dict[str, Any] = {"password": password} if password else {}
    limit = f"-c statement_timeout={_STATEMENT_MS}"
    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_S, options=limit, **login) as plant:
            yield plant
    except psycopg.Error as error:
        raise PlantUnavailable(error) from error


def _reached(plant: "psycopg.Connection[Any]", identity: str) -> ForwardedTo:
    row = plant.execute("SELECT number, change FROM microdcs.forwarded WHERE file = %s", (identity,)).fetchone()
    return ForwardedTo(*row) if row else ForwardedTo()


def _forward(file: Path, plant: "psycopg.Connection[Any]", gateway: str) -> int:
    with reading(file) as connection:
        identity = file_id(connection)
        _make_tables(plant)
        before = _reached(plant, identity)
        archived, number, change = archived_after(connection, before.number, before.change, _BATCH)
    if not archived:
        return 0
    _put(plant, archived, gateway)
    plant.execute(
        "INSERT INTO microdcs.forwarded VALUES (%s, %s, %s, %s) "
        "ON CONFLICT (file) DO UPDATE SET number = excluded.number, change = excluded.change",
        (identity, gateway, number, change),
    )
    plant.commit()
    return len(archived)


def _make_tables(plant: "psycopg.Connection[Any]") -> None:
    found = plant.execute("SELECT to_regclass('microdcs.version') IS NOT NULL").fetchone()
    if found and found[0]:
        return
    plant.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    plant.execute(_SCHEMA)
    plant.execute("INSERT INTO microdcs.version VALUES (%s) ON CONFLICT DO NOTHING", (_VERSION,))
    plant.commit()


def _put(plant: "psycopg.Connection[Any]", archived: Sequence[Archived], gateway: str) -> None:
    recipes = {sha256(job.recipe.encode()).hexdigest(): job.recipe for job in archived if job.recipe}
    with plant.cursor() as cursor:
        if recipes:
            cursor.executemany("INSERT INTO microdcs.recipe VALUES (%s, %s) ON CONFLICT DO NOTHING", recipes.items())
        cursor.executemany(_PUT_JOB, [_row(job, gateway) for job in archived])
        cursor.execute("DELETE FROM microdcs.term WHERE job = ANY(%s)", ([job.id for job in archived],))
        terms = [(_text(term.value), _text(term.name), job.id) for job in archived for term in job.terms]
        cursor.executemany("INSERT INTO microdcs.term VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", terms)


def _row(job: Archived, gateway: str) -> tuple[object, ...]:
    times = (None if job.started_at is None else job.started_at / 1000, job.ended_at / 1000)
    who = (job.id, gateway, *map(_text, (job.job_id, job.scope, job.work_master)))
    digest = sha256(job.recipe.encode()).hexdigest() if job.recipe else None
    documents = msgspec.json.encode(job.documents).decode()
    return (*who, *times, *map(_text, (job.outcome, job.verdict, job.remark)), digest, job.facts, documents)


def _text(value: str) -> str:
    """Return a text as PostgreSQL takes it: it has no NUL."""
    return value.replace("\0", " ")


class Forwarder:
    """Forwards the archive while it runs."""

    def __init__(self, file: Path, url: str, password: str, gateway: str, interval_s: float) -> None:
        self.fault = ""
        """Why nothing is forwarded; empty while it works."""
        self.forwarded = 0
        """Jobs that were forwarded since the start."""
        self._forward = partial(forward, file, url, password, gateway)
        self._interval_s = interval_s
        self._faults = LogThrottle(logger)
        self._file = file

    async def run(self) -> None:
        """Forward until cancelled; what the plant does not take is tried again."""
        while True:
            if await self.step():
                continue
            await asyncio.sleep(self._interval_s)

    async def step(self) -> int:
        """Forward the next jobs in a thread; return how many, 0 also after a fault."""
        if not self._file.exists():
            return 0
        # The thread cannot be stopped; it ends by its time limits.
        try:
            count = await asyncio.to_thread(self._forward)
        except PlantUnavailable as error:
            self.fault = error.message
            self._faults.warning("results not forwarded", "", reason=error.message, advice=error.advice)
            return 0
        except (ArchiveFault, sqlite3.Error) as error:
            logger.debug("archive not readable, retrying", reason=str(error))
            return 0
        self.fault = ""
        self.forwarded += count
        return count
