"""One run of flytekit's serialization under one config: each task through its chain."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from kubetailor.plugins.flyte.gate import Gate
from kubetailor.plugins.flyte.models import read_head, read_model, read_pod_template
from kubetailor.plugins.flyte.notices import Notices
from kubetailor.plugins.flyte.tailoring import tailor_pod_template, tailor_template
from kubetailor.plugins.flyte.write_models import write_model, write_pod_template
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import KubetailorError

__all__ = ["Serialization", "SerializationError", "tailor_at"]

_VARIABLES = ("KUBETAILOR_CHAIN", "KUBETAILOR_TASK")

_loaded: tuple[object, Tailor] | None = None
"""The config that was loaded last, by all that it depends on."""


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
    """The config at a path, loaded again only if it or the environment has changed.

    Raises:
        SerializationError: it cannot be used.
    """
    global _loaded  # noqa: PLW0603 (a cache)
    with _readable():
        try:
            stat = os.stat(path)
            changed: object = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError:
            changed = None  # loading it says what is wrong
        key = (os.path.abspath(path), changed, *map(os.environ.get, _VARIABLES))
        if _loaded is None or _loaded[0] != key:
            tailor = Tailor.find(Path(path))
            assert tailor is not None
            _loaded = (key, tailor)
        return _loaded[1]


class Serialization:
    """One run of `flytekit.tools.translator.get_serializable`."""

    def __init__(self, tailor: Tailor) -> None:
        self._tailor = tailor
        self._gate = Gate(tailor)
        self._notices = Notices()
        self._templates: dict[str, Any] = {}

    @classmethod
    def under(cls, path: str) -> Serialization:
        """A run under the config at a path.

        Raises:
            SerializationError: it cannot be used.
        """
        return cls(tailor_at(path))

    def task(self, spec: Any) -> None:
        """Run the chain over a TaskSpec model, which is changed.

        Raises:
            SerializationError: a step failed.
        """
        template = spec.template
        self._templates[template.id.name] = template
        with _readable():
            head = read_head(template)
            if self._gate.is_closed_to(head):
                return
            before = read_model(template, head)
            outcome = tailor_template(self._tailor, before)
            write_model(template, before, outcome.after)
        self._notices.say(outcome, f"task {template.id.name}")

    def node(self, node: Any) -> None:
        """Run the chain of a node's task over the pod template of the node's overrides.

        Raises:
            SerializationError: a step failed.
        """
        name = node.task_node.reference_id.name
        template = self._templates.get(name)
        if template is None:
            return  # a task that is registered already
        where = f"node {node.id} (task {name})"
        overrides = node.task_node.overrides
        with _readable(f"{where}: "):
            task = tailor_template(self._tailor, read_model(template))
            before = read_pod_template(overrides.pod_template)
            outcome = tailor_pod_template(self._tailor, before, task)
            if outcome.after is not before:
                write_pod_template(overrides, outcome.after)
        self._notices.say(outcome, where)
