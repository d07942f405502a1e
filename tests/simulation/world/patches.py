"""While a world runs, time and randomness are its own, for product code and libraries alike."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import grpc.aio
import structlog

from services.common import clock, grpc_channel
from services.common.bus import nats_link
from services.common.message import facts_table
from services.gateway.protocols.amqp_0_9 import varied
from services.queue.machine import turn
from tests.simulation.world import memory
from tests.simulation.world.addresses import Network
from tests.simulation.world.ambushed_calls import AmbushedCalls
from tests.simulation.world.loop import Loop
from tests.simulation.world.nats_server import Client
from tests.simulation.world.processes import PROCESS

_ENVIRONMENT = {"OTEL_TRACES_EXPORTER": "none"}


class Times:
    """The clocks of the process that asks."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return PROCESS.get(self._loop.kernel).monotonic(self._loop.now)

    def time_ns(self) -> int:
        return PROCESS.get(self._loop.kernel).time_ns(self._loop.now)

    def time(self) -> float:
        return self.time_ns() / 1e9

    def monotonic_ns(self) -> int:
        return int(self.monotonic() * 1e9)


class _Streams(grpc_channel.Streams):
    """The product's own, over the transports of the world; ambushes meet the calls."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def server(self, address: str, interceptors: list[Any]) -> grpc.aio.Server:
        return super().server(address, [*interceptors, AmbushedCalls(self._network.ambushes)])


@contextlib.contextmanager
def patched(loop: Loop, network: Network, randomness: Random, log: Callable[..., Any], level: int) -> Iterator[None]:
    """`randomness` is for all that product code draws; `log` is a processor of structlog for lines of `level` on."""
    times = Times(loop)
    with contextlib.ExitStack() as after:
        clock.set_source(times)
        after.callback(clock.set_source, clock.Machine())
        grpc_channel.set_runtime(_Streams(network))
        after.callback(grpc_channel.set_runtime, grpc_channel.Streams())
        nats_link.set_client(lambda: Client(network))  # type: ignore[arg-type, return-value]
        after.callback(nats_link.set_client, nats_link.Client)
        _patch_time(times, after)
        _patch_randomness(randomness, after)
        _patch_system(after)
        _patch_turns(network.shape.turn, after)
        if network.shape.shares:
            after.enter_context(memory.shared())
        after.callback(structlog.configure, **structlog.get_config())
        wrapper = structlog.make_filtering_bound_logger(level)
        structlog.configure(processors=[log], wrapper_class=wrapper, cache_logger_on_first_use=False)
        varied.SEEN.forget()  # what came in histories before must not matter, either
        facts_table.forget()
        if gc.isenabled():
            gc.disable()  # what it finds, and when, must not matter
            after.callback(gc.enable)
        yield


def _patch_time(times: Times, after: contextlib.ExitStack) -> None:
    fakes = {getattr(time, name): getattr(times, name) for name in ("time", "time_ns", "monotonic", "monotonic_ns")}
    _replace(time, fakes, after)
    for name, module in list(sys.modules.items()):
        if name.startswith("services."):
            _replace(module, fakes, after)


def _replace(module: Any, fakes: dict[Any, Any], after: contextlib.ExitStack) -> None:
    for name, value in list(vars(module).items()):
        if callable(value) and getattr(value, "__module__", "") == "time" and value in fakes:
            setattr(module, name, fakes[value])
            after.callback(setattr, module, name, value)


def _patch_randomness(randomness: Random, after: contextlib.ExitStack) -> None:
    after.callback(random.setstate, random.getstate())
    random.seed(randomness.getrandbits(64))
    for module, name in ((os, "urandom"), (random, "_urandom")):
        after.callback(setattr, module, name, getattr(module, name))
        setattr(module, name, randomness.randbytes)


def _patch_turns(most: int, after: contextlib.ExitStack) -> None:
    """What takes thousands of messages to happen happens with a few."""
    for name in ("AT_ONCE", "SCATTERED", "LOOKS") if most else ():
        after.callback(setattr, turn, name, getattr(turn, name))
        setattr(turn, name, most)


def _patch_system(after: contextlib.ExitStack) -> None:
    """A process that signals itself is the simulated one."""
    for module, name in ((os, "kill"), (signal, "raise_signal")):
        after.callback(setattr, module, name, getattr(module, name))
        setattr(module, name, lambda *_arguments: PROCESS.get().terminate())
    for name, value in _ENVIRONMENT.items():
        former = os.environ.get(name)
        os.environ[name] = value
        after.callback(os.environ.__setitem__ if former is not None else os.environ.pop, name, former)
