"""What is launched of `zoo.at_launch`: its names, chains for it, and what they read of a pod."""

from __future__ import annotations

from typing import Any, Final

from .executions import version_of
from .stack.pyflyte import PROJECT

__all__ = [
    "DOMAIN",
    "FILES",
    "HEAD",
    "NAMESPACE",
    "NESTED",
    "TEAM",
    "VERSION",
    "ZOO",
    "container",
    "in_pool",
    "tolerated",
]

ZOO: Final = "zoo.at_launch"
VERSION: Final = version_of(ZOO)
DOMAIN: Final = "development"
NAMESPACE: Final = f"{PROJECT}-{DOMAIN}"
HEAD: Final = "plugins: [./team.py]\nphases: [launch, admit]\n"
TEAM: Final = '''
"""A team's plugin."""

from kubetailor.registry import Pod, Workload, transformer


@transformer
def hurry(
    workload: Workload,
    *,
    retries: int | None = None,
    timeout: str | None = None,
    interruptible: bool | None = None,
) -> None:
    """Say how a task is tried; it must run where that is still said of a task."""
    metadata = workload.edit("metadata")
    if retries is not None:
        metadata["retries"] = {"retries": retries}
    if timeout is not None:
        metadata["timeout"] = timeout
    if interruptible is not None:
        metadata["interruptible"] = interruptible


@transformer
def counted(pod: Pod) -> None:
    """Count how often it runs, which no transformer of worth would do."""
    pod.annotate("example.com/times", str(int(pod.annotations.get("example.com/times", 0)) + 1))
'''
FILES: Final = {"team.py": TEAM}


def in_pool(pool: str, task: str) -> str:
    when = f'when: {{task: "{ZOO}.{task}"}}'
    return f"""
      - {{use: node_selector, with: {{set: {{pool: {pool}}}}}, {when}}}
      - use: tolerations
        with: {{add: [{{key: example.com/launch, operator: Exists}}]}}
        {when}
"""


NESTED: Final = f"""{HEAD}
chains:
  default:
    steps:
      - {{use: team.counted}}
      - use: tolerations
        with: {{add: [{{key: batch, operator: Exists}}]}}
      - {{use: env, with: {{set: {{TEAM: audio}}}}}}
      - {{use: labels, with: {{set: {{team: audio, cost-centre: speech}}}}}}
      - {{use: annotations, with: {{set: {{example.com/note: chain}}}}}}
{in_pool("process", "fan_out")}
"""


def container(pod: Any, index: int = 0) -> Any:
    """A container; by default the first, which is the one that Flyte runs."""
    return pod["spec"]["containers"][index]


def tolerated(pod: Any) -> list[str]:
    """The keys that it tolerates, without those that the API server adds."""
    keys = [one["key"] for one in pod["spec"].get("tolerations", ())]
    return [key for key in keys if not key.startswith("node.kubernetes.io/")]
