"""The tree of regions has every block once and each exit with its direction."""

from collections.abc import Iterator

from hypothesis import given

from edge.chart.regions import Chain, Region, read_regions
from tests.chart.sketches import Json, any_recipe, recipe_of, selection, simultaneous, sound


def regions_of(chains: tuple[Chain, ...]) -> Iterator[Region]:
    """Yield every region of a tree."""
    for chain in chains:
        for region in chain.regions:
            yield region
            yield from regions_of(tuple(path.chain for path in region.paths))
            yield from regions_of(tuple(each.inline for each in region.exits if each.inline is not None))


@given(any_recipe)
def test_every_block_is_placed_once(data: Json) -> None:
    recipe = sound(data)
    blocks = sorted(region.block for region in regions_of(read_regions(recipe)))
    assert blocks == sorted([each.name for each in recipe.steps] + [each.name for each in recipe.branches])


@given(any_recipe)
def test_downward_exit_leads_to_the_next_region(data: Json) -> None:
    for chain in read_regions(sound(data)):
        for region, after in zip(chain.regions, chain.regions[1:], strict=False):
            assert {each.edge.target for each in region.exits if each.down} <= {after.block}


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
    inline = [each.inline for each in chain.regions[0].exits]
    assert [each.regions[0].block for each in inline if each] == ["B", "C"]
    assert all(each.leads_on for each in chain.regions[0].exits)


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
    assert all(path.chain.leads_on and path.chain.regions[-1].goes_on for path in branch.paths)
    assert [each.edge.conditions for each in branch.exits] == [("done",)]
