"""The features of this gateway, one row each, and the sections of the settings: a row and its folder go together."""

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from edge.app.feature import DocumentKind, Feature, FileFolder
from edge.config import SECTIONS, Section, Settings, load_settings
from edge.equipment.kinds import CORE_KINDS, EquipmentKind
from edge.store.keys import declare_keys

if TYPE_CHECKING:
    from edge.app.feature_ports import ArchivedRun
    from edge.app.page_part import PagePart
    from edge.app.parts import GatewayParts, Works
    from edge.sfc.compiler import RecipeCheck
    from edge.station.settings import Recorder, SettingOrigin
    from edge.uaserver.parts import AddPart

FEATURES = (
    "telemetry",
    "traces",
    "archive",
    "flows",
    "page",
    "joining",
    "vision",
    "openprotocol",
    "readers",
    "lamps",
    "prompts",
    "station_files",
    "fleet",
    "sparkplug",
    "opcua_extras",
    "admin",
    "recipes",
    "simulator",
)


@cache
def features() -> tuple[Feature, ...]:
    """Return what each feature declares, in the order of the rows; the store knows their keys from then on."""
    declared = [importlib.import_module(f"edge.features.{name}.feature").FEATURE for name in FEATURES]
    declare_keys(feature.keys for feature in declared if feature.keys)
    return tuple(declared)


def equipment_kinds() -> Mapping[str, EquipmentKind]:
    """Return every kind of equipment by the value of `kind` in its section."""
    return CORE_KINDS | {name: kind for feature in features() for name, kind in feature.kinds.items()}


def result_members() -> frozenset[str]:
    """Return the members that results of equipment have, of every kind."""
    return frozenset(member for kind in equipment_kinds().values() for member in kind.members)


def equipment_settings() -> Mapping[str, str]:
    """Return the type of the section of each kind, as `module:name`, for `load_settings`."""
    return {name: kind.settings for name, kind in equipment_kinds().items()}


def subcommands(noun: str) -> Mapping[str, str]:
    """Return the location of each command of features below a noun of the core, as `module:name`, by its name."""
    return {name: where for feature in features() for name, where in feature.subcommands.get(noun, {}).items()}


def command_options(command: str) -> Sequence[str]:
    """Return the location of each option that features add to a command of the core, such as `jobs results`."""
    return [feature.options[command] for feature in features() if command in feature.options]


Simulate: TypeAlias = Callable[[object, object], Mapping[str, Any]]
"""Returns the trace of a recipe with a script, as `edge simulate --json`; raises EdgeError for an invalid script."""


def simulation() -> Simulate | None:
    """Return what simulates recipes; None where no feature does."""
    locations = [feature.simulation for feature in features() if feature.simulation]
    return pkgutil.resolve_name(locations[0]) if locations else None


ArchivedRuns: TypeAlias = "Callable[[Settings, str, str, int], Sequence[ArchivedRun]]"
"""Returns at most so many runs of a scope and a Work Master, the newest first; it reads files."""


def archived_runs(settings: Settings, scope: str, work_master: str, most: int) -> "Sequence[ArchivedRun]":
    """Return the newest ended jobs that features keep of a Work Master; it reads files."""
    read: list[ArchivedRuns] = [
        pkgutil.resolve_name(feature.archived_runs)
        for feature in features()
        if feature.archived_runs and feature.is_on(settings)
    ]
    return [run for function in read for run in function(settings, scope, work_master, most)]


def recipe_checks() -> "Sequence[RecipeCheck]":
    """Return what features check in each recipe, on or off: a recipe is written before it runs."""
    return [pkgutil.resolve_name(feature.recipe_check) for feature in features() if feature.recipe_check]


ExamineRecipe: TypeAlias = Callable[[object], tuple[Sequence[str], Sequence[str]]]
"""Returns faults and warnings of a recipe (decoded JSON), as sentences."""


def examine_recipe(recipe: object) -> tuple[Sequence[str], Sequence[str]]:
    """Return the faults and warnings that features find in a recipe which can be loaded; it is imported now."""
    locations = [feature.recipe_examination for feature in features() if feature.recipe_examination]
    examine: list[ExamineRecipe] = [pkgutil.resolve_name(location) for location in locations]
    results = [function(recipe) for function in examine]
    return [text for faults, _ in results for text in faults], [text for _, warnings in results for text in warnings]


def work_master_recorders(settings: Settings, origin: "SettingOrigin") -> "Sequence[Recorder]":
    """Return what features write together with the Work Masters that come from an origin."""
    locations = [feature.work_master_record for feature in features() if feature.work_master_record]
    return [partial(pkgutil.resolve_name(location), settings, origin) for location in locations]


