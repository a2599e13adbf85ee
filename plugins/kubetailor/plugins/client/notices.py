"""What will not happen of what an override asks for, and what cannot be known before it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kubetailor.plugins.execution.elsewhere import is_dynamic, is_eager
from kubetailor.plugins.execution.override import launch_alone
from kubetailor.plugins.execution.tailored_execution import TailoredExecution
from kubetailor.plugins.execution.tailored_node import TailoredNode
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.step import Step
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft

__all__ = ["Notices"]

_CACHED: Final = ("metadata", "discoverable")
_CACHE_VERSION: Final = ("metadata", "discoveryVersion")


class Notices:
    """The notices of one preview.

    Attributes:
        said: what there is to say, each thing once.
    """

    def __init__(self, tailor: Tailor, overwrite_cache: bool) -> None:
        self.said: dict[str, None] = {}
        self._overwrite_cache = overwrite_cache
        self._phases = tailor.config.phases
        self._offloaded = tailor.config.catalogue.flyte.offloaded_closures
        self._unknown: dict[str, None] = {}  # where tasks are that are not known
        self._inputs: dict[str, None] = {}  # inputs that are not known

    def say(self, text: str) -> None:
        """Say something, once."""
        self.said[text] = None

    def kept(self, override: CompiledOverride | None) -> CompiledOverride | None:
        """What is left of an override where the phase `launch` sees no tasks."""
        if override is None:
            return None
        if "launch" not in self._phases and "admit" not in self._phases:
            self.say(
                "`phases` lists neither launch nor admit: by this config nothing in the cluster "
                "reads an override"
            )
            return None
        for step in override.steps:
            if "launch_plan" in step.when.fields:
                self.say(
                    f"step {step.name!r} of the override asks for `launch_plan`, which nothing in "
                    "the cluster knows: it is for no task"
                )
        if "launch" in self._phases and not self._offloaded:
            return override
        why = "the closure is offloaded" if self._offloaded else "`phases` does not list launch"
        lost = dict(launch_alone(override, why))
        for text in lost.values():
            self.say(text)
        return replace(override, steps=tuple(s for s in override.steps if s.name not in lost))

    def of_execution(
        self, execution: TailoredExecution, path: tuple[str, ...], unknown: Iterable[str]
    ) -> None:
        """Take note of an execution that is tailored.

        Args:
            execution: the execution.
            path: the nested ids of the nodes that lead to it.
            unknown: its inputs that are not known.
        """
        if execution.override is None:
            return
        self._inputs.update(dict.fromkeys(unknown))
        for node in execution.nodes():
            self._of_node(node, "/".join((*path, node.id)))

    def of_unknown(self, path: tuple[str, ...], why: str) -> None:
        """Take note of children that cannot be looked at."""
        where = f" of {'/'.join(path)}" if path else ""
        self.say(f"the executions that nodes{where} launch are not looked at: {why}")
        self._unknown[f"executions{where} that are not looked at"] = None

    def may_yet(self, step: Step) -> str:
        """Why a step that is for no task here may be for one all the same, or ""."""
        missing = sorted(self._inputs.keys() & set(_inputs_in(step.when.written)))
        return "; ".join([*self._unknown, *(f"the input {name} is not known" for name in missing)])

    def _of_node(self, node: TailoredNode, where: str) -> None:
        registered, final = Draft(node.template), Draft(node.pair.template)
        if is_eager(node.template):
            self.say(
                f"node {where}: its task is eager, and what it launches carries no annotations: "
                "the override does not reach it"
            )
        if is_dynamic(node.template):
            self._unknown[f"the task of node {where} makes tasks as it runs"] = None
        same_cache = registered.get(_CACHE_VERSION) == final.get(_CACHE_VERSION)
        if (
            _is_overridden(node)
            and final.get(_CACHED) is True
            and same_cache
            and not self._overwrite_cache
        ):
            self.say(
                f"node {where}: its task is cached: where there is a result, it does not run; "
                "launch with --overwrite-cache, or add a step of `cache`, with `cache: false` or "
                "another version"
            )


def _inputs_in(when: Any) -> Iterator[str]:
    """The inputs that a `when` asks for, at any depth."""
    if not isinstance(when, Mapping):
        return
    for key, value in when.items():
        if key == "inputs":
            yield from value
        for part in value if key in ("any", "all") else [value] if key == "not" else ():
            yield from _inputs_in(part)


def _is_overridden(node: TailoredNode) -> bool:
    result = node.pair.result
    return result is not None and any(step.layer == "override" for step, _ in result.roots)
