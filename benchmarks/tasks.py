"""The first serialization of Flyte tasks, as `pyflyte register` and `package` pay for it.

Each batch defines tasks that no batch before has seen, outside of what is timed: flytekit compiles
a workflow once.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.measure import Batch, Plan, ratio, timed
from benchmarks.objects import CONFIG, training_pod
from benchmarks.rows import Row, more

__all__ = ["ROWS"]

Decorator: TypeAlias = str
"""The arguments of `@task`, as source text."""

_BATCH = 100
_PLAIN = "requests=Resources(cpu='4', mem='16Gi', gpu='1')"
_numbers = itertools.count()


@contextmanager
def _folder() -> Generator[Path, None, None]:
    """A folder that modules can be imported from."""
    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, directory)
        try:
            yield Path(directory)
        finally:
            sys.path.remove(directory)


def _workflow(folder: Path, count: int, decorator: Decorator) -> Any:
    """A workflow of so many new tasks, from a module of its own."""
    package = f"bench{next(_numbers)}"
    lines = [
        "from flytekit import PodTemplate, Resources, task, workflow",
        "from benchmarks.tasks import full_pod_template, small_pod_template",
    ]
    for i in range(count):
        lines += [
            f"@task({decorator})",
            f"def train_{i}(corpus: str, epochs: int, rate: float) -> str:",
            "    return corpus",
        ]
    lines += ["@workflow", "def pipeline(corpus: str = 'librispeech') -> str:"]
    lines += [f"    corpus = train_{i}(corpus=corpus, epochs=3, rate=0.1)" for i in range(count)]
    lines += ["    return corpus"]
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    (folder / package / "speech.py").write_text("\n".join(lines))
    importlib.invalidate_caches()
    return importlib.import_module(f"{package}.speech").pipeline


def full_pod_template() -> Any:
    """The training pod as flytekit's PodTemplate."""
    from flytekit import PodTemplate

    from kubetailor.workloads.models import pod_spec_model

    spec = training_pod()["spec"]
    return PodTemplate(pod_spec_model(spec), primary_container_name=spec["containers"][0]["name"])


def small_pod_template() -> Any:
    """A PodTemplate of one toleration, flytekit's own way to say one."""
    from flytekit import PodTemplate
    from kubernetes.client import V1Container, V1PodSpec, V1Toleration

    toleration = V1Toleration(key="example.com/spot", operator="Exists", effect="NoSchedule")
    return PodTemplate(
        V1PodSpec(containers=[V1Container(name="primary")], tolerations=[toleration])
    )


def _serialize(workflow: Any, idl: bool) -> None:
    from flytekit.configuration import Image, ImageConfig, SerializationSettings
    from flytekit.tools.translator import get_serializable

    settings = SerializationSettings(
        ImageConfig(Image("default", "registry.example.com/speech/train", "v42")),
        project="speech",
        domain="development",
        version="v42",
    )
    entities: OrderedDict[Any, Any] = OrderedDict()
    get_serializable(entities, settings, workflow)
    if idl:
        for entity in entities.values():
            entity.to_flyte_idl()


@contextmanager
def _chain(name: str | None) -> Generator[None, None, None]:
    """Serialization under a chain of the benchmarks' config, or without kubetailor."""
    from kubetailor.plugins.flyte.install import install, left_alone

    install()
    if name is None:
        with left_alone():
            yield
        return
    environ = {"KUBETAILOR_CONFIG": str(CONFIG), "KUBETAILOR_CHAIN": name}
    before = {key: os.environ.get(key) for key in environ}
    os.environ.update(environ)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _batch(folder: Path, count: int, decorator: Decorator, chain: str | None, idl: bool) -> Batch:
    def run() -> float:
        workflow = _workflow(folder, count, decorator)
        with _chain(chain):
            return timed(lambda: _serialize(workflow, idl))

    return run


def _compared(
    chain: str, decorator: Decorator = _PLAIN, against: Decorator | None = None
) -> Callable[[Plan], float]:
    def measure(plan: Plan) -> float:
        count = min(_BATCH, plan.tasks)
        idl = against is not None
        with _folder() as folder:
            ours = _batch(folder, count, decorator, chain, idl)
            theirs = _batch(folder, count, against or decorator, None, idl)
            for once in (ours, theirs):  # imports, and the config
                once()
            return ratio(ours, theirs, max(1, plan.tasks // count))

    return measure


ROWS = (
    Row(
        "none-matching",
        "first serialization of 1,000 container tasks, 10 steps, none matching",
        1.03,
        1.05,
        _compared("none-matching"),
        more,
    ),
    Row("all-matching", "the same, all matching", 1.10, 1.15, _compared("matching"), more),
    Row(
        "pod-template",
        "1,000 full pod_template tasks, 10 steps matching",
        1.04,
        1.06,
        _compared("matching", "pod_template=full_pod_template()"),
        more,
    ),
    Row(
        "own-pod-template",
        "10 steps against flytekit's own PodTemplate with one toleration, protobuf included",
        0.9,
        1.0,
        _compared("matching", _PLAIN, "pod_template=small_pod_template(), " + _PLAIN),
    ),
)
