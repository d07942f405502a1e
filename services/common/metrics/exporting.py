"""Sends a process's metrics to a collector at intervals, where the standard environment variables name one.

OTEL_SDK_DISABLED, OTEL_METRICS_EXPORTER with `otlp` and `none`, OTEL_METRIC_EXPORT_INTERVAL, OTEL_EXPORTER_OTLP_….
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

import structlog

from services.common.clock import epoch_ns
from services.common.few_lines import FewLines
from services.common.metrics.meters import Measured, Meters
from services.common.release import RELEASE
from services.common.runtime import Tasks
from services.common.telemetry.tracer import UNKNOWN_EXPORTER, resource_of

log = structlog.get_logger()

_EVERY_MS: Final = 60_000
_LAST_WORDS: Final = 1.0  # seconds that a stopping process gives its exporter
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_DO: Final = "see that a collector is there and takes metrics, or set OTEL_METRICS_EXPORTER=none"


class Exporter(Protocol):
    """The destination of metrics."""

    def export(self, measured: Sequence[Measured], time_ns: int) -> None:
        """Returns when the metrics have arrived; raises an error that says why they have not."""

    def close(self) -> None:
        """Releases its resources."""


class Exporting:
    """One for each process; does nothing where no collector is named. A failed export is made up for by the next."""

    def __init__(
        self, meters: Meters, *, per_object: bool = False, create: Callable[[], Exporter] | None = None
    ) -> None:
        """`create` makes another exporter than the environment's; it is called in a thread."""
        self._meters = meters
        self._per_object = per_object
        self._began_ns = epoch_ns()
        self._create = create or self._otlp
        self._on = create is not None or _wanted()
        self._exporter: Exporter | None = None
        self._under_way: asyncio.Future[None] | None = None
        self._few = FewLines()
        self._tasks = Tasks()

    def start(self) -> None:
        """Begins to send."""
        if self._on:
            self._tasks.start(self._run(), "export metrics")

    async def stop(self) -> None:
        """Sends the last counts, if the collector takes them at once."""
        if not self._on:
            return
        await self._tasks.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._send()
        if self._exporter and not self._busy:
            self._exporter.close()

    @property
    def _busy(self) -> bool:
        return self._under_way is not None and not self._under_way.done()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_interval())
            await self._send()

    async def _send(self) -> None:
        if self._busy:  # the collector hangs: the exporter gives up by itself
            return
        await self._meters.survey()
        measured: list[Measured] = []
        for instrument, samples, histograms in self._meters.measured(per_object=self._per_object):
            copies = [(labels, each.copy()) for labels, each in histograms]
            measured.append(Measured(instrument, samples, copies))
            await asyncio.sleep(0)
        try:
            self._under_way = _beside(partial(self._export, measured, epoch_ns()))
            await asyncio.shield(self._under_way)
        except Exception as failure:  # noqa: BLE001 - whatever the failure, messages go on, and no count is lost
            self._few.say(log.warning, "metrics are not taken", reason=repr(failure), do=_DO)

    def _export(self, measured: Sequence[Measured], time_ns: int) -> None:
        self._exporter = self._exporter or self._create()
        self._exporter.export(measured, time_ns)

    def _otlp(self) -> Exporter:
        from services.common.metrics.otlp import OtlpExporter  # noqa: PLC0415 - brings the SDK with it

        resource = resource_of(self._meters.service, self._meters.process, RELEASE)
        return OtlpExporter(resource, RELEASE, self._began_ns)


def _beside(work: Callable[[], None]) -> asyncio.Future[None]:
    """Runs it in a thread that an ending process does not wait for, as it would for one of `asyncio.to_thread`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    done.add_done_callback(lambda _: done.cancelled() or done.exception())  # its caller may be gone

    def run() -> None:
        failure: Exception | None = None
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the future's owner gets it
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_settle, done, failure)

    threading.Thread(target=run, name="metrics", daemon=True).start()
    return done


def _settle(done: asyncio.Future[None], failure: Exception | None) -> None:
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)


def _wanted() -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    wanted = os.environ.get("OTEL_METRICS_EXPORTER", "").strip().lower()
    if wanted in {"otlp", "none"}:
        return wanted == "otlp"
    if wanted:
        log.warning("OTEL_METRICS_EXPORTER is none of otlp, none, and is ignored", value=wanted, do=UNKNOWN_EXPORTER)
    return any(os.environ.get(name) for name in _ENDPOINTS)


def _interval() -> float:
    """Seconds between exports."""
    text = os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    return (int(text) if text.isdigit() and int(text) else _EVERY_MS) / 1000
