"""Faults of a plan, and their moments."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.simulation.plan import Step

Places = dict[str, list[str]]
Draw = Callable[[Random, Places], dict[str, Any]]


def _seconds(rng: Random) -> float:
    return round(rng.choice([0.05, 0.3, 1.0, 3.0, 8.0]) * rng.uniform(0.5, 1.5), 2)


def _kill(role: str) -> Draw:
    def draw(rng: Random, places: Places) -> dict[str, Any]:
        return {"do": "kill", "args": [rng.choice(places[role])], "for": _seconds(rng)}

    return draw


def _of_process(what: str) -> Draw:
    def draw(rng: Random, places: Places) -> dict[str, Any]:
        return {"do": what, "args": [rng.choice(places["process"])], "seconds": _seconds(rng)}

    return draw


def _pair(rng: Random, places: Places) -> list[str]:
    a, b = rng.choice(
        [("gateway", "queue"), ("gateway", "queue"), ("queue", "store"), ("client", "gateway"), ("router", "store"),
         ("gateway", "router"), ("gateway", "store"), ("queue", "queue"), ("queue", "router")]
    )  # fmt: skip
    return [rng.choice(places[a]), rng.choice(places[b])]


def _between(what: str) -> Draw:
    def draw(rng: Random, places: Places) -> dict[str, Any]:
        return {"do": what, "args": _pair(rng, places), "seconds": _seconds(rng)}

    return draw


def _disk(what: str) -> Draw:
    def draw(rng: Random, places: Places) -> dict[str, Any]:
        del places
        return {"do": what, "seconds": _seconds(rng)}

    return draw


def _tear(rng: Random, places: Places) -> dict[str, Any]:
    return {"do": "tear", "args": _pair(rng, places)}


def _stop(rng: Random, places: Places) -> dict[str, Any]:
    return {"do": "stop", "args": [rng.choice(places[rng.choice(["queue", "queue", "gateway", "router"])])],
            "for": _seconds(rng)}  # fmt: skip


def _move(rng: Random, places: Places) -> dict[str, Any]:
    return {"do": "move", "args": [rng.choice(places["partition"]), rng.choice(places["queue"])]}


def _jump(rng: Random, places: Places) -> dict[str, Any]:
    return {
        "do": "jump_clock",
        "args": [rng.choice(places["process"])],
        "seconds": rng.choice([-3600.0, -2, 2, 3600.0]),
    }


def _from_store(rng: Random, places: Places) -> dict[str, Any]:
    """Its gateways and queue processes hear of the store late."""
    args = [rng.choice(places[rng.choice(["gateway", "queue", "queue"])]), "store-1"]
    seconds = round(rng.choice([0.5, 1.5, 3.0]) * rng.uniform(0.7, 1.3), 2)  # longer than a lease, or not
    return {"do": rng.choice(["cut", "cut", "slow"]), "args": args, "seconds": seconds}


def _add(rng: Random, places: Places) -> dict[str, Any]:
    del rng, places
    return {"do": "add_queue_process"}


# Of calls, between one step of what has to be whole and the next.
_OF_COMMITS = [("CommitTransaction", "asked"), ("CommitTransaction", "answered")]
_MOMENTS = [
    *_OF_COMMITS, ("ResolveTransaction", "answered"), ("Recover", "asked"), ("Recover", "answered"),
    ("Journal", "received"), ("Journal", "answered"), ("PutRecords", "answered"),
]  # fmt: skip
_SPRUNG: list[tuple[int, Draw]] = [
    (3, _kill("store")), (3, _kill("queue")), (2, _kill("gateway")), (2, _move), (3, _from_store), (1, _between("cut")),
    (1, _of_process("pause")),
]  # fmt: skip


def _ambush(moments: list[tuple[str, str]]) -> Draw:
    def draw(rng: Random, places: Places) -> dict[str, Any]:
        draws = rng.choices(
            [draw for _, draw in _SPRUNG], [weight for weight, _ in _SPRUNG], k=rng.choice([1, 1, 2, 3])
        )
        then = [draw(rng, places) for draw in draws]
        hold = rng.choice([0, 0, 0.5, 2.0, 4.0])
        return {"do": "ambush", "args": list(rng.choice(moments)), "hold": hold, "then": then}

    return draw


def _long_away(rng: Random, places: Places) -> dict[str, Any]:
    """The store is away in the middle of a commit for longer than any process waits for it."""
    del places
    then = [{"do": "kill", "args": ["store-1"], "for": rng.choice([45, 70, 100])}]
    return {"do": "ambush", "args": ["CommitTransaction", rng.choice(["asked", "answered"])], "hold": 0, "then": then}


def _torn(rng: Random, places: Places) -> dict[str, Any]:
    return {"do": "tear", "args": [rng.choice(places["gateway"]), rng.choice(places["queue"])]}


def _late_commit(rng: Random, places: Places) -> dict[str, Any]:
    """Owners change, or lose their gateway, between what they have prepared and the store's hearing of the commit."""
    draw = rng.choice([_kill("queue"), _kill("queue"), _from_store, _torn])
    then = [draw(rng, places) for _ in range(rng.choice([1, 1, 2]))]
    return {"do": "ambush", "args": ["CommitTransaction", "asked"], "hold": rng.choice([2.0, 4.0]), "then": then}


