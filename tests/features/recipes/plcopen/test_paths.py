"""The blocks of a level become a path with selections between the blocks that every run passes."""

import pytest

from edge.features.recipes.plcopen.paths import LoopError, Path, PathChoice, PathItem, arrange


def test_a_sequence_is_a_path() -> None:
    assert arrange({1, 2, 3}, {1: [2], 2: [3]}, 1, 3) == (1, 2, 3)


def test_ways_around_become_a_selection_in_their_order() -> None:
    graph = {1: [4, 2, 5], 2: [3], 3: [5], 4: [5]}
    assert arrange({1, 2, 3, 4, 5}, graph, 1, 5) == (1, PathChoice(((4,), (2, 3))), 5)


def test_selections_nest() -> None:
    graph = {1: [2, 7], 2: [3, 4], 3: [5], 4: [5], 5: [6], 7: [6]}
    assert arrange({1, 2, 3, 4, 5, 6, 7}, graph, 1, 6) == (1, PathChoice(((2, PathChoice(((3,), (4,))), 5), (7,))), 6)


def test_rework_behind_the_last_block_stands_before_it() -> None:
    assert arrange({1, 2, 3}, {1: [2], 2: [3], 3: [1]}, 1, 2) == (1, PathChoice(((3,),)), 2)


def test_a_loop_around_the_only_block_has_no_form() -> None:
    with pytest.raises(LoopError):
        arrange({1, 2}, {1: [2], 2: [1]}, 1, 1)


def test_every_block_stands_in_a_path_once() -> None:
    size = 60
    graph = {number: [(number * 7 + 3) % size, (number + 1) % size, (number * 13) % size] for number in range(size)}

    def blocks(path: PathItem | Path) -> list[int]:
        match path:
            case int() as block:
                return [block]
            case PathChoice(paths=paths):
                return [block for part in paths for block in blocks(part)]
            case parts:
                return [block for part in parts for block in blocks(part)]

    assert sorted(blocks(arrange(set(range(size)), graph, 0, 41))) == list(range(size))
