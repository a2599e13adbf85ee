"""Argo's kinds: a template holds the fields of a pod among its own, and has others from above.

A `resource` or `data` template makes a pod too, without a container that could be written: a step
such as `env`, `image` or `resources` fails there, and in `enforce` it denies the whole Workflow.
Write it with `when: {role: …}` (the names of the templates that have one, or with `not` of those
that have none), or with `optional: true`.

Source: argoproj/argo-workflows, pkg/apis/workflow/v1alpha1/workflow_types.go; how it is read:
workflow/controller/workflowpod.go (`build`, `addSchedulingConstraints`, `addVolumeReferences`) and
operator.go (`mergedTemplateDefaultsInto`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubetailor.workloads.draft import JsonMap, Path, value_at
from kubetailor.workloads.kinds.argo_above import Above, has_pod
from kubetailor.workloads.kinds.argo_template import MAIN, POD, SHARED, TemplateTarget
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["ARGO_KINDS", "ArgoKind"]

_GROUP = "argoproj.io"


@dataclass(frozen=True)
class ArgoKind(Kind):
    """The row of one of Argo's kinds.

    Attributes:
        workflow: where its WorkflowSpec is.
    """

    workflow: Path = ("spec",)

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of the templates that make pods."""
        return ("{name}",)

    @property
    def primary(self) -> tuple[str, ...]:
        """Argo's name for the container of a template."""
        return (MAIN,)

    @property
    def reads(self) -> tuple[str, ...]:
        """What a template or the workflow has."""
        return tuple(sorted({*POD, SHARED, "containers"}))

    def find_pods(self, workload: Workload, at: Path = ()) -> list[Pod]:
        """Each template that makes a pod, as that pod."""
        found = []
        place = (*at, *self.workflow)
        root = workload.draft.root
        spec = value_at(root, place)
        if not isinstance(spec, dict):
            return []
        above = Above(spec, place)
        for role, path in _templates(spec):
            target = TemplateTarget(root, above, role, (*place, *path))
            metadata = workload.metadata_at(workload.draft, (*target.place, "metadata"))
            found.append(target.pod_of(workload, metadata, (MAIN,)))
        return found


def _templates(spec: JsonMap) -> Iterator[tuple[str, Path]]:
    """The (role, path) of each template that makes a pod, those in the place of a call too."""
    for path, name, template in Above.all_templates(spec):
        if has_pod(template):
            yield name, path


def _argo(name: str, *workflow: str) -> ArgoKind:
    # Kueue does not know these kinds, but the pods that they make
    # (https://kueue.sigs.k8s.io/docs/tasks/run/external_workloads/argo_workflow/).
    return ArgoKind(name, _GROUP, queue=(*workflow, "podMetadata"), workflow=workflow)


ARGO_KINDS: tuple[ArgoKind, ...] = (
    _argo("Workflow", "spec"),
    _argo("WorkflowTemplate", "spec"),
    _argo("CronWorkflow", "spec", "workflowSpec"),
)