def _forgotten(rng: Random, places: Places) -> dict[str, Any]:
    """The store dies before it has written what it was told, or before it says so; an owner dies then or later."""
    then = [_kill("store")(rng, places), {**_kill("queue")(rng, places), "at": rng.choice([0, 0, 1.0, 4.0])}]
    return {"do": "ambush", "args": ["Journal", rng.choice(["received", "answered"])], "hold": 0, "then": then}


def _fenced(rng: Random, places: Places) -> dict[str, Any]:
    """An owner is cut off the store until its leases are free, and comes back before all of them are taken.

    Of three processes one takes its share when they run out; the other one, cut off for a shorter time, does not.
    """
    owner, late, *_ = rng.sample(places["queue"], len(places["queue"]))
    then = [
        {"do": "cut", "args": [owner, "store-1"], "seconds": round(rng.uniform(0.7, 1.0), 2)},
        {"do": "cut", "args": [late, "store-1"], "at": 0.45, "seconds": 0.6},
        {
            "do": "kill",
            "args": [rng.choice([owner, late])],
            "at": round(rng.uniform(2.0, 6.0), 2),
            "for": _seconds(rng),
        },
    ]
    return {"do": "ambush", "args": ["Journal", "received"], "hold": 0, "then": then}


def _unheard(rng: Random, places: Places) -> dict[str, Any]:
    """An owner leaves in good order while a publisher does not hear it, until it is gone or not so long."""
    queue = rng.choice(places["queue"])
    seconds = rng.choice([_seconds(rng), round(rng.uniform(3.0, 6.0), 2)])
    then = [
        {"do": "deafen", "args": [rng.choice(places["gateway"]), queue], "seconds": seconds},
        {"do": "stop", "args": [queue], "at": rng.choice([0.1, 0.5, 2.0]), "for": _seconds(rng)},
    ]
    # What never comes to the disk is in more danger.
    moment = rng.choice([["Journal", "answered"], ["KeepAlive", "answered"]])
    return {"do": "ambush", "args": moment, "hold": 0, "then": then}


def _returned(rng: Random, places: Places) -> dict[str, Any]:
    """A partition goes to another process and comes back, while words between a gateway and its owner are late."""
    partition, (owner, other) = rng.choice(places["partition"]), rng.sample(places["queue"], 2)
    gateway = rng.choice(places["gateway"])
    ends = rng.choice([[gateway, owner], [gateway, owner], [owner, gateway]])
    at, away = round(rng.uniform(0.3, 1.5), 2), round(rng.uniform(0.3, 2.0), 2)
    then = [
        {"do": "move", "args": [partition, owner]},
        {"do": "deafen", "args": ends, "at": at, "seconds": round(away + rng.uniform(0.5, 2.5), 2)},
        {"do": "move", "args": [partition, other], "at": round(at + rng.uniform(0, 0.3), 2)},
        {"do": "move", "args": [partition, owner], "at": round(at + away, 2)},
    ]
    return {"do": "ambush", "args": ["KeepAlive", "answered"], "hold": 0, "then": then}


