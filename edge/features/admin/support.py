"""Collects data for support in one file: logs, settings, findings, numbers; no keys, passwords or payloads."""

import asyncio
import functools
import json
import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from edge.app.features import gateway_settings
from edge.app.redaction import redact_settings, redactor, secrets_of
from edge.config import Settings, main_file
from edge.features.admin.archive import write_archive
from edge.features.admin.backup import Progress
from edge.features.admin.doctor import examine
from edge.features.admin.host_check import versions
from edge.features.admin.snapshot import dump
from edge.foundation.errors import EdgeError, SettingsError
from edge.foundation.text import Text
from edge.store.client import Store
from edge.store.keys import key_specs
from edge.store.open_store import open_store
from edge.store.reads import scan_keys

UNITS = (
    "microdcs-edge",
    "redis-server@microdcs",
    "valkey-server@microdcs",
    "microdcs-edge-telemetry-store",
    "mosquitto",
)

Program: TypeAlias = tuple[str, tuple[str, ...]]
"""The name of the member for the output of a program, and its command."""

PROGRAM_WITHIN_S = 20.0
"""Time limit of a program of this machine."""
_README = """\
Data of microdcs-edge for support.

doctor.json     findings of edge doctor
settings.json   the effective settings; passwords are hidden
versions.json   versions of the software
store.json      sizes of the store
*.txt           output of other programs: logs of the last days, units, disks
store.jsonl     jobs, Work Masters and runs with their data: only with --with-jobs

Logs name jobs, users and addresses. Review all files before you pass them on.
"""

_LENGTHS = {"hash": "HLEN", "set": "SCARD", "zset": "ZCARD", "stream": "XLEN", "string": "STRLEN", "list": "LLEN"}
_REPORTED = re.compile(
    r"(redis|valkey|server|used_memory|maxmemory|mem_frag|aof|rdb|connected|blocked|uptime|evicted|expired|"
    r"rejected|total_(connections|commands)|instantaneous|db\d|role|loading)"
)


class KeyStatistics(msgspec.Struct):
    """All keys of a pattern: how many, how many entries in them, how many bytes they take."""

    keys: int = 0
    entries: int = 0
    bytes: int = 0


async def read_server_info(store: Store) -> Mapping[str, Any]:
    """Return versions, memory, disk and clients of the server."""
    info: Mapping[str, str] = await store.execute("INFO")
    reported = {name: value for name, value in info.items() if _REPORTED.match(name)}
    return msgspec.convert(reported, dict[str, int | float | str], strict=False)


@functools.cache
def _patterns() -> Sequence[tuple[re.Pattern[str], str]]:
    # `joborder:list:{scope}` before `joborder:{id}`.
    specs = sorted(key_specs(), key=lambda spec: len(re.sub(r"{\w+}", "", spec.pattern)), reverse=True)
    return [(spec.expression(), spec.pattern) for spec in specs]


async def read_key_statistics(store: Store) -> dict[str, KeyStatistics]:
    """Count keys by their pattern, without their names."""
    found: dict[str, KeyStatistics] = {}
    async for batch in scan_keys(store, f"{store.keys.prefix}:*"):
        types = await store.read([("TYPE", key) for key in batch])
        lengths = await store.read(
            [(_LENGTHS.get(kind, "EXISTS"), key) for kind, key in zip(types, batch, strict=True)]
        )
        sizes = await store.read([("MEMORY USAGE", key) for key in batch])
        for key, length, size in zip(batch, lengths, sizes, strict=True):
            kind = found.setdefault(_pattern(key.removeprefix(f"{store.keys.prefix}:")), KeyStatistics())
            kind.keys += 1
            kind.entries += length or 0
            kind.bytes += size or 0
    return dict(sorted(found.items()))


def _pattern(key: str) -> str:
    return next((pattern for regex, pattern in _patterns() if regex.fullmatch(key)), "?")


async def gather(
    file: Path,
    given: Path | None,
    environ: Mapping[str, str],
    since: str,
    now: int,
    progress: Progress,
    *,
    with_jobs: bool,
    asked: Callable[[str], Iterable[Program]] | None = None,
) -> None:
    """Write the bundle; a part that fails is replaced by its error. Raises Unavailable when it cannot be written.

    `since` has the format of journalctl --since; `asked` returns the programs to run, by default `programs`.
    """
    main = main_file(given, environ)
    settings, problem = _settings(given, environ)
    redact = redactor(await asyncio.to_thread(secrets_of, settings, main, environ))
    contents = {"README.txt": _README}
    progress(Text.of("examining the gateway"))
    contents["doctor.json"] = _json(msgspec.to_builtins(await examine(given, environ)))
    contents["settings.json"] = _json(redact_settings(settings) if settings else {"problems": problem})
    contents["versions.json"] = _json(versions())
    progress(Text.of("asking the store"))
    if settings and settings.redis.url != "embedded:":
        contents["store.json"] = await _or_problem(_statistics(settings))
        if with_jobs:
            contents["store.jsonl"] = await _or_problem(_payloads(settings, now))
    for name, command in (asked or programs)(since):
        progress(Text.of("asking {program}", program=command[0]))
        contents[name] = await run_program(command)
    redacted = {name: redact(text).encode() for name, text in contents.items()}
    size = await asyncio.to_thread(write_archive, file, redacted, now)
    progress(Text.of("{file}: {size:,} bytes; review the file before you pass it on", file=file, size=size))


def _settings(given: Path | None, environ: Mapping[str, str]) -> tuple[Settings | None, tuple[str, ...]]:
    try:
        return gateway_settings(given, environ), ()
    except SettingsError as error:
        return None, error.problems


async def _or_problem(query: Awaitable[str]) -> str:
    try:
        return await query
    except EdgeError as error:
        return _json({"problem": error.message, "advice": error.advice})


async def _statistics(settings: Settings) -> str:
    async with open_store(settings.redis, consumer=None) as store:
        server, kinds = await read_server_info(store), await read_key_statistics(store)
    return _json({"server": dict(server), "keys": msgspec.to_builtins(kinds)})


async def _payloads(settings: Settings, now: int) -> str:
    async with open_store(settings.redis, consumer=None) as store:
        return msgspec.json.Encoder().encode_lines(await dump(store, now)).decode()


def programs(since: str) -> Iterator[Program]:
    """Yield the commands to run, each with the name of the member for its output."""
    for unit in UNITS:
        log = ("journalctl", "--no-pager", "--output=short-iso-precise", f"--since={since}", "--lines=50000")
        yield f"log-{unit.replace('@', '-')}.txt", (*log, f"--unit={unit}")
    yield "log-kernel.txt", ("journalctl", "--no-pager", "--dmesg", "--priority=warning", "--lines=2000")
    yield "units.txt", ("systemctl", "--no-pager", "--full", "--lines=0", "status", *UNITS)
    yield "clock.txt", ("timedatectl", "--no-pager", "status")
    yield "disks.txt", ("df", "--human-readable", "--print-type")


async def run_program(command: tuple[str, ...], time_limit_s: float = PROGRAM_WITHIN_S) -> str:
    """Run a program of this machine within a time limit; return its output."""
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed\n"
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(time_limit_s):
            output, _ = await process.communicate()
    except TimeoutError:
        return f"{' '.join(command)} did not end within {time_limit_s:g} s\n"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace")


def _json(data: object) -> str:
    return json.dumps(data, indent=2, default=str, ensure_ascii=False) + "\n"
