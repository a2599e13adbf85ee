"""The application: ASGI, without a framework.

What it costs beside the decision is a parse, a dump and a line of log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import Decision, LimitError
from kubetailor.plugins.webhook.limits import TIME_LIMIT, Limits
from kubetailor.plugins.webhook.logs import log, log_decision
from kubetailor.plugins.webhook.metrics import CONTENT_TYPE, Metrics
from kubetailor.plugins.webhook.reload import ConfigInUse, watch
from kubetailor.plugins.webhook.reviews import (
    AdmissionReview,
    MalformedReviewError,
    answer,
    denied,
    dump,
    parse,
)
from kubetailor.registry.tailor import Tailor

__all__ = ["BODY_LIMIT", "App", "Refresh"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Refresh: TypeAlias = Callable[[], Awaitable[None]]

BODY_LIMIT: Final = 8 * 1024 * 1024
"""The API server takes objects of 3 MiB; a review may hold two, and Kubernetes' own words."""

_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain; charset=utf-8"
_POLL_SECONDS: Final = 1.0


class _Refused(Exception):
    """A request that is answered with an HTTP error."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class App:
    """The application.

    Attributes:
        config: the config in use.
        metrics: what is counted.
    """

    def __init__(
        self,
        config: ConfigInUse,
        metrics: Metrics,
        *,
        time_limit: float = TIME_LIMIT,
        poll: float = _POLL_SECONDS,
        refresh: tuple[Refresh, ...] = (),
    ) -> None:
        """An application; what it needs is loaded when the server starts it.

        Args:
            config: the config in use.
            metrics: what is counted.
            time_limit: seconds that a chain may take.
            poll: seconds between two looks at the file of the config.
            refresh: what else is to be called as often.
        """
        self.config: ConfigInUse = config
        self.metrics: Metrics = metrics
        self._limits = Limits(time_limit)
        self._poll = poll
        self._refresh = (config.refresh, *refresh)
        self._pages: Mapping[str, Callable[[], tuple[int, bytes, bytes]]] = {
            "/healthz": lambda: (200, _TEXT, b"ok\n"),
            "/readyz": self._ready,
            "/metrics": lambda: (200, CONTENT_TYPE, metrics.text()),
        }

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """One connection's request, or the server's start and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            code, kind, body = await self._answer(scope, receive)
            headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": code, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start what watches files, and end it."""
        await receive()
        await self.config.refresh()
        tasks = [asyncio.create_task(watch(refresh, self._poll)) for refresh in self._refresh]
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await send({"type": "lifespan.shutdown.complete"})

    def _ready(self) -> tuple[int, bytes, bytes]:
        if self.config.tailor is None:
            return 503, _TEXT, f"{self.config.fault}\n".encode()
        return 200, _TEXT, b"ok\n"

    # requests ----------------------------------------------------------------------------------

    async def _answer(self, scope: Mapping[str, Any], receive: Receive) -> tuple[int, bytes, bytes]:
        path, method = scope["path"], scope["method"]
        if path != "/mutate":
            page = self._pages.get(path)
            if page is None:
                return 404, _TEXT, b"there are /mutate, /healthz, /readyz and /metrics\n"
            return page() if method in ("GET", "HEAD") else (405, _TEXT, b"GET it\n")
        try:
            if method != "POST":
                raise _Refused(405, "POST an AdmissionReview")
            body = await _body(scope, receive)
            code, kind, text = 200, _JSON, self._decide(body)
        except _Refused as error:
            log("warning", "refused", code=error.code, reason=str(error))
            code, kind, text = error.code, _TEXT, f"{error}\n".encode()
        self.metrics.answered(code)
        return code, kind, text

    def _decide(self, body: bytes) -> bytes:
        """The answer to a review."""
        start = time.perf_counter()
        tailor = self.config.tailor
        if tailor is None:
            raise _Refused(503, f"no config is loaded: {self.config.fault}")
        try:
            review = parse(body)
        except MalformedReviewError as error:
            raise _Refused(400, str(error)) from None
        try:
            decision = self._limits.run(decide, review, tailor)
        except LimitError as error:
            response = denied(review["request"]["uid"], error.code, str(error))
            decision = Decision(response, "denied", str(error))
        except Exception as error:
            # Ours to mend. The API server takes it for a failed call, and `failurePolicy` decides.
            log("error", "failed", uid=review["request"]["uid"], reason=_place(error))
            raise _Refused(500, f"kubetailor failed: {type(error).__name__}") from error
        text = dump(answer(decision.response))
        seconds = time.perf_counter() - start
        self.metrics.decided(decision, _kind_of(review, tailor), seconds)
        log_decision(review["request"], decision, seconds)
        return text


async def _body(scope: Mapping[str, Any], receive: Receive) -> bytes:
    """The whole body, if it is JSON and not too large."""
    headers = dict(scope["headers"])
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != _JSON:
        raise _Refused(
            415, f"expected content-type application/json, found {kind.decode('latin-1')!r}"
        )
    size = headers.get(b"content-length", b"0")
    if size.isdigit() and int(size) > BODY_LIMIT:
        raise _Refused(413, f"the body has {int(size)} bytes, at most {BODY_LIMIT}")
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body  # nearly always
    parts, length = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refused(400, "the body is not whole")
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > BODY_LIMIT:
            raise _Refused(413, f"the body has more than {BODY_LIMIT} bytes")
    return b"".join(parts)


def _kind_of(review: AdmissionReview, tailor: Tailor) -> str:
    """The kind, for a metric: one that is not known is `other`, so that there are not too many."""
    kind = review["request"].get("kind")
    if not isinstance(kind, dict):
        return "other"
    known = (kind.get("group"), kind.get("kind")) in tailor.config.plugins.kinds
    return str(kind["kind"]) if known or kind.get("kind") == "FlyteWorkflow" else "other"


def _place(error: Exception) -> str:
    """What failed and where, without what the object holds."""
    traceback, place = error.__traceback__, ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        place = f"{code.co_filename}:{traceback.tb_lineno} {code.co_name}"
        traceback = traceback.tb_next
    return f"{type(error).__name__} at {place}"
