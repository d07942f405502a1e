"""The gRPC service by which mgmt reads a process's metrics."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any

from services.common.metrics.meters import AT_ONCE, Meters, family
from services.rpc import metrics_pb2 as pb
from services.rpc.metrics_pb2_grpc import MetricsServicer


class Serving(MetricsServicer):
    """hopline.metrics.Metrics; `meters` is set once the process has a name."""

    def __init__(self, meters: Meters | None = None) -> None:
        self.meters = meters

    async def Collect(self, request: pb.CollectRequest, context: Any) -> AsyncIterator[pb.Collected]:  # noqa: ANN401, ARG002 - generic in its stubs only
        if self.meters:
            async for said in collected(self.meters, per_object=request.per_object, names=set(request.names)):
                yield said


async def collected(meters: Meters, *, per_object: bool, names: Collection[str] = ()) -> AsyncIterator[pb.Collected]:
    """Portions of some hundred samples, with a turn of the loop between them."""
    await meters.survey()
    said, room = _nothing(meters), AT_ONCE
    for each in meters.measured(per_object=per_object, names=names):
        said.families.append(family(each))
        room -= len(each.samples) + len(each.histograms)
        if room <= 0:
            yield said
            await asyncio.sleep(0)
            said, room = _nothing(meters), AT_ONCE
    yield said


def _nothing(meters: Meters) -> pb.Collected:
    return pb.Collected(service=meters.service, process=meters.process)
