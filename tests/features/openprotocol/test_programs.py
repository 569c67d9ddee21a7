"""Parameter sets and jobs are checked against the list of the controller before the tool is used."""

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.programs import ParameterSets
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.protocol.session import open_openprotocol
from edge.features.openprotocol.simulated.controller import open_openprotocol_controller
from edge.foundation.errors import Refused
from tests.equipment.contract import WORK


async def test_listed_numbers_are_accepted_and_others_are_refused() -> None:
    async with (
        open_openprotocol_controller(delay=None) as controller,
        open_openprotocol("127.0.0.1", controller.server.port) as session,
    ):
        programs = ParameterSets(session)
        await programs.read()
        torques = ("10", "80", "85", "120")
        sets = (f"parameter set {number} ({torque} Nm)" for number, torque in enumerate(torques, 1))
        assert programs.names == (*sets, "job 1 (job of 85 Nm: 1 x 3)", "job 2 (job of 80 Nm: 1 x 2)")
        await programs.check(replace(WORK, parameters={"parameter_set": 4}))
        await programs.check(replace(WORK, parameters={}))
        for parameters in ({"parameter_set": 9}, {"job": 9}):
            with pytest.raises(Refused, match="the controller has no"):
                await programs.check(replace(WORK, parameters=parameters))


async def test_controller_without_lists_is_not_asked_for_a_number() -> None:
    async with open_openprotocol_controller(delay=None) as controller:
        controller.server.missing |= {Mid.PARAMETER_SETS, Mid.JOBS}
        async with open_openprotocol("127.0.0.1", controller.server.port) as session:
            programs = ParameterSets(session)
            await programs.read()
            assert programs.names == ()
            await programs.check(replace(WORK, parameters={"parameter_set": 9}))


@pytest.mark.parametrize(
    ("missing", "expected"), [(Mid.PARAMETER_SET, "job 1 (job of"), (Mid.JOB, "parameter set 1 (")]
)
async def test_programs_without_a_description_have_their_number(missing: Mid, expected: str) -> None:
    async with open_openprotocol_controller(delay=None) as controller:
        controller.server.missing.add(missing)
        async with open_openprotocol("127.0.0.1", controller.server.port) as session:
            programs = ParameterSets(session)
            await programs.read()
            assert any(name.startswith(expected) for name in programs.names)
            assert {"parameter set 1", "job 1"} & set(programs.names)
