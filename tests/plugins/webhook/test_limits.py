"""A transformer that eats time or memory costs its own request, and no other."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetailor.plugins.webhook import reload
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import MemoryLimitError, TimeLimitError
from kubetailor.plugins.webhook.limits import MEMORY_LIMIT, Limits
from kubetailor.plugins.webhook.metrics import Metrics
from kubetailor.plugins.webhook.reload import ConfigInUse
from kubetailor.plugins.webhook.reviews import dump
from kubetailor.registry.tailor import Tailor

from .conftest import answer_of, object_of, review_of
from .process import Server, serving

MIB = 1024**2
HUNGRY = '''
"""Transformers that take more than there is."""

from kubetailor.registry import Pod, Workload, transformer


@transformer
def piles_up(pod: Pod) -> None:
    """Keep small things without end."""
    kept = []
    while True:
        kept.append(bytearray(1000))


@transformer
def grows(workload: Workload) -> None:
    """Write without end into the object."""
    entries = workload.edit("metadata", "annotations")
    while True:
        entries[f"example.com/{len(entries)}"] = "x" * 1000


@transformer
def at_once(spec: dict) -> dict:
    """Ask for more than any machine has."""
    return {**spec, "metadata": {**spec["metadata"], "x": "x" * 10**12}}


@transformer
def doubles(pod: Pod) -> None:
    """Make a text that doubles."""
    text = "x"
    while True:
        text += text


@transformer
def swallows(pod: Pod) -> None:
    """Go on whatever happens."""
    while True:
        try:
            while True:
                pass
        except Exception:
            pass
'''
HUNGRY_NAMES = ["piles_up", "grows", "at_once", "doubles"]


def config(directory: Path, use: str) -> Path:
    (directory / "hungry.py").write_text(HUNGRY)
    found = directory / "kubetailor.yaml"
    found.write_text(
        f"""
plugins: [./hungry.py]
phases: [launch, admit]
chains:
  default:
    steps: [{{use: hungry.{use}, when: {{labels: {{hungry: "yes"}}}}}}]
    enforce: [{{use: labels, with: {{set: {{a: b}}}}}}]
"""
    )
    return found


def hungry_review() -> Any:
    review = review_of("pod-n0-0")
    object_of(review)["metadata"]["labels"]["hungry"] = "yes"
    return review


@pytest.fixture
def limits() -> Iterator[Limits]:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield Limits(20.0, 64 * MIB)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.fixture
def decided(tmp_path: Path, limits: Limits) -> Callable[[str], dict[str, Any]]:
    def run(use: str) -> dict[str, Any]:
        tailor = Tailor.find(config(tmp_path, use), environ={})
        assert tailor is not None
        return answer_of(limits.run(decide, hungry_review(), tailor))

    return run


@pytest.mark.parametrize("use", HUNGRY_NAMES)
def test_a_step_that_eats_memory_is_denied_by_name(
    use: str, decided: Callable[[str], dict[str, Any]]
) -> None:
    status = decided(use)["status"]
    # FlytePropeller tries again on 500: another object may have left no memory.
    assert (status["code"], status["reason"]) == (500, "InternalError")
    for part in (f"'hungry.{use}'", "MemoryError", "hungry.py"):
        assert part in status["message"]


def test_what_is_needed_outside_of_any_step_is_limited_too(limits: Limits) -> None:
    def hog() -> None:
        kept = []
        while True:
            kept.append(bytearray(1000))

    with pytest.raises(MemoryLimitError, match="more than 64 MiB"):
        limits.run(hog)
    assert limits.run(lambda: len(bytearray(32 * MIB))) == 32 * MIB


def test_code_that_catches_everything_is_ended(tmp_path: Path) -> None:
    tailor = Tailor.find(config(tmp_path, "swallows"), environ={})
    assert tailor is not None
    start = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"longer than 0.1 s"):
        Limits(0.1).run(decide, hungry_review(), tailor)
    assert time.monotonic() - start < 5


def test_a_validate_that_hangs_is_ended_and_may_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "from kubetailor.registry import hookimpl\n"
        "@hookimpl\n"
        "def validate(workload):\n"
        "    while True: pass\n"
    )
    file = config(tmp_path, "doubles")
    file.write_text(file.read_text().replace("./hungry.py", "./hungry.py, ./slow.py"))
    tailor = Tailor.find(file, environ={})
    assert tailor is not None
    status = answer_of(Limits(0.1).run(decide, review_of("pod-n0-0"), tailor))["status"]
    assert status["code"] == 504
    assert "longer than 0.1 s (validate of plugin slow)" in status["message"]


def test_a_config_for_which_there_was_no_memory_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ConfigInUse(config(tmp_path, "doubles"), Metrics())
    with monkeypatch.context() as patch:

        def no_memory(_: Path) -> None:
            raise MemoryError

        patch.setattr(reload, "load_tailor", no_memory)
        asyncio.run(found.refresh())
        assert "not enough memory" in found.fault
    asyncio.run(found.refresh())
    assert found.fault == ""
    assert found.tailor is not None


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.parametrize("use", ["piles_up", "at_once"])
def test_the_server_lives_on_and_answers_all_others(use: str, tmp_path: Path) -> None:
    gc.collect()
    with serving(config(tmp_path, use)) as server:
        answers: list[dict[str, Any]] = []

        def ask(body: bytes, times: int) -> None:
            connection = server.connect()
            for _ in range(times):
                code, text = Server.post(connection, body)
                assert code == 200, text
                answers.append(json.loads(text)["response"])
            connection.close()

        before = resident(server.process.pid)
        threads = [
            threading.Thread(target=ask, args=(dump(hungry_review()), 5)),
            *(
                threading.Thread(target=ask, args=(dump(review_of("pod-n0-0")), 50))
                for _ in range(4)
            ),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        denied = [answer for answer in answers if not answer["allowed"]]
        assert len(answers) == 205
        assert [answer["status"]["code"] for answer in denied] == [500] * 5
        assert f"'hungry.{use}'" in denied[0]["status"]["message"]
        assert server.process.poll() is None
        # As the kernel's own record has it: what was needed at most, with all that was answered.
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
        assert peak - before < 1.25 * MEMORY_LIMIT
        ask(dump(review_of("pod-n0-0")), 1)
        assert resident(server.process.pid) - before < MEMORY_LIMIT / 2
