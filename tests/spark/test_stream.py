from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.ranges import clip, union
from spark.registry import job
from spark.run import Sources, run
from spark.stream.follow import SETTINGS, follow
from spark.stream.following import Following
from tests.support.ledger_rows import START, damage_column, file_rows, stage

ACCOUNT = ("virtual_host", "queue", "origin", "fate", "reason", "duplicate")

SPANS = st.lists(st.tuples(st.integers(1, 2), st.integers(1, 40), st.integers(0, 9)), max_size=12)


def columns(spans: list[tuple[int, int, int]]) -> dict[str, np.ndarray]:
    table = np.array([(place, first, first + more) for place, first, more in spans], np.int64).reshape(-1, 3)
    return dict(zip(("place", "first", "last"), table.T, strict=True))


def covered(spans: dict[str, np.ndarray]) -> Counter[tuple[int, int]]:
    rows = zip(spans["place"], spans["first"], spans["last"], strict=True)
    return Counter((int(place), uid) for place, first, last in rows for uid in range(first, last + 1))


@given(SPANS, SPANS)
def test_clip(rows: list[tuple[int, int, int]], among: list[tuple[int, int, int]]) -> None:
    """Of rows those parts are kept that are in ranges of the same place, each as often as it was there."""
    ranges = [{**union(columns([one for one in among if one[0] == place]))} | {"place": place} for place in (1, 2)]
    apart = {
        "place": np.concatenate([np.full(len(one["first"]), one["place"]) for one in ranges]),
        "first": np.concatenate([one["first"] for one in ranges]),
        "last": np.concatenate([one["last"] for one in ranges]),
    }
    inside = covered(apart)
    assert covered(clip(columns(rows), apart)) == Counter(
        {key: count for key, count in covered(columns(rows)).items() if inside[key]}
    )
    assert set(inside) == set(covered(columns(among)))


@pytest.mark.timeout(900)
def test_follow(spark: SparkSession, tmp_path: Path) -> None:
    """Read in batches as it comes, with a restart between, a ledger gives the audit and latencies of the whole."""
    ledger, following = tmp_path / "all", tmp_path / "ledger"
    write(Plan(rows=40_000, losses=8, duplicates=8, rate=5_000), str(ledger))
    _in_parts(ledger, 3)
    files = sorted(ledger.glob("stages/*/*/part-*.parquet"))
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    settings = Following(
        str(following), str(tmp_path / "out"), str(tmp_path / "checkpoint"), late=1.0, keep=1e9, grace=1.0, files=3
    )
    old = tmp_path / "out/audit/summary.json"
    old.parent.mkdir(parents=True)
    old.write_text(
        json.dumps({"job": "audit", "inputs": {"stages": {"files": 1, "rows": 1, "bytes": 1, "refused": []}}})
    )
    for some in (files[:2], files[2:]):
        for file in some:
            there = following / file.relative_to(ledger)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, there)
        follow(session, settings, once=True).wait()
    whole = run(spark, job("audit"), Sources(str(ledger), options={"grace": "1"}), str(tmp_path / "batch"))
    assert _fates(tmp_path / "out") == Counter({_key(row): row["messages"] for row in whole.tables["fates"]})
    latency = run(spark, job("latency"), Sources(str(ledger)), str(tmp_path / "batch"))
    hops = {row["hop"]: row for row in json.loads((tmp_path / "out/latency/all.json").read_text())}
    for row in latency.tables["all"]:
        if row["hop"] == "wait":
            assert hops["wait"]["messages"] <= row["messages"]
            assert abs(hops["wait"]["p50_us"] / row["p50_us"] - 1) < 0.1
    assert _summary(tmp_path / "out", "stream")["batch"] >= 1
    for name in ("audit", "latency"):
        assert _summary(tmp_path / "out", name)["inputs"]["stages"] == whole.summary["inputs"]["stages"]


