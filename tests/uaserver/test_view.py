"""The ServiceLevel of a server."""

import pytest

from edge.model.plant import Maintenance, MaintenanceKind
from edge.uaserver.view import ServiceLevel, service_level

ON = Maintenance(kind=MaintenanceKind.DRAIN)


@pytest.mark.parametrize(
    ("mode", "has_store", "is_degraded", "expected"),
    [
        (None, True, False, ServiceLevel.HEALTHY),
        (None, True, True, ServiceLevel.DEGRADED),
        (None, False, True, ServiceLevel.NO_DATA),
        (ON, True, False, ServiceLevel.MAINTENANCE),
        (ON, False, True, ServiceLevel.MAINTENANCE),
    ],
)
def test_service_level_falls_with_the_state(
    mode: Maintenance | None,
    has_store: bool,  # noqa: FBT001 - a parameter
    is_degraded: bool,  # noqa: FBT001 - a parameter
    expected: ServiceLevel,
) -> None:
    assert service_level(mode, has_store=has_store, is_degraded=is_degraded) is expected
