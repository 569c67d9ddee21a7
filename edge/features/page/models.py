"""The data of the HTTP API: what it takes and returns; OpenAPI is generated from these types."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from edge.model.equipment_health import PublicEquipment
from edge.model.plant import PublicMaintenance
from edge.station.public_job import PublicJob
from edge.station.public_result import PublicResult

_Text = Annotated[str, Meta(max_length=1000)]


class Problem(Struct, frozen=True, kw_only=True):
    """Why a request failed: `kind` for programs, `reason` and `advice` for people."""

    kind: str
    reason: str
    advice: str = ""


class Login(Struct, frozen=True, kw_only=True):
    """The name and the password of a user; `code` is the code of the second factor if the user has one."""

    name: Annotated[str, Meta(max_length=64)]
    password: Annotated[str, Meta(max_length=1024)]
    code: Annotated[str, Meta(max_length=16)] = ""


class Identity(Struct, frozen=True, kw_only=True):
    """The caller: the user, empty in the kiosk mode, and the role."""

    user: str
    role: Literal["observer", "operator", "engineer"]


class Status(Struct, frozen=True, kw_only=True):
    """The gateway in short: `line` is that of `edge station`, `problems` its beginning when something is wrong.

    `work_waits` says why the store accepts no work now; it is empty while it does.
    """

    gateway: str
    version: str
    line: str
    problems: str
    work_waits: str
    scopes: tuple[str, ...]
    active_runs: int
    maintenance: PublicMaintenance


class AttentionLevel(StrEnum):
    """The colour of the banner, the worst first."""

    BAD = "bad"
    WARN = "warn"
    GOOD = "good"


class Attention(Struct, frozen=True, kw_only=True):
    """What needs a person now.

    `station` counts decisions about jobs, questions to people and equipment that may be active still, `alarms` those
    that are neither acknowledged nor silenced. `level` is `bad` for such equipment, for an alarm from severity
    700 on and while the store accepts no work, `warn` for anything else, `good` when nothing needs a person.
    """

    level: AttentionLevel
    station: int
    station_level: AttentionLevel
    alarms: int
    alarms_level: AttentionLevel


class JobPage(Struct, frozen=True, kw_only=True):
    """Some of the jobs, running ones first; `total` is the number of all that fit."""

    jobs: tuple[PublicJob, ...]
    total: int


class ResultList(Struct, frozen=True, kw_only=True):
    """The newest results of a job, in the order of their ends."""

    job_order_id: str
    results: tuple[PublicResult, ...]


class MethodCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a job method."""

    comment: _Text = ""


class MethodDone(Struct, frozen=True, kw_only=True):
    """The job right after a method; None when the method removed it.

    `awaits_second`: nothing was changed yet; the request waits until a second person makes the same one.
    """

    job: PublicJob | None
    awaits_second: bool = False


class ResolveRequestBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decision about an action of unknown outcome; `data` is the result of one that was done."""

    action: Annotated[str, Meta(max_length=255)]
    resolution: Literal["done", "failed", "repeat"]
    reason: Annotated[str, Meta(min_length=1, max_length=1000)]
    data: Any = None


class InterventionRequestBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An intervention; `data` is the result of a skipped action."""

    kind: Literal["retry", "skip", "force", "complete"]
    reason: Annotated[str, Meta(min_length=1, max_length=1000)]
    action: Annotated[str, Meta(max_length=255)] = ""
    step: Annotated[str, Meta(max_length=255)] = ""
    target: Annotated[str, Meta(max_length=255)] = ""
    data: Any = None


class EquipmentList(Struct, frozen=True, kw_only=True):
    """The equipment of this gateway."""

    equipment: tuple[PublicEquipment, ...]


class ChangeNotice(Struct, frozen=True, kw_only=True):
    """What has changed: `jobs`, `job:ID`, `station`, `alarms`; `*` when a client has to read everything again.

    The more `pages` follow changes, the less often a client should read pictures.
    """

    subjects: tuple[str, ...]
    pages: int
