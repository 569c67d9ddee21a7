"""What a power cut leaves at the end of an append-only file is distinguished from damage, at each byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.store.append_only_file import Rest, Survey, survey


def command(*arguments: bytes) -> bytes:
    parts = (b"$%d\r\n%s\r\n" % (len(argument), argument) for argument in arguments)
    return b"*%d\r\n%s" % (len(arguments), b"".join(parts))


SELECT = command(b"SELECT", b"0")
SET = command(b"SET", b"job:1", b"\r\n*1\r\n\0\0")
MULTI, EXEC = command(b"MULTI"), command(b"exec")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", Survey(0, Rest.NONE)),
        (SELECT + SET, Survey(len(SELECT + SET), Rest.NONE)),
        (SELECT + SET + bytes(512), Survey(len(SELECT + SET), Rest.TORN)),
        (SELECT + SET[:-3], Survey(len(SELECT), Rest.TORN)),
        (SELECT + SET[:-9] + bytes(4096), Survey(len(SELECT), Rest.TORN)),
        (SELECT + MULTI + SET, Survey(len(SELECT), Rest.TORN)),
        (SELECT + MULTI + SET + SET[:7] + bytes(9), Survey(len(SELECT), Rest.TORN)),
        (SELECT + MULTI + SET + EXEC + bytes(1), Survey(len(SELECT + MULTI + SET + EXEC), Rest.TORN)),
        (b"#TS:1700000000\r\n" + SELECT, Survey(len(SELECT) + 16, Rest.NONE)),
        (SELECT + b"#TS:17000", Survey(len(SELECT), Rest.TORN)),
        (bytes(4096), Survey(0, Rest.TORN)),
        # Data behind zeros, or instead of a command: the file does not say what was acknowledged.
        (SELECT + bytes(512) + SET, Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"\0" + SET[:-1], Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"garbage", Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"*2\r\n$3\r\nSETxx$1\r\na\r\n", Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"*-1\r\n", Survey(len(SELECT), Rest.DAMAGE)),
        (b"REDIS0011" + SELECT, Survey(0, Rest.DAMAGE)),
    ],
)
def test_rest_of_a_file_is_distinguished_from_damage(content: bytes, expected: Survey) -> None:
    assert survey(content) == expected


_ARGUMENTS = st.lists(st.binary(max_size=20), min_size=1, max_size=4)


@given(st.lists(_ARGUMENTS, min_size=1, max_size=5), st.data(), st.integers(0, 600))
def test_file_that_is_cut_anywhere_is_whole_up_to_the_cut_command(
    commands: list[list[bytes]], data: st.DataObject, zeros: int
) -> None:
    written = [command(b"SET", *arguments) for arguments in commands]
    cut = data.draw(st.integers(0, len(b"".join(written))))
    ends = [len(b"".join(written[:count])) for count in range(len(written) + 1)]
    whole = max(end for end in ends if end <= cut)
    found = survey(b"".join(written)[:cut] + bytes(zeros))
    assert found == Survey(whole, Rest.NONE if cut == whole and not zeros else Rest.TORN)
