"""What is counted and timed, in Prometheus' format."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import SummaryMetricFamily
from prometheus_client.registry import Collector

from kubetailor.plugins.webhook.decision import Decision
from kubetailor.registry import Chain, Step
from kubetailor.registry.tailor import Tailor

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 5)


class StepTimes(Collector):
    """How often each step ran, and how long in all.

    The numbers are plain floats, added up in the one thread that decides: a metric of the library
    would cost more than most steps.
    """

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], list[float]] = {}

    def collect(self) -> Iterator[SummaryMetricFamily]:
        """For the library."""
        family = SummaryMetricFamily(
            "kubetailor_step_seconds", "Time that a step took.", labels=("chain", "step")
        )
        for labels, (count, seconds) in sorted(self._times.items()):
            family.add_metric(labels, count_value=int(count), sum_value=seconds)
        yield family

    def timed(self, tailor: Tailor) -> Tailor:
        """The same config, whose steps are timed."""
        chains = {name: self._chain(chain) for name, chain in tailor.config.chains.items()}
        return replace(tailor, config=replace(tailor.config, chains=chains))

    def _chain(self, chain: Chain) -> Chain:
        return replace(chain, steps=tuple(self._step(chain, step) for step in chain.steps))

    def _step(self, chain: Chain, step: Step) -> Step:
        function = step.transformer.function
        times = self._times.setdefault((chain.name, step.name), [0, 0.0])
        clock = time.perf_counter

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = clock()
            try:
                return function(*args, **kwargs)
            finally:
                times[0] += 1
                times[1] += clock() - start

        return replace(step, transformer=replace(step.transformer, function=timed))


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "kubetailor_requests", "Requests for a decision.", ("code",), registry=registry
        )
        self._decisions = Counter(
            "kubetailor_decisions",
            "Decisions by what came out.",
            ("outcome", "kind", "chain"),
            registry=registry,
        )
        self._seconds = Histogram(
            "kubetailor_decision_seconds",
            "Time from a whole request to its answer.",
            registry=registry,
            buckets=_BUCKETS,
        )
        self._undecided = Counter(
            "kubetailor_undecided",
            "Conditions that could not be decided, and so did not match.",
            ("chain",),
            registry=registry,
        )
        self._inapplicable = Counter(
            "kubetailor_inapplicable",
            "Steps that are about task templates alone, at objects.",
            ("chain",),
            registry=registry,
        )
        self._warnings = Counter(
            "kubetailor_warnings", "Warnings of chains.", ("chain",), registry=registry
        )
        self._offloaded = Counter(
            "kubetailor_offloaded",
            "Executions whose tasks were not in the object, so that launch could do nothing.",
            registry=registry,
        )
        self._reloads = Counter(
            "kubetailor_reloads", "Configs that were read.", ("result",), registry=registry
        )
        self._newest = Gauge(
            "kubetailor_config_last_reload_successful",
            "Whether the newest config is the one in use.",
            registry=registry,
        )
        self._config = Gauge(
            "kubetailor_config_info",
            "The config in use, by the digest of all that it may do.",
            ("digest",),
            registry=registry,
        )
        self._days = Gauge(
            "kubetailor_certificate_days_left",
            "Days until the serving certificate is no longer valid.",
            registry=registry,
        )
        self._steps = StepTimes()
        registry.register(self._steps)
        for result in ("loaded", "refused"):
            self._reloads.labels(result)
        self._counters: dict[tuple[Counter, tuple[str, ...]], Any] = {}

    def _counter(self, metric: Counter, *labels: str) -> Any:
        """A counter's child; the library's own look-up takes a lock."""
        key = (metric, labels)
        found = self._counters.get(key)
        if found is None:
            found = self._counters[key] = metric.labels(*labels)
        return found

    def answered(self, code: int) -> None:
        """Count an answer by its HTTP code."""
        self._counter(self._requests, str(code)).inc()

    def decided(self, decision: Decision, kind: str, seconds: float) -> None:
        """Count and time a decision."""
        self._counter(self._decisions, decision.outcome, kind, decision.chain).inc()
        self._seconds.observe(seconds)
        if decision.offloaded:
            self._offloaded.inc()
        if decision.undecided:
            self._counter(self._undecided, decision.chain).inc(decision.undecided)
        if decision.inapplicable:
            self._counter(self._inapplicable, decision.chain).inc(decision.inapplicable)
        if decision.warnings:
            self._counter(self._warnings, decision.chain).inc(len(decision.warnings))

    def loaded(self, tailor: Tailor) -> Tailor:
        """Count a config that is now in use, and have its steps timed."""
        self._reloads.labels("loaded").inc()
        self._newest.set(1)
        self._config.clear()
        self._config.labels(tailor.digest).set(1)
        return self._steps.timed(tailor)

    def refused(self) -> None:
        """Count a config that cannot be used."""
        self._reloads.labels("refused").inc()
        self._newest.set(0)

    def certificate(self, seconds_left: Callable[[], float]) -> None:
        """Say how long the certificate is valid, whenever somebody asks."""
        self._days.set_function(lambda: seconds_left() / 86400)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)
