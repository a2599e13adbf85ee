"""The dashboard and the alert rules of deploy/monitoring, beside what a server really exports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kubetailor.plugins.webhook.reviews import dump

from .conftest import PLUGIN, object_of, review_of
from .process import serving

CHECKOUT = Path(__file__).parents[3]
MONITORING = CHECKOUT / "deploy" / "monitoring"
CONFIG = """
plugins: [./probe.py]
phases: [launch, admit]
chains:
  default:
    steps:
      - {use: labels, with: {set: {said: a}}}
      - {name: again, use: labels, with: {set: {said: b}}}
      - {use: probe.said_by, with: {field: launch_plan}, when: {kind: Pod}}
      - {use: retries, with: {retries: 1}}
      - {use: probe.broken, when: {kind: RayJob}}
"""
FROM_THE_SCRAPE = {"instance", "job"}
# tests/cluster/test_deploy.py reads it from a real API server.
OF_THE_API_SERVER = {
    "apiserver_admission_webhook_rejection_count": {
        "name": {"flyte.kubetailor.dev", "labelled.kubetailor.dev"},
        "operation": {"CREATE"},
        "type": {"admit"},
        "error_type": {"calling_webhook_error", "apiserver_internal_error", "no_error"},
        "rejection_code": {"0"},
    }
}

Exported = dict[str, dict[str, set[str]]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Sample -> label -> values, of a server to which all has happened that it counts."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "probe.py").write_text(PLUGIN)
    (folder / "kubetailor.yaml").write_text(CONFIG)
    offloaded = review_of("flyteworkflow")
    for name in ("tasks", "spec", "subWorkflows"):
        object_of(offloaded).pop(name, None)
    object_of(offloaded)["workflowClosureReference"] = "s3://flyte/closure.pb"
    with serving(folder / "kubetailor.yaml") as server:
        connection = server.connect()
        reviews = [review_of("pod-n0-0"), review_of("rayjob-n8-0"), offloaded]
        assert [server.post(connection, dump(review))[0] for review in reviews] == [200] * 3
        assert server.post(connection, b"{}")[0] == 400
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
    found: Exported = dict(OF_THE_API_SERVER)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.value >= 0
            labels = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return found


# PromQL ----------------------------------------------------------------------------------------


def labels_of(expr: promql.Expr, exported: Exported) -> set[str]:
    """The labels of what an expression gives; fails where it asks for what is not there."""

    def of(inner: promql.Expr) -> set[str]:
        return labels_of(inner, exported)

    if isinstance(expr, promql.NumberLiteral | promql.StringLiteral):
        return set()
    if isinstance(expr, promql.ParenExpr):
        return of(expr.expr)
    if isinstance(expr, promql.MatrixSelector):
        return of(expr.vector_selector)
    if isinstance(expr, promql.VectorSelector):
        return selected(expr, exported)
    if isinstance(expr, promql.AggregateExpr):
        inner, by = of(expr.expr), set(expr.modifier.labels) if expr.modifier else set[str]()
        assert by <= inner, f"{expr}: there is no {by - inner}"
        return by
    if isinstance(expr, promql.Call):
        found = set[str]().union(*map(of, expr.args))
        if expr.func.name == "histogram_quantile":
            assert "le" in found, str(expr)
            return found - {"le"}
        return set() if expr.func.name == "absent" else found
    assert isinstance(expr, promql.BinaryExpr), str(expr)
    left, right = of(expr.lhs), of(expr.rhs)
    number = isinstance(expr.rhs, promql.NumberLiteral)
    assert number or left == right, f"{expr}: nothing matches"
    return left


def matches(matcher: promql.Matcher, value: str) -> bool:
    if matcher.op == promql.MatchOp.Equal:
        return value == matcher.value
    if matcher.op == promql.MatchOp.NotEqual:
        return value != matcher.value
    assert matcher.op == promql.MatchOp.Re, "the others are not used"
    return re.fullmatch(matcher.value, value) is not None


def selected(expr: promql.VectorSelector, exported: Exported) -> set[str]:
    assert expr.name in exported, f"{expr.name} is not exported; there are {sorted(exported)}"
    labels = exported[expr.name]
    for matcher in expr.matchers.matchers:
        assert matcher.name in labels, f"{expr}: labels are {sorted(labels)}"
        matching = (value for value in labels[matcher.name] if matches(matcher, value))
        assert any(matching), f"{expr}: values are {sorted(labels[matcher.name])}"
    return {*labels, *FROM_THE_SCRAPE}


@pytest.mark.parametrize(
    "expression",
    [
        "kubetailor_no_such_total",
        "sum by (step) (kubetailor_requests_total)",
        'kubetailor_requests_total{kind="Pod"}',
        'kubetailor_decisions_total{outcome="refused"}',
        "sum by (code) (kubetailor_requests_total) / sum by (kind) (kubetailor_decisions_total)",
        "histogram_quantile(0.5, sum by (kind) (rate(kubetailor_decisions_total[5m])))",
    ],
)
def test_what_asks_for_something_else_is_found(expression: str, exported: Exported) -> None:
    with pytest.raises(AssertionError):
        labels_of(promql.parse(expression), exported)


# alerts ----------------------------------------------------------------------------------------


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_asks_for_what_is_exported(alert: dict[str, Any], exported: Exported) -> None:
    assert alert.keys() == {"alert", "expr", "for", "labels", "annotations"}
    promql.parse_duration(alert["for"])
    assert alert["labels"]["severity"] in ("warning", "critical")
    labels = labels_of(promql.parse(alert["expr"]), exported)
    assert alert["annotations"].keys() == {"summary", "description"}
    for text in alert["annotations"].values():
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels, text


# the dashboard ---------------------------------------------------------------------------------


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_shows_what_is_exported(panel: dict[str, Any], exported: Exported) -> None:
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for target in panel["targets"]:
        expression = target["expr"].replace("$__rate_interval", "5m")
        labels = labels_of(promql.parse(expression), exported)
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels, target


def test_panels_have_a_place_of_their_own() -> None:
    taken: dict[tuple[int, int], int] = {}
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["id"]) == panel["id"], panel["title"]
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(ids) == len(set(ids))


def test_everything_that_is_exported_is_shown(exported: Exported) -> None:
    expressions = [target["expr"] for panel in panels() for target in panel["targets"]]
    families = {re.sub("_(bucket|sum|count|created)$", "", name) for name in exported}
    assert [name for name in families if not any(name in e for e in expressions)] == []


# the page --------------------------------------------------------------------------------------


def test_the_page_lists_what_is_exported(exported: Exported) -> None:
    page = (CHECKOUT / "docs" / "how-to" / "install-the-webhook.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(kubetailor_\w+)(?:{([\w,]+)})?` \|", page, re.MULTILINE)
    listed = {name: {label for label in labels.split(",") if label} for name, labels in rows}
    found = {
        re.sub("_(bucket|sum|count)$", "", name): labels.keys() - {"le"}
        for name, labels in exported.items()
        if name not in OF_THE_API_SERVER and not name.endswith("_created")
    }
    assert listed == found
