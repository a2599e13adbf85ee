"""Logs: one JSON object a line, on stdout."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from kubetailor.plugins.webhook.decision import Decision
from kubetailor.plugins.webhook.reviews import AdmissionRequest, dump

__all__ = ["Formatter", "log", "log_decision", "use_json"]

_LIMIT = 1024
"""Characters of a text: a name may have any length when a webhook sees it, and a message a part of
the object."""

_KNOWN = ("task", "execution", "node")


def log(level: str, event: str, **said: Any) -> None:
    """Write a line.

    Args:
        level: `info`, `warning` or `error`.
        event: what happened, in one word or two.
        said: what is to be said of it.
    """
    line = dump({"time": _now(time.time()), "level": level, "event": event, **said})
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def log_decision(request: AdmissionRequest, decision: Decision, seconds: float) -> None:
    """Write the line of a decision: whose, which and why, and nothing of what the object holds."""
    obj = request.get("object") or {}
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kind = request.get("kind")
    said = {
        "outcome": decision.outcome,
        "uid": request["uid"],
        "operation": request["operation"],
        "kind": kind.get("kind") if isinstance(kind, dict) else obj.get("kind"),
        "namespace": request.get("namespace"),
        "name": request.get("name") or metadata.get("name") or metadata.get("generateName"),
        "dryRun": bool(request.get("dryRun")),
        "chain": decision.chain,
        "digest": decision.digest,
        "override": decision.override,
        "steps": decision.steps,
        "operations": decision.operations,
        "warnings": len(decision.warnings),
        "undecided": decision.undecided,
        "inapplicable": decision.inapplicable,
        "reason": decision.reason,
        **{field: (decision.known or {}).get(field) for field in _KNOWN},
    }
    level = "warning" if decision.outcome == "denied" or decision.offloaded else "info"
    log(
        level,
        "decision",
        **{
            name: value[:_LIMIT] if isinstance(value, str) else value
            for name, value in said.items()
            if value not in (None, "", (), 0, False)
        },
        ms=round(seconds * 1000, 3),
    )


def _now(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03}Z"


class Formatter(logging.Formatter):
    """What libraries log, in the same form."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        said: dict[str, Any] = {
            "time": _now(record.created),
            "level": record.levelname.lower(),
            "event": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return dump(said).decode()


def use_json() -> None:
    """Let everything that is logged be JSON lines on stdout."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(Formatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
