from __future__ import annotations

import asyncio
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from services.common.config import Settings
from services.common.metrics.catalogue.messages import ENQUEUED, QUEUE_READY, SETTLED
from services.common.metrics.catalogue.queues import JOURNAL
from services.common.metrics.meters import Meters, family
from services.common.metrics.serving import Serving
from services.mgmt.metrics.exposition import exposition
from services.mgmt.metrics.gather import Gathering, ProcessMetrics
from services.mgmt.metrics.requests import CountedRequests
from services.mgmt.service import Service
from services.rpc import metrics_pb2 as pb
from services.rpc.metrics_pb2_grpc import MetricsServicer, add_MetricsServicer_to_server
from tests.support.fake_store import FakeStore
from tests.support.rest import Get

_TEXT = "text/plain;version=0.0.4"
_OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def _meters(process: str, count: int) -> Meters:
    meters = Meters("queue", process)
    meters.number(ENQUEUED, lambda: count)
    meters.read(SETTLED, lambda: [(("accepted",), count), (('"re\\jected\n"',), 1)])
    meters.read(QUEUE_READY, lambda: [(("/", "q"), count)])
    took = meters.histogram(JOURNAL)
    for _ in range(count):
        took.observe(0.002)
    took.observe(100.0)
    return meters


def _told(process: str, count: int) -> ProcessMetrics:
    return ProcessMetrics("queue", process, True, [family(each) for each in _meters(process, count).measured()])


def _samples(page: bytes, read: Any = read_text) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(f"{key}={value}" for key, value in sorted(sample.labels.items()))): sample.value
        for metric in read(page.decode())
        for sample in metric.samples
    }


def test_every_process_has_samples_of_its_own() -> None:
    """What two processes count stands under one name, and each sample says whose it is."""
    samples = _samples(exposition([_told("queue-1-a", 3), _told("queue-2-b", 5)], _TEXT)[0])
    who = ("process=queue-1-a", "service=queue"), ("process=queue-2-b", "service=queue")
    assert [samples["hopline_messages_enqueued_total", *each] for each in who] == [3, 5]
    assert samples["hopline_messages_settled_total", 'outcome="re\\jected\n"', *who[0]] == 1
    assert [samples["hopline_up", *each] for each in who] == [1, 1]
    buckets = {
        name[1]: value for name, value in samples.items() if name[0].endswith("_bucket") and name[2] == who[1][0]
    }
    assert (buckets["le=0.001"], buckets["le=0.0025"], buckets["le=10.0"], buckets["le=+Inf"]) == (0, 5, 5, 6)
    assert samples["hopline_journal_write_duration_seconds_count", *who[1]] == 6
    assert samples["hopline_journal_write_duration_seconds_sum", *who[1]] == pytest.approx(100.01)


def test_a_process_that_says_nothing() -> None:
    """It is 0 in `hopline_up`, so that an alert has something to see, and nowhere else."""
    samples = _samples(exposition([ProcessMetrics("gateway", "gateway-3")], _TEXT)[0])
    assert {name: value for name, value in samples.items() if "process=gateway-3" in name} == {
        ("hopline_up", "process=gateway-3", "service=gateway"): 0
    }


def test_some_of_them() -> None:
    """A request that names metrics gets those, and always `hopline_up`."""
    names = (ENQUEUED.prometheus, JOURNAL.prometheus)
    samples = _samples(exposition([_told("queue-1-a", 3)], _TEXT, names)[0])
    told = {name[0].removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in samples}
    assert told == {*names, "hopline_up", "hopline_build_info"}


def test_either_format() -> None:
    """A scraper gets OpenMetrics where it asks for that, which says the same."""
    told = [_told("queue-1-a", 3)]
    text, kind = exposition(told, _TEXT)
    openmetrics, other_kind = exposition(told, _OPENMETRICS)
    assert (kind.split(";")[0], other_kind.split(";")[0]) == ("text/plain", "application/openmetrics-text")
    assert _samples(text) == _samples(openmetrics, read_openmetrics)


def test_promtool_has_nothing_against_it() -> None:
    """Prometheus's own check of names, units and help finds nothing."""
    page, _ = exposition([_told("queue-1-a", 3), _told("queue-2-b", 5)], _TEXT)
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


class _Breaks(MetricsServicer):
    """Says half of it."""

    async def Collect(self, request: Any, context: Any) -> Any:  # noqa: N802
        yield pb.Collected(service="queue", process="queue-9-z", families=[family(next(_meters("", 1).measured()))])
        await context.abort(grpc.StatusCode.INTERNAL, "broken")


