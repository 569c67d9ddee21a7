"""The schema of `station.json` describes each member and has a list for each kind of resource."""

import msgspec

from edge.features.station_files.objects import LIMIT, LISTS, ScopeFile, station_file_schema
from edge.model.acceptance import ResourceKind


def test_members_are_the_limit_and_a_list_for_each_kind_of_resource() -> None:
    assert set(LISTS.values()) == set(ResourceKind)
    assert [field.encode_name for field in msgspec.structs.fields(ScopeFile)] == [LIMIT, *LISTS]


def test_schema_refuses_unknown_members_and_describes_the_others() -> None:
    definition = station_file_schema()["$defs"]["ScopeFile"]
    assert definition["additionalProperties"] is False
    assert all(value["description"] for value in definition["properties"].values())
