"""Reads the settings from files and environment, and reports every problem at once.

Later sources win, key by key: the named file, `conf.d/*.toml` in its folder, then the environment variables
`EDGE_<SECTION>__<KEY>`, for equipment `EDGE_SOUTHBOUND__<NAME>__<KEY>`.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, get_type_hints

import msgspec
from msgspec import Struct

from edge.config import value
from edge.config.sections import NAME, NAME_EXPECTED, SECTIONS, Section, Settings
from edge.foundation.errors import SettingsError
from edge.foundation.text import Text, join_texts, with_nearest

_PASSWORDS = ("password", "sentinel_password")

DEFAULT_DIRECTORY = "/etc/microdcs-edge"
"""Default directory of `edge.toml` and `conf.d/`, unless systemd names another."""


def load_settings(path: Path | None, environ: Mapping[str, str], sections: Mapping[str, Section]) -> Settings:
    """Read the settings; without a path from the default directory, else the default values.

    `sections` are all that there may be, those of the features included; what is named by its location is imported
    once the settings have it. Raises SettingsError with every problem of every file and variable.
    """
    draft = _SettingsDraft(sections)
    for file in _files(path, environ, draft.problems):
        draft.read_file(file)
    draft.read_environment(environ)
    draft.read_password_files(main_file(path, environ).parent, environ)
    settings = draft.build()
    problems = [*draft.problems, *_conflicts(settings)]
    if problems:
        raise SettingsError(problems, "Correct them all, then check again with: edge check settings FILE")
    return settings


def _files(path: Path | None, environ: Mapping[str, str], problems: list[str | Text]) -> list[Path]:
    """Return the files to read, the main file first; a file named explicitly has to exist."""
    main = main_file(path, environ)
    try:
        if path and not path.exists():
            problems.append(Text.of("{file}: there is no such file", file=path))
        return [file for file in (main, *sorted(main.parent.glob("conf.d/*.toml"))) if file.exists()]
    except PermissionError:
        problems.append(
            Text.of(
                "{file}: this user may not read it; call edge as root (sudo) or as a member of microdcs-edge", file=main
            )
        )
        return []


def main_file(path: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the main settings file, which may be absent: the named one, else that of the default directory."""
    return path or Path(environ.get("CONFIGURATION_DIRECTORY", DEFAULT_DIRECTORY), "edge.toml")


