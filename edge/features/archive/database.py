"""The file of the archive: SQLite with a write-ahead log, written in one transaction a batch, trimmed in slices.

Its pages are small: a job touches a few places of the indexes, and each touched page is written twice.
"""

import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct

from edge.features.archive.record import JobRecord, Term, with_recipe
from edge.foundation.errors import LocalFault
from edge.foundation.files import make_directory
from edge.foundation.text import Text
from edge.store.archive_backlog import JobDocuments

logger = structlog.get_logger(__name__)

_PAGE_BYTES: Final = 1024
_LOG_PAGES: Final = 4000
"""The pages of the write-ahead log that are moved into the file at once: what many jobs touch is written once."""
_VERSION: Final = 1
_FILE_ID: Final = "/file"
"""The name under which the id of the file stands among the cursors; a scope contains no slash."""
_WAIT_S: Final = 10.0
_DIRECTORY_MODE: Final = 0o750
_SLICE: Final = 50
"""The jobs that one transaction removes."""
_RECIPE_NOTED: Final = 1000
"""After so many jobs it is noted again that a recipe is used: each note writes the recipe."""
_ROOM: Final = 0.98
"""The part of the limit that is left after trimming, so that not every write trims."""

_SCHEMA: Final = """
CREATE TABLE job (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,
  job_id TEXT NOT NULL, scope TEXT NOT NULL, work_master TEXT NOT NULL, recipe INTEGER,
  started_at INTEGER, ended_at INTEGER NOT NULL, outcome TEXT NOT NULL, verdict TEXT NOT NULL, remark TEXT NOT NULL,
  facts TEXT NOT NULL);
CREATE INDEX job_ended ON job (ended_at);
CREATE TABLE replaced (change INTEGER PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE term (value TEXT, name TEXT, number INTEGER, PRIMARY KEY (value, name, number)) WITHOUT ROWID;
CREATE TABLE document (number INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE recipe (number INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, newest INTEGER, text TEXT NOT NULL);
CREATE TABLE cursor (name TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
"""


class _Packed(Struct, frozen=True, array_like=True):
    """What only the view of one job needs, and what its removal needs."""

    terms: tuple[Term, ...]
    documents: JobDocuments


class ArchiveLimits(Struct, frozen=True):
    """How long jobs stay, in milliseconds, and the most bytes of the file."""

    keep_ms: int
    max_bytes: int


class ArchiveFault(LocalFault):
    """The file of the archive cannot be written or read: the jobs wait in the store; `is_damaged` says which."""

    def __init__(self, file: Path, error: sqlite3.Error | OSError) -> None:
        self.is_damaged = type(error) is sqlite3.DatabaseError  # its subclasses say that the disk is full, for example
        reason = Text.of("the archive {file} cannot be used: {reason}", file=file, reason=error)
        super().__init__(reason, "Check the space, the owner and the disk: edge doctor")