async def test_gathering(tmp_path: Any) -> None:
    """All processes are asked at once; one that breaks off counts as silent, and so does one that is away."""
    server, addresses = grpc.aio.server(), {}
    servers = [server, grpc.aio.server()]
    add_MetricsServicer_to_server(Serving(_meters("queue-1-a", 3)), servers[0])
    add_MetricsServicer_to_server(_Breaks(), servers[1])
    for number, each in enumerate(servers):
        addresses[f"queue-{number}"] = f"unix:{tmp_path}/{number}.sock"
        each.add_insecure_port(addresses[f"queue-{number}"])
        await each.start()

    async def ready() -> None:
        """All of them are known."""

    absent = {"gateway-1": f"unix:{tmp_path}/none.sock"}
    gathering = Gathering(lambda: {"queue": addresses, "gateway": absent}, Meters("mgmt", "mgmt-1"), ready)
    plain, whole = [await gathering.gather(per_object=each) for each in (False, True)]
    assert [(each.process, each.answered, bool(each.families)) for each in plain] == [
        ("gateway-1", False, False),
        ("mgmt-1", True, False),
        ("queue-1-a", True, True),
        ("queue-9-z", False, False),
    ]
    names = [{each.name for each in told[2].families} for told in (plain, whole)]
    assert names[1] - names[0] == {QUEUE_READY.prometheus}
    for each in servers:
        await each.stop(0)


async def test_one_that_is_called_twice(tmp_path: Path) -> None:
    """Where one was killed and another began at its address, that one is asked twice, and told of once."""
    server, address = grpc.aio.server(), f"unix:{tmp_path}/queue.sock"
    add_MetricsServicer_to_server(Serving(_meters("queue-1-b", 3)), server)
    server.add_insecure_port(address)
    await server.start()

    async def ready() -> None:
        """It is known."""

    both = {"queue-1-a": address, "queue-1-b": address}
    gathering = Gathering(lambda: {"queue": both}, Meters("mgmt", "mgmt-1"), ready)
    told = await gathering.gather(per_object=False)
    assert [each.process for each in told] == ["mgmt-1", "queue-1-b"]
    page = exposition(told, _TEXT)[0].decode()
    assert page.count('hopline_messages_enqueued_total{process="queue-1-b",service="queue"}') == 1
    await server.stop(0)


async def test_over_http(get: Get, client: Any) -> None:
    """A user who may observe gets the page; requests to this very process are in it."""
    await client.put_user("watcher", "secret", ["monitoring"])
    await get("/metrics", "watcher:secret")
    status, page, headers = await get("/metrics", "watcher:secret")
    samples = _samples(page.encode())
    assert (status, headers.get_content_type()) == (200, "text/plain")
    assert any(name[0] == "hopline_up" and "service=mgmt" in name and value == 1 for name, value in samples.items())
    assert [value for name, value in samples.items() if name[0] == "http_server_request_duration_seconds_count"] == [1]
    some = (await get("/metrics?name[]=process_open_fds&name[]=process_max_fds", "watcher:secret"))[1]
    assert {name[0] for name in _samples(some.encode()) if name[0].startswith("process")} == {
        "process_open_fds",
        "process_max_fds",
    }
    assert (await get("/metrics", None))[0] == 401
    assert (await get("/metrics", "watcher:wrong"))[0] == 401


async def test_requests_are_counted() -> None:
    """By method and status; one that was answered nothing, or asks with a word of its own, is one as well."""
    meters = Meters("mgmt", "mgmt-1")

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/fails":
            raise ValueError("nothing was sent")
        await send({"type": "http.response.start", "status": 404})

    async def sends(message: Any) -> None:
        """Takes it."""

    counted = CountedRequests(answers, meters)
    for method in ("GET", "GET", "INVENTED"):
        await counted({"type": "http", "path": "/", "method": method}, None, sends)
    with pytest.raises(ValueError, match="nothing"):
        await counted({"type": "http", "path": "/fails", "method": "POST"}, None, sends)
    [(_, _, histograms)] = meters.measured()
    assert {labels: found.count for labels, found in histograms} == {
        ("GET", "404"): 2,
        ("_OTHER", "404"): 1,
        ("POST", "499"): 1,
    }


def _as_bearer(port: int, path: str, token: str) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as failure:
        with failure:
            return failure.code, failure.read()


async def test_a_token(settings: Settings, store: FakeStore, tmp_path: Path) -> None:
    """A client with the token reads metrics, while the store is away too; nothing else, and with no other token."""
    file, token = tmp_path / "token", "a token for metrics"
    file.write_text(f"{token}\n")
    service = Service(settings.model_copy(update={"metrics_token_file": file}))
    await service.start()

    async def ask(path: str, said: str) -> tuple[int, bytes]:
        return await asyncio.to_thread(_as_bearer, service.http_port, path, said)

    assert (await ask("/metrics", token))[0] == (await ask("/metrics/per-object", token))[0] == 200
    for path, said in (("/api/ports", token), ("/metrics", "another token here"), ("/metrics", "x" * 20)):
        assert (await ask(path, said))[0] == 401, path
    for kept in ("short", ""):
        file.write_text(kept)
        assert (await ask("/metrics", kept))[0] == (await ask("/metrics", token))[0] == 401
    file.unlink()
    assert (await ask("/metrics", token))[0] == 401
    file.write_text(token)
    await store.stop()
    status, page = await ask("/metrics", token)
    up = {name[1]: value for name, value in _samples(page).items() if name[0] == "hopline_up"}
    assert (status, up["process=store"]) == (200, 0)
    await service.stop()
