"""Settings are read from files and environment, later sources override, and all problems are reported."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from edge.app.features import declared_sections, equipment_settings
from edge.config import MqttEquipmentSettings, MqttSettings, Settings, load_settings, main_file, password_of
from edge.foundation.errors import SettingsError


def write(directory: Path, text: str, name: str = "edge.toml") -> Path:
    """Write a settings file and return its path."""
    file = directory / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def problems(path: Path | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the settings are refused for."""
    with pytest.raises(SettingsError) as refused:
        load_settings(path, environ, declared_sections())
    return refused.value.problems


def test_settings_file_is_the_given_one_or_that_of_the_directory() -> None:
    assert main_file(Path("x.toml"), {}) == Path("x.toml")
    assert main_file(None, {"CONFIGURATION_DIRECTORY": "/some"}) == Path("/some/edge.toml")
    assert main_file(None, {}) == Path("/etc/microdcs-edge/edge.toml")


def test_defaults_apply_without_files(tmp_path: Path) -> None:
    assert load_settings(None, {"CONFIGURATION_DIRECTORY": str(tmp_path)}, declared_sections()) == Settings()


def test_systemd_directory_is_read_without_a_path(tmp_path: Path) -> None:
    write(tmp_path, '[gateway]\nname = "line-4"')
    assert load_settings(None, {"CONFIGURATION_DIRECTORY": str(tmp_path)}, declared_sections()).gateway.name == "line-4"


@pytest.mark.parametrize(
    "topic_filter", ["a", "/", "+", "#", "a/+/b", "a//b", "$share/g/a/#", "$SYS/#", "+/+/#", "é/ü"]
)
def test_topic_filter_of_the_standard_is_accepted(tmp_path: Path, topic_filter: str) -> None:
    file = write(tmp_path, f"[northbound]\nresponse_topics = ['{topic_filter}']")
    assert load_settings(file, {}, declared_sections()).northbound.response_topics == (topic_filter,)


def test_later_sources_override_earlier_ones_per_key(tmp_path: Path) -> None:
    main = write(tmp_path, '[redis]\nurl = "redis://a"\nprefix = "a"\n[gateway]\nname = "a"\nscopes = ["a"]')
    write(tmp_path, '[redis]\nprefix = "b"\n[gateway]\nname = "b"', "conf.d/10-b.toml")
    write(tmp_path, '[gateway]\nname = "c"', "conf.d/20-c.toml")
    settings = load_settings(main, {"EDGE_GATEWAY__SCOPES": "d, e"}, declared_sections())
    assert (settings.redis.url, settings.redis.prefix) == ("redis://a", "b")
    assert (settings.gateway.name, settings.gateway.scopes) == ("c", ("d", "e"))


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("EDGE_SOUTHBOUND__TOOL__TYPE_IDS", "tighten,loosen", {"tool": ("tighten", "loosen")}),
        ("EDGE_SOUTHBOUND__TOOL__TYPE_IDS", '["a,b", "c"]', {"tool": ("a,b", "c")}),
    ],
)
def test_equipment_is_configured_by_variables_alone(
    tmp_path: Path, variable: str, text: str, expected: dict[str, tuple[str, ...]]
) -> None:
    environ = {"CONFIGURATION_DIRECTORY": str(tmp_path), variable: text}
    southbound = load_settings(None, environ, declared_sections()).southbound
    assert {name: equipment.type_ids for name, equipment in southbound.items()} == expected


def test_variable_configures_equipment_with_a_special_name(tmp_path: Path) -> None:
    file = write(tmp_path, '[southbound.Rear-axle]\ntype_ids = ["tighten"]')
    settings = load_settings(file, {"EDGE_SOUTHBOUND__REAR_AXLE__TOPIC_PREFIX": "plant/tools"}, declared_sections())
    assert settings.southbound == {
        "Rear-axle": MqttEquipmentSettings(type_ids=("tighten",), topic_prefix="plant/tools")
    }


def test_numbers_in_variables_are_read_as_numbers(tmp_path: Path) -> None:
    environ = {"CONFIGURATION_DIRECTORY": str(tmp_path), "EDGE_RETENTION__ENDED_JOBS": "3600"}
    assert load_settings(None, environ, declared_sections()).retention.ended_jobs == 3600


def test_password_is_read_from_systemd_credentials_and_hidden(tmp_path: Path) -> None:
    write(tmp_path, "correct horse\n", "redis-password")
    file = write(tmp_path, '[redis]\npassword_file = "redis-password"')
    settings = load_settings(file, {"CREDENTIALS_DIRECTORY": str(tmp_path)}, declared_sections())
    assert settings.redis.password == "correct horse"
    assert "horse" not in repr(settings)


