"""What no override may write, unless an entry of `overridable` says so in so many words."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kubetailor.registry.overrides.node_fields import NODE_FIELDS, node_fields
from kubetailor.workloads.primary import PRIMARY_ANNOTATIONS

__all__ = ["DEFAULT_USES", "NEVER", "Never", "key_of", "keys_of"]

DEFAULT_USES: Final = frozenset(
    {
        *("gpu", "resources", "shared_memory", "node_selector", "tolerations", "node_affinity"),
        *("topology_spread", "labels", "annotations", "kueue", "volcano", "yunikorn", "kai"),
        *("priority_class", "env", "cache", "retries", "timeout", "interruptible"),
        *("task_config", "spark_conf"),
    }
)
"""What may be overridden where a config has no `overridable`."""

Read: TypeAlias = Callable[[Any], Iterator[str]]


class Never(NamedTuple):
    """A row: what of one parameter may not be written.

    Attributes:
        what: how to call it.
        read: what the value holds of it.
        globs: what of that may not be.
        lifted_by: the words of `allow` that let it be after all; none if nothing does.
    """

    what: str
    read: Read
    globs: tuple[str, ...]
    lifted_by: frozenset[str] = frozenset()

    def found(self, value: Any) -> Iterator[tuple[str, str]]:
        """(what may not be, by which glob) of a value."""
        pattern = _pattern(self.globs)
        for text in self.read(value):
            if pattern.match(text):
                yield text, next(g for g in self.globs if fnmatch.fnmatchcase(text, g))


@functools.cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, globs)))


def key_of(entry: Any) -> str:
    """The key of a list's entry: a text itself, or what a toleration or requirement has."""
    if isinstance(entry, Mapping):
        return str(entry.get("key") or "")
    return str(entry)


def keys_of(value: Any) -> Iterator[str]:
    """The keys of a map, or of the entries of a list."""
    yield from map(key_of, value if isinstance(value, Mapping | list) else [value])


def _paths(value: Any, above: str = "") -> Iterator[str]:
    """The fields of a map, and with dots those below them."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        yield f"{above}{key}"
        yield from _paths(item, f"{above}{key}.")


def _owners(value: Any) -> Iterator[str]:
    """Whose the keys of labels or annotations are: what is before the ``/``."""
    return (key.partition("/")[0].lower() for key in keys_of(value))


def _texts(value: Any) -> Iterator[str]:
    yield str(value)


def _sources(value: Any) -> Iterator[str]:
    """Where the values of variables come from, other than a text."""
    for item in value.values() if isinstance(value, Mapping) else ():
        source = item.get("valueFrom") if isinstance(item, Mapping) else None
        yield from source if isinstance(source, Mapping) else ()


_KEYS = frozenset({"keys"})
_OURS = Never("keys of", _owners, ("kubetailor.dev", "*.kubetailor.dev"))
# By these `enforce` finds the container that it is about.
_PRIMARY = Never("the key", keys_of, PRIMARY_ANNOTATIONS)
_OTHERS = Never(
    "keys of",
    _owners,
    (
        *("flyte*", "iam.*", "kubernetes.io", "*.kubernetes.io", "k8s.io", "*.k8s.io"),
        *("x-k8s.io", "*.x-k8s.io"),  # `kueue` writes its own, and so do the other queues
        *("kai.scheduler", "yunikorn.apache.org", "volcano.sh", "*.volcano.sh"),
        *("queue", "applicationid", "priorityclassname"),
    ),
    _KEYS,
)
# Those of Flyte, and those by which a loader, Python, a shell, Java or Spark takes code.
_VARIABLES = Never(
    "variable",
    keys_of,
    (
        *("LD_*", "PYTHON*", "FLYTE_*", "_F_*"),
        *("PATH", "BASH_ENV", "CLASSPATH", "*JAVA*_OPTIONS", "SPARK_*"),
    ),
    _KEYS,
)

# What Spark would take images, service accounts, volumes, variables or code from.
_PROPERTIES = Never(
    "the property",
    keys_of,
    (
        *("spark.kubernetes.*", "spark.executorEnv.*", "spark.jars*", "spark.plugins"),
        *("spark.master", "spark.submit.*", "spark.pyspark.*", "*JavaOptions"),
        *("*.extraClassPath", "*.extraLibraryPath", "*.discoveryScript"),
        *("spark.hadoop.*", "spark.files", "spark.archives", "spark.python.*module"),
        *("spark.r.*ommand", "spark.sql.hive.metastore.jars*"),
    ),
    _KEYS,
)
_FIELDS = Never(
    "the field",
    keys_of,
    (
        *("runtimeEnv*", "sparkConf", "hadoopConf", "mainApplicationFile", "mainClass"),
        *("executorPath", "databricks*"),
    ),
    _KEYS,
)
# KubeRay makes a line for a shell of them: ray-operator/controllers/ray/common/pod.go.
_COMMAND = Never("what a shell reads:", _paths, ("*.rayStartParams",), frozenset({"in"}))
_NODE = Never("what reaches the node:", node_fields, tuple(NODE_FIELDS), frozenset({"in"}))
_SYSTEM = Never("the class", _texts, ("system-*",), frozenset({"in", "pattern"}))

NEVER: Final[Mapping[tuple[str, str], tuple[Never, ...]]] = {
    ("labels", "set"): (_OURS, _OTHERS),
    ("labels", "remove"): (_OURS, _OTHERS),
    ("annotations", "set"): (_OURS, _PRIMARY, _OTHERS),
    ("annotations", "remove"): (_OURS, _PRIMARY, _OTHERS),
    ("env", "set"): (
        _VARIABLES,
        # Whoever may launch need not be whoever may read the namespace's secrets.
        Never(
            "a value from",
            _sources,
            ("secretKeyRef", "configMapKeyRef", "fileKeyRef"),
            frozenset({"in"}),
        ),
    ),
    ("env", "remove"): (_VARIABLES,),
    ("tolerations", "add"): (
        Never("a toleration of", keys_of, ("", "node-role.kubernetes.io/*"), _KEYS),
    ),
    ("spark_conf", "set"): (_PROPERTIES,),
    ("spark_conf", "remove"): (_PROPERTIES,),
    ("task_config", "set"): (_FIELDS, _COMMAND),
    ("priority_class", "name"): (_SYSTEM,),
    ("kai", "priority_class"): (_SYSTEM,),
    # What may be overridden only where an entry of `overridable` names it.
    ("volumes", "add"): (_NODE,),
    ("volumes", "mount"): (_NODE,),
    ("init_containers", "add"): (_NODE,),
    ("sidecars", "add"): (_NODE,),
    ("security_context", "pod_fields"): (_NODE,),
    ("security_context", "container_fields"): (_NODE,),
    ("patch", "pod"): (_NODE,),
    ("patch", "object"): (_NODE,),
}
"""(transformer, parameter) -> rows."""
