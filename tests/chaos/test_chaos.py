"""Every container may die, stand still, lose its network, come and go: no message is lost, and none comes again.

HOPLINE_CHAOS_SECONDS says for how long (90), HOPLINE_CHAOS_SEED which disturbances, as a former run has printed it,
HOPLINE_CHAOS_LOGS a folder for the containers' logs, HOPLINE_CHAOS_STORE what keeps the store: sqlite, or with a store
process that stands by, postgres or jetstream, whose servers are disturbed too. `make chaos` runs for an hour.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.chaos.checker import check
from tests.support.chaos.report import report
from tests.support.chaos.run import ChaosRun, Plan

if TYPE_CHECKING:
    from tests.support.chaos.containers import ContainerStack

PLAN = Plan()
TRACED = 3  # messages of each kind of finding
AROUND_SECONDS = 600  # to make images, to start, to settle, to stop


# pika leaves the sockets of connections that failed to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.timeout(PLAN.seconds + AROUND_SECONDS)
async def test_chaos(stack: ContainerStack, capfd: pytest.CaptureFixture[str]) -> None:
    """Under load and disturbance: confirmed is delivered, once while its consumer lives, in order, by owners alone."""

    def say(text: str) -> None:
        with capfd.disabled():
            print(text, flush=True)  # noqa: T201 - the account is read by people

    say(f"\n{stack.kept.name}: HOPLINE_CHAOS_SEED={PLAN.seed} HOPLINE_CHAOS_SECONDS={PLAN.seconds:.0f}")
    run = ChaosRun(stack, PLAN, say)
    await run.run()
    verdict = check(run.account)
    say(report(run.account, verdict, run.began))
    for message_id in verdict.messages(TRACED):
        say(await asyncio.to_thread(stack.trace, message_id))
    found = {kind: findings[:3] for kind, findings in verdict.findings.items() if findings}
    # First of all what repeats the run: of long output, the summary may be all that is seen.
    assert verdict.ok, f"HOPLINE_CHAOS_SEED={PLAN.seed}: {found}"
