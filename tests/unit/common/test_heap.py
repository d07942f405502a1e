"""The room of what is gone goes back to the system."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from services.common.heap import keep_small, resident, return_large, share_arena, small_pages
from services.common.users import User, hash_password, verify_password

SIZE, COUNT = 60_000, 3_000  # 180 MB in pieces that the C library keeps when the last ones stay
FEW = 40 << 20
LOOK = 0.02
THREADS = 4
OF_A_PASSWORD = 19 << 20


def test_room_of_a_backlog_that_is_gone_is_given_back() -> None:
    """Asked of a process that does nothing else: without being given back, all of it stays."""
    done = subprocess.run([sys.executable, "-m", __name__], check=True, capture_output=True, text=True)
    full, gone, later = map(int, done.stdout.split())
    assert full > 4 * FEW
    assert gone > 4 * FEW
    assert later < FEW


def test_what_is_large_is_given_back_at_once() -> None:
    """Verifying a password takes 19 MiB, which the C library would keep for each thread that has done it."""
    code = f"from {__name__} import verify; verify()"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) < OF_A_PASSWORD


def test_arrow_takes_small_pages() -> None:
    """The kernel would clear 2 MiB for each piece of that of which anything is used, over and over."""
    code = f"from {__name__} import fill; fill()"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) == 0


def fill() -> None:
    """Prints how many kB of this process are in huge pages when Arrow has taken memory."""
    small_pages()
    import pyarrow as pa  # noqa: PLC0415 - not before

    column = pa.repeat(pa.scalar(1, pa.int64()), 2 << 20)
    said = [line.split() for line in Path("/proc/self/smaps_rollup").read_text().splitlines()]
    sys.stdout.write(f"{sum(int(each[1]) for each in said if each[0] == 'AnonHugePages:')}\n")
    del column  # until here it is there


def verify() -> None:
    """Prints by how many bytes this process is larger when each of some threads has verified passwords."""
    share_arena()
    return_large(1 << 20)
    kept = hash_password("guest")
    user = User(name="guest", password_hash=kept)
    with ThreadPoolExecutor(THREADS) as threads:
        before = resident()
        for _ in range(3):
            assert all(threads.map(partial(verify_password, user), ["guest"] * THREADS))
        _tell(before)


async def measure() -> None:
    """Prints by how many bytes this process is larger with a backlog, when that is gone, and a moment later."""
    kept = [0]
    task = asyncio.create_task(keep_small(lambda: kept[0], LOOK))
    await asyncio.sleep(10 * LOOK)
    before = resident()
    backlog = [bytes(SIZE) + b"%d" % number for number in range(COUNT)]
    kept[0] = SIZE * COUNT
    _tell(before)
    last = backlog[-1]
    backlog.clear()
    kept[0] = len(last)
    _tell(before)
    for _ in range(100):
        await asyncio.sleep(10 * LOOK)
        if resident() - before < FEW:
            break
    _tell(before)
    task.cancel()


def _tell(before: int) -> None:
    sys.stdout.write(f"{resident() - before}\n")


if __name__ == "__main__":
    asyncio.run(measure())
