"""The store in a database of compose: the primary is killed, its standby promoted, and the first one follows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cluster_load import Load
from tests.support.compose_stack import ComposeStack, docker, running_compose_stack
from tests.support.stack import wait_until

_SECONDS = 60


@pytest.fixture(scope="module")
def stack() -> Iterator[ComposeStack]:
    with running_compose_stack(ComposeStack("deploy/postgres/compose.yaml"), "postgres") as started:
        yield started


def _asked(stack: ComposeStack, server: str, question: str) -> str:
    command = ("psql", "-h", "/tmp", "-U", "admin", "-d", "hopline", "-XAtc", question)
    return docker("exec", stack.containers(server)[0], *command, check=False).strip()


def _waits_for_a_standby(stack: ComposeStack, primary: str) -> bool:
    return _asked(stack, primary, "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'") == "sync"


def _fail_over(stack: ComposeStack, primary: str, standby: str) -> None:
    docker("kill", stack.containers(primary)[0])
    assert f"{standby} is the primary" in docker("exec", stack.containers(standby)[0], "promote")


@pytest.mark.timeout(400)
def test_the_primary_dies(stack: ComposeStack, name: str) -> None:
    """Twice, to one side and back, under load: nothing confirmed is lost, and no client loses its connection."""
    load = Load(stack.address, name)
    load.start()
    for primary, standby in (("postgres", "postgres-standby"), ("postgres-standby", "postgres")):
        wait_until(lambda primary=primary: _waits_for_a_standby(stack, primary), _SECONDS, "synchronous standby")  # type: ignore[misc]
        load.wait_for_progress()
        _fail_over(stack, primary, standby)
        load.wait_for_progress()
        stack.up()
    wait_until(lambda: _waits_for_a_standby(stack, "postgres"), _SECONDS, "synchronous standby")
    load.finish()
    assert load.confirmed()
    assert load.lost() == []
    assert load.broken_promises() == []
    assert load.reconnects() == 0
