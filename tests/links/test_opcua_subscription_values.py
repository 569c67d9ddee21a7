"""The quality of a value follows from its StatusCode."""

import pytest
from asyncua import ua

from edge.links.opcua_subscription import quality_of
from edge.ports.sample_lines import Quality


@pytest.mark.parametrize(
    ("status", "quality"),
    [
        (None, Quality.GOOD),
        (ua.StatusCodes.Good, Quality.GOOD),
        (ua.StatusCodes.GoodClamped, Quality.GOOD),
        (ua.StatusCodes.UncertainLastUsableValue, Quality.UNCERTAIN),
        (ua.StatusCodes.BadSensorFailure, Quality.BAD),
        (ua.StatusCodes.BadNotConnected, Quality.BAD),
    ],
)
def test_quality_is_the_class_of_the_status_code(status: int | None, quality: Quality) -> None:
    assert quality_of(None if status is None else ua.StatusCode(status)) is quality
