"""Components, layers and cycles agree with their definitions, on random graphs."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from edge.features.flows.graph import components, cycles, layers, reverse

Graph = dict[str, tuple[str, ...]]

graphs = st.integers(0, 8).flatmap(
    lambda size: st.fixed_dictionaries(
        {
            f"n{node}": st.lists(st.sampled_from([f"n{number}" for number in range(size)]), unique=True)
            for node in range(size)
        }
    )
)


def closure(graph: Graph, *, both_ways: bool) -> set[tuple[str, str]]:
    """Return the pairs of nodes with a path of one edge or more between them."""
    pairs = {(source, target) for source, targets in graph.items() for target in targets}
    if both_ways:
        pairs |= {(target, source) for source, target in pairs} | {(node, node) for node in graph}
    for middle, source, target in product(graph, repeat=3):
        if (source, middle) in pairs and (middle, target) in pairs:
            pairs.add((source, target))
    return pairs


@given(graphs)
def test_components_are_sets_of_connected_nodes(graph: Graph) -> None:
    connected = closure(graph, both_ways=True)
    classes = {tuple(sorted(other for other in graph if (node, other) in connected)) for node in graph}
    assert components(graph) == tuple(sorted(classes))


@given(graphs)
def test_cycles_are_sets_of_mutually_reachable_nodes(graph: Graph) -> None:
    reached = closure(graph, both_ways=False)
    looping = [node for node in graph if (node, node) in reached]
    classes = {
        tuple(sorted(other for other in looping if {(node, other), (other, node)} <= reached)) for node in looping
    }
    assert cycles(graph) == tuple(sorted(classes))


@given(graphs)
def test_layer_of_a_node_is_its_longest_path(graph: Graph) -> None:
    acyclic = {node: tuple(target for target in targets if target > node) for node, targets in graph.items()}
    found = {node: index for index, layer in enumerate(layers(acyclic)) for node in layer}
    sources = reverse(acyclic)
    assert found.keys() == acyclic.keys()
    assert all(
        index == max((found[source] + 1 for source in sources[node]), default=0) for node, index in found.items()
    )
    assert all(list(layer) == sorted(layer) for layer in layers(acyclic))


def test_deep_graph_needs_no_recursion() -> None:
    chain = {f"{node:05}": (f"{node + 1:05}",) if node < 20_000 else () for node in range(20_001)}
    assert cycles(chain) == ()
    assert len(layers(chain)) == 20_001
    assert len(components(chain)) == 1
    ring = {**chain, "20000": ("00000",)}
    assert len(cycles(ring)[0]) == 20_001
