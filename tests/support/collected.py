"""What a service in the same test says that it counts, over gRPC."""

from __future__ import annotations

from services.common.grpc_channel import connect
from services.rpc import metrics_pb2 as pb
from services.rpc.metrics_pb2_grpc import MetricsStub

Counts = dict[tuple[str, ...], float]
"""By Prometheus's name and the labels' values; of histograms how many were observed. Without what is 0."""


async def collect(address: str, *, per_object: bool = False) -> tuple[str, Counts]:
    """The process's name, and all that it counts."""
    found: Counts = {}
    process = ""
    async with connect(address) as channel:
        async for said in MetricsStub(channel).Collect(pb.CollectRequest(per_object=per_object), timeout=30):
            process = said.process
            for family in said.families:
                found |= _samples(family)
    return process, {name: value for name, value in found.items() if value}


def _samples(family: pb.Family) -> Counts:
    count, size = len(family.labels), len(family.bounds) + 1
    values = list(family.values)
    if family.kind == pb.HISTOGRAM:
        values = [sum(family.buckets[index * size : (index + 1) * size]) for index in range(len(values))]
    return {
        (family.name, *family.label_values[index * count : (index + 1) * count]): value
        for index, value in enumerate(values)
    }
