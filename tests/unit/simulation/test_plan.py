from __future__ import annotations

import pytest

from tests.simulation import steps
from tests.simulation.amqp_1_0 import steps as link_steps
from tests.simulation.draw import draw
from tests.simulation.plan import Plan
from tests.simulation.shrink import Shrinker

STEPS = {"0-9-1": steps.STEPS, "1.0": link_steps.STEPS}


@pytest.mark.parametrize("seed", range(40))
def test_plan(seed: int) -> None:
    """A seed gives the same plan each time, which JSON keeps, and whose steps there are."""
    plan = draw(seed)
    assert plan == draw(seed)
    assert Plan.load(plan.dump()) == plan
    protocols = {client["name"]: client.get("protocol", "0-9-1") for client in plan.clients}
    assert {step["do"] for step in plan.topology} <= steps.STEPS.keys()
    assert all(step["do"] in STEPS[protocols[step["client"]]] for step in plan.steps)
    assert plan.lines()


def test_swarm() -> None:
    """Histories differ in kind: some have no faults, some have many; some one queue, some many."""
    plans = [draw(seed) for seed in range(200)]
    queues = [sum(step["do"] == "queue" for step in plan.topology) for plan in plans]
    assert min(queues) == 1
    assert max(queues) >= 20
    assert not all(plan.faults for plan in plans)
    assert max(len(plan.faults) for plan in plans) >= 10
    kinds = {fault["do"] for plan in plans for fault in plan.faults}
    assert kinds >= {
        "kill",
        "stop",
        "move",
        "pause",
        "cut",
        "tear",
        "slow",
        "disk_full",
        "disk_low",
        "suspend",
        "jump_clock",
    }


def test_protocols() -> None:
    """Some histories have clients of 1.0 besides, which change nothing of the others' plans."""
    plans = [draw(seed) for seed in range(200)]
    linked = [plan for plan in plans if any("protocol" in client for client in plan.clients)]
    assert 20 < len(linked) < 100
    done = {step["do"] for plan in linked for step in plan.steps if step["client"].startswith("l")}
    assert done == STEPS["1.0"].keys()


def test_commits_without_an_answer() -> None:
    """Clients of 1.0 are gone by then, or what carries a commit out: else nobody judges whether such a one is whole."""
    plans = [draw(seed, kind="links") for seed in range(100)]
    assert sum(any("gone" in step for step in plan.steps) for plan in plans) > 10
    commits = [fault for plan in plans for fault in plan.faults if "CommitTransaction" in fault.get("args", ())]
    assert len(commits) > 10


def _long() -> Plan:
    steps = [{"client": "c0", "do": "publish", "count": 1, "key": str(number)} for number in range(40)]
    return Plan(1, {"gateways": 3}, [], [{"name": "c0", "host": "/", "gateway": 2}], steps, [])


def test_shrinking() -> None:
    """What a failure does not need is left out, and it still fails."""

    def fails(plan: Plan) -> bool:
        return {"7", "23"} <= {step["key"] for step in plan.steps} and plan.shape["gateways"] >= 1

    shortest = Shrinker(fails, runs=400).shrink(_long())
    assert [step["key"] for step in shortest.steps] == ["7", "23"]
    assert shortest.shape["gateways"] == 1
    assert shortest.clients[0]["gateway"] == 0
    assert fails(shortest)


def test_shrinking_takes_processes_away() -> None:
    """With what befalls them: a fault of a process that is not there cannot happen."""
    faults = [
        {"at": 1.0, "do": "kill", "args": ["queue-3"], "for": 1.0},
        {"at": 2.0, "do": "cut", "args": ["gateway-1", "queue-2"], "seconds": 1.0},
        {"at": 3.0, "do": "ambush", "args": ["Journal", "asked"], "hold": 0, "then": [
            {"do": "move", "args": [7, "queue-3"]}, {"do": "pause", "args": ["store-1"], "seconds": 1.0},
        ]},
    ]  # fmt: skip
    whole = _long().but(shape={"gateways": 3, "queue_processes": 3}, faults=faults)

    def fails(plan: Plan) -> bool:
        named = {name for fault in plan.faults for each in [fault, *fault.get("then", ())] for name in each["args"]}
        assert "queue-3" not in named or plan.shape["queue_processes"] == 3
        return {"gateway-1", "store-1"} <= named

    shortest = Shrinker(fails).shrink(whole)
    assert shortest.shape["queue_processes"] == 2
    assert [fault["at"] for fault in shortest.faults] == [2.0, 3.0]
    assert [each["do"] for each in shortest.faults[1]["then"]] == ["pause"]


def test_shrinking_is_bounded() -> None:
    """It runs no more often than it may."""
    runs = 0

    def fails(plan: Plan) -> bool:
        nonlocal runs
        runs += 1
        return len(plan.steps) > 3

    Shrinker(fails, runs=25).shrink(_long())
    assert runs <= 25
