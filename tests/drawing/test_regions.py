"""The tree of regions has every block once and each exit with its direction."""

from collections.abc import Iterator

import pytest
from hypothesis import given

from edge.drawing.regions import Chain, Joins, Region, read_regions
from tests.drawing.sketches import Json, any_recipe, recipe_of, selection, simultaneous, sound


def regions_of(chains: tuple[Chain, ...]) -> Iterator[Region]:
    """Yield every region of a tree."""
    for chain in chains:
        for region in chain.regions:
            yield region
            yield from regions_of(tuple(path.chain for path in region.paths))
            yield from regions_of(tuple(item.inline for item in region.exits if item.inline is not None))


@given(any_recipe)
def test_every_block_is_placed_once(data: Json) -> None:
    recipe = sound(data)
    blocks = sorted(region.block for region in regions_of(read_regions(recipe)))
    assert blocks == sorted([step.name for step in recipe.steps] + [branch.name for branch in recipe.branches])


@given(any_recipe)
def test_downward_exit_leads_to_the_next_region(data: Json) -> None:
    for chain in read_regions(sound(data)):
        for region, after in zip(chain.regions, chain.regions[1:], strict=False):
            assert {item.edge.target for item in region.exits if item.down} <= {after.block}


def test_sequence_is_drawn_downward_and_a_loop_is_a_jump() -> None:
    (chain,) = read_regions(recipe_of([("A", "B", "x"), ("B", "A", "y")]))
    assert [region.block for region in chain.regions] == ["A", "B"]
    (down,), (back,) = (region.exits for region in chain.regions)
    assert (down.down, down.leads_on) == (True, True)
    assert (back.down, back.inline, back.edge.target) == (False, None, "A")
    assert not chain.leads_on


def test_alternative_is_drawn_inline_until_it_converges() -> None:
    (chain,) = read_regions(recipe_of([("A", "B", "x"), ("A", "C", "y"), ("B", "D", "z"), ("C", "D", "u")]))
    assert [region.block for region in chain.regions] == ["A", "D"]
    inline = [item.inline for item in chain.regions[0].exits]
    assert [item.regions[0].block for item in inline if item] == ["B", "C"]
    assert all(item.leads_on for item in chain.regions[0].exits)


def test_transition_before_a_selection_enters_each_of_its_paths() -> None:
    recipe = recipe_of(
        [("A", "B", "go"), ("B", "C", "left"), ("B", "D", "right"), ("B", "E", "done")], [selection(["C"], ["D"])]
    )
    (chain,) = read_regions(recipe)
    branch = next(region for region in chain.regions if region.block == "B")
    assert [[edge.conditions for edge in path.entries] for path in branch.paths] == [
        [("go", "left")],
        [("go", "right")],
    ]
    # The transition that leaves the selection stands at the end of every path.
    assert branch.exits == ()
    assert all(path.chain.regions[-1].exits[0].edge.conditions == ("done",) for path in branch.paths)


def test_paths_of_a_simultaneous_branch_continue_without_a_transition() -> None:
    recipe = recipe_of([("A", "B", "go"), ("B", "E", "done")], [simultaneous(["C"], ["D"])])
    (chain,) = read_regions(recipe)
    branch = next(region for region in chain.regions if region.block == "B")
    assert all(path.chain.leads_on and path.chain.regions[-1].continues for path in branch.paths)
    assert [item.edge.conditions for item in branch.exits] == [("done",)]


Arcs = dict[str, list[str]]


def follow(arcs: Arcs, block: str, taken: str = "", outer: str | None = None) -> str | None:
    """Ask what stands straight below a block when those in `taken` are drawn already."""
    joins = Joins(next(iter(arcs)), arcs, {name: [] for name in arcs})
    return joins.follow(block, arcs[block], outer, 0, lambda name: name not in taken)


DIAMOND: Arcs = {"A": ["B", "C"], "B": ["D"], "C": ["D"], "D": []}
SKIP: Arcs = {"A": ["B", "C"], "B": ["C"], "C": []}
ENDS: Arcs = {"A": ["B", "C"], "B": [], "C": []}
LONG: Arcs = {"A": ["B", "X"], "B": ["C"], "C": ["D"], "D": ["E"], "E": [], "X": []}
FAULTS: Arcs = {"A": ["B", "X"], "B": ["C", "X"], "C": ["D", "X"], "D": [], "X": []}


@pytest.mark.parametrize(
    ("arcs", "below"),
    [(DIAMOND, "D"), (SKIP, "C"), (ENDS, None), (LONG, "B"), (FAULTS, "B")],
    ids=["diamond", "skip", "ends", "long", "faults"],
)
def test_common_target_of_a_divergence_is_placed_straight_below(arcs: Arcs, below: str | None) -> None:
    assert follow(arcs, "A") == below


def test_single_path_goes_straight_down() -> None:
    assert follow(DIAMOND, "B") == "D"


def test_block_already_drawn_is_not_drawn_again() -> None:
    assert follow({"A": ["B"], "B": ["A"]}, "B", taken="A") is None
    assert follow({"A": ["B"], "B": ["A", "C"], "C": []}, "B", taken="A") == "C"


def test_short_detour_to_the_convergence_is_not_drawn_inline() -> None:
    arcs: Arcs = {"A": ["B", "C"], "B": ["D", "R"], "R": ["D"], "C": ["D"], "D": []}
    assert follow(arcs, "A") == "D"
    assert follow(arcs, "B", taken="D", outer="D") is None


def test_block_with_many_sources_is_drawn_separately() -> None:
    joins = Joins("A", FAULTS, {name: [] for name in FAULTS})
    assert not joins.stands_inline("X")
    assert joins.stands_inline("B")


def test_block_that_is_never_reached_feeds_a_join() -> None:
    arcs: Arcs = {"A": ["B", "C"], "X": ["D"], "B": ["D"], "C": ["D"], "D": []}
    assert follow(arcs, "A") == "D"


def test_hidden_path_makes_a_block_reachable_without_a_join() -> None:
    joins = Joins("A", {"A": ["B"], "B": [], "X": []}, {"A": ["X"], "B": ["X"], "X": []})
    assert joins.follow("A", ["B"], None, 0, lambda _name: True) == "B"
    assert joins.stands_inline("X")
