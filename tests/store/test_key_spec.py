"""A key specification matches the keys that are built by it, and no two ids make one key."""

from itertools import product

from edge.store.key_spec import KeySpec, Lifetime, key_part
from edge.store.keys import Keys


def test_expression_matches_keys_of_the_pattern_only() -> None:
    expression = KeySpec("joborder", "joborder:{id}", "hash", Lifetime.JOB, "A job").expression()
    assert expression.fullmatch("joborder:J:1\n2")
    assert not expression.fullmatch("joborders:J1")


def test_ids_with_separators_make_different_keys() -> None:
    ids = ["a", "a_1", "a_1_b", "a:b", "a%3Ab", "1_b", "b"]
    built = [Keys("p").node_task(flow, 1, node) for flow, node in product(ids, ids)]
    assert len(set(built)) == len(built)
    assert key_part("press:1") == "press%3A1"
