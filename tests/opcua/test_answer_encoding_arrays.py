"""A shared array is a normal variant, compared by identity and never copied."""

import copy

from asyncua import ua
from asyncua.ua.ua_binary import extensionobject_to_binary, variant_to_binary

from edge.opcua.answer_encoding import SharedArray, array_of_bodies, shared_array

TYPE = ua.NodeId(5014, 5)
STRUCTURES = [ua.ExtensionObject(TypeId=TYPE, Body=b"x" * size) for size in range(4)]


def made(structures: list[ua.ExtensionObject]) -> SharedArray:
    return shared_array(structures, [extensionobject_to_binary(structure) for structure in structures])


def bodies(structures: list[ua.ExtensionObject]) -> list[bytes]:
    return [structure.Body or b"" for structure in structures]


def test_encoding_and_size_are_those_of_a_variant() -> None:
    array = made(STRUCTURES)
    assert b"".join(array.encoded()) == variant_to_binary(array)
    assert array.size == len(variant_to_binary(array))


def test_an_empty_array_is_encoded_as_empty() -> None:
    assert b"".join(made([]).encoded()) == variant_to_binary(
        ua.Variant([], ua.VariantType.ExtensionObject, is_array=True)
    )


def test_parts_beyond_the_end_are_shorter() -> None:
    assert made(STRUCTURES).part(3, 9).Value == STRUCTURES[3:]
    assert made(STRUCTURES).part(9, 12).Value == []


def test_copies_are_the_same_and_equality_is_identity() -> None:
    array = made(STRUCTURES)
    assert copy.deepcopy(array) is array
    assert array == array  # noqa: PLR0124 - the subject of this test
    assert array != made(STRUCTURES)


def test_array_of_bodies_is_that_of_encoded_structures() -> None:
    for structures in ([], STRUCTURES):
        whole, expected = array_of_bodies(TYPE, bodies(structures)), made(structures)
        assert [whole.encoded(), whole.size] == [expected.encoded(), expected.size]
    assert array_of_bodies(TYPE, bodies(STRUCTURES)).part(1, 2).encoded() == made(STRUCTURES).part(1, 2).encoded()
