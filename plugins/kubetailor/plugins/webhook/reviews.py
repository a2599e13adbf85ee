"""AdmissionReview v1, as the API server sends it and expects it back.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from typing_extensions import NotRequired, Required, TypedDict

from kubetailor.workloads import JsonMap

__all__ = [
    "API_VERSION",
    "AdmissionRequest",
    "AdmissionResponse",
    "AdmissionReview",
    "MalformedReviewError",
    "ReviewedReview",
    "allowed",
    "answer",
    "denied",
    "dump",
    "parse",
]

API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number that JSON has")


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


_loads: Callable[[bytes], Any]
_dumps: Callable[[Any], bytes]
try:
    import orjson
except ImportError:  # the extra `webhook` brings it; without it everything is only slower
    _loads, _dumps = partial(json.loads, parse_constant=_no_number), _dump
else:
    _loads, _dumps = orjson.loads, orjson.dumps


def dump(value: Any) -> bytes:
    """JSON text in UTF-8.

    Raises:
        RecursionError: it is nested too deep.
    """
    try:
        return _dumps(value)
    except TypeError as error:
        if "Recursion limit" in str(error):
            raise RecursionError(str(error)) from None
        raise


class MalformedReviewError(ValueError):
    """What was sent is no AdmissionReview v1; the message says why."""


class GroupVersionKind(TypedDict):
    """A kind, exactly."""

    group: str
    version: str
    kind: str


class GroupVersionResource(TypedDict):
    """A resource, exactly."""

    group: str
    version: str
    resource: str


class UserInfo(TypedDict, total=False):
    """Who asks."""

    username: str
    uid: str
    groups: list[str]
    extra: dict[str, list[str]]


class AdmissionRequest(TypedDict, total=False):
    """What is to be admitted. With `generateName` there is no `name` yet."""

    uid: Required[str]
    operation: Required[str]
    kind: GroupVersionKind
    resource: GroupVersionResource
    subResource: str
    requestKind: GroupVersionKind
    requestResource: GroupVersionResource
    requestSubResource: str
    name: str
    namespace: str
    userInfo: UserInfo
    object: JsonMap | None
    oldObject: JsonMap | None
    dryRun: bool | None
    options: JsonMap | None


class AdmissionReview(TypedDict):
    """What the API server sends."""

    apiVersion: str
    kind: str
    request: AdmissionRequest


class Status(TypedDict):
    """Why something was denied (meta/v1 Status)."""

    status: str
    code: int
    reason: str
    message: str


class AdmissionResponse(TypedDict):
    """The answer to one request."""

    uid: str
    allowed: bool
    status: NotRequired[Status]
    patchType: NotRequired[str]
    patch: NotRequired[str]
    warnings: NotRequired[list[str]]
    auditAnnotations: NotRequired[dict[str, str]]


class ReviewedReview(TypedDict):
    """What the API server gets back."""

    apiVersion: str
    kind: str
    response: AdmissionResponse


def parse(body: bytes) -> AdmissionReview:
    """Read a review.

    Raises:
        MalformedReviewError: it is none, of another version, or lacks what every review has.
    """
    try:
        review = _loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedReviewError(f"the body is no JSON: {error}") from None
    if not isinstance(review, dict) or review.get("kind") != _KIND:
        found = review.get("kind") if isinstance(review, dict) else type(review).__name__
        raise MalformedReviewError(f"expected kind {_KIND}, found {found!r}")
    if review.get("apiVersion") != API_VERSION:
        raise MalformedReviewError(
            f"expected apiVersion {API_VERSION}, found {review.get('apiVersion')!r}"
        )
    request = review.get("request")
    if not isinstance(request, dict):
        raise MalformedReviewError("`request` is missing")
    for field in ("uid", "operation"):
        if not isinstance(request.get(field), str) or not request[field]:
            raise MalformedReviewError(f"`request.{field}` must be a text that is not empty")
    for field in ("name", "namespace", "subResource"):
        if not isinstance(request.get(field, ""), str):
            raise MalformedReviewError(f"`request.{field}` must be a text")
    if request["operation"] == "CREATE" and not isinstance(request.get("object"), dict):
        raise MalformedReviewError("`request.object` is missing, and the operation is CREATE")
    found_review: AdmissionReview = {
        "apiVersion": API_VERSION,
        "kind": _KIND,
        "request": request,  # type: ignore[typeddict-item]  # what is used of it was checked
    }
    return found_review


def answer(response: AdmissionResponse) -> ReviewedReview:
    """The review that carries a response."""
    return {"apiVersion": API_VERSION, "kind": _KIND, "response": response}


_WARNING_LIMIT = 256
_WARNINGS_LIMIT = 4096
_AUDIT_LIMIT = 1024


def allowed(
    uid: str,
    *,
    patch: Sequence[JsonMap] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> AdmissionResponse:
    """Allow a request.

    Args:
        uid: the request's.
        patch: RFC 6902 operations.
        warnings: what the user is told; cut to what the API server takes.
        audit: what goes into the audit log.
    """
    response: AdmissionResponse = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(dump(patch)).decode()
    if shown := _shown(warnings):
        response["warnings"] = shown
    if audit:
        response["auditAnnotations"] = {k: _cut(v, _AUDIT_LIMIT) for k, v in audit.items() if v}
    return response


def denied(uid: str, code: int, message: str, *, warnings: Sequence[str] = ()) -> AdmissionResponse:
    """Deny a request.

    Args:
        uid: the request's.
        code: the HTTP code that the client gets, a key of `_REASONS`.
        message: why.
        warnings: what the user is told besides.
    """
    status: Status = {
        "status": "Failure",
        "code": code,
        "reason": _REASONS[code],
        "message": _cut(message, _WARNINGS_LIMIT),
    }
    response: AdmissionResponse = {"uid": uid, "allowed": False, "status": status}
    if shown := _shown(warnings):
        response["warnings"] = shown
    return response


# k8s.io/apimachinery, pkg/apis/meta/v1 StatusReason. FlytePropeller fails a task at once on 400 and
# 422, and tries again on all else (flytepropeller,
# pkg/controller/nodes/task/k8s/plugin_manager.go).
_REASONS: Mapping[int, str] = {
    400: "BadRequest",
    422: "Invalid",
    500: "InternalError",
    504: "Timeout",
}


def _shown(warnings: Sequence[str]) -> list[str]:
    """Warnings of at most 256 characters, and 4096 in all, each in one line."""
    shown: list[str] = []
    left = _WARNINGS_LIMIT
    for warning in dict.fromkeys(warnings):
        text = _cut(" ".join(warning.split()), _WARNING_LIMIT)
        if len(text) > left:
            break
        shown.append(text)
        left -= len(text)
    return shown


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
