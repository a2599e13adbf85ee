"""A kubelet for tests: what Flyte runs in a pod, it runs as a process of this machine.

    python -m tests.cluster.stack.kubelet KUBECONFIG FOLDER

It keeps the nodes with its label ready. Of a pod that is bound to one of them it runs each
container whose command is flytekit's (`pyflyte-execute` ...), in a folder of the container's
own, with its environment and flytekit's S3 settings of the kubelet's. Images, volumes and all other
containers are taken as they are said to be. With the last of these processes the pod ends.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from .client import ApiError, Client
from .core import Core
from .process import Process, StackError
from .s3 import S3

__all__ = ["KUBELET", "start_kubelet"]

KUBELET: Final = {"kubetailor.dev/kubelet": "process"}
"""The label of the nodes that it keeps."""

_POLL: Final = 0.3
_HEARTBEAT: Final = 10.0
_AT_ONCE: Final = 3
_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR")
_FIELDS: Final = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "spec.nodeName": ("spec", "nodeName"),
}


def _now() -> str:
    return dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """All nodes with the label, and the pods on them."""

    def __init__(self, client: Client, folder: Path) -> None:
        """Nothing runs before `run`.

        Args:
            client: may do all.
            folder: gets a folder for each pod, and in it one for each container with its output.
        """
        self._client = client
        self._folder = folder
        self._pods: dict[str, Pod] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._ready: dict[str, float] = {}

    def run(self) -> None:
        """Until the process is told to end."""
        while True:
            try:
                nodes = self._nodes()
                pods = self._client.list("v1", "Pod")
            except ApiError as error:
                print(f"{_now()} {error}", flush=True)
            else:
                self._look_at([pod for pod in pods if pod["spec"].get("nodeName") in nodes])
            time.sleep(_POLL)

    def end(self) -> None:
        """What runs ends now."""
        for pod in list(self._pods.values()):
            pod.end()

    def _nodes(self) -> set[str]:
        """The nodes to keep, each told to be ready now and then."""
        selector = ",".join(f"{key}={value}" for key, value in KUBELET.items())
        nodes = self._client.list("v1", "Node", labelSelector=selector)
        names = {node["metadata"]["name"] for node in nodes}
        for name in names:
            if time.monotonic() - self._ready.get(name, -_HEARTBEAT) >= _HEARTBEAT:
                self._ready[name] = time.monotonic()
                self._beat(name)
        return names

    def _beat(self, name: str) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "pods run as processes",
            "lastHeartbeatTime": _now(),
        }
        self._client.patch("v1", "Node", None, name, {"status": {"conditions": [ready]}}, "status")

    def _look_at(self, pods: list[dict[str, Any]]) -> None:
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in self._pods.keys() - there.keys():
            self._pods.pop(uid).end()
        for uid, pod in there.items():
            if pod["metadata"].get("deletionTimestamp"):
                self._gone(uid, pod)
            elif uid not in self._pods and pod.get("status", {}).get("phase") == "Pending":
                self._pods[uid] = Pod(self._client, pod, self._folder)
                self._pool.submit(self._pods[uid].run)

    def _gone(self, uid: str, pod: dict[str, Any]) -> None:
        if uid in self._pods:
            self._pods.pop(uid).end()
        metadata = pod["metadata"]
        path = self._client.path("v1", "Pod", metadata["namespace"], metadata["name"])
        self._client.raw("DELETE", path, gracePeriodSeconds="0")


class Pod:
    """One pod and its processes."""

    def __init__(self, client: Client, pod: dict[str, Any], folder: Path) -> None:
        self._client = client
        self._pod = pod
        metadata = pod["metadata"]
        self._folder = folder / f"{metadata['namespace']}.{metadata['name']}"
        self._processes: list[Process] = []
        self._ended = threading.Event()
        self._started = _now()

    def run(self) -> None:
        """From Pending to Succeeded or Failed."""
        try:
            self._say("Running", {})
            codes = dict(self._codes())
            if codes:
                self._say("Failed" if any(codes.values()) else "Succeeded", codes)
        except Exception as error:  # a pod that is gone, most of the time
            print(f"{_now()} {self._folder.name}: {error}", flush=True)

    def end(self) -> None:
        """Its processes end now."""
        self._ended.set()
        for process in self._processes:
            process.kill()

    def _codes(self) -> Iterator[tuple[str, int]]:
        """The exit code of each container that is run."""
        shutil.rmtree(self._folder, ignore_errors=True)
        running = []
        for container in self._pod["spec"]["containers"]:
            name = container["name"]
            command = [*container.get("command", []), *container.get("args", [])]
            if command and Path(command[0]).name.startswith("pyflyte-"):
                folder = self._folder / name
                folder.mkdir(parents=True)
                if self._ended.is_set():
                    raise StackError("deleted before it ran")
                running.append(Process(name, command, folder=folder, env=self._env(container)))
        self._processes += running
        for process in running:
            yield process.name, process.wait()

    def _env(self, container: dict[str, Any]) -> dict[str, str]:
        env = {
            name: value
            for name, value in os.environ.items()
            if name in _KEPT or name.startswith(("FLYTE_AWS_", "AWS_"))
        }
        for entry in container.get("env", []):
            field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            if field in _FIELDS:
                part, name = _FIELDS[field]
                env[entry["name"]] = self._pod[part][name]
            elif "value" in entry:
                env[entry["name"]] = entry["value"]
        return env

    def _say(self, phase: str, codes: dict[str, int]) -> None:
        """Write the status; a container that was not run ends as the pod does."""
        ended = phase != "Running"
        statuses = []
        for container in self._pod["spec"]["containers"]:
            name, code = container["name"], codes.get(container["name"], 0)
            state: dict[str, Any] = {"running": {"startedAt": self._started}}
            if ended:
                state = {
                    "terminated": {
                        "exitCode": code,
                        "reason": "Error" if code else "Completed",
                        "startedAt": self._started,
                        "finishedAt": _now(),
                    }
                }
            statuses.append(
                {
                    "name": name,
                    "image": container["image"],
                    "imageID": "",
                    "ready": not ended,
                    "started": not ended,
                    "restartCount": 0,
                    "state": state,
                }
            )
        ready = {
            "type": "Ready",
            "status": "False" if ended else "True",
            "reason": "PodCompleted" if ended else "PodReady",
            "lastTransitionTime": _now(),
        }
        status = {
            "phase": phase,
            "startTime": self._started,
            "podIP": "127.0.0.1",
            "conditions": [ready],
            "containerStatuses": statuses,
        }
        metadata = self._pod["metadata"]
        self._client.patch(
            "v1", "Pod", metadata["namespace"], metadata["name"], {"status": status}, "status"
        )


def start_kubelet(core: Core, s3: S3, stack: ExitStack) -> Process:
    """Start it as a process of its own."""
    folder = core.folder / "pods"
    folder.mkdir()
    command = [sys.executable, "-m", __name__, core.kubeconfig, folder]
    root = str(Path(__file__).parents[3])
    # Where this Python is, flytekit's commands are too.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, **s3.env, "PYTHONPATH": root, "PATH": path}
    return stack.enter_context(Process("kubelet", command, folder=core.folder, env=env))


def main() -> None:
    """Run until SIGTERM, then end what was started."""
    kubeconfig, folder = (Path(word) for word in sys.argv[1:])
    kubelet = Kubelet(Client(kubeconfig), folder)

    def end(*_: object) -> None:
        kubelet.end()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    kubelet.run()


if __name__ == "__main__":
    main()
