"""What a feature declares, and what it adds to an open gateway.

A declaration is data and imports nothing heavy: what runs is named as `module:name`, and imported when it is used.

    FEATURE = Feature("traces", prepare="edge.features.traces.service:open_traces")
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from edge.config import Settings
from edge.foundation.text import Text

if TYPE_CHECKING:
    from edge.access.operations import Executor
    from edge.app.component import ComponentPart
    from edge.equipment.kinds import EquipmentKind
    from edge.foundation.metric import MetricFamily
    from edge.model.plant import OperationType
    from edge.northbound.reply import Handler


class Noun(Struct, frozen=True):
    """A noun of the command `edge`: the module that defines it under its name, and the first line of its help."""

    module: str
    help: str


class DocumentKind(Struct, frozen=True):
    """A kind of documents in station files."""

    folder: str
    """The folder of its files below that of all."""
    key: str
    """The location of the key in Redis that exists where the store has one; without it nothing is read of them."""
    documents: str = ""
    """Called as `function(settings, ports)`, returns `Documents` (`edge.app.documents`).

    Without it they are the items of the kind of station settings of the same name.
    """


class FileFolder(Struct, frozen=True):
    """A folder of files that a backup keeps; `pattern` matches those that belong to the gateway."""

    path: Path
    pattern: str = "*"
    holds: str | Text = ""
    """What the files are, as people name it, such as "keys of administrators"."""


def _always(_settings: Settings) -> bool:
    return True


class Feature(Struct, frozen=True):
    """A feature of a gateway: one folder below `edge/features`, and one row in `edge.app.features`.

    A function of a phase is called as `function(stack, core)`, from `open` on with the works of the station, too. It
    returns what it adds as `Opened`, or None, and ends it with `stack`.
    """

    name: str
    commands: Mapping[str, Noun] = {}
    """Its nouns of the command `edge`."""
    subcommands: Mapping[str, Mapping[str, str]] = {}
    """Its commands below nouns of the core: by noun and name the location of each, as `module:name`."""
    page: str = ""
    """Its part of the station page and the HTTP API, on or off: the location of a `PagePart` (`edge.app.page_part`)."""
    options: Mapping[str, str] = {}
    """Its option of a command of the core, such as `jobs results`: the location of what `click.option` returned."""
    keys: str = ""
    """The module that defines its keys in Redis: `edge.features.NAME.keys`."""
    sections: str = ""
    """Its sections of the settings: the location of a mapping of names to `Section`."""
    mirrors: str = ""
    """Returns the names of the mirrored sets that the settings have, for conditions of recipes."""
    source_payloads: Mapping[str, str] = {}
    """What it reads from MQTT sources, `[source.NAME] payload`: by payload, what yields the faults of such a source."""
    folders: str = ""
    """Returns each `FileFolder` that a backup keeps, by its name in it; what is in the store is kept in any case."""
    has_logins: bool = False
    """Whether people log in there while it is on."""
    payloads: Mapping[str, tuple[str, str]] = {}
    """The model of each payload that it publishes or takes, and its CloudEvents type, by the name of its schema."""
    schemas: Mapping[str, str] = {}
    """What returns the schema of each document that it reads, by the name of the schema."""
    archived_runs: str = ""
    """Returns the newest ended jobs of a Work Master that it keeps (`ArchivedRuns` of `edge.app.features`)."""
    simulation: str = ""
    """Runs a recipe against a script in virtual time (`Simulate` of `edge.app.features`)."""
    recipe_check: str = ""
    """Returns the faults that it finds in a recipe (`RecipeCheck` of `edge.sfc.compiler`)."""
    recipe_examination: str = ""
    """Returns what a job can meet in a recipe that can be loaded (`ExamineRecipe` of `edge.app.features`)."""
    work_master_record: str = ""
    """Returns what it writes with Work Masters: `function(settings, origin, store, scope, work_masters)`."""
    settings_kinds: Mapping[str, str] = {}
    """Its kinds of station settings (`config.*` of the MES): the location of the `ListedSetting`, by kind."""
    documents: Mapping[str, DocumentKind] = {}
    """Its documents in station files by their kind, in the order in which they are applied."""
    kinds: "Mapping[str, EquipmentKind]" = {}
    """Its kinds of equipment, by the value of `kind`."""
    is_on: "Callable[[Settings], bool]" = _always
    """Whether the settings switch it on; what is off is not imported."""
    needs: Sequence[str] = ()
    """The features without whose ports it is not opened."""
    prepare: str = ""
    """Called before equipment is opened."""
    open: str = ""
    """Called when the station works, before any call is accepted."""
    open_off: str = ""
    """Called in place of `open` where it is off: it opens what works in any case."""
    serve: str = ""
    """Called when the MES and OPC UA clients are served."""
    opcua: str = ""
    """Called as `function(core, new)` with each OPC UA server that is made (`edge.uaserver.parts`).

    It returns a `ServerPart`, or None.
    """
    opcua_off: str = ""
    """Called in place of `opcua` where it is off: the namespace of types is the same whatever is on."""
    discovered_as: str = ""
    """Returns what OPC UA clients find of it: the identifiers that discovery announces (OPC 10000-12, D)."""
    brokers: str = ""
    """Returns the brokers that it uses for settings, for `edge doctor` and `edge init`.

    They are pairs of `MqttSettings` and a `BrokerSubscriber` (`edge.links.mqtt_broker`).
    """
    checks: str = ""
    """Returns what `edge doctor` examines for settings: pairs of a subject and its findings."""
    calls: Sequence[str] = ()
    """The types of the calls that it executes while it is on."""
    switch: str = ""
    """How to switch it on, for the user who calls it."""


class Opened(Struct, frozen=True):
    """What a feature adds to an open gateway; only what there is."""

    port: object = None
    """What other features use of it: `core.ports[name]`."""
    calls: "Mapping[str, Handler]" = {}
    """Calls of the MES, by their type."""
    equipment: Mapping[str, tuple[object, ...]] = {}
    """Further arguments of the openers of equipment, by kind."""
    operations: "Mapping[OperationType, Executor]" = {}
    """Operations that it executes."""
    metrics: "Sequence[Callable[[], Awaitable[Iterable[MetricFamily]]]]" = ()
    """Read at each scrape; raise Unavailable without the store."""
    described: "Sequence[Callable[[], Awaitable[ComponentPart]]]" = ()
    """What the heartbeat of this gateway adds."""
    serving: Sequence[Callable[[], str]] = ()
    """What the line of the status names as served; empty texts are left out."""
