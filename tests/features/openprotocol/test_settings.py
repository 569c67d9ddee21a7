"""The settings of a controller with Open Protocol."""

import pytest

from edge.features.openprotocol.settings import PORT, OpenProtocolSettings, address_of


def settings(url: str) -> OpenProtocolSettings:
    return OpenProtocolSettings(kind="openprotocol", type_ids=("t",), url=url)


@pytest.mark.parametrize(
    ("url", "address"), [("tcp://10.0.0.7:4546", ("10.0.0.7", 4546)), ("tcp://wrench", ("wrench", PORT))]
)
def test_address_is_that_of_the_url(url: str, address: tuple[str, int]) -> None:
    assert address_of(settings(url)) == address
