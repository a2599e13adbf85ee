"""InferenceService: each component has the fields of a pod spec among its own.

Source: kserve/kserve, pkg/apis/serving/v1beta1 (podspec.go, predictor.go, component.go); how it is
read: pkg/controller/v1beta1/inferenceservice/components/predictor.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, value_at
from kubetailor.workloads.kinds.laid_out import LaidOut, move
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["INFERENCE_SERVICE", "InferenceServiceKind"]

_POD = frozenset(
    (
        *("activeDeadlineSeconds", "affinity", "automountServiceAccountToken"),
        *("containers", "dnsConfig", "dnsPolicy", "enableServiceLinks"),
        *("ephemeralContainers", "hostAliases", "hostIPC", "hostNetwork", "hostPID"),
        *("hostUsers", "hostname", "hostnameOverride", "imagePullSecrets"),
        *("initContainers", "nodeName", "nodeSelector", "os", "overhead"),
        *("preemptionPolicy", "priority", "priorityClassName", "readinessGates"),
        *("resourceClaims", "resources", "restartPolicy", "runtimeClassName"),
        *("schedulerName", "schedulingGates", "securityContext", "serviceAccount"),
        *("serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain"),
        *("terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints"),
        *("volumes",),
    )
)
_SERVERS = (  # what a component may have instead of a container, with a container's fields
    *("model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface"),
    *("pmml", "lightgbm", "paddle", "art"),
)
_SERVER_OWN = frozenset(  # PredictorExtensionSpec, ExplainerExtensionSpec and ModelSpec
    (
        *("confidential", "config", "modelFormat", "name", "protocolVersion", "runtime"),
        *("runtimeVersion", "storage", "storageUri", "type"),
    )
)
_MAIN = "kserve-container"
_WORKER = "worker-container"


class ComponentTarget(LaidOut):
    """The pod of a component."""

    reader = "KServe"
    reads: ClassVar[Iterable[str]] = _POD

    def __init__(self, component: JsonMap, role: str, place: Path) -> None:
        servers = (name for name in _SERVERS if isinstance(component.get(name), dict))
        self._server = next(servers, None)
        spec = {name: value for name, value in component.items() if name in _POD}
        main: str | None = None
        if self._server is not None:
            server = component[self._server]
            main = str(server.get("name") or _MAIN)
            fields = {name: value for name, value in server.items() if name not in _SERVER_OWN}
            spec["containers"] = [{"name": main, **fields}, *(spec.get("containers") or [])]
        super().__init__(role, place, {"spec": spec}, main)

    def put(self, draft: Draft, name: str, old: Json, new: Json) -> None:
        """A field of the pod spec is the component's."""
        if name not in _POD:
            raise self.refused(name)
        move(draft, (*self.place, name), new)

    def put_main(self, draft: Draft, name: str, new: Json) -> None:
        """A field of the server's container is the server's."""
        assert self._server is not None
        move(draft, (*self.place, self._server, name), new)

    def put_others(self, draft: Draft, old: list[Json], new: list[Json]) -> None:
        """The other containers."""
        move(draft, (*self.place, "containers"), new)


class InferenceServiceKind(Kind):
    """The row of InferenceService."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Its components."""
        return "predictor", "worker", "predictor:{name}", "transformer", "explainer"

    @property
    def primary(self) -> tuple[str, ...]:
        """Where a component has more than one container."""
        return _MAIN, _WORKER

    @property
    def reads(self) -> tuple[str, ...]:
        """What KServe's copy of the pod spec has."""
        return tuple(sorted(_POD))

    def find_pods(self, workload: Workload, at: Path = ()) -> list[Pod]:
        """Each component as the pod that is made of it."""
        found = []
        for role, path, labelled in _components(value_at(workload.draft.root, (*at, "spec"))):
            place = (*at, "spec", *path)
            target = ComponentTarget(workload.draft.get(place), role, place)
            metadata = workload.metadata_at(workload.draft, place if labelled else None)
            found.append(target.pod_of(workload, metadata, self.primary))
        return found


def _components(spec: Json) -> Iterator[tuple[str, Path, bool]]:
    """(role, path, whether it has labels) of each component."""
    places: list[tuple[str, Path, bool]] = [
        ("predictor", ("predictor",), True),
        ("worker", ("predictor", "workerSpec"), False),  # it has those of the predictor
        ("transformer", ("transformer",), True),
        ("explainer", ("explainer",), True),
    ]
    canary = value_at(spec, ("canary",))
    for index, entry in enumerate(canary if isinstance(canary, list) else ()):
        name = value_at(entry, ("predictor", "name"))
        places.append((f"predictor:{name}", ("canary", index, "predictor"), True))
    for role, path, labelled in places:
        if isinstance(value_at(spec, path), dict):
            yield role, path, labelled


INFERENCE_SERVICE = InferenceServiceKind(
    "InferenceService",
    "serving.kserve.io",
    # Its labels are those of the Deployment that it makes (components/predictor.go,
    # `buildObjectMeta`), which Kueue manages.
    queue=True,
)
