"""Many histories, on every core; and what is said about one that failed."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom
from typing import Any, NamedTuple

from tests.simulation.draw import draw
from tests.simulation.plan import Plan
from tests.simulation.run import Verdict, run
from tests.simulation.shrink import Shrinker

_TWICE = 50  # one history in so many runs twice: it has to be the same
_PER_PROCESS = 20  # histories, before a worker starts afresh


class Result(NamedTuple):
    """Of one seed; `rules` are the promises that were broken, with an example each."""

    seed: int
    rules: dict[str, str]
    messages: int


class Runner:
    """`shape` is merged into that of every plan; all are of one `kind`, if it is said."""

    def __init__(self, shape: dict[str, Any] | None = None, workers: int | None = None, kind: str = "") -> None:
        self._shape = shape or {}
        self._kind = kind
        self._workers = workers or 1

    def plan(self, seed: int) -> Plan:
        plan = draw(seed, kind=self._kind)
        return plan.but(shape={**plan.shape, **self._shape})

    def one(self, seed: int) -> Result:
        """Runs one seed, and some twice."""
        verdict = run(self.plan(seed))
        rules = {violation.rule: violation.text for violation in reversed(verdict.violations)}
        if seed % _TWICE == 0 and run(self.plan(seed)).digest != verdict.digest:
            rules["a seed gives the same history"] = "its events differed when it was run again"
        return Result(seed, rules, len(verdict.history.sent) if verdict.history else 0)

    def run(self, start: int | None, count: int | None, seconds: float | None, *, stop: bool) -> list[int]:
        """Gives the seeds that failed; ends with the first one if it shall `stop` then."""
        began, done, messages = time.monotonic(), 0, 0
        failed: list[int] = []
        broken: Counter[str] = Counter()
        start = SystemRandom().randrange(1 << 40) if start is None else start
        for result in self._results(_seeds(start, count, seconds, began)):
            done += 1
            messages += result.messages
            if result.rules:
                failed.append(result.seed)
                broken.update(result.rules.keys())
                for rule, text in result.rules.items():
                    _say(f"seed {result.seed}: {rule}: {text}")
                if stop:
                    break
            if done % 100 == 0:
                _say(f"{done} histories, {done / (time.monotonic() - began):.2f} a second, {len(failed)} failed")
        took = time.monotonic() - began
        _say(f"{done} histories from seed {start}, {messages} messages, {done / took:.2f} histories a second,"
             f" {len(failed)} failed {dict(broken) or ''}")  # fmt: skip
        return failed

    def _results(self, seeds: Iterator[int]) -> Iterator[Result]:
        if self._workers == 1:
            yield from map(self.one, seeds)
            return
        with multiprocessing.get_context("fork").Pool(self._workers, maxtasksperchild=_PER_PROCESS) as pool:
            # Few at a time: it is not known how many there will be.
            waiting = [pool.apply_async(self.one, (seed,)) for seed in itertools.islice(seeds, 2 * self._workers)]
            while waiting:
                ready = next((each for each in waiting if each.ready()), None)
                if ready is None:
                    waiting[0].wait(0.05)
                    continue
                waiting.remove(ready)
                waiting += [pool.apply_async(self.one, (seed,)) for seed in itertools.islice(seeds, 1)]
                yield ready.get()


def _seeds(start: int, count: int | None, seconds: float | None, began: float) -> Iterator[int]:
    for number in itertools.count():
        if (count is not None and number >= count) or (seconds is not None and time.monotonic() - began > seconds):
            return
        yield start + number


def report(plan: Plan, *, runs: int, verbose: bool = False, keep: str = ".") -> int:
    """Runs one plan, says what it broke, and the shortest history that breaks it too; 1 when it does."""
    verdict = run(plan, verbose=verbose)
    for line in verdict.lines:
        _say(line)
    if not verdict.violations:
        _say(f"seed {plan.seed}: every promise was kept")
        return 0
    if runs:
        rule = verdict.violations[0].rule
        _say(f"seed {plan.seed} breaks: {rule}; making it shorter")
        shortest = Shrinker(lambda candidate: rule in run(candidate).rules, runs).shrink(plan)
        verdict = run(shortest)
    _tell(verdict)
    path = Path(keep) / f"history-{plan.seed}.json"
    path.write_text(verdict.plan.dump())
    _say(f"repeat it: python -m tests.simulation --replay {path}")
    return 1


def _tell(verdict: Verdict) -> None:
    for line in verdict.plan.lines():
        _say(line)
    for violation in verdict.violations[:20]:
        _say(f"BROKEN: {violation.rule}: {violation.text}")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201
