"""Secrets are hidden in maps, JSON texts and headers; all other text stays as it is."""

import base64
import json
import time
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.model.secret_text import hide_in_data, hide_in_payload, hide_secrets, is_secret_name
from tests.model.planted_secrets import CANARY, PLANTED


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_secret_is_hidden_in_text_and_in_data(planted: str) -> None:
    for text in (planted, json.dumps({"data": planted}), json.dumps([{"a": json.dumps({"b": planted})}])):
        assert CANARY not in hide_secrets(text).replace("***", "")
    assert CANARY not in str(hide_in_data({"a": [planted]}))


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_planted_secret_is_hidden_in_json_that_is_cut_off(planted: str, depth: int) -> None:
    text = planted
    for _ in range(depth):
        text = json.dumps({"a": text, "b": "torque 85"})
    hidden = hide_secrets(text[:-1])
    assert CANARY not in hidden.replace("***", "")
    assert "torque 85" in hidden


@pytest.mark.parametrize("value", ['"a b", c', '"', "4711", "x\\", "\\", 'a\\"b', ""])
def test_value_in_json_within_json_that_is_cut_off_is_hidden(value: str) -> None:
    text = json.dumps([json.dumps({"user_password": value, "b": "torque 85"}), "other"])
    inner = json.dumps(json.dumps(value))[1:-1]
    hidden = hide_secrets(text[:-1])
    assert f'\\"user_password\\": {inner},' not in hidden or not value
    assert "torque 85" in hidden
    assert hidden.endswith('"other"')


@pytest.mark.parametrize(
    "name", ["password", "userPassword", "accessToken", "token", "X-Api-Key", "secret", "Authorization", "private_key"]
)
@pytest.mark.parametrize("value", ["plain", 4711, {"inner": "plain"}, ["plain"]])
def test_value_of_a_secret_name_is_hidden_whatever_its_type(name: str, value: Any) -> None:
    assert json.loads(hide_secrets(json.dumps({"a": [{name: value}], "b": 1}))) == {"a": [{name: "***"}], "b": 1}
    assert json.loads(hide_in_payload(msgpack.packb({"n\xe4me": 1, "m": {name: value}}))) == {
        "n\xe4me": 1,
        "m": {name: "***"},
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"headers": [["Authorization", "x y"], ["Accept", "a"]]},
        {"headers": [{"name": "authorization", "value": "x y"}]},
        {"JobOrderParameters": [{"ID": "password", "Value": "x y"}]},
        {"params": [{"Key": "api_key", "Value": "x y", "Description": "of the test bench"}]},
        {"Name": "Passwort", "VALUE": {"inner": "x y"}},
        {"headers": [{"key": "X-API-Key", "value": "x y"}]},
    ],
)
def test_header_as_pair_or_member_is_hidden(headers: dict[str, Any]) -> None:
    assert "x y" not in json.dumps(hide_in_data(headers))


@pytest.mark.parametrize(
    "text",
    [
        '{"tag": "oven.temp", "value": 81.50, "at": 1}',
        '{ "broken": "json',
        "basic principles of bearer bonds",
        "secretary, tokenizer, pinned, author, authority, spinning, keyboard=4, monkey: 5",
        '["a", "b"]',
        "https://plant.example/path?x=1",
        '{"name": "torque", "value": 3}',
        '{"password": "", "token": null, "secret": 0}',
    ],
)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert hide_secrets(text) == text


def test_hidden_json_is_still_json_of_the_same_members() -> None:
    hidden = json.loads(hide_secrets('{"a": {"Password": "x", "b": [1, "Bearer abc123def456"]}, "c": 1.0}'))
    assert hidden == {"a": {"Password": "***", "b": [1, "Bearer ***"]}, "c": 1.0}


@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text(max_size=20), st.none())))
def test_any_json_stays_readable(data: dict[str, Any]) -> None:
    assert json.loads(hide_secrets(json.dumps(data))).keys() == data.keys()


@given(st.text(min_size=1, max_size=30).filter(lambda word: ":" not in word))
def test_basic_credentials_are_hidden(password: str) -> None:
    pair = base64.b64encode(f"user:{password}".encode()).decode()
    assert pair not in hide_secrets(f"GET / Basic {pair}")


@pytest.mark.parametrize(
    "text",
    ["a." * 50_000, "eyJ" * 20_000, "token " * 20_000, "[" * 50_000, "Bearer " * 10_000, '{token\\": \\"' * 9_000],
)
def test_hostile_text_takes_less_than_5_s(text: str) -> None:
    began = time.thread_time()
    hide_secrets(text)
    assert time.thread_time() - began < 5


def test_names_that_only_contain_a_word_are_not_secret() -> None:
    names = ("secretary", "tokenizer", "author", "authority", "spin", "pinned", "key", "keyboard", "passing")
    assert not [name for name in names if is_secret_name(name)]
