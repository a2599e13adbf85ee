"""What flytekit imports at the end of `import flytekit` (entry point group `flytekit.plugins`).

It wraps the functions through which register, package, serialize, run and FlyteRemote all go, gives
`pyflyte run` its options once that is imported, and does nothing else: all else is imported when
something is serialized and a config is found. A config or a plugin that is broken is therefore said
there, and `import flytekit` never fails.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubetailor.plugins.flyte.serialization import Serialization

__all__ = ["config_in_force", "install", "left_alone"]

_MARK = "__kubetailor__"

_runs: dict[int, tuple[Callable[[], Any], Serialization | None]] = {}
"""What tailors each run of flytekit's serialization, by the id of the run's entity mapping (a dict
has no hash) while that lives. Several may be under way: in threads, or one within another."""

_left_alone = False


@contextmanager
def left_alone() -> Generator[None]:
    """Let flytekit serialize what the author wrote, whatever the config says."""
    global _left_alone  # noqa: PLW0603 (as the functions that it switches)
    before, _left_alone = _left_alone, True
    try:
        yield
    finally:
        _left_alone = before


def config_in_force() -> str | None:
    """The path of the config, found as `kubetailor.registry` finds it but without importing that.

    In a task pod only `KUBETAILOR_CONFIG` counts: an image may hold no config, or a stale one.
    """
    if _left_alone:
        return None
    if named := os.environ.get("KUBETAILOR_CONFIG"):
        return named
    if "FLYTE_INTERNAL_EXECUTION_ID" in os.environ:
        return None
    directory, parent = "", os.getcwd()
    while parent != directory:
        directory = parent
        path = os.path.join(directory, "kubetailor.yaml")
        if os.path.isfile(path):
            return path
        parent = os.path.dirname(directory)
    return None


def _serialization(entity_mapping: Any) -> Serialization | None:
    """What tailors this run of flytekit's serialization; None without a config.

    One run is one entity mapping, and sees one config.
    """
    if _left_alone:
        return None
    key = id(entity_mapping)
    mapping, found = _runs.get(key, _NO_RUN)
    if mapping() is not entity_mapping:
        path, found = config_in_force(), None
        if path is not None:
            from kubetailor.plugins.flyte.serialization import Serialization

            found = Serialization.under(path)  # None without the phase `serialize`
        with suppress(TypeError):  # a plain dict: nothing says when it dies, so nothing is kept
            _runs[key] = (weakref.ref(entity_mapping, lambda _: _runs.pop(key, None)), found)
    return found


_NO_RUN: tuple[Callable[[], Any], None] = (lambda: None, None)


def _task(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_serializable_task(
        entity_mapping: Any, settings: Any, entity: Any, options: Any = None
    ) -> Any:
        spec = original(entity_mapping, settings, entity, options)
        serialization = _serialization(entity_mapping)
        if serialization is not None:
            serialization.task(spec)
        return spec

    return get_serializable_task


def _node(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_serializable_node(
        entity_mapping: Any, settings: Any, entity: Any, options: Any = None
    ) -> Any:
        node = original(entity_mapping, settings, entity, options)
        # A map task's node is array_node.node, and goes through the function below.
        if node.task_node is not None:
            _tailor_node(node, entity_mapping, entity)
        return node

    return get_serializable_node


def _map_task(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_serializable_array_node_map_task(
        entity_mapping: Any, settings: Any, node: Any, options: Any = None
    ) -> Any:
        array_node = original(entity_mapping, settings, node, options)
        _tailor_node(array_node.node, entity_mapping, node)
        return array_node

    return get_serializable_array_node_map_task


def _tailor_node(model: Any, entity_mapping: Any, node: Any) -> None:
    """Tailor the model of a node by what flytekit has made of its task."""
    if model.task_node.overrides is not None:
        serialization = _serialization(entity_mapping)
        if serialization is not None:
            serialization.node(model, entity_mapping.get(node.flyte_entity))


def _launch_plan(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_serializable_launch_plan(
        entity_mapping: Any,
        settings: Any,
        entity: Any,
        recurse_downstream: bool = True,
        options: Any = None,
    ) -> Any:
        options = getattr(options, "to_register", options)
        return original(entity_mapping, settings, entity, recurse_downstream, options)

    return get_serializable_launch_plan


def _execute_local_workflow(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def execute_local_workflow(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(kwargs.get("options"), "annotations", None) is not None:
            from kubetailor.plugins.flyte.launch_options import LaunchOptions

            kwargs["options"] = LaunchOptions.apart(kwargs["options"])
        return original(self, *args, **kwargs)

    return execute_local_workflow


def _version(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def _version_from_hash(
        md5_bytes: bytes, settings: Any, default_inputs: Any = None, *context: str
    ) -> str:
        path = config_in_force()
        if path is not None:
            from kubetailor.plugins.flyte.version import context_of

            context = (*context, *context_of(path))
        return original(md5_bytes, settings, default_inputs, *context)

    return _version_from_hash


def _raw_register(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def raw_register(self: Any, cp_entity: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, cp_entity, *args, **kwargs)
        except Exception as error:
            from kubetailor.plugins.flyte.version import explain_rejection

            explain_rejection(error, self, cp_entity, *args, **kwargs)
            raise

    return raw_register


def install() -> None:
    """Wrap flytekit's functions, each once."""
    from flytekit.remote import FlyteRemote, remote
    from flytekit.tools import translator

    for owner, name, wrapper in (
        (translator, "get_serializable_task", _task),
        (translator, "get_serializable_node", _node),
        (translator, "get_serializable_array_node_map_task", _map_task),
        (translator, "get_serializable_launch_plan", _launch_plan),
        (remote, "get_serializable_launch_plan", _launch_plan),  # it has bound the name
        (FlyteRemote, "raw_register", _raw_register),
        (FlyteRemote, "execute_local_workflow", _execute_local_workflow),
    ):
        _replace(owner, name, wrapper)
    _replace(FlyteRemote, "_version_from_hash", _version, staticmethod)
    from wrapt import register_post_import_hook  # 0.3 % of the time of `import flytekit`

    register_post_import_hook(
        "kubetailor.plugins.client.pyflyte:install", "flytekit.clis.sdk_in_container.run"
    )


def _replace(
    owner: Any,
    name: str,
    wrapper: Callable[[Any], Any],
    kind: Callable[[Any], Any] = lambda function: function,
) -> None:
    original = getattr(owner, name)
    if not hasattr(original, _MARK):
        wrapped = wrapper(original)
        setattr(wrapped, _MARK, original)
        setattr(owner, name, kind(wrapped))


def _install_without_fail() -> None:
    try:
        install()
    except Exception as error:
        import logging

        logging.getLogger("flytekit").error(
            "kubetailor does not know this flytekit, and tailors nothing: %s: %s",
            type(error).__name__,
            error,
        )


_install_without_fail()
