"""The tables of results: each revision extends the previous one; real results of several vendors are read."""

from itertools import pairwise

import pytest

from edge.features.openprotocol.protocol.frame import FrameReader
from edge.features.openprotocol.protocol.mids import parse_message
from edge.features.openprotocol.protocol.result_fields import LATEST_RESULT, LIGHT_REVISION, OLD_RESULT


@pytest.mark.parametrize("tables", [LATEST_RESULT, OLD_RESULT])
def test_each_revision_extends_the_one_before(tables: dict[int, tuple[object, ...]]) -> None:
    later = [tables[revision] for revision in sorted(tables) if 2 <= revision < LIGHT_REVISION]
    for shorter, longer in pairwise(later):
        assert longer[: len(shorter)] == shorter


def test_parameter_ids_are_consecutive() -> None:
    for tables in (LATEST_RESULT, OLD_RESULT):
        for revision, layout in tables.items():
            if revision != LIGHT_REVISION:
                assert [field.number for field in layout] == list(range(1, len(layout) + 1))


def test_result_with_blank_and_left_aligned_fields_is_read() -> None:
    """Controllers write a header of zeros, words for a date, and numbers at the left."""
    raw = (
        b"02310061001000000000010011020003TOOL                     04No Code                  05000600107000008000009"
        b"0101111120416001306240014069500150005651600000173200018000001900963202026-02-24:13:03:5721Last Change Unknown"
        b"22223130800    \0"
    )
    (frame,) = FrameReader().feed(raw)
    values = parse_message(frame)
    assert (values["torque"], values["angle"], values["result"]) == (5.65, 963, 130800)
    assert values["parameter_set_changed"] is None
