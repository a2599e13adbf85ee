"""Parameters about where pods are scheduled, as Kubernetes and Kueue write them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import NotRequired, TypedDict

from kubetailor.transformers.names import Key, LabelValue
from kubetailor.transformers.types import strict

__all__ = ["SchedulingGate", "SpreadMatch", "Spreading", "TopologyRequest"]


@strict
class LabelRequirement(TypedDict):
    """A LabelSelectorRequirement, as Kubernetes writes it."""

    key: Key
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: NotRequired[list[LabelValue]]


@strict
class LabelSelector(TypedDict):
    """A LabelSelector, as Kubernetes writes it."""

    matchLabels: NotRequired[dict[Key, LabelValue]]
    matchExpressions: NotRequired[list[LabelRequirement]]


WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
NodePolicy = Literal["Honor", "Ignore"]


@strict
class TopologySpreadConstraint(TypedDict):
    """A TopologySpreadConstraint, as Kubernetes writes it."""

    maxSkew: Annotated[int, Field(ge=1, le=2**31 - 1)]
    topologyKey: Key
    whenUnsatisfiable: WhenUnsatisfiable
    labelSelector: NotRequired[LabelSelector]
    matchLabelKeys: NotRequired[list[str]]
    minDomains: NotRequired[Annotated[int, Field(ge=1, le=2**31 - 1)]]
    nodeAffinityPolicy: NotRequired[NodePolicy]
    nodeTaintsPolicy: NotRequired[NodePolicy]


def _spreading(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
    """https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/."""
    if "minDomains" in constraint and constraint["whenUnsatisfiable"] != "DoNotSchedule":
        raise ValueError("minDomains goes with whenUnsatisfiable: DoNotSchedule")
    if "matchLabelKeys" in constraint and "labelSelector" not in constraint:
        raise ValueError("matchLabelKeys goes with a labelSelector")
    return constraint


Spreading = Annotated[TopologySpreadConstraint, AfterValidator(_spreading)]
"""A TopologySpreadConstraint that Kubernetes takes."""


@strict
class SpreadMatch(TypedDict):
    """What is given of a topology spread constraint must agree."""

    topologyKey: NotRequired[str]
    whenUnsatisfiable: NotRequired[WhenUnsatisfiable]


@strict
class PodSetTopology(TypedDict):
    """What a pod set asks of Kueue's topology-aware scheduling: one of these."""

    required: NotRequired[Key]
    preferred: NotRequired[Key]
    unconstrained: NotRequired[Literal[True]]


def _one_request(request: PodSetTopology) -> PodSetTopology:
    """kubernetes-sigs/kueue, pkg/controller/jobframework/tas_validation.go."""
    if len(request) != 1:
        raise ValueError(f"exactly one of required, preferred, unconstrained, found {len(request)}")
    return request


TopologyRequest = Annotated[PodSetTopology, AfterValidator(_one_request)]
"""What a pod set asks of Kueue's topology-aware scheduling."""


@strict
class SchedulingGate(TypedDict):
    """A PodSchedulingGate, as Kubernetes writes it."""

    name: Key
