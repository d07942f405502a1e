"""Lines of a log, which are written at once or a moment later."""

from __future__ import annotations

import asyncio
import io
import threading

from services.common.log_stream import LogStream


class _Written(io.StringIO):
    """Counts how often it is written to."""

    times = 0

    def write(self, text: str, /) -> int:
        self.times += 1
        return super().write(text)


async def _after(stream: LogStream, file: _Written, count: int) -> list[str]:
    async with asyncio.timeout(10):
        while len(file.getvalue().splitlines()) < count:
            await asyncio.sleep(0.001)
    return file.getvalue().splitlines()


async def test_lines_of_a_moment_are_written_together() -> None:
    """Whoever reads the log is woken once for them; and again for those that come later."""
    file = _Written()
    stream = LogStream(file)
    for number in range(5):
        stream.info(f"line {number}")
    assert file.getvalue() == "line 0\n"
    assert await _after(stream, file, 5) == [f"line {number}" for number in range(5)]
    stream.debug("later")
    assert (await _after(stream, file, 6))[-1] == "later"
    assert file.times == 3


async def test_a_line_that_comes_alone() -> None:
    """It is written at once: its process may hang from now on, and be killed."""
    file = _Written()
    stream = LogStream(file)
    for number in range(3):
        stream.info(str(number))
        assert file.getvalue().splitlines()[-1] == str(number)
        await asyncio.sleep(0.05)


def test_a_fault_that_shows_while_others_are_written() -> None:
    """Garbage that is collected then may log, as a task of asyncio does that nobody waited for."""
    file = _Written()
    stream = LogStream(file)
    flush = file.flush

    def collects() -> None:
        file.flush = flush  # type: ignore[method-assign]
        stream.write("nobody waited for it\n")

    file.flush = collects  # type: ignore[method-assign]
    stream.error("fault")
    assert file.getvalue() == "fault\nnobody waited for it\n"


async def test_a_fault_is_told_at_once() -> None:
    """Behind what was told before it, also that of a library: a process may die of it."""
    for tell in (
        LogStream.warning,
        LogStream.error,
        LogStream.critical,
        lambda stream, line: stream.write(f"{line}\n"),
    ):
        file = _Written()
        stream = LogStream(file)
        stream.info("alone")
        stream.info("before")
        tell(stream, "fault")
        assert file.getvalue() == "alone\nbefore\nfault\n"


async def test_many_do_not_wait() -> None:
    """What waits is little, however much is told in a turn."""
    file = _Written()
    stream = LogStream(file)
    for number in range(1051):
        stream.info(str(number))
    assert len(file.getvalue().splitlines()) == 1001
    assert await _after(stream, file, 1051) == [str(number) for number in range(1051)]


def test_without_a_loop() -> None:
    """A command, and a thread, write at once; so does a loop after another one that ended too soon."""
    file = _Written()
    stream = LogStream(file)
    stream.info("command")
    thread = threading.Thread(target=stream.info, args=("thread",))
    thread.start()
    thread.join()
    assert file.getvalue() == "command\nthread\n"

    async def ends() -> None:
        stream.info("ends")

    async def goes_on() -> None:
        stream.info("goes on")
        await _after(stream, file, 4)

    asyncio.run(ends())
    asyncio.run(goes_on())
    assert file.getvalue() == "command\nthread\nends\ngoes on\n"


async def test_what_waits_is_written_at_the_end() -> None:
    """A process that ends writes it."""
    file = _Written()
    stream = LogStream(file)
    stream.info("stopping")
    stream.info("goodbye")
    stream.write_out()
    stream.write_out()
    assert file.getvalue() == "stopping\ngoodbye\n"
    assert file.times == 2
