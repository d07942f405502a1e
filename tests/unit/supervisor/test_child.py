from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.common.config import Settings
from services.supervisor import nats, restarts
from services.supervisor.child import describe
from services.supervisor.executed import execute
from services.supervisor.process import Process
from services.supervisor.program import Program, stages
from tests.support.programs import failing, killed, notes, serving, until
from tests.unit.supervisor.conftest import MakeChild

FOREVER = 3600.0
_SERVES_ONCE = """
echo starts >> "$0/notes"
[ -e "$0/once" ] && rm -f "$0/one" && exit 1
touch "$0/once" "$0/one"
exec sleep 3600
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restarts that do not take a test's time."""
    monkeypatch.setattr(restarts, "_LONGEST", 0.01)


async def test_runs_and_stops(child: MakeChild, tmp_path: Path) -> None:
    """A child is started, found serving, has its pid on file, and ends on SIGTERM."""
    one = child(serving(tmp_path, "one"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 60)
    assert (tmp_path / "one.pid").read_text().strip() == (tmp_path / "one").read_text()
    await one.stop(FOREVER)
    assert notes(tmp_path) == ["one starts", "one stops"]
    assert one.ended.done()


async def test_restarted_at_once(child: MakeChild, tmp_path: Path) -> None:
    """A child that is killed is started again without a pause, and one line says how it ended."""
    one = child(serving(tmp_path, "one"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 60)
    with capture_logs() as lines:
        os.kill(int((tmp_path / "one").read_text()), signal.SIGKILL)
        await until(lambda: notes(tmp_path).count("one starts") == 2)
        await one.stop(FOREVER)
    assert [(line["status"], line["delay"]) for line in lines] == [("killed by SIGKILL", 0.0)]


async def test_how_it_ended(child: MakeChild, tmp_path: Path) -> None:
    """That is noted when it ends, and that it serves again when it does."""
    one = child(serving(tmp_path, "one"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 60)
    os.kill(int((tmp_path / "one").read_text()), signal.SIGKILL)
    ends = tmp_path / "one.ends"
    await until(lambda: len(ends.read_text().splitlines()) == 3)
    before, how, after = ends.read_text().splitlines()
    assert (before, after) == ("", "")
    assert how.startswith("killed by SIGKILL at 2")
    assert how.endswith(" UTC, starts again 0.0 s later")
    await one.stop(FOREVER)


async def test_why_it_ended(child: MakeChild, tmp_path: Path) -> None:
    """The reason that a service gives in its last line is noted as well, of any other its status alone."""
    found = []
    for words in ("one cannot run: no room", "Traceback, odd"):
        one = child(failing(tmp_path, "one", words))
        ends = tmp_path / "one.ends"
        ends.unlink(missing_ok=True)
        one.start()
        await until(lambda ends=ends: ends.exists() and ends.read_text())  # type: ignore[misc]
        found.append(ends.read_text().splitlines()[0].partition(" at 2")[0])
        await one.stop(FOREVER)
    assert found == ["exit status 1 (no room)", "exit status 1"]


async def test_given_up(child: MakeChild, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A child that cannot start is tried five times, then its end is final and says the exit status."""
    one = child(failing(tmp_path, "one", 3))
    one.start()
    await asyncio.wait_for(one.ended, 60)
    assert notes(tmp_path) == ["one fails"] * 5
    assert "exit status 3" in "".join(capfd.readouterr())


async def test_killed_before_it_serves(child: MakeChild, tmp_path: Path, quick: None) -> None:
    """A child that is killed each time before it serves is started again, with a warning each time."""
    one = child(killed(tmp_path, "one"))
    with capture_logs() as lines:
        one.start()
        await until(lambda: one.ended.done() or len(notes(tmp_path)) > restarts.ATTEMPTS)
    assert not one.ended.done()
    assert {(line["log_level"], line["status"]) for line in lines} == {("warning", "killed by SIGKILL")}
    await one.stop(FOREVER)


async def test_served_once(child: MakeChild, tmp_path: Path, quick: None) -> None:
    """A child that has served since the stack started is not given up when it cannot start later."""
    program = replace(serving(tmp_path, "one"), command=("sh", "-c", _SERVES_ONCE, str(tmp_path)))
    one = child(program)
    one.start()
    await asyncio.wait_for(one.serving.wait(), 60)
    os.kill(int((tmp_path / "one.pid").read_text()), signal.SIGKILL)
    await until(lambda: one.ended.done() or len(notes(tmp_path)) > 2 * restarts.ATTEMPTS)
    assert not one.ended.done()
    await one.stop(FOREVER)


async def test_another_of_its_role_served(child: MakeChild, tmp_path: Path, quick: None) -> None:
    """One of several that cannot start is tried on while another of them serves, or has."""
    first, second = child(serving(tmp_path, "queue-1")), child(failing(tmp_path, "queue-2"))
    first.start()
    await asyncio.wait_for(first.serving.wait(), 60)
    second.start()
    await until(lambda: second.ended.done() or notes(tmp_path).count("queue-2 fails") > restarts.ATTEMPTS)
    assert not second.ended.done()
    await asyncio.gather(first.stop(FOREVER), second.stop(FOREVER))


async def test_machine_without_room(child: MakeChild, tmp_path: Path, quick: None) -> None:
    """A child that has served is tried again and again where the machine has no room for a process; that is logged."""
    starts = 0

    async def start(program: Program, environment: Mapping[str, str]) -> Process:
        nonlocal starts
        starts += 1
        if starts > 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return await execute(program, environment)

    one = child(serving(tmp_path, "one"), start)
    one.start()
    await asyncio.wait_for(one.serving.wait(), 60)
    with capture_logs() as lines:
        os.kill(int((tmp_path / "one").read_text()), signal.SIGKILL)
        await until(lambda: one.ended.done() or starts > 2 * restarts.ATTEMPTS)
    assert not one.ended.done()
    assert "Resource temporarily unavailable" in str([line.get("reason") for line in lines])
    await one.stop(FOREVER)


async def test_deaf_child_is_killed(child: MakeChild, tmp_path: Path) -> None:
    """A child that ignores SIGTERM is killed when its grace is over."""
    one = child(serving(tmp_path, "one", "deaf"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 60)
    pid = int((tmp_path / "one").read_text())
    await asyncio.wait_for(one.stop(0.3), 60)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_stopped_between_restarts(child: MakeChild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop during the pause before a restart does not wait for it, and nothing is started any more."""
    monkeypatch.setattr(restarts, "_FIRST", FOREVER)
    monkeypatch.setattr(restarts, "_LONGEST", FOREVER)
    one = child(failing(tmp_path, "one"))
    with capture_logs() as lines:
        one.start()
        await until(lambda: any(line.get("delay") == FOREVER for line in lines))
    await asyncio.wait_for(one.stop(FOREVER), 60)
    assert len(notes(tmp_path)) == 2


async def test_stopped_while_starting(child: MakeChild, tmp_path: Path) -> None:
    """A stop right after the start leaves no process behind."""
    one = child(serving(tmp_path, "one", "deaf"))
    one.start()
    await asyncio.sleep(0)
    await asyncio.wait_for(one.stop(0.5), 60)
    assert one.ended.done()


async def test_output_is_told_apart(child: MakeChild, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Lines of a child's stderr come through as they are, behind its name."""
    one = child(serving(tmp_path, "one"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 60)
    await one.stop(FOREVER)
    assert "one      | hello from one\n" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("status", "words"), [(0, "exit status 0"), (-9, "killed by SIGKILL"), (-63, "killed by signal 63")]
)
def test_describe(status: int, words: str) -> None:
    """A return code is said in words."""
    assert describe(status) == words


@pytest.mark.parametrize(
    ("variable", "who"), [("HOPLINE_PASSWORD", "mgmt"), ("hopline_password", "mgmt"), ("HOPLINE_STORE_URL", "store")]
)
async def test_children_that_know_the_password(
    child: MakeChild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, who: str
) -> None:
    """Of all programs of a stack, mgmt alone is started with the first user's password in its environment, and the
    store with the URL of its database.
    """
    monkeypatch.setenv(variable, "s3cret")
    settings = Settings(data=tmp_path, routers=2)
    programs = [nats.program(settings, 1), *(program for stage in stages(settings) for program in stage)]
    environments: dict[str, str] = {}
    for program in programs:
        told = tmp_path / f"{program.name}.env"
        command = ("sh", "-c", f"env > {told}.part; mv {told}.part {told}; exec sleep 3600")
        one = child(replace(program, command=command))
        one.start()
        await until(told.exists)
        await one.stop(FOREVER)
        environments[program.name] = told.read_text()
    assert [name for name, text in environments.items() if "s3cret" in text] == [who]
    assert len(environments) == 8
