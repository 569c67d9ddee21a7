"""A process is identified by a token, and its end is known for certain or not at all."""

import asyncio
import sys

import pytest

from edge.ops.process_identity import is_surely_dead, process_token

_SHOWN = "from edge.ops.process_identity import process_token; print(process_token())"


async def test_a_process_on_this_host_is_dead_once_it_is_gone() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _SHOWN, stdout=asyncio.subprocess.PIPE)
    reported, _ = await process.communicate()
    assert is_surely_dead(reported.decode().strip())


def test_a_process_that_lives_is_not_dead_even_if_we_may_not_touch_it() -> None:
    assert not is_surely_dead(process_token())
    place, _, unique = process_token().rsplit(" ", 2)
    assert not is_surely_dead(f"{place} 1 {unique}")


def test_of_a_process_elsewhere_nothing_is_known() -> None:
    _, pid, unique = process_token().rsplit(" ", 2)
    assert not is_surely_dead(f"another-boot pid:[1] 999999999 {unique}")
    assert not is_surely_dead(f" {pid} {unique}")


def test_no_two_starts_have_one_token() -> None:
    assert process_token() != process_token()


@pytest.mark.parametrize("token", ["", "4f1c09d2", "one two", "{place} x y", f"{{place}} {'9' * 30} y"])
def test_fate_of_a_token_of_another_form_is_unknown(token: str) -> None:
    """A sidecar claims its name with any random value: a worker of this name must stop with the reason."""
    place, _, _ = process_token().rsplit(" ", 2)
    assert not is_surely_dead(token.format(place=place))
