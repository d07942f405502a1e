"""Look-ups and the audit say the same of every message, whatever gaps the record has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import SparkSession

from spark.registry import job
from spark.run import Sources, run
from tests.support.fates.judge import disagreements
from tests.support.fates.told import Fate
from tests.support.gapped import LEDGERS, Hole, Ledger, Story, written
from tests.support.ledger_rows import file_rows

DRAWN = 300


def differences(spark: SparkSession, folder: Path, ledgers: Sequence[Ledger]) -> dict[str, object]:
    """What is said differently, with the ledger that it is about."""
    told = list(written(ledgers))
    file_rows(folder / "ledger", "stages", [row for one in told for row in one.rows])
    if gaps := [gap for one in told for gap in one.gaps]:
        file_rows(folder / "ledger", "gaps", gaps)
    sources = Sources(str(folder / "ledger"), options={"grace": "0"})
    fates = run(spark, job("audit"), sources, str(folder / "out"))
    audited = spark.read.parquet(str(folder / "out/audit/fates.parquet")).collect()
    assert fates.tables["verdict"][0]["gaps"] == len(gaps)
    return disagreements(Fate(folder / "ledger"), audited)


def drawn(most: int) -> list[Ledger]:
    """Drawn one by one, judged all at once: a run takes seconds."""
    found: list[Ledger] = []

    @settings(max_examples=most, derandomize=True, database=None, phases=[Phase.generate])
    @given(LEDGERS)
    def draw(ledger: Ledger) -> None:
        found.append(ledger)

    draw()
    return found


SAFE = Story(0, 30.0, confirmed=0.5)
ON_DISK = Story(0, 30.0, confirmed=0.5, persisted=0.5)
BEFORE = [Hole(0, silent=False, since=5.0, lasts=5.0), Hole(1, silent=False, since=5.0, lasts=5.0)]
FOLLOWED = Ledger([0, 1], 0, 0, [SAFE], [], handed=False)
DEATH = Hole(0, silent=True, since=45.0, lasts=31.0)
CASES = {
    "over before it came": (SAFE, [*BEFORE, DEATH], "lost (transient)"),
    "over before it was followed": (Story(0, 3.0, confirmed=0.5), [*BEFORE, DEATH], "lost (transient)"),
    "may hide that it is on disk": (Story(0, 4.5, confirmed=0.5), [*BEFORE, DEATH], "unknown"),
    "may hide what was found": (SAFE, [DEATH, Hole(1, silent=False, since=49.0, lasts=3.0)], "unknown"),
    "may hide what became of it": (ON_DISK, [*BEFORE, DEATH], "unknown"),
    "hides nothing": (ON_DISK, BEFORE, "lost (persisted)"),
}


def test_several_gaps(spark: SparkSession, tmp_path: Path) -> None:
    """A gap that was over hides nothing of what came later, whoever's it is. The next owner comes at 50."""
    ledgers = [Ledger([0, 1], 0, 0, [story], holes, handed=False) for story, holes, _ in CASES.values()]
    assert differences(spark, tmp_path, ledgers) == {}
    found = {said.queue: said.fate for said in Fate(tmp_path / "ledger").everything()}
    told = {case: found[f"q{number}-0"] for number, case in enumerate(CASES, 1)}
    assert told == {case: fate for case, (*_, fate) in CASES.items()}


@pytest.mark.parametrize(
    ("others", "holes", "fates"),
    [
        ([], [], ["lost (persisted)", "lost (transient)"]),
        ([], BEFORE, ["lost (persisted)", "lost (transient)"]),
        ([FOLLOWED], [], ["unknown", "unknown"]),
        ([FOLLOWED], BEFORE, ["unknown", "unknown"]),
    ],
    ids=["of an older release", "of one, long after a gap", "no gap", "long after a gap"],
)
def test_missing_takeover(
    spark: SparkSession, tmp_path: Path, others: list[Ledger], holes: list[Hole], fates: list[str]
) -> None:
    """A follower that told no takeover is one also without a gap: nothing is lost for sure, if others told theirs."""
    ledgers = [*others, Ledger([0, 1], 0, 2, [ON_DISK, SAFE], holes, handed=False)]
    assert differences(spark, tmp_path, ledgers) == {}
    found = {said.queue: said.fate for said in Fate(tmp_path / "ledger").everything()}
    assert [found[f"q{len(ledgers)}-{place}"] for place in (0, 1)] == fates


def test_any_gaps(spark: SparkSession, tmp_path: Path) -> None:
    """For any owners, messages and gaps."""
    assert differences(spark, tmp_path, drawn(DRAWN)) == {}
