"""The application, called as a server calls it."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from kubetailor.plugins.webhook import app, reload
from kubetailor.plugins.webhook.app import App
from kubetailor.plugins.webhook.metrics import Metrics
from kubetailor.plugins.webhook.reload import ConfigInUse
from kubetailor.plugins.webhook.reviews import AdmissionReview, dump

from .conftest import NAMES, PLUGIN, object_of, review_of

_BUSY = "while time.time() < end"
JSON = [(b"content-type", b"application/json")]


def config(label: str = "a", use: str = "") -> str:
    steps = f"[{{use: {use}}}]" if use else "[]"
    return f"""
plugins: [./probe.py]
phases: [admit]
chains:
  default:
    steps: {steps}
    enforce: [{{use: labels, with: {{set: {{said: {label}}}}}}}]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "probe.py").write_text(PLUGIN)
    path = tmp_path / "kubetailor.yaml"
    path.write_text(config())
    return path


class Client:
    """What a server does with an application."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def request(
        self,
        method: str,
        path: str,
        *chunks: bytes,
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> tuple[int, bytes]:
        messages = [
            {"type": "http.request", "body": chunk, "more_body": index + 1 < len(chunks)}
            for index, chunk in enumerate(chunks or (b"",))
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            await asyncio.sleep(0)
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        given = JSON if headers is None else headers
        scope = {"type": "http", "method": method, "path": path, "headers": given}
        await self.app(scope, receive, send)
        start, body = sent
        assert dict(start["headers"])[b"content-length"] == str(len(body["body"])).encode()
        return start["status"], body["body"]

    async def mutate(self, review: AdmissionReview) -> dict[str, Any]:
        code, body = await self.request("POST", "/mutate", dump(review))
        assert code == 200, body
        found = json.loads(body)
        assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: dict[str, Any] = found["response"]
        return response

    async def said(self) -> str:
        """The label that the config in use enforces."""
        review = review_of("pod-n0-0")
        response = await self.mutate(review)
        patch = json.loads(base64.b64decode(response["patch"]))
        label: str = jsonpatch.apply_patch(object_of(review), patch)["metadata"]["labels"]["said"]
        return label


Test = Callable[[Client], Awaitable[None]]


def live(path: Path, test: Test, *, poll: float = 0.01, time_limit: float = 5.0) -> Metrics:
    """Start the application as a server does, run the test, and end it."""
    metrics = Metrics()

    async def main() -> None:
        app = App(ConfigInUse(path, metrics), metrics, poll=poll, time_limit=time_limit)
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        outbox: asyncio.Queue[Any] = asyncio.Queue()
        task = asyncio.create_task(app({"type": "lifespan"}, inbox.get, outbox.put))
        await inbox.put({"type": "lifespan.startup"})
        assert (await outbox.get())["type"] == "lifespan.startup.complete"
        try:
            await test(Client(app))
        finally:
            await inbox.put({"type": "lifespan.shutdown"})
            assert (await outbox.get())["type"] == "lifespan.shutdown.complete"
            await task

    asyncio.run(main())
    return metrics


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def lines(capfdbinary: pytest.CaptureFixture[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]


# answers ---------------------------------------------------------------------------------------


def test_every_real_review_is_answered(path: Path) -> None:
    async def test(client: Client) -> None:
        for name in NAMES:
            review = review_of(name)
            response = await client.mutate(review)
            assert response["uid"] == review["request"]["uid"]
            assert response["allowed"]

    live(path, test)


def test_a_body_in_pieces_is_put_together(path: Path) -> None:
    body = dump(review_of("pod-n0-0"))

    async def test(client: Client) -> None:
        code, _ = await client.request("POST", "/mutate", body[:100], body[100:2000], body[2000:])
        assert code == 200

    live(path, test)


def test_a_large_object_is_tailored(path: Path) -> None:
    review = review_of("pod-n0-0")
    object_of(review)["spec"]["containers"][0]["args"].append("x" * 3 * 1024 * 1024)

    async def test(client: Client) -> None:
        response = await client.mutate(review)
        assert response["allowed"]
        assert len(response["patch"]) < 2000

    live(path, test)


@pytest.mark.parametrize(
    ("method", "place", "headers", "chunks", "code", "reason"),
    [
        ("GET", "/mutate", JSON, [b""], 405, "POST"),
        ("POST", "/readyz", JSON, [b""], 405, "GET"),
        ("POST", "/other", JSON, [b""], 404, "/mutate"),
        ("POST", "/mutate", [], [b"{}"], 415, "application/json"),
        ("POST", "/mutate", [(b"content-type", b"text/yaml")], [b"{}"], 415, "text/yaml"),
        ("POST", "/mutate", JSON, [b"{"], 400, "no JSON"),
        ("POST", "/mutate", JSON, [b"{}"], 400, "AdmissionReview"),
        (
            "POST",
            "/mutate",
            [*JSON, (b"content-length", b"99999999999")],
            [b"{}"],
            413,
            "at most",
        ),
        ("POST", "/mutate", JSON, [b"x" * app.BODY_LIMIT, b"x", b""], 413, "more than"),
    ],
)
def test_what_is_no_review_is_refused_with_the_reason(
    method: str,
    place: str,
    headers: list[tuple[bytes, bytes]],
    chunks: list[bytes],
    code: int,
    reason: str,
    path: Path,
) -> None:
    async def test(client: Client) -> None:
        found, body = await client.request(method, place, *chunks, headers=headers)
        assert (found, reason in body.decode()) == (code, True), body
        assert await client.said() == "a"

    live(path, test)


def test_a_content_type_may_name_a_charset(path: Path) -> None:
    async def test(client: Client) -> None:
        headers = [(b"content-type", b"Application/JSON; charset=utf-8")]
        code, _ = await client.request(
            "POST", "/mutate", dump(review_of("pod-n0-0")), headers=headers
        )
        assert code == 200

    live(path, test)


def test_a_fault_of_ours_is_an_error_and_no_answer(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("what the object holds")

    monkeypatch.setattr(app, "decide", fail)

    async def test(client: Client) -> None:
        code, body = await client.request("POST", "/mutate", dump(review_of("pod-n0-0")))
        assert (code, body) == (500, b"kubetailor failed: ZeroDivisionError\n")

    live(path, test)
    line = next(line for line in lines(capfdbinary) if line["event"] == "failed")
    assert "ZeroDivisionError at " in line["reason"]
    assert "what the object holds" not in json.dumps(line)


# code that is not ours -------------------------------------------------------------------------


@pytest.mark.parametrize("use", ["probe.endless", "probe.sleeping"])
def test_a_transformer_that_hangs_is_ended_and_named(use: str, path: Path) -> None:
    path.write_text(config(use=use))

    async def test(client: Client) -> None:
        start = time.monotonic()
        response = await client.mutate(review_of("pod-n0-0"))
        assert time.monotonic() - start < 5
        assert not response["allowed"]
        # FlytePropeller tries again on 504: the machine may have been slow.
        assert response["status"]["code"] == 504
        assert repr(use) in response["status"]["message"]
        assert (await client.request("GET", "/healthz"))[0] == 200

    live(path, test, time_limit=0.2)


def test_a_time_limit_outside_of_any_step_is_a_decision_too(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def endless(*_: Any) -> None:
        while True:
            pass

    monkeypatch.setattr(app, "decide", endless)

    async def test(client: Client) -> None:
        response = await client.mutate(review_of("pod-n0-0"))
        assert (response["allowed"], response["status"]["code"]) == (False, 504)

    metrics = live(path, test, time_limit=0.1).text().decode()
    assert 'kubetailor_decisions_total{chain="",kind="Pod",outcome="denied"} 1.0' in metrics
    (line,) = [line for line in lines(capfdbinary) if line["event"] == "decision"]
    assert "longer than 0.1 s" in line["reason"]


def test_the_time_limit_does_not_ring_later(path: Path) -> None:
    async def test(client: Client) -> None:
        assert await client.said() == "a"
        await asyncio.sleep(0.3)
        assert await client.said() == "a"

    live(path, test, time_limit=0.1)


# the config ------------------------------------------------------------------------------------


def test_it_is_not_ready_until_a_config_is_loaded(path: Path) -> None:
    path.write_text("chains: [")

    async def test(client: Client) -> None:
        code, body = await client.request("GET", "/readyz")
        assert code == 503
        assert b"kubetailor.yaml" in body
        assert (await client.request("GET", "/healthz"))[0] == 200
        assert (await client.request("POST", "/mutate", b"{}"))[0] == 503
        path.write_text(config("b"))

        async def ready() -> bool:
            return (await client.request("GET", "/readyz"))[0] == 200

        await until(ready)
        assert await client.said() == "b"

    live(path, test)


def test_a_config_for_another_host_is_refused(path: Path) -> None:
    path.write_text(config().replace("phases: [admit]", "phases: [serialize]"))

    async def test(client: Client) -> None:
        code, body = await client.request("GET", "/readyz")
        assert code == 503
        assert b"phases" in body

    live(path, test)


def test_a_config_is_replaced_under_load_and_no_request_is_lost(path: Path) -> None:
    async def test(client: Client) -> None:
        seen: list[str] = []
        done = asyncio.Event()

        async def ask() -> None:
            while not done.is_set():
                seen.append(await client.said())
                await asyncio.sleep(0)

        askers = [asyncio.create_task(ask()) for _ in range(4)]
        for label in "bcd":
            path.write_text(config(label))

            async def changed(label: str = label) -> bool:
                return seen[-1:] == [label]

            await until(changed)
        done.set()
        await asyncio.gather(*askers)
        # Each in turn, and never back.
        assert [label for n, label in enumerate(seen) if label != seen[n - 1] or not n] == list(
            "abcd"
        )

    metrics = live(path, test).text().decode()
    assert 'kubetailor_reloads_total{result="loaded"} 4.0' in metrics
    assert metrics.count("kubetailor_config_info{") == 1


async def newest_in_use(client: Client) -> bool:
    """What alerts read."""
    _, text = await client.request("GET", "/metrics")
    (line,) = re.findall(rb"^kubetailor_config_last_reload_successful (.*)$", text, re.MULTILINE)
    return float(line) == 1


def test_a_broken_config_is_refused_and_the_old_one_stays(
    path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    async def test(client: Client) -> None:
        assert await client.said() == "a"
        for broken in ("chains: [", "", config(use="no_such_step"), "plugins: [./none.py]"):
            fault = client.app.config.fault
            path.write_text(broken)

            async def refused(fault: str = fault) -> bool:
                return client.app.config.fault not in ("", fault)

            await until(refused)
            assert await client.said() == "a"
            assert (await client.request("GET", "/readyz"))[0] == 200
            assert await newest_in_use(client) is False
        path.unlink()
        await asyncio.sleep(0.1)
        assert await client.said() == "a"
        path.write_text(config("b"))

        async def back() -> bool:
            return await client.said() == "b"

        await until(back)
        assert await newest_in_use(client) is True

    metrics = live(path, test).text().decode()
    assert 'kubetailor_reloads_total{result="refused"} 5.0' in metrics
    reasons = [line["reason"] for line in lines(capfdbinary) if line["event"] == "config refused"]
    assert any("no_such_step" in reason and "kubetailor.yaml:" in reason for reason in reasons)


def test_no_line_of_the_log_is_as_long_as_an_object(
    path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A webhook sees an object before the API server has looked at its name."""

    async def test(client: Client) -> None:
        review = review_of("pod-n0-0")
        obj = object_of(review)
        obj["metadata"]["name"] = review["request"]["name"] = "n" * 100_000
        obj["metadata"]["labels"]["node-id"] = "m" * 100_000
        await client.mutate(review)
        obj["metadata"]["annotations"] = "no map"
        await client.mutate(review)

    live(path, test)
    assert all(len(line) < 10_000 for line in capfdbinary.readouterr().out.splitlines())


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "raise GeneratorExit",
        "import asyncio; raise asyncio.CancelledError",
        "raise BaseException",
        "raise MemoryError",
        "import time; time.sleep(2)",
        "while True:\n    pass",
    ],
)
def test_a_plugin_that_ends_or_hangs_takes_nobody_with_it(
    code: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in code or "while" in code:
        monkeypatch.setattr(reload, "LOAD_SECONDS", 0.3)
        code = code.replace("while True", f"import time\nend = time.time() + 2\n{_BUSY}")

    async def test(client: Client) -> None:
        path.with_name("other.py").write_text(code)
        path.write_text(config("b").replace("./probe.py", "./other.py"))

        async def refused() -> bool:
            return client.app.config.fault != ""

        await until(refused)
        assert await client.said() == "a"
        assert (await client.request("GET", "/readyz"))[0] == 200
        monkeypatch.undo()
        path.write_text(config("c"))

        async def mended() -> bool:
            return await client.said() == "c"

        await until(mended)

    live(path, test)


def test_a_config_map_is_followed_through_its_links(tmp_path: Path) -> None:
    # As the kubelet mounts it: kubetailor.yaml -> ..data/kubetailor.yaml, ..data -> a folder.
    for name in ("a", "b"):
        folder = tmp_path / f"..{name}"
        folder.mkdir()
        (folder / "probe.py").write_text(PLUGIN.replace('"wrong"', f'"{name}"'))
        (folder / "kubetailor.yaml").write_text(config(name, use="probe.queued"))
    (tmp_path / "..data").symlink_to("..a")
    for name in ("kubetailor.yaml", "probe.py"):
        (tmp_path / name).symlink_to(f"..data/{name}")

    async def test(client: Client) -> None:
        async def queue() -> str:
            review = review_of("pod-n0-0")
            patch = json.loads(base64.b64decode((await client.mutate(review))["patch"]))
            after = jsonpatch.apply_patch(object_of(review), patch)
            found: str = after["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
            return found

        assert (await client.said(), await queue()) == ("a", "a")
        (tmp_path / "..new").symlink_to("..b")
        (tmp_path / "..new").rename(tmp_path / "..data")

        async def turned() -> bool:
            return await client.said() == "b"

        await until(turned)
        # The plugin beside it is the new one too.
        assert await queue() == "b"

    live(tmp_path / "kubetailor.yaml", test)


# seen from outside -----------------------------------------------------------------------------


def test_metrics_say_what_was_decided(path: Path) -> None:
    path.write_text(config(use="probe.suspended"))

    async def test(client: Client) -> None:
        await client.mutate(review_of("pod-n0-0"))
        await client.mutate(review_of("rayjob-n8-0"))
        await client.request("POST", "/mutate", b"{}")
        code, body = await client.request("GET", "/metrics")
        text = body.decode()
        assert code == 200
        for line in (
            'kubetailor_requests_total{code="200"} 2.0',
            'kubetailor_requests_total{code="400"} 1.0',
            'kubetailor_decisions_total{chain="default",kind="Pod",outcome="patched"} 1.0',
            'kubetailor_decisions_total{chain="default",kind="RayJob",outcome="patched"} 1.0',
            "kubetailor_decision_seconds_count 2.0",
            'kubetailor_step_seconds_count{chain="default",step="labels"} 2.0',
            'kubetailor_step_seconds_count{chain="default",step="probe.suspended"} 2.0',
            'kubetailor_reloads_total{result="loaded"} 1.0',
            "kubetailor_certificate_days_left",
            'kubetailor_config_info{digest="sha256:',
        ):
            assert line in text, text

    live(path, test)


def test_kinds_that_are_not_known_make_one_label(path: Path) -> None:
    async def test(client: Client) -> None:
        for kind in ("Aa", "Bb"):
            review = review_of("pod-n0-0")
            review["request"]["kind"] = {"group": "x", "version": "v1", "kind": kind}
            review["request"]["object"] = {"apiVersion": "x/v1", "kind": kind}
            await client.mutate(review)
        _, body = await client.request("GET", "/metrics")
        assert b'kind="other",outcome="ignored"} 2.0' in body
        assert b"Aa" not in body

    live(path, test)


def test_one_line_a_decision_and_nothing_of_what_the_object_holds(
    path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    review = review_of("pod-n8-0-head")
    env = object_of(review)["spec"]["containers"][0]["env"]
    env.append({"name": "PASSWORD", "value": "sesame"})
    object_of(review)["metadata"]["annotations"] = {"secret": "sesame"}

    async def test(client: Client) -> None:
        await client.mutate(review)

    live(path, test)
    found = lines(capfdbinary)
    (line,) = [line for line in found if line["event"] == "decision"]
    assert line["outcome"] == "patched"
    assert line["uid"] == review["request"]["uid"]
    assert line["name"] == "adm74pqlsdkn7dpj6mlj-n8-0-bzrvk-head-"
    assert line["steps"] == ["labels"]
    assert (line["task"], line["execution"]) == ("zoo.ray_job", "adm74pqlsdkn7dpj6mlj")
    assert "sesame" not in json.dumps(found)


def test_a_denial_is_logged_with_its_reason(
    path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path.write_text(config(use="probe.broken"))

    async def test(client: Client) -> None:
        assert not (await client.mutate(review_of("pod-n0-0")))["allowed"]

    live(path, test)
    (line,) = [line for line in lines(capfdbinary) if line["event"] == "decision"]
    assert (line["level"], line["outcome"]) == ("warning", "denied")
    assert "no such table" in line["reason"]
