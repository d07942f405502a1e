"""A real Prometheus with the configuration of deploy, beside a stack: what it knows, and what it makes of a kill."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest
import yaml

from tests.support.ports import free_port
from tests.support.stack import HOST, SERVICES, Stack, running_stack, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ask = Callable[[str], list[dict[str, Any]]]

DEPLOY = Path(__file__).parents[2] / "deploy/observability"
_TOKEN = "a token, and only for metrics"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One with a token for metrics."""
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "token").write_text(_TOKEN)
    with running_stack(folder / "data", {"HOPLINE_METRICS_TOKEN_FILE": str(folder / "token")}) as started:
        yield started


@pytest.fixture
def ask(stack: Stack, tmp_path: Path) -> Iterator[Ask]:
    """A query, and its samples."""
    configuration = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    [scraping] = configuration["scrape_configs"]
    scraping["static_configs"] = [{"targets": [f"{HOST}:{stack.http_port}"]}]
    scraping["scrape_interval"] = "1s"
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    (tmp_path / scraping["authorization"]["credentials_file"]).write_text(_TOKEN)
    shutil.copy(DEPLOY / "alerts.yaml", tmp_path)
    address = f"{HOST}:{free_port()}"
    options = {"config.file": tmp_path / "prometheus.yaml", "storage.tsdb.path": tmp_path / "data"}
    command = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        yield lambda query: _ask(address, query)
    finally:
        process.kill()
        process.wait()


def _ask(address: str, query: str) -> list[dict[str, Any]]:
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found
    except OSError:
        return []


def _number(ask: Ask, query: str) -> float:
    return sum(float(each["value"][1]) for each in ask(query))


def test_increases_are_right_across_restarts(ask: Ask, stack: Stack, name: str) -> None:
    """Prometheus knows every process, and adds up what was counted before and after kills; it sees no reset."""
    wait_until(
        lambda: _number(ask, "sum(hopline_up)") == len(SERVICES) - 1, 60, "all that say what they count"
    )  # not NATS
    wait_until(lambda: _number(ask, 'count(up{job="hopline"} == 1)') == 1, 60, "a scrape that was answered in time")
    with closing(pika.BlockingConnection(pika.ConnectionParameters(stack.address.host, stack.address.port))) as client:
        channel = client.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True)
        for total in (30, 60, 90):
            for _ in range(30):
                channel.basic_publish("", name, b"message", pika.BasicProperties(delivery_mode=2))
            wait_until(lambda: _enqueued(ask) == total, 30, f"{total} messages counted")  # noqa: B023 - at once
            stack.kill("queue-1")
            stack.kill("queue-2")
    assert _number(ask, "sum(resets(hopline_messages_enqueued_total[10m]))") == 0


def _enqueued(ask: Ask) -> float:
    return _number(ask, "sum(max_over_time(hopline_messages_enqueued_total[10m]))")
