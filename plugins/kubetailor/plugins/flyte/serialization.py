"""One run of flytekit's serialization under one config: each task through its chain."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from flytekit.models.task import TaskSpec

from kubetailor.plugins.flyte.gate import Gate
from kubetailor.plugins.flyte.messages import as_json, write_message
from kubetailor.plugins.flyte.models import read_model, read_overrides, read_pod_template
from kubetailor.plugins.flyte.node_metadata import (
    changes_nodes,
    followed,
    own_words,
    write_node_metadata,
)
from kubetailor.plugins.flyte.overrides import contradictions
from kubetailor.plugins.flyte.report import Report, report_under
from kubetailor.plugins.flyte.tailoring import serializes, tailor_pod_template, tailor_template
from kubetailor.plugins.flyte.undo import undo
from kubetailor.plugins.flyte.write_models import write_model, write_pod_template
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import KubetailorError

__all__ = ["Serialization", "SerializationError", "tailor_at"]

_VARIABLES = ("KUBETAILOR_CHAIN", "KUBETAILOR_TASK")

_loaded: tuple[object, dict[str, object], Tailor] | None = None
"""The config that was loaded last, by what named it, and the state of the files that it is in."""

_loading = threading.Lock()


class SerializationError(click.ClickException, KubetailorError):
    """A task that cannot be serialized; pyflyte prints it without a traceback."""

    field = ""


@contextmanager
def _readable(what: str = "") -> Generator[None]:
    try:
        yield
    except KubetailorError as error:
        raise SerializationError(f"kubetailor: {what}{error}") from error


def tailor_at(path: str) -> Tailor:
    """The config at a path, loaded again only if it, a plugin's file or the environment changed.

    Raises:
        SerializationError: it cannot be used.
    """
    global _loaded  # noqa: PLW0603 (a cache)
    key = (os.path.abspath(path), *map(os.environ.get, _VARIABLES))
    with _loading, _readable():
        if _loaded is None or _loaded[0] != key or _states(_loaded[1]) != _loaded[1]:
            state = _states([path])  # before it is read: a change meanwhile is seen the next time
            tailor = Tailor.find(Path(path))
            assert tailor is not None
            _loaded = (key, {**_states(tailor.config.plugins.files), **state}, tailor)
        return _loaded[2]


def _states(paths: Iterable[str]) -> dict[str, object]:
    """What tells one version of each file from the next; None for one that is not there."""
    found: dict[str, object] = {}
    for path in paths:
        try:
            stat = os.stat(path)
            found[path] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError:
            found[path] = None  # loading it says what is wrong
    return found


class Serialization:
    """One run of `flytekit.tools.translator.get_serializable`."""

    def __init__(self, tailor: Tailor, report: Report) -> None:
        self._tailor = tailor
        self._gate = Gate(tailor)
        self._report = report

    @classmethod
    def under(cls, path: str) -> Serialization | None:
        """A run under the config at a path; None if the config does not list the phase.

        Raises:
            SerializationError: it cannot be used.
        """
        tailor = tailor_at(path)
        return cls(tailor, report_under(path)) if serializes(tailor) else None

    def task(self, spec: Any) -> None:
        """Run the chain over a TaskSpec model, which is changed.

        Raises:
            SerializationError: a step failed.
        """
        template = spec.template
        outcome = None
        if not self._gate.is_closed_to(template):
            with self._readable():
                before = read_model(template)
                outcome = tailor_template(self._tailor, before)
                write_model(template, before, outcome.after)
                self._report.notices.say(outcome, f"task {template.id.name}")
        self._report.tally.add(template.id.name, outcome)

    def node(self, node: Any, spec: Any) -> None:
        """Let a node follow its task, and run the task's chain over the node's own pod template.

        Args:
            node: the node's model, which is changed.
            spec: what flytekit made of its task.

        Raises:
            SerializationError: a step failed.
        """
        if not isinstance(spec, TaskSpec):
            return  # a task that is registered already
        own = self._follow(node, spec.template) if changes_nodes(spec.template.config) else {}
        overrides = node.task_node.overrides
        said = read_overrides(overrides)
        if not (said or own or overrides.pod_template):
            return
        where = f"node {node.id} (task {spec.template.id.name})"
        notices = self._report.notices
        with self._readable(f"{where}: "):
            task = tailor_template(self._tailor, read_model(spec.template))
            notices.warn(
                where, contradictions(said, own, task.result, self._tailor.config.catalogue)
            )
            if overrides.pod_template:
                before = read_pod_template(overrides.pod_template)
                outcome = tailor_pod_template(self._tailor, before, task)
                if outcome.after is not before:
                    write_pod_template(overrides, outcome.after)
                notices.say(outcome, where)

    @staticmethod
    def _follow(node: Any, template: Any) -> dict[str, str]:
        """Let a node's metadata follow its task; returns what it says otherwise."""
        after = read_model(template)
        message = node.metadata.to_flyte_idl()
        before = as_json(message)
        metadata = followed(before, undo(after)[0], after)
        if metadata is not before:
            write_message(message, before, metadata)
            write_node_metadata(node, message)
        return own_words(metadata, after)

    @contextmanager
    def _readable(self, what: str = "") -> Generator[None]:
        try:
            with _readable(what):
                yield
        except SerializationError:
            self._report.tally.clear()  # nothing comes of the others either
            raise