def settings_kinds() -> Mapping[str, str]:
    """Return the location of each kind of station settings of features, for `StationSettings`."""
    return {kind: where for feature in features() for kind, where in feature.settings_kinds.items()}


def document_kinds() -> Mapping[str, DocumentKind]:
    """Return what features have in station files by its kind, in the order in which it is applied."""
    return {name: kind for feature in features() for name, kind in feature.documents.items()}


def page_parts() -> "Sequence[PagePart]":
    """Return what features add to the station page and the HTTP API; it is imported now."""
    return [pkgutil.resolve_name(feature.page) for feature in features() if feature.page]


def has_logins(settings: Settings) -> bool:
    """Return whether people log in to a feature that is on."""
    return any(feature.has_logins and feature.is_on(settings) for feature in features())


def mirrored_sets(settings: Settings) -> tuple[str, ...]:
    """Return the names of the mirrored sets that conditions of recipes may ask for."""
    return tuple(
        name for feature in features() if feature.mirrors for name in pkgutil.resolve_name(feature.mirrors)(settings)
    )


def source_payloads() -> Mapping[str, str]:
    """Return what features read from MQTT sources: by payload the location of what yields the faults of a source."""
    return {payload: where for feature in features() for payload, where in feature.source_payloads.items()}


def folders_of(settings: Settings) -> Mapping[str, FileFolder]:
    """Return the folders of features that a backup keeps, by their names in it."""
    found = [pkgutil.resolve_name(feature.folders)(settings) for feature in features() if feature.folders]
    return {name: folder for folders in found for name, folder in folders.items()}


def discovery_capabilities(settings: Settings) -> tuple[str, ...]:
    """Return the identifiers of what clients find: live data, and what features add, such as alarms and history."""
    found = (pkgutil.resolve_name(feature.discovered_as)(settings) for feature in features() if feature.discovered_as)
    return ("DA", *(name for names in found for name in names))


async def prepare_features(stack: AsyncExitStack, core: "GatewayParts") -> None:
    """Open what features need before equipment is opened."""
    for feature in features():
        if feature.is_on(core.settings):
            await _open(stack, core, feature, feature.prepare)


async def open_features(stack: AsyncExitStack, core: "GatewayParts", works: "Works") -> None:
    """Open what features do before any call is accepted."""
    for feature in features():
        await _open(stack, core, feature, feature.open if _is_open(core, feature) else feature.open_off, works)


async def serve_features(stack: AsyncExitStack, core: "GatewayParts", works: "Works") -> None:
    """Open what features serve when the MES and OPC UA clients are served."""
    for feature in features():
        if _is_open(core, feature):
            await _open(stack, core, feature, feature.serve, works)


def _is_open(core: "GatewayParts", feature: Feature) -> bool:
    return feature.is_on(core.settings) and all(name in core.ports for name in feature.needs)


async def _open(stack: AsyncExitStack, core: "GatewayParts", feature: Feature, function: str, *works: "Works") -> None:
    if not function:
        return
    opened = await pkgutil.resolve_name(function)(stack, core, *works)
    if opened is not None:
        core.opened.append(opened)
        if opened.port is not None:
            core.ports[feature.name] = opened.port


def opcua_parts(core: "GatewayParts") -> "list[AddPart]":
    """Return what features add to an OPC UA server; it is imported now."""
    locations = [feature.opcua if feature.is_on(core.settings) else feature.opcua_off for feature in features()]
    return [partial(pkgutil.resolve_name(location), core) for location in locations if location]


def calls_switched_off(core: "GatewayParts") -> Mapping[str, str]:
    """Return how to switch on what would execute a call, by the type of the call."""
    off = [feature for feature in features() if not feature.is_on(core.settings)]
    return {call: feature.switch for feature in off for call in feature.calls}


def gateway_settings(file: Path | None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Load the settings of a gateway with its features. Raises SettingsError with every problem."""
    return load_settings(file, environ, declared_sections())


def declared_sections() -> Mapping[str, Section]:
    """Return each section by its name, in the order of reports and pages, for `load_settings`."""
    sections = dict(SECTIONS) | {"southbound": replace(SECTIONS["southbound"], kinds=equipment_settings())}
    names = list(sections)
    for feature in features():
        added: Mapping[str, Section] = pkgutil.resolve_name(feature.sections) if feature.sections else {}
        for name, section in added.items():
            names.insert(names.index(section.after) + 1 if section.after in names else len(names), name)
        sections |= added
    return {name: sections[name] for name in names}
