"""The faults of a line with two gateways; each is injected into a plant that works, lasts a while, and is repaired."""

import contextlib
import math
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from redis import RedisError

from tests.outside.servers import EDGE, wait_for
from tests.sentinel.line import DOWN_AFTER_MS, SERVICE, DataNode, Node, Sentinel, pairs_of
from tests.sentinel.plant import Plant, Station

SKEW_S = 60.0
PAUSE_S = 3.0
"""The goal of a planned change of the primary is 2 s; the machine of the test is busy."""
FENCED_S = DOWN_AFTER_MS / 1000
"""After this no gateway accepts what the next primary will not have."""
_LAG_S = 3.0


@dataclass(frozen=True)
class Scene:
    """The roles at the instant of a fault."""

    plant: Plant
    primary: DataNode
    publisher: Station
    other: Station

    @property
    def replicas(self) -> list[DataNode]:
        """The nodes that replicate."""
        return [node for node in self.plant.line.nodes if node is not self.primary]

    def names(self, *left_out: str) -> list[str]:
        """Return all nodes of the network but some."""
        line = self.plant.line
        nodes = [node.name for node in (*line.nodes, *line.sentinels)]
        nodes += [gateway.name for gateway in self.plant.gateways]
        return [name for name in nodes if name not in left_out]

    def isolate(self, *inside: str) -> None:
        """Cut these nodes off from all others; they still reach each other."""
        self.plant.network.cut(inside, self.names(*inside))


def _prepare_nothing(_: Scene) -> None:
    """Begin with the line as it is."""


@dataclass(frozen=True)
class Fault:
    """A fault: how it is injected, how long it lasts at least, and whether Sentinel must name another primary."""

    name: str
    inject: Callable[[Scene], None]
    lasts_s: float
    fails_over: bool = True
    prepare: Callable[[Scene], None] = _prepare_nothing
    """What happens before; times count from its end."""
    loses_until_s: float = -math.inf
    """Without replication to all replicas: until when after the fault an accepted job may be lost."""
    from_promotion: bool = False
    """Whether this counts from the promotion of another primary."""
    serves: bool = True
    """Whether a gateway reaches the next primary before the repair."""
    forgets: bool = False
    """Whether the store loses everything, the marks of what was done included."""
    restarts_gateway: bool = False
    """Whether each gateway must be ready again before the repair."""
    nodes: int = 2
    """How many data nodes it needs."""
    pauses_s: float = math.inf
    """The longest time in which no tool may receive a command."""


def scene_of(plant: Plant) -> Scene:
    """Return the roles of now; the line must be settled."""
    primary = plant.line.primary()
    assert primary
    publisher = plant.publisher()
    return Scene(plant, primary, publisher, next(gateway for gateway in plant.gateways if gateway is not publisher))


def _kill(scene: Scene) -> None:
    scene.primary.kill()


def _freeze(scene: Scene) -> None:
    scene.primary.freeze()


def _lose_machine(scene: Scene) -> None:
    """End primary, a sentinel and the publishing gateway at once; no connection is closed, as with a lost machine."""
    sentinel = scene.plant.chance.choice(scene.plant.line.sentinels)
    machine = (scene.primary.name, sentinel.name, scene.publisher.name)
    scene.plant.network.cut(machine, [*scene.names(*machine), "broker"])
    for item in (scene.primary, sentinel):
        item.kill()
    scene.publisher.lose()


def _command(scene: Scene) -> None:
    """Fail over by a command to a sentinel, as an operator does."""
    for sentinel in scene.plant.chance.sample(scene.plant.line.sentinels, len(scene.plant.line.sentinels)):
        with contextlib.suppress(RedisError):
            sentinel.call("SENTINEL", "FAILOVER", SERVICE)
            return


