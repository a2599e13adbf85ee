"""A chain over the objects of files: all of them, or none if any is at fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubetailor.plugins.cli.manifests import read_manifests
from kubetailor.plugins.cli.output import fail, faults_of, print_notes, print_warnings
from kubetailor.registry import Chain, Phase, Result
from kubetailor.workloads import Document, Kind, KubetailorError, Workload
from kubetailor.workloads.task_template import TASK_TEMPLATE

if TYPE_CHECKING:
    from kubetailor.registry.tailor import Tailor

__all__ = ["Outcome", "tailor_files"]


@dataclass(frozen=True)
class Outcome:
    """One object of a file after its chain.

    Attributes:
        document: the object as it was read.
        title: its kind and name, such as ``PyTorchJob train``.
        phase: the phase that was run.
        chain: the chain, or None if none was selected or none could be yet.
        result: what the run did.
    """

    document: Document
    title: str
    phase: Phase
    chain: Chain | None
    result: Result

    @property
    def chain_text(self) -> str:
        """The chain, for messages."""
        return "no chain" if self.chain is None else f"chain {self.chain.name}"


def tailor_files(
    tailor: Tailor, names: Sequence[str], recursive: bool, phase: Phase | None
) -> list[Outcome]:
    """Run the chain over every object of the files; warnings and notes go to stderr.

    Args:
        tailor: the config.
        names: files, folders, or ``-``.
        recursive: read folders and all that is in them.
        phase: the phase, or None for each object's own.

    Raises:
        Fault: with all that is wrong, file by file and object by object.
    """
    documents, faults = read_manifests(names, recursive)
    outcomes: list[Outcome] = []
    for document in documents:
        try:
            outcomes.append(_tailor(tailor, document, phase))
        except KubetailorError as error:
            faults += [f"{document.where}: {fault}" for fault in faults_of(error)]
    if faults:
        fail(*faults)
    for outcome in outcomes:
        where = f"{outcome.document.where}: {outcome.title}"
        print_warnings(where, outcome.result)
        print_notes(where, outcome.result)
    return outcomes


def _tailor(tailor: Tailor, document: Document, phase: Phase | None) -> Outcome:
    obj = document.obj
    kind = tailor.kind_of(obj)
    is_task = kind == TASK_TEMPLATE
    chosen: Phase = phase or ("serialize" if is_task else "admit")
    known = _known(obj) if is_task else {}
    found = tailor.tailor(obj, chosen, kind=kind, **known)
    return Outcome(document, _title(obj, kind), chosen, found.chain, found.result)


def _known(template: dict[str, Any]) -> dict[str, Any]:
    """What a task template says of its task; what is empty in its id is not known."""
    identifier = template.get("id")
    given = identifier if isinstance(identifier, dict) else {}
    fields = {"project": "project", "domain": "domain", "task": "name", "version": "version"}
    known = {field: given.get(key) for field, key in fields.items()}
    return {"task_type": template.get("type"), **{f: v for f, v in known.items() if v}}


def _title(obj: dict[str, Any], kind: Kind | None) -> str:
    if kind is not None:
        workload = Workload(obj, kind)
        return f"{workload.kind_name} {workload.name}".strip()
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{obj.get('kind')} {name or ''}".strip()
