"""The newest records of the log are kept in memory, bounded."""

import logging

from edge.features.page.log_memory import LogMemory, remembered_log


def test_newest_records_are_kept_and_shortened() -> None:
    with remembered_log() as memory:
        logging.getLogger("edge.x").warning("y" * 1000)
    logging.getLogger("edge.x").warning("after the block")
    (line,) = memory.lines
    assert (line.level, line.text) == ("warning", "y" * 500)


def test_oldest_record_is_dropped() -> None:
    memory = LogMemory(lines=2)
    for text in ("a", "b", "c"):
        memory.emit(logging.LogRecord("edge", logging.INFO, "", 0, text, None, None))
    assert [each.text for each in memory.lines] == ["b", "c"]