def test_password_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    secret = tmp_path / "redis-password"
    secret.write_bytes("Schlüssel".encode("latin-1"))
    (problem,) = problems(write(tmp_path, f"[redis]\npassword_file = '{secret}'"), {})
    assert f"redis.password_file: {secret} cannot be read: 'utf-8' codec can't decode" in problem


def test_other_variables_with_a_similar_prefix_are_ignored(tmp_path: Path) -> None:
    environ = {"CONFIGURATION_DIRECTORY": str(tmp_path), "EDGE_HOME": "/somewhere", "EDGEWISE": "1"}
    assert load_settings(None, environ, declared_sections()) == Settings()


@pytest.mark.parametrize(
    ("toml", "reported"),
    [
        ("[gatewy]\nname = 'x'", "gatewy: there is no such section; did you mean gateway?"),
        ("gateway = 3", "gateway: expected a table, got a whole number"),
        ("southbound = []", "southbound: expected a table, got a list"),
        ("southbound.tool = 1", "southbound.tool: expected a table, got a whole number"),
        ("[redis]\nulr = 'x'", "redis.ulr: there is no such key; did you mean url?"),
        ("[redis]\npassword = 12345", "redis.password: expected a text, got a whole number"),
        ("[redis]\nurl = 'http://me:secret@h'", "redis.url: expected a URL that begins with redis: or"),
        ("[redis]\nurl = 'localhost'", "redis.url: expected a URL that begins with redis: or"),
        ("[redis]\nurl = 'redis://'", "redis.url: expected a host, as in redis://127.0.0.1"),
        (
            "[redis]\nurl = 'redis://store..local'",
            "redis.url: 'store..local' cannot be a host name: between two dots are 1 to 63 characters",
        ),
        (
            "[redis]\nurl = 'redis+sentinel://:secret@one:26379,two..local:26379/line'",
            "redis.url: 'two..local' cannot be a host name: between two dots are 1 to 63 characters",
        ),
        ("[redis]\nurl = 'redis://h:port'", "redis.url: not a URL"),
        (
            "[redis]\nurl = 'redis+sentinel://h:1,i:2'",
            "redis.url: expected redis+sentinel://host:port,host:port/service",
        ),
        (
            "[redis]\nurl = 'redis+sentinel://h/line'",
            "redis.url: expected redis+sentinel://host:port,host:port/service",
        ),
        ("[redis]\nurl = 'unix://redis.sock'", "redis.url: expected the path of a socket"),
        ("[redis]\nprefix = 'a:b'", "redis.prefix: expected a name without blanks or any of"),
        ("[redis]\npassword_file = '/no/such'", "redis.password_file: there is no file /no/such"),
        ("[mqtt]\npassword_file = '/no/such'", "mqtt.password_file: there is no file /no/such"),
        ("[opcua]\nnodesets = '/no/such'", "opcua.nodesets: there is no directory /no/such"),
        ("[mqtt]\ncert_file = '/no/such'", "mqtt.cert_file: there is no file /no/such"),
        (
            "[northbound]\ntopic_prefix = 'a/+/b'",
            "northbound.topic_prefix: expected an MQTT topic without wildcards",
        ),
        *(
            (
                f"[northbound]\nresponse_topics = ['{word}']",
                "northbound.response_topics: expected a list with at least one entry, each an MQTT topic filter",
            )
            for word in ("", "$share/g", "$share/g/", "$share//a", "$share/+/a", "a/#/b", "a#", "+a/b", "#/a", "a b")
        ),
        (
            "[northbound]\nmax_downloadable_job_orders = 0",
            "expected a whole number of at least 1 and at most 65535, got 0",
        ),
        (
            "[retention]\ndedupe = 1.5",
            "retention.dedupe: expected a whole number of at least 1, got a number",
        ),
        ("[retention]\ndedupe = true", "retention.dedupe: expected a whole number of at least 1, got True"),
        ("[gateway]\nscopes = []", "gateway.scopes: expected a list with at least one entry"),
        ("[gateway]\nname = 2026-01-01", "gateway.name: expected a name without blanks"),
        (
            "[logging]\nlevel = 'loud'",
            "logging.level: expected one of debug, info, warning, error, got 'loud'",
        ),
        ("[southbound.tool]", "southbound.tool.type_ids: missing, expected a list with at least one entry"),
        (
            "[southbound.tool]\ntype_ids = ['a']\nkind = 'fax'",
            f"southbound.tool.kind: expected one of {', '.join(equipment_settings())}, got 'fax'",
        ),
        (
            "[southbound.eye]\ntype_ids = ['a']\nkind = 'vision'",
            "southbound.eye.url: missing, expected a URL that begins with opc.tcp:",
        ),
        (
            "[southbound.eye]\ntype_ids = ['a']\nkind = 'vision'\nurl = 'opc.tcp://eye:4840'",
            "southbound.eye.cert_file: needed, because security is encrypted",
        ),
        (
            "southbound.eye = {type_ids=['a'], kind='vision', url='opc.tcp://eye', security='none', trusted='/'}",
            "southbound.eye.security: certificates are given, but none does not use them; expected encrypted",
        ),
        ("[southbound.'a/b']\ntype_ids = ['a']", "southbound.a/b: expected a name without blanks"),
        (
            "mqtt.url = ''\nsouthbound.tool.type_ids = ['a']",
            "southbound.tool.url: needed, because mqtt.url is empty",
        ),
        (
            "southbound.tool = {type_ids=['a'], username='cell'}",
            "southbound.tool.url: needed, because a user or certificates are given for it",
        ),
        (
            "southbound.tool = {type_ids=['a'], url='mqtt://cell', ca_file='/dev/null'}",
            "southbound.tool.url: certificates are given, but mqtt: does not use them; expected mqtts:",
        ),
        (
            "southbound.one.type_ids = ['a']\nsouthbound.two.type_ids = ['b', 'a']",
            "southbound.two.type_ids: a is used by southbound.one already",
        ),
        ("[gateway\n", "cannot be read: "),
        (f"deep = {'[' * 5000}", "cannot be read: maximum recursion depth"),
    ],
)
def test_problem_is_reported_with_place_and_expected_value(tmp_path: Path, toml: str, reported: str) -> None:
    (problem, *_) = problems(write(tmp_path, toml), {})
    assert reported in problem
    assert "secret" not in problem