@contextmanager
def _faults(file: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise ArchiveFault(file, error) from error


class ArchiveFile:
    """The file that one thread at a time writes; it is opened with the first use, and again after a fault."""

    def __init__(self, file: Path, limits: ArchiveLimits) -> None:
        self.file = file
        self._limits = limits
        self._connection: sqlite3.Connection | None = None
        self._in_use = threading.Lock()
        """SQLite crashes where a connection is closed while another thread uses it."""

    def close(self) -> None:
        """Close the file once no thread writes to it; all that was written is in it. Raises ArchiveFault."""
        with self._in_use:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with _faults(self.file):
                connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield a transaction; after a fault nothing of it is written, and the file is opened again."""
        with self._in_use:
            try:
                with _faults(self.file):
                    connection = self._connection = self._connection or _open(self.file)
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
                    connection.execute("COMMIT")
            except BaseException:
                self._disconnect()
                raise

    def cursor(self, name: str) -> str:
        """Return a position that was written with the jobs before it; empty without one. Raises ArchiveFault."""
        with self._transaction() as connection:
            row = connection.execute("SELECT position FROM cursor WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def write(self, records: Sequence[JobRecord], cursors: Mapping[str, str]) -> None:
        """Write jobs and how far a source was read, all or nothing; a job that is there is replaced.

        Raises ArchiveFault.
        """
        with self._transaction() as connection:
            for record in records:
                _put(connection, record)
            connection.executemany("INSERT OR REPLACE INTO cursor VALUES (?, ?)", list(cursors.items()))

    def trim(self, now: int) -> int:
        """Remove the oldest jobs beyond the limits, slice by slice; return how many are gone. Raises ArchiveFault."""
        gone, most_bytes = 0, self._limits.max_bytes
        while True:
            with self._transaction() as connection:
                oldest = now - self._limits.keep_ms
                is_over = _used_bytes(connection) > most_bytes
                condition, values = ("", ()) if is_over else ("WHERE ended_at < ?", (oldest,))
                query = f"SELECT number FROM job {condition} ORDER BY ended_at LIMIT {_SLICE}"  # noqa: S608 - constants
                numbers = [number for (number,) in connection.execute(query, values)]
                for number in numbers:
                    _remove(connection, number)
                if numbers:
                    (first,) = connection.execute("SELECT coalesce(min(number), ?) FROM job", (1 << 62,)).fetchone()
                    connection.execute("DELETE FROM replaced WHERE number < ?", (first,))
                    connection.execute("DELETE FROM recipe WHERE newest < ?", (first - _RECIPE_NOTED,))
            if not numbers:
                return gone
            gone += len(numbers)
            most_bytes = int(self._limits.max_bytes * _ROOM)
            time.sleep(0)  # readers come in between


def set_aside(file: Path, now: int) -> Path | None:
    """Move a damaged file away, so that a new one is begun; return its new path, None for a file that is sound.

    The writer of another scope may have set the damaged one aside before. Raises OSError.
    """
    if _is_sound(file):
        return None
    aside = file.with_name(f"{file.stem}-damaged-{now}{file.suffix}")
    file.rename(aside)
    for suffix in ("-wal", "-shm"):
        beside = file.with_name(file.name + suffix)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + suffix))
    return aside


def _is_sound(file: Path) -> bool:
    if not file.exists():
        return True
    try:
        with closing(sqlite3.connect(file, timeout=_WAIT_S)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.OperationalError:
        return True  # locked, or the disk is full: no damage
    except sqlite3.DatabaseError:
        return False


def _open(file: Path) -> sqlite3.Connection:
    make_directory(file.parent, _DIRECTORY_MODE)
    is_new = not file.exists() or not file.stat().st_size
    connection = sqlite3.connect(file, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        if is_new:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            file.chmod(0o640)
        connection.execute("PRAGMA journal_mode = WAL")
        # A job leaves the store once it is here: the commit must be on the disk.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {2 * _LOG_PAGES * _PAGE_BYTES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == _VERSION:
        return
    if version != 0:
        raise sqlite3.OperationalError(f"it has version {version}, this release reads version {_VERSION}")
    connection.execute("BEGIN IMMEDIATE")
    # The writer of another scope may have been faster.
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        for statement in filter(str.strip, _SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute("INSERT INTO cursor VALUES (?, lower(hex(randomblob(16))))", (_FILE_ID,))
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _put(connection: sqlite3.Connection, record: JobRecord) -> None:
    row = connection.execute("SELECT number, revision FROM job WHERE id = ?", (record.id,)).fetchone()
    if row is not None and row[1] == record.revision:
        return
    number = None if row is None else int(row[0])
    if number is not None:
        _remove(connection, number)
        connection.execute("INSERT INTO replaced (number) VALUES (?)", (number,))
    else:
        (number,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM job").fetchone()
    recipe = _recipe_number(connection, record.recipe, number) if record.recipe else None
    facts = msgspec.json.encode(record.facts).decode()
    who = (record.id, record.revision, record.job_id, record.scope, record.work_master)
    line = (recipe, record.started_at, record.ended_at, record.outcome, record.verdict, record.remark, facts)
    connection.execute("INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *who, *line))
    content = zlib.compress(msgspec.json.encode(_Packed(record.terms, record.documents)))
    connection.execute("INSERT INTO document VALUES (?, ?)", (number, content))
    terms = [(term.value, term.name, number) for term in record.terms]
    connection.executemany("INSERT OR IGNORE INTO term VALUES (?, ?, ?)", terms)


def _recipe_number(connection: sqlite3.Connection, text: str, newest: int) -> int:
    """Return the number of a recipe, with which it is written once; its newest job is noted now and then."""
    digest = sha256(text.encode()).hexdigest()
    row = connection.execute("SELECT number, newest FROM recipe WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        query = "INSERT INTO recipe (digest, newest, text) VALUES (?, ?, ?) RETURNING number"
        row = (*connection.execute(query, (digest, newest, text)).fetchone(), newest)
    if newest - row[1] >= _RECIPE_NOTED:
        connection.execute("UPDATE recipe SET newest = ? WHERE number = ?", (newest, row[0]))
    return int(row[0])


def _remove(connection: sqlite3.Connection, number: int) -> None:
    row = connection.execute("SELECT content FROM document WHERE number = ?", (number,)).fetchone()
    terms: tuple[Term, ...] = ()
    # A job that cannot be read must not stay: its terms then lead to none.
    with suppress(sqlite3.DatabaseError):
        terms = _content(row[0]).terms if row else ()
    connection.executemany(
        "DELETE FROM term WHERE value = ? AND name = ? AND number = ?",
        [(term.value, term.name, number) for term in terms],
    )
    connection.execute("DELETE FROM document WHERE number = ?", (number,))
    connection.execute("DELETE FROM job WHERE number = ?", (number,))


def _content(blob: bytes) -> _Packed:
    try:
        return msgspec.json.decode(zlib.decompress(blob), type=_Packed)
    except (zlib.error, msgspec.DecodeError) as error:
        raise sqlite3.DatabaseError(f"a job cannot be read: {error}") from error


@contextmanager
def reading(file: Path, within_s: float = _WAIT_S) -> Iterator[sqlite3.Connection]:
    """Yield a connection that only reads; a query that takes longer than `within_s` ends. Raises ArchiveFault."""
    until = time.monotonic() + within_s
    with _faults(file):
        # Not `mode=ro`: without the shared memory of a writer the log could not be read.
        if not file.exists():
            raise FileNotFoundError("it has no file yet")
        with closing(sqlite3.connect(file, timeout=_WAIT_S, isolation_level=None)) as connection:
            connection.execute("PRAGMA query_only = 1")
            connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
            yield connection


def documents_of(connection: sqlite3.Connection, number: int) -> JobDocuments | None:
    """Return the documents of a job as they were stored; None when it is gone."""
    query = (
        "SELECT content, recipe.text FROM document JOIN job USING (number) "
        "LEFT JOIN recipe ON recipe.number = job.recipe WHERE document.number = ?"
    )
    row = connection.execute(query, (number,)).fetchone()
    return None if row is None else with_recipe(_content(row[0]).documents, row[1] or "")


class Archived(Struct, frozen=True, kw_only=True):
    """A job as another archive takes it over; `facts` is JSON."""

    id: str
    job_id: str
    scope: str
    work_master: str
    started_at: int | None
    ended_at: int
    outcome: str
    verdict: str
    remark: str
    facts: str
    recipe: str
    terms: tuple[Term, ...]
    documents: JobDocuments


def file_id(connection: sqlite3.Connection) -> str:
    """Return the id of the file: a new one has another."""
    (text,) = connection.execute("SELECT position FROM cursor WHERE name = ?", (_FILE_ID,)).fetchone()
    return str(text)


_ARCHIVED: Final = (
    "SELECT job.number, id, job_id, scope, work_master, started_at, ended_at, outcome, verdict, remark, facts, "
    "coalesce(recipe.text, ''), content FROM job JOIN document USING (number) "
    "LEFT JOIN recipe ON recipe.number = job.recipe"
)


def archived_after(
    connection: sqlite3.Connection, number: int, change: int, most: int
) -> tuple[list[Archived], int, int]:
    """Return jobs after a number, and those replaced after a change, with the number and the change reached."""
    new = connection.execute(f"{_ARCHIVED} WHERE job.number > ? ORDER BY job.number LIMIT ?", (number, most)).fetchall()
    reached = int(new[-1][0]) if new else number
    changes = connection.execute(
        "SELECT change, number FROM replaced WHERE change > ? ORDER BY change LIMIT ?", (change, most)
    ).fetchall()
    # A job that was forwarded with its change before, or is not forwarded yet, is the present one.
    numbers = {row[1] for row in changes if row[1] <= number}
    replaced = [
        row
        for changed in sorted(numbers)
        for row in connection.execute(f"{_ARCHIVED} WHERE job.number = ?", (changed,)).fetchall()
    ]
    return [_archived(row) for row in (*replaced, *new)], reached, int(changes[-1][0]) if changes else change


def _archived(row: tuple[Any, ...]) -> Archived:
    _, id_, job_id, scope, work_master, started_at, ended_at, outcome, verdict, remark, facts, recipe, content = row
    packed = _content(content)
    return Archived(
        id=id_,
        job_id=job_id,
        scope=scope,
        work_master=work_master,
        started_at=started_at,
        ended_at=ended_at,
        outcome=outcome,
        verdict=verdict,
        remark=remark,
        facts=facts,
        recipe=recipe,
        terms=packed.terms,
        documents=packed.documents,
    )


def copy_to(file: Path, target: Path) -> None:
    """Copy the file as it is now, while others write it. Raises ArchiveFault."""
    with reading(file, float("inf")) as connection, closing(sqlite3.connect(target)) as copy:
        connection.backup(copy, pages=1000, sleep=0.0)
