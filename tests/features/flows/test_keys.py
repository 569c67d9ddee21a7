"""Keys of node tasks differ, whatever their ids are."""

from itertools import product

from edge.features.flows.keys import node_task
from edge.store.keys import Keys, key_part


def test_ids_with_separators_make_different_keys() -> None:
    ids = ["a", "a_1", "a_1_b", "a:b", "a%3Ab", "1_b", "b"]
    built = [node_task(Keys("p"), flow, 1, node) for flow, node in product(ids, ids)]
    assert len(set(built)) == len(built)
    assert key_part("press:1") == "press%3A1"
