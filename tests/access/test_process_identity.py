"""A process is identified by a token; it is reported dead only if that is certain."""

import asyncio
import sys

import pytest

from edge.access.process_identity import end_token, is_surely_dead, process_token

_SHOWN = "from edge.access.process_identity import process_token; print(process_token())"


async def test_ended_process_on_this_host_is_dead() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _SHOWN, stdout=asyncio.subprocess.PIPE)
    reported, _ = await process.communicate()
    assert is_surely_dead(reported.decode().strip())


def test_live_process_of_another_user_is_not_dead() -> None:
    assert not is_surely_dead(process_token())
    place, _, unique = process_token().rsplit(" ", 2)
    assert not is_surely_dead(f"{place} 1 {unique}")


def test_state_of_a_process_on_another_host_is_unknown() -> None:
    _, pid, unique = process_token().rsplit(" ", 2)
    assert not is_surely_dead(f"another-boot pid:[1] 999999999 {unique}")
    assert not is_surely_dead(f" {pid} {unique}")


def test_ended_holder_of_this_process_is_dead() -> None:
    """The process goes on: it opens the gateway again."""
    ended, other = process_token(), process_token()
    end_token(ended)
    assert is_surely_dead(ended)
    assert not is_surely_dead(other)


def test_process_tokens_are_unique() -> None:
    assert process_token() != process_token()


@pytest.mark.parametrize("token", ["", "4f1c09d2", "one two", "{place} x y", f"{{place}} {'9' * 30} y"])
def test_state_of_a_process_with_a_foreign_token_is_unknown(token: str) -> None:
    """A sidecar claims its name with any random value: a worker of this name must stop with the reason."""
    place, _, _ = process_token().rsplit(" ", 2)
    assert not is_surely_dead(token.format(place=place))
