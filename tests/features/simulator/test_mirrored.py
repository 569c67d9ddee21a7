"""The mirrored sets of a script become copies of these sets."""

from edge.features.simulator.mirrored import mirrored
from edge.sfc.mirror_copy import MirrorCopy


def test_set_members_are_replaced_and_a_null_set_is_stale() -> None:
    first = mirrored({}, {"carriers": ["C1", "C2"], "tools": None})
    assert first == {"carriers": MirrorCopy(frozenset({"C1", "C2"}))}
    assert mirrored(first, {"carriers": None}) == {"carriers": MirrorCopy(frozenset({"C1", "C2"}), is_stale=True)}
    assert mirrored(first, {"carriers": []}) == {"carriers": MirrorCopy(frozenset())}
