"""The ledger decides what a reported result is: a table of cases, and properties over any order of reports."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.equipment.result_ledger import (
    Program,
    ReportedResult,
    ResultClaim,
    ResultLedger,
    Standing,
    Verdict,
    difference,
    fits,
)
from edge.equipment.result_numbers import Position

NOON = datetime(2026, 11, 26, 12, 0, 0)  # noqa: DTZ001 - local, without a zone
SET_3: Program = {"parameter_set": frozenset({"3"})}
SET_4: Program = {"parameter_set": frozenset({"4"})}
MINE = ResultClaim("J1/work/1", SET_3, "single")
NEXT = ResultClaim("J2/work/1", SET_3, "single")


def frame(sequence: int = 1, received: float = 0.0, **values: Any) -> ReportedResult:
    """Return a result that the device sent by itself; its frame is the digest of its values."""
    report = requested(sequence, **values)
    digest = f"{report.identity} {report.identifier} {sorted(report.program.items())}"
    return replace(report, frame=digest, received=received)


def requested(sequence: int = 1, **values: Any) -> ReportedResult:
    values = {"instant": NOON, "measured": (85.0, 42), "program": SET_3, **values}
    return ReportedResult(payload=None, result_id=str(sequence), sequence=sequence, **values)


def ledger() -> ResultLedger:
    """Return a ledger on its first connection, with a claim for each command by its mark."""
    book = ResultLedger()
    book.connect()
    book.claim(MINE, "mine")
    book.claim(NEXT, "next")
    return book


def mine(report: ReportedResult) -> ReportedResult:
    return replace(report, identifier="mine", command_id=MINE.command_id, frame=report.frame and f"{report.frame} mine")


def take(book: ResultLedger, report: ReportedResult) -> Standing:
    """Judge a result and record it as a collector does; results of no open command are durable at once."""
    verdict = book.judge(report)
    match verdict.standing:
        case Standing.OF_COMMAND:
            book.keep(report, verdict.command_id or "")
        case Standing.FURTHER if book.answer(verdict.command_id or "") is not None:
            book.keep(report, verdict.command_id or "", is_further=True)
        case Standing.REPEATED:
            pass
        case _:
            book.settle([report])
            book.acknowledge(report, report.received)
    return verdict.standing


def answered(book: ResultLedger, at: float) -> None:
    """Settle the answer of MINE and acknowledge it at a second."""
    reports = book.parts(MINE.command_id)
    book.end(MINE.command_id)
    book.settle(reports)
    for report in reports:
        book.acknowledge(report, at)


def test_frame_sent_again_before_its_acknowledgement_is_repeated() -> None:
    book = ledger()
    assert take(book, mine(frame(received=1.0))) is Standing.OF_COMMAND
    assert take(book, mine(frame(received=2.0))) is Standing.REPEATED
    answered(book, at=3.0)
    assert take(book, mine(frame(received=2.5))) is Standing.REPEATED


def test_equal_frame_after_its_acknowledgement_is_a_result_of_its_own() -> None:
    book = ledger()
    assert take(book, frame(0, received=1.0, instant=None)) is Standing.UNSOLICITED
    assert take(book, frame(0, received=2.0, instant=None)) is Standing.UNSOLICITED


def test_frame_sent_again_after_a_reconnect_is_repeated_and_acknowledged() -> None:
    book = ledger()
    take(book, mine(frame(received=1.0)))
    answered(book, at=2.0)
    book.connect()
    verdict = book.judge(mine(frame(received=9.0)))
    assert (verdict.standing, verdict.is_owed) == (Standing.REPEATED, True)


def test_another_frame_after_a_reconnect_shows_that_the_device_moved_on() -> None:
    book = ledger()
    take(book, frame(0, received=1.0, instant=None))
    book.connect()
    assert take(book, frame(0, received=2.0, instant=None, measured=(86.0, 42))) is Standing.UNSOLICITED
    assert take(book, frame(0, received=3.0, instant=None)) is Standing.UNSOLICITED


@pytest.mark.parametrize(
    ("other", "standing"),
    [
        ({}, Standing.REPEATED),
        ({"instant": NOON + timedelta(seconds=1)}, Standing.UNSOLICITED),
        ({"measured": (85.1, 42)}, Standing.UNSOLICITED),
        ({"measured": (85.0, 43)}, Standing.UNSOLICITED),
    ],
)
def test_requested_result_is_repeated_with_number_instant_and_values(other: Any, standing: Standing) -> None:
    book = ledger()
    take(book, frame())
    assert take(book, requested(**other)) is standing


def test_result_that_was_requested_before_it_came_by_itself_counts_once() -> None:
    book = ledger()
    take(book, requested())
    verdict = book.judge(frame(received=1.0))
    assert (verdict.standing, verdict.is_owed) == (Standing.REPEATED, True)


def test_result_without_number_and_date_found_by_a_poll_counts_once() -> None:
    book = ledger()
    assert take(book, mine(requested(0, instant=None))) is Standing.OF_COMMAND
    assert take(book, mine(frame(0, received=1.0, instant=None))) is Standing.REPEATED
    assert take(book, mine(frame(0, received=2.0, instant=None, measured=(86.0, 42)))) is Standing.FURTHER


def test_identifier_of_an_open_command_wins_over_known_numbers() -> None:
    book = ledger()
    take(book, mine(frame()))
    answered(book, at=1.0)
    again = replace(requested(), identifier="next", command_id=NEXT.command_id)
    assert take(book, again) is Standing.OF_COMMAND


def test_result_of_another_program_is_unsolicited_and_the_command_waits() -> None:
    book = ledger()
    verdict = book.judge(mine(frame(program=SET_4)))
    reason = "its program is not the commanded one: parameter set 4 instead of 3"
    assert verdict == Verdict(Standing.UNSOLICITED, reason=reason, candidate=MINE.command_id)
    take(book, mine(frame(program=SET_4)))
    assert book.answer(MINE.command_id) is None
    assert take(book, mine(frame(2))) is Standing.OF_COMMAND


def test_result_of_another_station_is_unsolicited() -> None:
    assert ledger().judge(replace(mine(frame()), is_foreign=True)).standing is Standing.UNSOLICITED


def test_second_result_of_a_command_is_further_before_and_after_its_answer() -> None:
    book = ledger()
    take(book, mine(frame(1)))
    assert take(book, mine(frame(2))) is Standing.FURTHER
    assert [reported_result.sequence for reported_result in book.results(MINE.command_id)] == [1, 2]
    assert [reported_result.sequence for reported_result in book.parts(MINE.command_id)] == [1]
    answered(book, at=1.0)
    assert take(book, mine(frame(3, received=2.0))) is Standing.FURTHER


def test_results_outside_the_chosen_answer_of_a_batch_are_further() -> None:
    """The newest result came first; a part that comes while the answer is committed is not in it."""
    book = ledger()
    book.claim(ResultClaim(MINE.command_id, SET_3, "batch"), "mine")
    for number in (3, 2, 1):
        whole = {"completes": frozenset({"single", "batch"})} if number > 1 else {}
        take(book, mine(requested(number, **whole)))
    book.close(MINE.command_id, [report for report in book.results(MINE.command_id) if report.sequence < 3])
    assert take(book, mine(frame(4))) is Standing.FURTHER
    assert [report.sequence for report in book.parts(MINE.command_id)] == [2, 1]
    assert [report.sequence for report in book.results(MINE.command_id)] == [3, 2, 1, 4]
    answered(book, at=1.0)
    assert [report.sequence for report in book.results(MINE.command_id)] == [3, 4]


def test_batch_takes_results_until_one_completes_it() -> None:
    book = ledger()
    book.claim(replace(MINE, classification="batch"), "mine")
    last = frozenset({"single", "batch"})
    standings = [take(book, mine(frame(n, completes=last if n > 2 else frozenset({"single"})))) for n in (1, 2, 3, 4)]
    assert standings == [Standing.OF_COMMAND] * 3 + [Standing.FURTHER]
    assert [part.sequence for part in book.parts(MINE.command_id)] == [1, 2, 3]


def test_next_result_after_a_start_belongs_to_its_command_without_numbers() -> None:
    book = ledger()
    for start in range(3):
        claim = ResultClaim(f"J{start}", SET_3, "single")
        book.expected = claim, Position()
        report = frame(0, received=start, instant=None)
        assert book.judge(report).command_id == claim.command_id
        take(book, report)
        reports = book.parts(claim.command_id)
        book.end(claim.command_id)
        book.settle(reports)
        book.acknowledge(reports[0], start + 0.5)


def test_result_that_was_durable_before_a_restart_is_repeated() -> None:
    book = ledger()
    book.restore(mine(frame()))
    assert take(book, mine(frame(received=1.0))) is Standing.REPEATED
    assert take(book, mine(frame(2, received=1.0))) is Standing.OF_COMMAND


@pytest.mark.parametrize(
    ("report", "before", "newer"),
    [
        (frame(8), Position(7, NOON), True),
        (frame(7), Position(7, NOON), True),
        (frame(1), Position(7, NOON), True),
        (requested(7), Position(7, NOON), False),
        (frame(1, instant=NOON + timedelta(hours=1)), Position(7, NOON), True),
        (frame(1, instant=NOON - timedelta(hours=1)), Position(7, NOON), False),
        (frame(1, instant=None), Position(7, NOON), True),
        (requested(1, instant=None), Position(7, NOON), False),
        (frame(0), Position(0, NOON), True),
        (frame(0, instant=NOON - timedelta(hours=1)), Position(0, NOON), False),
        (frame(0, instant=None), Position(0, None), True),
    ],
)
def test_result_is_newer_by_number_or_instant(report: ReportedResult, before: Position, *, newer: bool) -> None:
    assert report.is_after(before) is newer


def test_results_before_the_answer_of_a_command_without_a_mark_are_its_own() -> None:
    """After a cut the newest result is heard first."""
    book = ledger()
    book.claim(ResultClaim("J3", classification="batch"))
    book.expected = ResultClaim("J3", classification="batch"), Position(1, NOON)
    assert take(book, frame(4, completes=frozenset({"single", "batch"}))) is Standing.OF_COMMAND
    assert take(book, frame(5)) is Standing.UNSOLICITED
    assert [take(book, requested(number)) for number in (3, 2)] == [Standing.OF_COMMAND] * 2
    assert take(book, requested(1)) is Standing.UNSOLICITED
    book.end("J3")
    assert take(book, requested(3, measured=(1.0, 1))) is Standing.UNSOLICITED


def test_second_bolt_of_one_second_and_number_counts_for_the_next() -> None:
    book = ledger()
    first = frame(7, received=1.0)
    assert book.judge(first).standing is Standing.UNSOLICITED
    book.settle([first])
    book.acknowledge(first, 2.0)
    book.claim(NEXT)
    book.expected = (NEXT, Position(7, NOON))
    verdict = book.judge(frame(7, received=3.0, measured=(86.0, 42)))
    assert (verdict.standing, verdict.command_id) == (Standing.OF_COMMAND, NEXT.command_id)


bolts = st.fixed_dictionaries(
    {
        "sequence": st.integers(0, 2),
        "instant": st.sampled_from([None, NOON]),
        "measured": st.sampled_from([(85.0, 42), (86.0, 42)]),
    }
)


@given(st.lists(st.tuples(bolts, st.integers(1, 3), st.booleans()), max_size=12))
def test_each_bolt_counts_exactly_once_however_often_it_is_sent(sent: list[tuple[dict[str, Any], int, bool]]) -> None:
    """The device sends a frame until it is acknowledged, also after a reconnect, and then moves on to the next."""
    book, now, counted = ledger(), 0.0, 0
    for values, times, reconnects in sent:
        for n in range(times):
            now += 1
            if n and reconnects:
                book.connect()
            report = frame(received=now, **values)
            if book.judge(report).standing is not Standing.REPEATED:
                counted += 1
                book.settle([report])
        book.acknowledge(frame(**values), now + 0.5)
    assert counted == len(sent)


@given(st.lists(st.tuples(st.sampled_from(["mine", "next", ""]), st.booleans(), st.booleans()), max_size=12))
def test_a_command_never_has_two_answers_and_no_result_is_dropped(sent: list[tuple[str, bool, bool]]) -> None:
    book, unsettled, durable = ledger(), 0, 0
    commands = {"mine": MINE.command_id, "next": NEXT.command_id}
    for number, (identifier, is_right, is_foreign) in enumerate(sent, 1):
        program = SET_3 if is_right else SET_4
        report = frame(number, received=number, identifier=identifier, program=program, is_foreign=is_foreign)
        standing = take(book, replace(report, command_id=commands.get(identifier)))
        kept = standing in {Standing.OF_COMMAND, Standing.FURTHER}
        assert kept == (identifier != "" and is_right and not is_foreign)
        unsettled, durable = unsettled + kept, durable + (not kept)
        for command_id in commands.values():
            assert len(book.parts(command_id)) <= 1
    assert (len(book.unsettled()), unsettled + durable) == (unsettled, len(sent))


def test_memory_of_results_is_bounded() -> None:
    book = ledger()
    for number in range(1, 30):
        book.keep(replace(frame(number), size=1000), MINE.command_id)
    book.evict(20, 15_000)
    assert [kept_result.report.sequence for kept_result in book.unsettled()] == [*range(15, 30)]
    book.evict(1, 10)
    assert [kept_result.report.sequence for kept_result in book.unsettled()] == [29]


def test_result_is_settled_as_it_came_last() -> None:
    """It was requested, then came by itself, then once more: it is one result, and the last frame is acknowledged."""
    book = ledger()
    take(book, mine(requested()))
    (reported_result,) = book.parts(MINE.command_id)
    live = mine(frame(received=1.0))
    assert book.judge(live).standing is Standing.REPEATED
    assert book.waits(live)
    book.renew(replace(live, payload="in the inbox"))
    (settled,) = book.settle([reported_result])
    assert (settled.frame, settled.payload, book.unsettled()) == (live.frame, "in the inbox", ())
    assert book.owes(live)


def test_command_with_its_answer_has_no_other() -> None:
    book = ledger()
    take(book, mine(frame()))
    answered(book, at=1.0)
    book.keep(mine(frame(2)), MINE.command_id)
    assert book.answer(MINE.command_id) is None
    assert book.completes(mine(frame(2)), MINE.command_id)


def test_id_and_instant_of_a_durable_result_are_taken() -> None:
    book = ledger()
    assert not book.is_taken(frame(1))
    take(book, frame(1))
    assert book.is_taken(frame(1, measured=(86.0, 42)))
    assert not book.is_taken(frame(1, instant=None))
    assert book.result_ids() == {"1"}


def test_result_that_was_only_noted_is_new_as_a_frame() -> None:
    book = ledger()
    book.note(requested())
    assert take(book, requested()) is Standing.REPEATED
    assert take(book, frame()) is Standing.UNSOLICITED


def test_unsolicited_result_names_the_reason_and_the_waiting_command() -> None:
    book = ledger()
    assert book.judge(frame()) == Verdict(Standing.UNSOLICITED)
    book.current = MINE.command_id
    reasons = {
        book.judge(reported_result).reason for reported_result in (frame(), replace(frame(), identifier="VIN 2"))
    }
    assert reasons == {"it has no identifier", "its identifier is not that of the command"}
    assert book.judge(requested()) == Verdict(Standing.UNSOLICITED)
    book.expected = MINE, Position(9, NOON + timedelta(hours=1))
    early = book.judge(frame(8))
    assert (early.reason, early.candidate) == ("it was made before the start of the command", MINE.command_id)


@pytest.mark.parametrize(
    ("commanded", "reported", "fitting"),
    [
        ({}, SET_3, True),
        (SET_3, {}, True),
        (SET_3, SET_3, True),
        (SET_3, SET_4, False),
        (SET_3, {"job": frozenset({"3"})}, True),
        ({**SET_3, "identifier": frozenset({"V"})}, {**SET_3, "identifier": frozenset({"W"})}, False),
    ],
)
def test_program_fits_where_both_state_the_same_kind(commanded: Program, reported: Program, *, fitting: bool) -> None:
    assert fits(commanded, reported) is fitting


def test_difference_names_what_was_commanded() -> None:
    assert difference(SET_3, SET_4) == "parameter set 4 instead of 3"