def _switch_over(scene: Scene) -> None:
    """Change the primary by our command, as an operator does."""
    command = [str(EDGE), "store", "switch-over", "--settings", str(scene.publisher.settings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"edge store switch-over: {done.stdout}{done.stderr}"


def _isolate_primary(scene: Scene) -> None:
    scene.isolate(scene.primary.name)


def _split_with_publisher(scene: Scene) -> None:
    scene.isolate(scene.primary.name, scene.publisher.name)


def _split_with_gateway_and_sentinel(scene: Scene) -> None:
    scene.isolate(scene.primary.name, scene.other.name, scene.plant.line.sentinels[0].name)


def _split_from_sentinels(scene: Scene) -> None:
    """Cut the primary and both gateways off from the sentinels and the replicas."""
    scene.isolate(scene.primary.name, *(gateway.name for gateway in scene.plant.gateways))


def _one_way(source: Callable[[Scene], list[str]], target: Callable[[Scene], list[str]]) -> Callable[[Scene], None]:
    def inject(scene: Scene) -> None:
        scene.plant.network.cut(source(scene), target(scene), both=False)

    return inject


def _primary(scene: Scene) -> list[str]:
    return [scene.primary.name]


def _replicas(scene: Scene) -> list[str]:
    return [replica.name for replica in scene.replicas]


def _sentinels(scene: Scene) -> list[str]:
    return [sentinel.name for sentinel in scene.plant.line.sentinels]


def _gateways(scene: Scene) -> list[str]:
    return [gateway.name for gateway in scene.plant.gateways]


def _publisher(scene: Scene) -> list[str]:
    return [scene.publisher.name]


def _silence_first_sentinel(scene: Scene) -> None:
    """Isolate the first sentinel of the settings and restart a gateway, which has to find the primary nevertheless."""
    scene.isolate(scene.plant.line.sentinels[0].name)
    scene.publisher.kill()


def _kill_with_silent_sentinel(scene: Scene) -> None:
    scene.isolate(scene.plant.line.sentinels[0].name)
    scene.primary.kill()


def _skew(seconds: float) -> Callable[[Scene], None]:
    """Shift the clocks of the replicas before the primary is killed."""

    def inject(scene: Scene) -> None:
        for node in scene.replicas:
            scene.plant.clocks[node.name].set(seconds)
        # Expiries that the replicas have received by now are judged by their own clocks.
        time.sleep(1.0)
        scene.primary.kill()

    return inject


def _restart_empty(scene: Scene) -> None:
    """Restart the primary without data, faster than Sentinel sees that it was away."""
    scene.primary.kill()
    scene.primary.clear()
    scene.primary.start()


def _priorities(*priorities: int) -> Callable[[Scene], None]:
    """Set the priorities of the replicas, then kill the primary."""

    def inject(scene: Scene) -> None:
        for node, priority in zip(scene.replicas, priorities, strict=False):
            node.call("CONFIG", "SET", "replica-priority", priority)
        # A sentinel learns it from INFO, which it asks for every ten seconds.
        for sentinel in scene.plant.line.sentinels:
            sentinel.call("SENTINEL", "FLUSHCONFIG")
        scene.primary.kill()

    return inject


def _never_promote_the_second_replica(scene: Scene) -> None:
    scene.replicas[1].call("CONFIG", "SET", "replica-priority", 0)
    wait_for(lambda: all(map(_knows_priority, scene.plant.line.sentinels)), "the sentinels know the priority", 30)


def _lag_behind_one_never_promoted(scene: Scene) -> None:
    """Hold the replication to the replica that can be promoted; another one, of priority 0, has everything."""
    scene.plant.network.cut([scene.primary.name], [scene.replicas[0].name], both=False)
    time.sleep(_LAG_S)
    scene.primary.kill()


def _promote_stale_replica(priority: int) -> Callable[[Scene], None]:
    """Lose the primary when a replica has returned to the sentinels and not yet to it."""

    def inject(scene: Scene) -> None:
        stale = scene.replicas[0]
        stale.call("CONFIG", "SET", "replica-priority", priority)
        scene.isolate(stale.name)
        time.sleep(12.0)
        sentinels = [sentinel.name for sentinel in scene.plant.line.sentinels]
        scene.plant.network.join([stale.name], sentinels)
        time.sleep(1.0)
        scene.primary.kill()

    return inject


def _knows_priority(sentinel: Sentinel) -> bool:
    """Return whether a sentinel knows a replica that is never promoted."""
    replicas = sentinel.call("SENTINEL", "REPLICAS", SERVICE)
    return any("slave-priority" in replica and pairs_of(replica)["slave-priority"] == "0" for replica in replicas)


def _freeze_gateway(scene: Scene) -> None:
    scene.publisher.freeze()


def _freeze_gateway_and_kill(scene: Scene) -> None:
    """Freeze a gateway in the middle of its work; when it continues, another primary has long been there."""
    scene.publisher.freeze()
    scene.primary.kill()


def _kill_both(scene: Scene) -> None:
    scene.primary.kill()
    scene.publisher.kill()


def _silence_sentinels(count: int) -> Callable[[Scene], None]:
    """Isolate sentinels, each for itself, while the primary works on."""

    def inject(scene: Scene) -> None:
        for sentinel in scene.plant.chance.sample(scene.plant.line.sentinels, count):
            scene.isolate(sentinel.name)

    return inject


def _freeze_sentinel(scene: Scene) -> None:
    """Freeze a sentinel; after the thaw it takes no part in a failover for 30 s (TILT)."""
    scene.plant.chance.choice(scene.plant.line.sentinels).freeze()


def _kill_replicas(scene: Scene) -> None:
    for node in scene.replicas:
        node.kill()


FAULTS = (
    Fault("primary killed", _kill, 6.0),
    Fault("primary frozen", _freeze, 6.0),
    Fault("machine lost", _lose_machine, 8.0, loses_until_s=0.1),
    Fault("failover by command", _command, 3.0, loses_until_s=0.5, from_promotion=True),
    Fault("switch-over", _switch_over, 5.0, pauses_s=PAUSE_S),
    Fault("primary isolated", _isolate_primary, 10.0, loses_until_s=FENCED_S),
    Fault("split, publisher with primary", _split_with_publisher, 10.0, loses_until_s=FENCED_S),
    Fault("split, gateway and sentinel with primary", _split_with_gateway_and_sentinel, 10.0, loses_until_s=FENCED_S),
    Fault("split, both gateways with primary", _split_from_sentinels, 10.0, loses_until_s=FENCED_S, serves=False),
    Fault("one way, sentinels to primary", _one_way(_sentinels, _primary), 10.0, loses_until_s=FENCED_S),
    Fault("one way, primary to sentinels", _one_way(_primary, _sentinels), 10.0, loses_until_s=FENCED_S),
    Fault("one way, gateways to primary", _one_way(_gateways, _primary), 5.0, fails_over=False),
    Fault("one way, primary to gateways", _one_way(_primary, _gateways), 5.0, fails_over=False),
    Fault("one way, primary to replicas", _one_way(_primary, _replicas), 5.0, fails_over=False),
    Fault("one way, publisher to sentinels", _one_way(_publisher, _sentinels), 5.0, fails_over=False),
    Fault(
        "first sentinel silent, gateway restarted",
        _silence_first_sentinel,
        6.0,
        fails_over=False,
        restarts_gateway=True,
    ),
    Fault("first sentinel silent, primary killed", _kill_with_silent_sentinel, 6.0),
    Fault("clocks of replicas 60 s ahead, primary killed", _skew(SKEW_S), 6.0),
    Fault("clocks of replicas 60 s behind, primary killed", _skew(-SKEW_S), 6.0),
    Fault("equal priorities, primary killed", _priorities(100, 100), 6.0, nodes=3),
    Fault("unequal priorities, primary killed", _priorities(10, 100), 6.0, nodes=3),
    Fault(
        "replica lags, one of priority 0 does not, primary killed",
        _lag_behind_one_never_promoted,
        8.0,
        nodes=3,
        prepare=_never_promote_the_second_replica,
        loses_until_s=_LAG_S,
        serves=False,
    ),
    Fault(
        "replica behind, primary killed", _promote_stale_replica(100), 8.0, nodes=3, serves=False, loses_until_s=14.0
    ),
    Fault("publisher frozen", _freeze_gateway, 8.0, fails_over=False),
    Fault("publisher frozen, primary killed", _freeze_gateway_and_kill, 8.0),
    Fault("two sentinels silent", _silence_sentinels(2), 6.0, fails_over=False),
    Fault("all sentinels silent", _silence_sentinels(3), 6.0, fails_over=False),
    Fault("sentinel frozen", _freeze_sentinel, 6.0, fails_over=False),
    Fault("replicas killed", _kill_replicas, 5.0, fails_over=False),
    Fault("primary and publisher killed", _kill_both, 6.0),
    Fault("primary restarted empty", _restart_empty, 3.0, fails_over=False, loses_until_s=math.inf, forgets=True),
)
BY_NAME = {fault.name: fault for fault in FAULTS}


def sequence(count: int, nodes: int, chance: random.Random, names: tuple[str, ...] = ()) -> list[Fault]:
    """Return faults in a random order, each as often as the others."""
    usable = [fault for fault in FAULTS if fault.nodes <= nodes and (not names or fault.name in names)]
    faults: list[Fault] = []
    while len(faults) < count:
        faults += chance.sample(usable, len(usable))
    return faults[:count]


def repair(plant: Plant) -> None:
    """End every fault: thaw, start, connect, and set the clocks."""
    line = plant.line
    servers: list[Node | Station] = [*line.nodes, *line.sentinels, *plant.gateways]
    for server in servers:
        if server.process() is not None:
            with contextlib.suppress(ProcessLookupError):
                server.thaw()
    plant.network.heal()
    for clock in plant.clocks.values():
        clock.set(0.0)
    for node in (*line.nodes, *line.sentinels):
        if node.process() is None:
            node.start()
    for replica in line.nodes:
        replica.call("CONFIG", "SET", "replica-priority", 100)
    for gateway in plant.gateways:
        gateway.away.clear()
