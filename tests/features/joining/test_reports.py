"""Results and commands of a joining system become reports and claims of the ledger."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.equipment.result_ledger import fits
from edge.equipment.unclaimed import late_key
from edge.features.joining.conversion import result_data
from edge.features.joining.methods import IjtMethods
from edge.features.joining.programs import JoiningPrograms
from edge.features.joining.reports import claim_of, reported
from edge.station.equipment import Command
from tests.equipment.contract import WORK

NOON = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


class Listing:
    """A controller that lists one joining process."""

    def __contains__(self, name: object) -> bool:
        return name == "GetJoiningProcessList"

    async def call(self, *_: object, output_count: int) -> list[Any]:
        return [[{"JoiningProcessId": "7", "JoiningProcessOriginId": "ORIGIN-7", "Name": "front axle"}]][:output_count]


class Silent(Listing):
    """A controller that lists nothing."""

    def __contains__(self, name: object) -> bool:
        return False


async def programs_at(methods: object) -> JoiningPrograms:
    programs = JoiningPrograms(cast("IjtMethods", methods), "")
    await programs.read()
    return programs


def command(**parameters: Any) -> Command:
    return replace(WORK, parameters=parameters)


def result(processes: Sequence[str] = (), *, is_ours: bool = True, **meta: Any) -> dict[str, Any]:
    entities = [{"EntityId": process, "Name": "Process", "EntityType": 26} for process in processes]
    entities += [{"EntityId": WORK.command_id, "Name": "CommandID"}] if is_ours else []
    meta = {"ResultId": "R1", "Classification": 1, "AssociatedEntities": entities} | meta
    return {"ResultMetaData": meta, "ResultContent": None}


@pytest.mark.parametrize("methods", [Listing(), Silent()])
@pytest.mark.parametrize(
    ("parameters", "data", "fitting"),
    [
        ({"joining_process_id": "7"}, result(["7"]), True),
        ({"joining_process_id": "7"}, result(["8"]), False),
        ({"joining_process_id": "7"}, result(), True),
        ({"joining_process_id": "7"}, result(Name="any text"), True),
        ({"selection_name": "tray 1"}, result(["8"]), True),
        ({}, result(["8"]), True),
        ({"joining_process_id": "7", "classification": "batch"}, result(["inner"]), True),
        ({"joining_process_id": "7", "classification": "batch"}, result(["8"], Classification=3), False),
        ({"joining_process_id": "7"}, result(is_ours=False, Name="other"), False),
        ({"joining_process_id": "7"}, result(is_ours=False), True),
        ({"joint_id": "J"}, result(is_ours=False, Name="J"), True),
    ],
)
async def test_result_fits_the_commanded_process_where_both_name_one(
    methods: object, parameters: dict[str, Any], data: dict[str, Any], *, fitting: bool
) -> None:
    programs = await programs_at(methods)
    assert fits(claim_of(command(**parameters), programs).program, reported(data, programs).program) is fitting


@pytest.mark.parametrize(
    ("data", "fitting"),
    [(result(["ORIGIN-7"]), True), (result(Name="front axle"), True), (result(["8"], Name="front axle"), True)],
)
async def test_names_of_a_listed_process_are_one(data: dict[str, Any], *, fitting: bool) -> None:
    programs = await programs_at(Listing())
    claim = claim_of(command(joining_process_id="7"), programs)
    assert fits(claim.program, reported(data, programs).program) is fitting


async def test_identity_is_id_number_and_time_else_the_values() -> None:
    programs = await programs_at(Silent())
    reported_result = reported(result(SequenceNumber=7, CreationTime=NOON), programs)
    assert reported_result.identity == ("R1", 7, NOON, ())
    assert (reported_result.command_id, reported_result.identifier) == (WORK.command_id, WORK.command_id)
    assert reported(result(), programs).identity == ("R1", 0, None, (None, None))


@given(st.datetimes(timezones=st.just(UTC)) | st.none())
async def test_any_date_of_a_result_is_taken(created: datetime | None) -> None:
    programs = await programs_at(Silent())
    data = result(CreationTime=created)
    assert reported(data, programs).instant == result_data(data)["created_at"] == created
    assert late_key("R1", created)
