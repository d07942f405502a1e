from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.metrics.catalogue import SECTIONS
from services.common.metrics.instrument import Instrument, Kind

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/observability"
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "grafana/hopline.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
_OF_HISTOGRAMS = ("_bucket", "_count", "_sum")
_OURS = r"\b(?:hopline|process|http_server)_[a-z_]+\b"
_ADDED = {"service", "process", "job", "instance"}


def _samples(instrument: Instrument) -> list[str]:
    name = instrument.prometheus
    return [name + end for end in _OF_HISTOGRAMS] if instrument.kind is Kind.HISTOGRAM else [name]


KNOWN = {name: each for _, instruments in SECTIONS for each in instruments for name in _samples(each)}


def _used(expression: str) -> list[str]:
    """Names of metrics in an expression: what is in braces, or behind by, are labels."""
    bare = re.sub(r"\{[^}]*\}|\bby \([^)]*\)", "", expression)
    return re.findall(_OURS, bare)


def _labels(expression: str) -> set[str]:
    """Names of labels that an expression chooses, or sums, by."""
    chosen = re.findall(r"(\w+)\s*=~?\s*\"", expression)
    summed = [label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")]
    return {*chosen, *summed}


def _check(expression: str) -> None:
    names = _used(expression)
    assert names, expression
    assert [name for name in names if name not in KNOWN] == []
    theirs = {label for name in names for label in KNOWN[name].prometheus_labels}
    buckets = {"le"} if any(name.endswith("_bucket") for name in names) else set()
    assert _labels(expression) <= theirs | _ADDED | buckets


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS)
def test_the_dashboard_asks_for_existing_metrics(title: str, expression: str) -> None:
    """Every expression of the dashboard uses names and labels that are counted."""
    _check(expression)


@pytest.mark.parametrize(
    "alert", [alert for alert in ALERTS if "up{" not in alert["expr"]], ids=lambda each: each["alert"]
)
def test_alerts_ask_for_existing_metrics(alert: dict[str, Any]) -> None:
    """So does every alert, and it says what to do."""
    _check(alert["expr"])
    assert alert["labels"]["severity"] in {"page", "warning"}
    assert set(alert["annotations"]) == {"summary", "description"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_panels(panel: dict[str, Any]) -> None:
    """A panel has a legend for each series of which there may be several, made of labels that its expression leaves."""
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    for target in panel["targets"]:
        said = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        grouped = re.search(r"\bby \(([^)]*)\)", target["expr"])
        there = {label.strip() for label in grouped[1].split(",")} - {"le"} if grouped else None
        assert there is None or said == there or panel["type"] == "stat"


def test_panels_do_not_lie_upon_each_other() -> None:
    """Each place of the dashboard is one panel's."""
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        its = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not its & taken
        assert max(x for x, _ in its) < 24
        taken |= its


def _promtool(*arguments: str | Path) -> None:
    checked = subprocess.run(["promtool", *arguments], capture_output=True, check=False, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_expressions_of_the_dashboard_are_promql(tmp_path: Path) -> None:
    """promtool takes each of them for a rule."""
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, (_, expression) in enumerate(EXPRESSIONS)
    ]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    _promtool("check", "rules", path)


def test_alerts_are_rules() -> None:
    """promtool has nothing against them."""
    _promtool("check", "rules", "--lint-fatal", FOLDER / "alerts.yaml")


def test_alerts_fire() -> None:
    """Each alert fires by what it is for, and none does when all is well."""
    tests = Path(__file__).with_name("alerts.yaml")
    _promtool("test", "rules", tests)
    [_, amiss] = yaml.safe_load(tests.read_text())["tests"]
    assert amiss["promql_expr_test"][0]["exp_samples"][0]["value"] == len(ALERTS)


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    """promtool has nothing against the configuration, with the alerts and the token beside it."""
    for name in ("prometheus.yaml", "alerts.yaml"):
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / "token").write_text("secret")
    _promtool("check", "config", tmp_path / "prometheus.yaml")