def _password_file(name: str, directory: Path, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the file of a password, and whether root alone has to read it.

    systemd passes each file of `passwords/` to the service as a credential, `mqtt` as `password_mqtt`. The settings may
    name either; in the service both are the credential, elsewhere both are the file.
    """
    passwords = directory / "passwords"
    source = Path(name)
    if credentials := environ.get("CREDENTIALS_DIRECTORY"):
        return Path(credentials, f"password_{source.name}" if source.parent == passwords else name), False
    if name.startswith("password_") and os.access(passwords, os.F_OK):
        source = passwords / name.removeprefix("password_")
    return source, source.parent == passwords


class _RawValue(Struct, frozen=True):
    """A value as written in its source, with the origin."""

    origin: str
    written: Any
    from_environment: bool = False

    def read(self, hint: object) -> value.Reading:
        return value.from_text(self.written, hint) if self.from_environment else value.from_toml(self.written, hint)


class _SettingsDraft:
    """Collects raw values by section and every problem found so far."""

    def __init__(self, sections: Mapping[str, Section]) -> None:
        self.problems: list[str | Text] = []
        self._sections = sections
        self._named = [name for name, section in sections.items() if section.is_named]
        self._given: dict[str, dict[str, _RawValue]] = {}

    def read_file(self, file: Path) -> None:
        """Merge a TOML file; later values win."""
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            self._add_problems(str(file), [Text.of("cannot be read: {reason}", reason=error)])
            return
        for name, table in tables.items():
            if name in self._named and isinstance(table, dict):
                for member, keys in table.items():
                    self._add_table(f"{name}.{member}", keys, str(file))
            elif name in self._sections:
                self._add_table(name, table, str(file))
            else:
                self._add_problems(
                    f"{file}: {name}", [with_nearest(Text("there is no such section"), name, self._sections)]
                )

    def _add_table(self, section: str, table: object, origin: str) -> None:
        if isinstance(table, dict):
            self._given.setdefault(section, {}).update({key: _RawValue(origin, entry) for key, entry in table.items()})
        else:
            self._add_problems(
                f"{origin}: {section}", [Text.of("expected a table, got {kind}", kind=value.kind_of(table))]
            )

    def read_environment(self, environ: Mapping[str, str]) -> None:
        """Merge the variables `EDGE_<SECTION>__<KEY>`; ignore other variables."""
        for variable in sorted(name for name in environ if name.startswith("EDGE_")):
            raw_value = _RawValue(f"environment {variable}", environ[variable], from_environment=True)
            match variable.removeprefix("EDGE_").lower().split("__"):
                case [section, name, key] if section in self._named:
                    self._given.setdefault(self._member(section, name), {})[key] = raw_value
                case [section, key] if section in self._sections and section not in self._named:
                    self._given.setdefault(section, {})[key] = raw_value
                case [name]:
                    self._check_single_underscore(name, raw_value.origin)
                case parts:
                    unknown = with_nearest(Text("there is no such section"), parts[0], self._sections)
                    self._add_problems(f"{raw_value.origin}: {parts[0]}", [unknown])

    def _member(self, section: str, name: str) -> str:
        """Find the section of a variable: `REAR_AXLE` in a variable is `rear-axle` in a file."""
        spelled = f"{section}.{name}"
        return next((known for known in self._given if known.lower().replace("-", "_") == spelled), spelled)

    def _check_single_underscore(self, name: str, origin: str) -> None:
        section, _, key = name.partition("_")
        if section in self._sections and key in self._sections[section].keys.__struct_fields__:
            meant = f"EDGE_{section}__{key}".upper()
            self._add_problems(
                origin, [Text.of("{fault}; did you mean {near}?", fault=Text("not a setting"), near=meant)]
            )

    def read_password_files(self, directory: Path, environ: Mapping[str, str]) -> None:
        """Read passwords from their files; `directory` is that of the settings."""
        for section, raw_values in self._given.items():
            for key in _PASSWORDS:
                match raw_values.get(f"{key}_file"):
                    case _RawValue(origin=origin, written=str(name)) if name:
                        file, for_root = _password_file(name, directory, environ)
                        raw_values[f"{key}_file"] = _RawValue(origin, str(file))
                        self._read_password(section, key, file, for_root=for_root)
                    case _:
                        pass

    def _read_password(self, section: str, key: str, file: Path, *, for_root: bool) -> None:
        raw_values = self._given[section]
        origin = raw_values[f"{key}_file"].origin
        where = f"{origin}: {section}.{key}_file"
        if key in raw_values:
            self._add_problems(where, [Text.of("set this or {other}, not both", other=f"{section}.{key}")])
        try:
            raw_values[key] = _RawValue(origin, file.read_text(encoding="utf-8").rstrip("\r\n"))
        except PermissionError:
            # Most commands do without the passwords that root alone may read; the others ask `password_of`.
            if not for_root:
                self._add_problems(where, [Text.of("{file}: this user may not read it", file=file)])
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self._add_problems(where, [Text.of("there is no file {file}", file=file)])
        except (OSError, ValueError) as error:
            self._add_problems(where, [Text.of("{file} cannot be read: {reason}", file=file, reason=error)])

    def build(self) -> Settings:
        """Build the settings; with problems they serve only to find more problems."""
        core: dict[str, Any] = {}
        added: dict[str, Any] = {}
        for name, section in self._sections.items():
            written = [given for given in self._given if given == name or given.startswith(f"{name}.")]
            built = {
                given: section_value for given in written if (section_value := self._built(section, given)) is not None
            }
            if name == "southbound":
                core[name] = {given.removeprefix("southbound."): item for given, item in built.items()}
            else:
                (core if name in SECTIONS else added).update(built)
        return Settings(**core, sections=added)

    def _built(self, section: Section, name: str) -> Any:
        """Build one section; the keys of equipment or of a source depend on its kind."""
        kind = self._given[name].get("kind")
        if kind is None or not section.kinds:
            return self._section(name, section.keys)
        if not isinstance(kind.written, str) or kind.written not in section.kinds:
            fault = Text.of(
                "expected {expected}, got {given}",
                expected=Text.of("one of {choices}", choices=", ".join(section.kinds)),
                given=repr(kind.written),
            )
            self._add_problems(f"{kind.origin}: {name}.kind", [fault])
            return None
        return self._section(name, section.keys_of(kind.written))

    def _section(self, name: str, cls: type[Struct]) -> Any:
        """Build one section, with defaults for wrong values; None when a required value is wrong."""
        hints = get_type_hints(cls, include_extras=True)
        raw_values = self._given.get(name, {})
        for key in raw_values:
            if key not in hints:
                unknown = with_nearest(Text("there is no such key"), key, hints)
                self._add_problems(f"{raw_values[key].origin}: {name}.{key}", [unknown])
        values: dict[str, Any] = {}
        complete = True
        for field in msgspec.structs.fields(cls):
            hint = hints[field.name]
            if field.name in raw_values:
                reading = raw_values[field.name].read(hint)
                values |= {field.name: reading.value} if reading.value is not None else {}
                self._add_problems(f"{raw_values[field.name].origin}: {name}.{field.name}", reading.faults)
            elif field.required:
                origin = next((other.origin for other in raw_values.values()), "settings")
                fault = Text.of("missing, expected {expected}", expected=value.expected(hint))
                self._add_problems(f"{origin}: {name}.{field.name}", [fault])
            complete = complete and (field.name in values or not field.required)
        return cls(**values) if complete else None

    def _add_problems(self, where: str, faults: Iterable[str | Text]) -> None:
        self.problems.extend(join_texts(": ", (where, fault)) for fault in faults)


def _conflicts(settings: Settings) -> Iterator[str | Text]:
    """Yield the conflicts between keys."""
    southbound = {f"southbound.{name}": equipment for name, equipment in settings.southbound.items()}
    found = {"redis": settings.redis.conflicts(), "mqtt": settings.mqtt.conflicts()}
    found |= {name: equipment.conflicts(settings) for name, equipment in southbound.items()}
    found |= {"opcua": settings.opcua.conflicts()}
    found |= {"rpc": settings.rpc.conflicts(), "metrics": settings.metrics.conflicts()}
    found |= {"retention": settings.retention.conflicts(settings.mqtt.url, settings.mqtt.broker_autosave)}
    found |= {name: section.conflicts(settings) for name, section in settings.sections.items()}
    for name, conflicts in found.items():
        yield from (join_texts(".", (name, conflict)) for conflict in conflicts)
    for name in settings.sections:
        if "." in name and not re.match(NAME, name.partition(".")[2]):
            yield Text.of("{name}: expected {expected}", name=name, expected=Text(NAME_EXPECTED))
    takers: dict[str, str] = {}
    for name, equipment in southbound.items():
        if not re.match(NAME, name.removeprefix("southbound.")):
            yield Text.of("{name}: expected {expected}", name=name, expected=Text(NAME_EXPECTED))
        for type_id in equipment.type_ids:
            if (other := takers.setdefault(type_id, name)) != name:
                yield Text.of(
                    "{name}.type_ids: {type_id} is used by {other} already", name=name, type_id=type_id, other=other
                )


class _Login(Protocol):
    @property
    def password(self) -> str: ...
    @property
    def password_file(self) -> str: ...


def password_of(section: _Login) -> str:
    """Return the password of a section. Raises SettingsError when this user may not read its file."""
    if section.password_file and not section.password:
        _require_access(Path(section.password_file))
    return section.password


def _require_access(file: Path) -> None:
    try:
        file.open("rb").close()
    except PermissionError as error:
        problem = Text.of("password_file: {file}: this user may not read it", file=file)
        raise SettingsError([problem], "Call edge as root (sudo).") from error
    except OSError:  # an empty password was read, and its file is gone
        pass