@pytest.mark.parametrize(
    ("variable", "text", "reported"),
    [
        (
            "EDGE_GATEWY__NAME",
            "x",
            "environment EDGE_GATEWY__NAME: gatewy: there is no such section; did you mean gateway?",
        ),
        (
            "EDGE_REDIS__ULR",
            "x",
            "environment EDGE_REDIS__ULR: redis.ulr: there is no such key; did you mean url?",
        ),
        ("EDGE_REDIS_URL", "x", "environment EDGE_REDIS_URL: not a setting; did you mean EDGE_REDIS__URL?"),
        (
            "EDGE_RETENTION__DEDUPE",
            "soon",
            "retention.dedupe: expected a whole number of at least 1, got 'soon'",
        ),
        ("EDGE_GATEWAY__SCOPES", "[1", "gateway.scopes: expected a list with at least one entry"),
        ("EDGE_SOUTHBOUND__TOOL", "x", "environment EDGE_SOUTHBOUND__TOOL: southbound: "),
    ],
)
def test_a_problem_of_a_variable_is_reported_with_its_name(
    tmp_path: Path, variable: str, text: str, reported: str
) -> None:
    (problem,) = problems(None, {"CONFIGURATION_DIRECTORY": str(tmp_path), variable: text})
    assert reported in problem


@pytest.mark.parametrize(
    ("keys", "reported"),
    [
        (("cert_file",), "mqtt.cert_file, key_file: the one needs the other"),
        (("ca_file",), "mqtt.url: certificates are given, but mqtt: does not use them; expected mqtts:"),
    ],
)
def test_conflicting_keys_are_reported(tmp_path: Path, keys: tuple[str, ...], reported: str) -> None:
    certificate = write(tmp_path, "", "certificate.pem")
    lines = "\n".join(f"{key} = '{certificate}'" for key in keys)
    assert reported in problems(write(tmp_path, f"[mqtt]\n{lines}"), {})