def test_damaged(spark: SparkSession, tmp_path: Path) -> None:
    """A file without an end, and one that is damaged in its midst, are passed over and named once, and what they may
    tell is unknown, also after a restart; others are read."""
    for number in range(4):
        file_rows(tmp_path / "ledger", "stages", [stage("received", number + 1)], f"part-{number}")
    files = sorted((tmp_path / "ledger").rglob("part-*.parquet"))
    files[0].write_bytes(files[0].read_bytes()[:-40])
    damage_column(files[2], "time")
    settings = Following(str(tmp_path / "ledger"), str(tmp_path / "out"), str(tmp_path / "checkpoint"), files=2)
    said: list[str] = []
    follow(spark.newSession(), settings, once=True, say=said.append).wait()
    assert sorted(line.split(": ")[1] for line in said) == [str(files[0]), str(files[2])]
    assert _fates(tmp_path / "out") == {("/", "", "unconfirmed", "unknown", "never_routed", ""): 2}
    file_rows(tmp_path / "ledger", "stages", [stage("received", 5)], "part-5")
    follow(spark.newSession(), settings, once=True, say=said.append).wait()
    assert len(said) == 2
    read = _summary(tmp_path / "out", "audit")["inputs"]["stages"]
    assert (read["files"], read["rows"]) == (3, 3)
    for refused in (read["refused"], _summary(tmp_path / "out", "stream")["refused"]):
        assert [one["path"] for one in refused] == [str(files[0]), str(files[2])]
    [verdict] = json.loads((tmp_path / "out/audit/verdict.json").read_text())
    assert (verdict["whole"], verdict["unread"], verdict["unknown"]) == (False, 2, 3)


@pytest.mark.timeout(900)
def test_idle(spark: SparkSession, tmp_path: Path) -> None:
    """Without new rows a live record is judged as of now: what was too young is not for ever, and a death counts."""
    ledger = tmp_path / "ledger"
    file_rows(ledger, "stages", [stage("received", 1, 2), stage("confirmed", 1), stage("enqueued", 2)], "part-0")
    settings = Following(str(ledger), str(tmp_path / "out"), str(tmp_path / "checkpoint"), quiet=0)
    stream = follow(spark.newSession(), settings, once=True)
    stream.wait()
    stream.batches.judge_again()  # nobody writes it: these are files, judged as of their end
    assert _kinds(tmp_path / "out") == {"in_flight": 1, "waiting": 1}
    (ledger / "_state.json").write_text(json.dumps({"filed_ms": time.time() * 1000}))
    stream.batches.judge_again()
    assert _kinds(tmp_path / "out") == {"lost": 1, "waiting": 1}
    written = (tmp_path / "out/audit/summary.json").stat().st_mtime_ns
    stream.batches.judge_again()  # time alone changes nothing any more
    assert (tmp_path / "out/audit/summary.json").stat().st_mtime_ns == written
    noticed = {"time": START + timedelta(seconds=40), "reason": "silent", "since": START}
    rows = {"first_row": 2, "last_row": 2, "count": -1}
    died = [{**noticed, **rows, "service": service, "instance": f"{service}-0"} for service in ("queue", "gateway")]
    file_rows(ledger, "gaps", died)
    stream.batches.judge_again()
    assert _kinds(tmp_path / "out") == {"unknown": 2}
    file_rows(ledger, "stages", [stage("settled", 2, at=1.0)], "part-1")
    # A batch is judged as of its last row; with the quiet of above it might be judged as of now, as soon as it is read.
    follow(spark.newSession(), replace(settings, quiet=3600.0), once=True).wait()
    assert _kinds(tmp_path / "out") == {"in_flight": 1, "settled": 1}


def _kinds(out: Path) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for row in json.loads((out / "audit/fates.json").read_text()):
        kinds[row["fate"]] += row["messages"]
    return kinds


def _in_parts(ledger: Path, parts: int) -> None:
    """Rows as services file them: by when they came, every few seconds a file."""
    for number, file in enumerate(sorted(ledger.glob("stages/*/*/*.parquet"))):
        table = pq.ParquetFile(file).read()
        by_time = table.sort_by("time")
        size = len(by_time) // parts + 1
        for part in range(parts):
            rows: pa.Table = by_time.slice(part * size, size).sort_by("first_uid")
            pq.write_table(rows, file.with_name(f"part-{number}{part}.parquet"))
        file.unlink()


def _fates(out: Path) -> Counter[tuple[str, ...]]:
    return Counter({_key(row): row["messages"] for row in json.loads((out / "audit/fates.json").read_text())})


def _summary(out: Path, name: str) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((out / name / "summary.json").read_text())
    return summary


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ACCOUNT)
