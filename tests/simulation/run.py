"""Runs one plan in a world of its own and judges it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.history import History
from tests.simulation.judge import Violation, judge
from tests.simulation.plan import Plan
from tests.simulation.scenario import play
from tests.simulation.standing_still import StandsStill, interrupted
from tests.simulation.world import Shape, World
from tests.simulation.world.loop import Deadlock, OutOfTime

_LIMIT = 900.0  # virtual seconds


@dataclass
class Verdict:
    """What came of one history; `digest` is a hash of all that happened."""

    plan: Plan
    violations: list[Violation] = field(default_factory=list)
    history: History | None = None
    digest: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def rules(self) -> set[str]:
        """The promises that were broken."""
        return {violation.rule for violation in self.violations}


def run(plan: Plan, *, verbose: bool = False) -> Verdict:
    """The same plan comes to the same verdict."""
    world = World(plan.seed, Shape(**plan.shape), limit=_LIMIT, verbose=verbose)
    history = History(world.time)
    try:
        with interrupted():
            world.run(_scenario(world, plan, history))
    except (Deadlock, OutOfTime, StandsStill) as fault:
        violation = Violation("everything is answered", f"{type(fault).__name__} while {history.phase}: {fault}")
        return Verdict(plan, [violation], history, world.digest(), world.lines)
    history.complaints = [f"{each.time:.3f} {each.process}: {each.text}" for each in world.complaints if each.failure]
    return Verdict(plan, judge(plan, history), history, world.digest(), world.lines)


async def _scenario(world: World, plan: Plan, history: History) -> None:
    await world.cluster.start()
    await play(world, plan, history)