def _late(rng: Random, places: Places) -> dict[str, Any]:
    """A process loses its leases and gets its partitions again, and hears then what a gateway said to it before."""
    owner, gateway = rng.choice(places["queue"]), rng.choice(places["gateway"])
    back = round(rng.uniform(3.0, 4.5), 2)
    then = [
        {"do": "deafen", "args": [owner, gateway], "seconds": round(back + rng.uniform(0.3, 2.0), 2)},
        {"do": "cut", "args": [owner, "store-1"], "seconds": round(rng.uniform(1.2, 2.5), 2)},
        *({"do": "move", "args": [partition, owner], "at": back} for partition in places["partition"]),
    ]
    return {"do": "ambush", "args": ["KeepAlive", "answered"], "hold": 0, "then": then}


def _moved(rng: Random, places: Places) -> dict[str, Any]:
    """All but the gateways die while a router is asked, and come back where others were."""
    dead = [*places["router"], *places["store"], *places["queue"]]
    then = [{"do": "kill", "args": [name], "for": round(rng.uniform(0.05, 2.0), 2)} for name in dead]
    moment = [rng.choice(["Change", "Route"]), rng.choice(["asked", "received"])]
    return {"do": "ambush", "args": moment, "hold": 0, "then": then}


def _unplaced(rng: Random, places: Places) -> dict[str, Any]:
    """Queue processes keep their leases and lose their places: the topology changes, and they do not hear of it."""
    seconds = round(rng.uniform(2.0, 8.0), 2)  # a place lasts 1.5
    then = [
        {"do": "cut", "args": [queue, router], "seconds": seconds}
        for queue in rng.sample(places["queue"], rng.randint(1, len(places["queue"])))
        for router in places["router"]
    ]
    return {"do": "ambush", "args": ["Change", "asked"], "hold": 0, "then": then}


def _still(rng: Random, places: Places, last: float) -> list[Step]:
    """Gateways stand still around the death of all owners, for longer than routers wait for one.

    Another gateway has not been answered meanwhile: the next owners, who are new, have from it what the first hold.
    """
    at = round(last * rng.uniform(0.2, 0.7), 3)
    deaf, *others = rng.sample(places["gateway"], len(places["gateway"]))
    deafened = [
        {"at": round(at * 0.4, 3), "do": "deafen", "args": [deaf, owner], "seconds": at} for owner in places["queue"]
    ]
    still = [
        {
            "at": round(at * rng.choice([0.6, 0.9, 0.99]), 3),
            "do": "pause",
            "args": [name],
            "seconds": round(rng.uniform(2.5, 5.5), 2),
        }
        for name in others[: rng.randint(1, 2)]
    ]
    died = [
        {"at": at, "do": "kill", "args": [owner], "for": round(rng.uniform(0.05, 0.5), 2)} for owner in places["queue"]
    ]
    return deafened + still + died if others else []


