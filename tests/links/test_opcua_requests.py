"""Each request of a session is reported once, with its result or its error."""

import pytest

from edge.foundation.errors import Refused, Unavailable
from edge.links.opcua_requests import RequestListener, ignore_request, reported
from edge.model.equipment_traffic import EquipmentRequest


class Session:
    """A session that fails as its argument says."""

    def __init__(self, on_request: RequestListener) -> None:
        self.on_request = on_request

    @reported
    async def read(self, error: Exception | None = None) -> int:
        if error:
            raise error
        return 5


async def test_result_is_reported() -> None:
    requests: list[EquipmentRequest] = []
    assert await Session(requests.append).read() == 5
    assert requests == [EquipmentRequest("read", (), 5)]


@pytest.mark.parametrize(("error", "kind"), [(Refused("unreadable", "no"), "unreadable"), (Unavailable("no"), None)])
async def test_error_is_reported_and_raised(error: Refused | Unavailable, kind: str | None) -> None:
    requests: list[EquipmentRequest] = []
    with pytest.raises(type(error)):
        await Session(requests.append).read(error)
    (only,) = requests
    assert (only.error, only.kind or None) == ("no", kind)


async def test_request_without_a_listener_is_ignored() -> None:
    assert await Session(ignore_request).read() == 5
