"""Every namespace has an index and a URI of its own."""

from edge.uaserver.namespaces import (
    OFFICIAL_URI,
    TYPES_URI,
    UA_URI,
    Namespace,
    alarms_uri,
    application_uri,
    charts_uri,
    machines_uri,
)


def test_every_index_has_one_uri() -> None:
    own = (application_uri("edge"), TYPES_URI, machines_uri("edge"), charts_uri("edge"), alarms_uri("0"))
    uris = {UA_URI, *own, *OFFICIAL_URI.values()}
    assert len(uris) == len(Namespace)
    assert sorted(Namespace) == list(range(len(Namespace)))


def test_gateways_of_one_plant_are_distinguished() -> None:
    assert application_uri("a") != application_uri("b")
    assert machines_uri("a") != machines_uri("b")
