"""What a gateway's doors bear, at full size: `python -m benchmarks.doors`, or `make doors`.

Wrong passwords beside right ones; crowds of peers that are half open, that never finish a message, that never read.
A client that behaves goes round meanwhile. Nothing is judged: the figures are printed. With `--broker rabbitmq` the
crowds of AMQP are there, for comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import uvloop

from benchmarks.brokers.hopline import Hopline
from benchmarks.brokers.rabbitmq import RabbitMQ
from benchmarks.doors import crowds
from benchmarks.doors.good import Good, Way, asks_for_health, publishes, sign_ins, told
from benchmarks.doors.guesses import KINDS, Guesses, add_users
from benchmarks.doors.peer import Login
from benchmarks.doors.server import Server
from benchmarks.session import OUT
from benchmarks.wire import Address, Connection, publication

if TYPE_CHECKING:
    from collections.abc import Sequence

QUIET_SECONDS = 5.0
SIGN_INS = 20
EVERY_SECONDS = 0.5  # a sign-in
FIRST_SECONDS = 3.0  # of wrong passwords alone
BIG_MESSAGES = 400
LOGIN = Login("guest", "guest")

CROWDS = {
    "half-open": (crowds.HalfOpen, 10_000),
    "half-open-http": (crowds.HalfOpenHttp, 10_000),
    "unfinished": (crowds.Unfinished, 1000),
    "unfinished-on-channels": (crowds.UnfinishedOnChannels, 100),
    "unread-answers": (crowds.UnreadAnswers, 1000),
    "unread-returns": (crowds.UnreadReturns, 1000),
    "unread-deliveries": (crowds.UnreadDeliveries, 1000),
}


OVER_HTTP = frozenset({"half-open-http"})
ONLY_HOPLINES = OVER_HTTP | {"sign-ins"}

Broker = Hopline | RabbitMQ
BROKERS = {"hopline": Hopline, "rabbitmq": RabbitMQ}


async def _sign_ins(address: Address, data: Path) -> None:
    users = [f"right-{number}" for number in range(SIGN_INS)]
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    for kind in ("none", *KINDS):
        # The password of a new user is hashed, and waits for a turn; that of a user who has signed in before is not.
        await add_users(data, users, kind)
        guesses = Guesses(address, kind, users)
        guesses.start()
        await asyncio.sleep(FIRST_SECONDS)
        logins = [(user, kind) for user in users]
        work = asyncio.get_running_loop().run_in_executor(pool, sign_ins, address, logins, EVERY_SECONDS)
        times = await work
        await guesses.stop()
        print(
            f"sign-ins, wrong passwords: {kind:<44} {guesses.rate():>4.0f}/s  "
            f"right ones median {median(times) * 1e3:>5.0f} ms, worst of {len(times)} {max(times) * 1e3:>5.0f} ms",
            flush=True,
        )
    pool.shutdown()


async def _one(name: str, broker: Broker, address: Address, folder: Path, size: int, seconds: float) -> None:
    way: Way = publishes
    if not isinstance(broker, Hopline):
        server = Server(broker.name, broker.processes())
    elif name in OVER_HTTP:
        way, server = asks_for_health, Server.of_stack(folder / "data", "mgmt")
        address = Address(address.host, broker.http_port)
    else:
        server = Server.of_stack(folder / "data", "gateway")
    good = Good(address, way)
    try:
        await _crowd(name, address, server, good, size, seconds)
    finally:
        good.stop()


async def _crowd(name: str, address: Address, server: Server, good: Good, size: int, seconds: float) -> None:
    kind, usual = CROWDS[name]
    crowd = kind(address, size or usual, LOGIN)
    begin = time.monotonic()
    await asyncio.sleep(QUIET_SECONDS)
    _tell(name, "before", good.between(begin, time.monotonic()), server)
    begin = time.monotonic()
    await crowd.come(seconds)
    came = time.monotonic() - begin
    most = server.has()
    present = crowd.present
    while time.monotonic() < begin + seconds:
        await asyncio.sleep(0.2)
        most = max(most, server.has(), key=lambda has: has.memory)
        present = max(present, crowd.present)
    end = time.monotonic()
    _tell(name, "during", good.between(begin, end), server)
    print(f"    {present:,} at once, {came:.1f} s until then; {crowd.closed:,} were closed; at most {most}")
    for said, count in crowd.said.items():
        print(f"    {count:,} heard: {said}")
    await crowd.go()
    begin = time.monotonic()
    await asyncio.sleep(QUIET_SECONDS)
    _tell(name, "after", good.between(begin, time.monotonic()), server)


def _tell(name: str, when: str, times: list[float], server: Server) -> None:
    print(f"{name:<24} {when:<7} round trips: {told(times):<56} {server.name}: {server.has()}", flush=True)


def _fill(address: Address) -> None:
    connection = Connection(address)
    connection.declare_queue(crowds.BIG, durable=False)
    for _ in range(BIG_MESSAGES):
        connection.socket.sendall(publication("", crowds.BIG, bytes(100_000), persistent=False))
    connection.close_channel()
    connection.close()


async def main(broker: Broker, names: Sequence[str], size: int, seconds: float) -> None:
    """Prints what each load does."""
    if task := asyncio.current_task():  # which stops the broker when it is cancelled
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="doors-", dir=OUT))
    try:
        address = broker.start(folder)
        os.nice(5)  # it is the broker that is measured
        if "sign-ins" in names:
            await _sign_ins(address, folder / "data")
        _fill(address)
        for name in names:
            if name in CROWDS:
                await _one(name, broker, address, folder, size, seconds)
    finally:
        broker.stop()
        shutil.copy(folder / f"{broker.name}.log", OUT / "doors.log")
        log = (OUT / "doors.log").read_text(errors="replace").splitlines()
        print(f"the log has {len(log)} lines; the last:", *log[-8:], sep="\n")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    every = ["sign-ins", *CROWDS]
    parser.add_argument("--only", action="append", choices=every)
    parser.add_argument("--size", type=int, default=0, help="of a crowd; 0: full")
    parser.add_argument("--seconds", type=float, default=45, help="that a crowd stays")
    parser.add_argument("--broker", choices=BROKERS, default="hopline")
    arguments = parser.parse_args()
    if arguments.broker != "hopline":
        every = [name for name in every if name not in ONLY_HOPLINES]
    chosen = BROKERS[arguments.broker]()
    if missing := chosen.missing() or ", ".join(set(arguments.only or ()) - set(every)):
        parser.error(f"not at {chosen.name}: {missing}")
    uvloop.run(main(chosen, arguments.only or every, arguments.size, arguments.seconds))