# How often a history has it at all, and the function that draws it.
KINDS: dict[str, tuple[float, Draw]] = {
    "kill queue": (0.45, _kill("queue")),
    "move": (0.4, _move),
    "stop": (0.15, _stop),
    "kill gateway": (0.1, _kill("gateway")),
    "kill router": (0.1, _kill("router")),
    "kill store": (0.15, _kill("store")),
    "kill nats": (0.05, _kill("nats")),
    "pause": (0.15, _of_process("pause")),
    "starve": (0.1, _of_process("starve")),
    "cut": (0.12, _between("cut")),
    "tear": (0.2, _tear),
    "slow": (0.1, _between("slow")),
    "disk_full": (0.06, _disk("disk_full")),
    "disk_low": (0.12, _disk("disk_low")),
    "disk_fails": (0.06, _disk("disk_fails")),
    "disk_slow": (0.2, _disk("disk_slow")),
    "jump": (0.05, _jump),
    "suspend": (0.04, _disk("suspend")),
    "add": (0.08, _add),
    "between": (0.25, _from_store),
    "ambush": (0.2, _ambush(_MOMENTS)),
    "unheard": (0.15, _unheard),
    "forgotten": (0.15, _forgotten),
    "fenced": (0.02, _fenced),
    "moved": (0.05, _moved),
    "returned": (0.12, _returned),
    "unplaced": (0.05, _unplaced),
    "ambush a commit": (0.0, _ambush(_OF_COMMITS)),
    "long away": (0.0, _long_away),
    "late commit": (0.0, _late_commit),
    "late": (0.0, _late),
}


# What histories of a kind have more often.
_MORE = {
    # Between prepare and commit there is little time, unless something takes long while owners change.
    "transactions": {
        "kill queue": 0.7, "move": 0.6, "between": 0.7, "disk_slow": 0.3, "kill store": 0.3, "kill gateway": 0.2,
        "ambush a commit": 0.8, "long away": 0.15, "late commit": 0.6,
    },
    "consumers": {"unheard": 0.6},
    "links": {
        "kill queue": 0.6, "move": 0.6, "stop": 0.3, "kill gateway": 0.3, "unheard": 0.3,
        "ambush a commit": 0.4, "late commit": 0.3,
    },
    "topology": {"moved": 0.4, "unplaced": 0.5},
    "flips": {"kill queue": 0.9, "moved": 0.3, "disk_slow": 0.6, "kill store": 0.3, "tear": 0.3},
    "purges": {"kill queue": 0.8, "forgotten": 0.8, "disk_slow": 0.5},
}  # fmt: skip

# Where much is promised only if nothing fails.
_NONE = {"features": 0.3, "links": 0.3}

_BESIDES = 0.5  # share of the histories with gateways that stand still in which other faults happen too

# What these have at all.
_ONLY = {
    # Nothing dies, so that what is promised of that alone is judged.
    "orderly": {"move": 0.6, "stop": 0.6, "unheard": 0.9, "tear": 0.4, "add": 0.3},
    "late": {"late": 1.0, "kill queue": 0.2, "move": 0.3, "disk_slow": 0.2, "tear": 0.2},
    "leases": {"fenced": 1.0, "between": 0.4, "kill queue": 0.3, "move": 0.2, "disk_slow": 0.2, "starve": 0.1},
}


def draw_faults(rng: Random, shape: dict[str, Any], clients: list[str], seconds: float, kind: str = "") -> list[Step]:
    """None at all in a tenth of histories, or more of a kind; else some of some kinds."""
    shares = _ONLY.get(kind) or {name: share for name, (share, _) in KINDS.items()} | _MORE.get(kind, {})
    kinds = [name for name, share in shares.items() if rng.random() < share]
    if not kinds or rng.random() < _NONE.get(kind, 0.1):
        return []
    places: dict[str, list[Any]] = {
        "gateway": [f"gateway-{number + 1}" for number in range(shape["gateways"])],
        "queue": [f"queue-{number + 1}" for number in range(shape["queue_processes"])],
        "router": [f"router-{number + 1}" for number in range(shape["routers"])],
        "store": ["store-1"],
        "nats": ["nats-1"],
        "client": clients,
        "partition": list(range(shape["partitions"])),
    }
    places["process"] = [*places["gateway"], *places["queue"], *places["router"], *places["store"]]
    last = max(seconds, 0.5) * 1.2
    faults = []
    for _ in range(rng.choice([1, 2, 5, 10, 15])):
        at = round(rng.uniform(0, last), 3)
        faults.append({"at": at, **KINDS[rng.choice(kinds)][1](rng, places)})
    if kind == "flips":
        faults = [*(faults if rng.random() < _BESIDES else ()), *_still(rng, places, last)]
    return sorted(faults, key=lambda fault: fault["at"])