@pytest.mark.parametrize(
    ("keys", "reported"),
    [
        ("listen = 'tcp://0.0.0.0:5005'", ["rpc.listen: with tcp: every host of the network could start jobs"]),
        ("listen = 'tcp://station.plant:5005'", ["rpc.listen: with tcp: every host of the network"]),
        ("listen = 'tcp://[::]:5005'", ["rpc.listen: with tcp: every host of the network"]),
        ("listen = 'tcp://127.0.0.1'", ["rpc.listen: expected a port, as in tcp://127.0.0.1:5005"]),
        ("listen = 'tcp://127.0.0.1:x'", ["rpc.listen: not a URL"]),
        ("listen = 'tcp://'", ["rpc.listen: expected a host"]),
        ("listen = 'http://127.0.0.1:80'", ["rpc.listen: expected a URL that begins with tcp: or tls: or unix:"]),
        ("listen = 'unix://rpc.sock'", ["rpc.listen: expected the path of a socket"]),
        (
            "listen = 'tls://0.0.0.0:5005'\ncert_file = '{file}'",
            ["rpc.key_file: needed, because listen is tls:", "rpc.ca_file: needed, because listen is tls:"],
        ),
        ("listen = 'tcp://[::1]:5005'\nca_file = '{file}'", ["rpc.listen: certificates are given, but only tls: uses"]),
        ("cert_file = '{file}'", ["rpc.listen: certificates are given, but only tls: uses them"]),
    ],
)
def test_remote_calls_require_client_certificates(tmp_path: Path, keys: str, reported: list[str]) -> None:
    certificate = write(tmp_path, "", "certificate.pem")
    found = problems(write(tmp_path, f"[rpc]\n{keys.format(file=certificate)}"), {})
    assert len(found) == len(reported)
    assert all(expected in problem for expected, problem in zip(reported, found, strict=True))


@pytest.mark.parametrize(
    "listen",
    [
        "",
        "tcp://127.0.0.1:5005",
        "tcp://127.8.0.1:1",
        "tcp://[::1]:5005",
        "tcp://localhost:5005",
        "unix:///run/rpc.sock",
    ],
)
def test_calls_from_this_host_need_no_certificate(tmp_path: Path, listen: str) -> None:
    assert load_settings(write(tmp_path, f"[rpc]\nlisten = '{listen}'"), {}, declared_sections()).rpc.listen == listen


def test_password_and_password_file_together_are_refused(tmp_path: Path) -> None:
    secret = write(tmp_path, "x", "secret")
    file = write(tmp_path, f"[redis]\npassword = 'x'\npassword_file = '{secret}'")
    assert problems(file, {}) == (f"{file}: redis.password_file: set this or redis.password, not both",)


def test_all_problems_of_all_sources_are_reported_together(tmp_path: Path) -> None:
    file = write(tmp_path, "[redis]\nulr = 'x'\nprefix = 3\n[nothing]\n")
    broken = write(tmp_path, "[", "conf.d/broken.toml")
    reported = problems(file, {"EDGE_LOGGING__LEVEL": "loud"})
    assert len(reported) == 5
    assert {problem.split(": ")[0] for problem in reported} == {
        str(file),
        str(broken),
        "environment EDGE_LOGGING__LEVEL",
    }


def test_missing_requested_file_is_reported(tmp_path: Path) -> None:
    missing = tmp_path / "edge.toml"
    assert problems(missing, {}) == (f"{missing}: there is no such file",)


def test_settings_file_may_be_a_device_but_not_a_directory(tmp_path: Path) -> None:
    assert load_settings(Path(os.devnull), {}, declared_sections()) == Settings()
    assert "cannot be read" in problems(tmp_path, {})[0]


def test_settings_error_has_advice(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(tmp_path / "none.toml", {}, declared_sections())
    assert "edge check settings" in refused.value.advice


def test_sentinel_url_with_several_addresses_is_accepted(tmp_path: Path) -> None:
    url = "redis+sentinel://edge:secret@10.0.0.1:26379,10.0.0.2:26379/line"
    assert load_settings(write(tmp_path, f"[redis]\nurl = '{url}'"), {}, declared_sections()).redis.url == url


def test_password_is_read_from_the_settings(tmp_path: Path) -> None:
    assert password_of(MqttSettings()) == ""
    assert password_of(MqttSettings(password="sesame", password_file=str(tmp_path / "gone"))) == "sesame"


def test_password_is_empty_if_its_file_is_missing(tmp_path: Path) -> None:
    assert password_of(MqttSettings(password_file=str(tmp_path / "gone"))) == ""


def test_unreadable_password_advises_to_use_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> Any:
        raise PermissionError

    file = tmp_path / "mqtt"
    monkeypatch.setattr(io, "open", refuse)
    with pytest.raises(SettingsError, match=f"password_file: {file}: this user may not read it") as raised:
        password_of(MqttSettings(password_file=str(file)))
    assert raised.value.advice == "Call edge as root (sudo)."
