from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stack import HOST, SERVICES, Stack, running_stack, wait_until

HOPLINE = Path(sys.executable).with_name("hopline")


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with running_stack(tmp_path / "data") as started:
        yield started


def _up(stack: Stack, **settings: str) -> subprocess.CompletedProcess[str]:
    """What comes of another `hopline up`, which is expected to end by itself."""
    environment = {**os.environ, "HOPLINE_DATA": str(stack.data), "HOPLINE_HTTP_PORT": "0", **settings}
    return subprocess.run(
        [HOPLINE, "up"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_one_line_when_ready(stack: Stack) -> None:
    """When everything serves, one line says where, and with which credentials to try it."""
    wait_until(lambda: "ready: " in stack.log_tail(), 10, "ready line")
    (line,) = (line for line in stack.log_tail().splitlines() if "ready: " in line)
    assert f"amqp://{HOST}:{stack.address.port}" in line
    assert f"http://{HOST}:{stack.http_port}" in line
    assert "guest/guest (loopback only)" in line


def test_second_stack_on_the_same_data(stack: Stack) -> None:
    """A second stack on the same data folder ends with one line that says what to do; the first runs on."""
    second = _up(stack)
    assert second.returncode == 1
    assert len(second.stderr.splitlines()) == 1
    assert "HOPLINE_DATA" in second.stderr
    stack.wait_until_healthy()


def test_every_service_is_replaced(stack: Stack) -> None:
    """Whichever service is killed, the supervisor starts it again and the stack becomes healthy."""
    for service in SERVICES:
        stack.wait_until_replaced(service, stack.kill(service))


def test_killed_supervisor_leaves_nothing_in_the_way(stack: Stack) -> None:
    """kill -9 of the supervisor takes all services with it, and the stack starts again on the data that is left."""
    supervisor, *children = stack.pids()
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not any(map(_is_alive, children)), 5, "end of the services")
    stack.kill_all()
    stack.start()


def test_clean_stop(stack: Stack) -> None:
    """After Ctrl-C the exit status is 0, and neither sockets nor pid files stay."""
    stack.stop()
    assert {path.name for path in (stack.data / "run").iterdir()} == {"secret", "supervisor.lock"}


def test_port_in_use(tmp_path: Path) -> None:
    """When the AMQP port is taken, `hopline up` gives up, stops everything, and its last line says why."""
    with socket.create_server((HOST, 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = _up(Stack(tmp_path / "data"), HOPLINE_AMQP_HOST=HOST, HOPLINE_AMQP_PORT=port)
    assert ended.returncode == 1
    assert "gateway" in ended.stderr.splitlines()[-1]
    assert port in ended.stderr.splitlines()[-1]
    assert not list((tmp_path / "data/run").glob("*.pid"))
