"""Who transforms workloads, and in which order. A plugin author needs this package alone."""

from __future__ import annotations

from kubetailor.registry.accelerator import Accelerator
from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.chain import Chain
from kubetailor.registry.context import UNKNOWN, Phase, TaskContext
from kubetailor.registry.errors import (
    ConfigError,
    DeferError,
    OverrideError,
    PluginError,
    StepError,
)
from kubetailor.registry.explain import Change
from kubetailor.registry.hookspecs import RegisterTransformer, hookimpl
from kubetailor.registry.overrides.document import Override
from kubetailor.registry.result import Result, Warned
from kubetailor.registry.selection import Selection
from kubetailor.registry.step import Step
from kubetailor.registry.transformer import Transformer, TransformerError, transformer
from kubetailor.workloads import (
    CannotChangeError,
    ConflictError,
    Container,
    Ignored,
    InvalidObjectError,
    Kind,
    KubetailorError,
    Pod,
    PodPath,
    Workload,
)

__all__ = [
    "UNKNOWN",
    "Accelerator",
    "CannotChangeError",
    "Catalogue",
    "Chain",
    "Change",
    "ConfigError",
    "ConflictError",
    "Container",
    "DeferError",
    "Ignored",
    "InvalidObjectError",
    "Kind",
    "KubetailorError",
    "Override",
    "OverrideError",
    "Phase",
    "PluginError",
    "Pod",
    "PodPath",
    "RegisterTransformer",
    "Result",
    "Selection",
    "Step",
    "StepError",
    "TaskContext",
    "Transformer",
    "TransformerError",
    "Warned",
    "Workload",
    "hookimpl",
    "transformer",
]
