"""Every node has a description, also a node whose name is chosen by a site."""

import pytest

from edge.uaserver.descriptions import _TEXTS, describe


@pytest.mark.parametrize("name", _TEXTS)
def test_a_description_is_a_sentence(name: str) -> None:
    assert (describe(name).Text or "").endswith(".")


def test_site_specific_name_has_the_description_of_its_kind() -> None:
    assert describe("wrench", "A piece of equipment.").Text == "A piece of equipment."
