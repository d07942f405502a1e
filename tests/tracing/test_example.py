from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from examples.tracing.show import read, show
from tests.support.span_files import wait_for
from tests.support.stack import Stack

ROOT = Path(__file__).parents[2]


def test_example(stack: Stack, spans: Path, tmp_path: Path) -> None:
    """The example's trace runs from its publishing function through every hop to its consuming one, and is shown."""
    environment = {**os.environ, "AMQP_URL": stack.address.url(), "EXAMPLE_SPANS": str(tmp_path)}
    environment.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)

    def run(program: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"examples.tracing.{program}", "--orders", "3"]
        return subprocess.Popen(command, cwd=ROOT, env=environment)

    with run("warehouse") as warehouse, run("shop") as shop:
        assert (shop.wait(30), warehouse.wait(30)) == (0, 0)
    placed = [span for span in read([tmp_path]) if span["name"].startswith("place order")]
    traces = {span["traceId"] for span in placed}
    assert len(traces) == 3
    names = {"receive orders", "enqueue warehouse", "send warehouse"}
    wait_for(
        spans,
        lambda found: (
            all(names <= {span.name for span in found if span.trace == trace} for trace in traces)
            and {"move warehouse", "enqueue warehouse.rejected"}
            <= {span.name for span in found if span.trace in traces}
        ),
    )
    whole = [span for span in read([tmp_path, spans]) if span["traceId"] in traces]
    by_id = {span["spanId"]: span for span in whole}
    for pack in (span for span in whole if span["name"] == "pack"):
        ancestors = [pack]
        while parent := by_id.get(ancestors[-1].get("parentSpanId", "")):
            ancestors.append(parent)
        assert ancestors[-1]["name"].startswith("place order")
        publishing = {span["spanId"] for span in ancestors}
        assert any(span["name"] == "receive orders" and span["parentSpanId"] in publishing for span in whole)
    shown = io.StringIO()
    show(whole, Console(file=shown, width=200))
    assert shown.getvalue().count("place order") == 3
    for word in ("pack", "receive orders", "send warehouse", "move warehouse", "rejected", "hopline-gateway"):
        assert word in shown.getvalue()
