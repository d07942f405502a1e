"""How much a queue process costs with its wire: one link over a unix socket, transient messages, batches of 500.

Store and router run beside it in processes of their own and have nothing to do. The peer takes what is delivered and
acknowledges it, without looking inside: its cost is that of gRPC.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from services.common.clients.store import StoreClient
from services.common.clients.topology import TopologyClient
from services.common.config import Settings
from services.common.grpc_channel import connect, is_serving
from services.rpc import queue_pb2 as pb
from services.rpc.queue_pb2_grpc import QueueStub
from services.rpc.router_pb2 import ChangeRequest, DeclareQueue

_RUN, _SIZE, _WINDOW = 500, 256, 16
_PLENTY = 1 << 40

_MAIN = """
import sys
from importlib import import_module
from pathlib import Path
from services.common.config import Settings
from services.common.log import configure
from services.common.runtime import run

async def create():
    configure(sys.argv[1], "console", "error")
    service = import_module(f"services.{sys.argv[1].split('-')[0]}.service").Service
    settings = Settings(data=Path(sys.argv[2]), store_provider="sqlite")
    return service(settings, sys.argv[1]) if "-" in sys.argv[1] else service(settings)

run(create)
"""


def _batch(sequence: int, queue_id: int, *, persistent: bool) -> bytes:
    first = sequence * _RUN
    run = pb.PublishRun(
        count=_RUN, virtual_host="/", routing_key="q", queue_ids=[queue_id], format="amqp-0-9", persistent=persistent,
        shared_properties=b"\x00\x00",
    )  # fmt: skip
    return pb.PublishBatch(
        sequence=sequence, uids=range(first, first + _RUN), bodies=[bytes(_SIZE)] * _RUN, runs=[run], time_ms=1
    ).SerializeToString()


class _Peer:
    """Keeps a window of batches under way until `total` messages have come back."""

    def __init__(self, settings: Settings, queue_id: int, *, settled: bool, persistent: bool, batches: int) -> None:
        self._address = settings.address_of("queue-1")
        self._queue_id = queue_id
        self._settled = settled
        self._batches = [_batch(number + 1, queue_id, persistent=persistent) for number in range(batches)]

    async def run(self) -> float:
        async with connect(self._address) as channel:
            call = QueueStub(channel).Attach(wait_for_ready=True)
            attach = pb.AttachConsumer(
                consumer=1, queue_id=self._queue_id, settled=self._settled, messages=1 << 31, bytes=_PLENTY
            )
            await call.write(pb.LinkFrame(hello=pb.Hello(origin=999, name="bench"), attaches=[attach]))
            await call.read()
            begin = time.perf_counter()
            await self._exchange(call)
            return time.perf_counter() - begin

    async def round_trips(self) -> float:
        """Seconds from a message's publication to its delivery, one at a time, median."""
        async with connect(self._address) as channel:
            call = QueueStub(channel).Attach(wait_for_ready=True)
            attach = pb.AttachConsumer(
                consumer=2, queue_id=self._queue_id, settled=True, messages=1 << 31, bytes=_PLENTY
            )
            await call.write(pb.LinkFrame(hello=pb.Hello(origin=998, name="bench"), attaches=[attach]))
            await call.read()
            times = []
            run = pb.PublishRun(count=1, queue_ids=[self._queue_id], format="amqp-0-9", shared_properties=b"\x00\x00")
            for number in range(2000):
                begin = time.perf_counter()
                batch = pb.PublishBatch(sequence=number + 1, uids=[number], bodies=[bytes(_SIZE)], runs=[run])
                await call.write(pb.LinkFrame(publishes=[batch.SerializeToString()]))
                await call.read()
                times.append(time.perf_counter() - begin)
            return statistics.median(times)

    async def _exchange(self, call: object) -> None:
        waiting, received, done, total = self._batches[::-1], 0, 0, len(self._batches)
        await call.write(pb.LinkFrame(publishes=[waiting.pop() for _ in range(_WINDOW)]))  # type: ignore[attr-defined]
        while received < total * _RUN or done < total:
            frame = await call.read()  # type: ignore[attr-defined]
            received += len(frame.deliveries.uids)
            done += len(frame.done)
            answer = pb.LinkFrame(publishes=[waiting.pop() for _ in range(min(len(frame.done), len(waiting)))])
            if frame.deliveries.uids and not self._settled:
                answer.settles.add(queue_id=self._queue_id, uids=frame.deliveries.uids)
            if answer.publishes or answer.settles:
                await call.write(answer)  # type: ignore[attr-defined]


async def _processes(settings: Settings) -> list[asyncio.subprocess.Process]:
    started = []
    for name in ("store", "router", "queue-1"):
        started.append(await asyncio.create_subprocess_exec(sys.executable, "-c", _MAIN, name, str(settings.data)))
        while not await is_serving(settings.address_of(name)):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    return started


async def main(batches: int) -> None:
    """Prints messages per second: published, enqueued, delivered, and acknowledged where that is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder))
        processes = await _processes(settings)
        store = StoreClient(settings.address_of("store"))
        topology = TopologyClient(store, "bench", "gateway", "bench")
        await topology.start()
        try:
            for settled, persistent in ((True, False), (False, False), (False, True)):
                name = f"q-{settled}-{persistent}"
                declare = DeclareQueue(name=name, durable=persistent)
                reply = await topology.change(ChangeRequest(virtual_host="/", declare_queue=declare))
                peer = _Peer(settings, reply.queue.id, settled=settled, persistent=persistent, batches=batches)
                seconds = await peer.run()
                what = f"{'persistent' if persistent else 'transient'}, {'no-ack' if settled else 'acknowledged'}"
                print(f"{what:<28} {batches * _RUN / seconds:>10,.0f}/s")
                if settled:
                    print(f"{'one at a time, median':<28} {await peer.round_trips() * 1000:>10.3f} ms")
        finally:
            await topology.stop()
            await store.close()
            for process in reversed(processes):
                process.terminate()
                await process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=600, help="of 500 messages")
    uvloop.run(main(parser.parse_args().batches))
