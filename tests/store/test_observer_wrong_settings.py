"""Wrong TLS, passwords and names lead to the setting that is wrong, not to servers that run."""

import io
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from edge.cli.store import status_output
from edge.config import RedisSettings
from edge.features.admin.store_check import examine_store
from edge.foundation.errors import EdgeError
from edge.store.observer import open_observer
from edge.store.open_store import open_store
from edge.store.store_state import ProblemKind, StoreProblem, StoreState, find_problems
from tests.store.sentinel_line import SERVICE, Access, Line, open_line
from tests.store.tls import write_certificate

_OF_SERVERS = {ProblemKind.PRIMARY_AWAY, ProblemKind.SENTINEL_AWAY, ProblemKind.REPLICA_AWAY, ProblemKind.NO_MAJORITY}


async def _state(settings: RedisSettings) -> StoreState:
    async with open_observer(settings) as observer:
        return await observer.read()


async def _advices(settings: RedisSettings) -> set[str]:
    """Return the advices of the start, of `edge store status` and of `edge doctor` about servers that do not serve."""
    with pytest.raises(EdgeError) as opened:
        await open_store(settings, "edge").__aenter__()
    found = {opened.value.advice}
    state = await _state(settings)
    problems = find_problems(state)
    found |= {str(problem.advice) for problem in problems if problem.kind in _OF_SERVERS}
    printed = io.StringIO()
    output = status_output(state)
    assert isinstance(output.parts, tuple)
    Console(file=printed, width=200).print(*output.parts)
    assert "no answer" not in printed.getvalue()
    return found | {advice async for advice in _examined(settings)}


async def _examined(settings: RedisSettings) -> AsyncIterator[str]:
    """Yield the advices of `edge doctor` about servers that do not serve, and that about the store."""
    try:
        async for finding in examine_store(settings):
            if re.match(r"sentinel [1l]|primary|replica ", str(finding.subject)):
                yield str(finding.advice)
    except EdgeError as error:
        yield error.advice


def _other_authority(settings: RedisSettings, directory: Path) -> RedisSettings:
    (directory / "other").mkdir()
    return replace(settings, ca_file=str(write_certificate(directory / "other").certificate))


Change = Callable[[RedisSettings, Path], RedisSettings]
_AUTHORITY = "Set [redis] ca_file to the certificate of the authority that signed that of the server."
_TLS: dict[str, tuple[Change, str]] = {
    "no authority": (lambda settings, _: replace(settings, ca_file=""), _AUTHORITY),
    "another authority": (_other_authority, _AUTHORITY),
    "name not in the certificate": (
        lambda settings, _: replace(settings, url=settings.url.replace("127.0.0.1", "localhost")),
        "Name the host in [redis] url as the certificate of the server does, or add it to the certificate.",
    ),
    "plain address of a port with TLS": (
        lambda settings, _: replace(settings, url=settings.url.replace("rediss", "redis")),
        "Look into the log of the server. Write rediss in [redis] url for a port with TLS.",
    ),
}


def _directly(line: Line, settings: RedisSettings) -> RedisSettings:
    """Return the settings of the primary without its sentinels."""
    return replace(settings, url=f"rediss://127.0.0.1:{line.nodes[0].port}")


@pytest.mark.parametrize("case", _TLS)
async def test_wrong_tls_names_the_setting_instead_of_starting_servers(tmp_path: Path, unique: str, case: str) -> None:
    change, advice = _TLS[case]
    async with open_line(tmp_path, access=Access(tls=write_certificate(tmp_path)), nodes=1) as line:
        settings = line.settings(unique)
        assert await _advices(change(_directly(line, settings), tmp_path / "line")) == {advice}
        assert await _advices(change(settings, tmp_path)) == {advice}


async def test_tls_address_of_a_plain_port_names_the_scheme(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1) as line:
        settings = line.settings(unique)
        for url in (settings.url.replace("redis+", "rediss+"), _directly(line, settings).url):
            (advice,) = await _advices(replace(settings, url=url))
            assert advice.startswith("Write redis instead of rediss in [redis] url")


async def test_wrong_login_of_sentinels_names_the_setting(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, access=Access(sentinel_password="watch word"), nodes=1) as line:
        settings = line.settings(unique)
        (wrong_password,) = await _advices(replace(settings, sentinel_password="wrong"))
        (wrong_service,) = await _advices(replace(settings, url=settings.url.replace(f"/{SERVICE}", "/other")))
    assert wrong_password == "Correct [redis] sentinel_username and sentinel_password or sentinel_password_file."
    assert wrong_service == "End [redis] url with the name that stands in `sentinel monitor`."


async def test_wrong_password_of_the_servers_names_the_setting(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, access=Access(password="sesame")) as line:
        settings = line.settings(unique)
        (advice,) = await _advices(replace(settings, url=settings.url.replace("sesame", "wrong")))
    assert advice == "Set [redis] password or password_file to that of the server."


async def test_one_sentinel_that_refuses_us_is_not_to_be_started(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1) as line:
        one = line.sentinels[1]
        await one.call("ACL", "SETUSER", "default", "resetpass", ">other")
        subject = f"sentinel 127.0.0.1:{one.port}"
        findings = {str(item.subject): str(item.advice) async for item in examine_store(line.settings(unique))}
        state = await _state(line.settings(unique))
    problems: dict[str, StoreProblem] = {problem.subject: problem for problem in find_problems(state)}
    for advice in (findings[subject], str(problems[subject].advice)):
        assert advice == "Correct [redis] sentinel_username and sentinel_password or sentinel_password_file."
