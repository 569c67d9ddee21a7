"""Formats dead letters: as a table, as a report of one letter, and as data."""

from collections.abc import Iterator, Mapping

from rich.table import Table
from rich.text import Text

from edge.cli.terminal.fitted_table import local_time, plain_table, utc_time
from edge.cli.terminal.output import printable
from edge.sfc.signal import Phase
from edge.store.dead_letters import Letter, LetterKind


def as_data(letter_id: str, letter: Letter) -> dict[str, object]:
    """Return a letter as data; instants in UTC."""
    return {
        "id": letter_id,
        "kind": letter.kind,
        "scope": letter.scope,
        "job_order_id": letter.job_id or None,
        "at": utc_time(letter.at),
        "reason": letter.reason,
        "details": letter.details,
    }


def table(letters: Mapping[str, Letter]) -> Table:
    """Return letters as a table, one per row."""
    shown = plain_table("letter", "at", "job", "what", "reason", drop=("at", "what"))
    for letter_id, letter in letters.items():
        cells = (letter_id, local_time(letter.at), letter.job_id, _what(letter), letter.reason)
        shown.add_row(*(Text(printable(cell)) for cell in cells))
    return shown


def report(letter_id: str, letter: Letter) -> Iterator[str]:
    """Yield the report of a letter, line by line."""
    facts = {
        "letter": letter_id,
        "at": local_time(letter.at),
        "scope": letter.scope,
        "job": letter.job_id,
        "what": _what(letter),
        "reason": letter.reason,
        **letter.details,
        "retry": _retry_effect(letter),
    }
    width = max(map(len, facts))
    for name, text in facts.items():
        yield f"{printable(name):<{width}}  {printable(text)}"


def _is_stop(letter: Letter) -> bool:
    return letter.kind is LetterKind.COMMAND and letter.details.get("phase") == Phase.STOP


def _what(letter: Letter) -> str:
    match letter.kind:
        case LetterKind.START:
            return "start of a job"
        case LetterKind.DECISION:
            return "decision on a job"
        case LetterKind.DEADLINE:
            return "deadline of a job"
        case LetterKind.COMMAND:
            return f"command: {letter.details['phase']}"
        case LetterKind.UNREADABLE:
            return "unreadable entry"
        case LetterKind.LATE:
            return "late result"
        case LetterKind.TELEMETRY:
            return "batch of samples"


def _retry_effect(letter: Letter) -> str:
    if letter.is_redacted and letter.kind in {LetterKind.UNREADABLE, LetterKind.TELEMETRY}:
        return "nothing: secrets in it are hidden by ***"
    if letter.kind is LetterKind.UNREADABLE:
        return "the entry returns to the work stream"
    if letter.kind is LetterKind.TELEMETRY:
        return "the batch is evaluated again, with the instants at which its samples arrived"
    if letter.kind is LetterKind.LATE:
        return "nothing: a late result is kept for a person"
    return "the stop is sent again" if _is_stop(letter) else "the job runs again from its beginning"
