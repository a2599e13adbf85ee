"""Executions that may not be, and those for which nobody answers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

import pytest

from .conftest import MakeLauncher, MakeWebhook, RegisterOnce
from .executions import FOLDER, Launcher, Run, creations
from .launched import DOMAIN, FILES, HEAD, NAMESPACE, NESTED, VERSION, ZOO, tolerated
from .stack.client import Client
from .stack.core import Core
from .stack.process import StackError, wait_for
from .stack.pyflyte import PROJECT, Pyflyte


@pytest.fixture
def launch(register_once: RegisterOnce, launcher: MakeLauncher) -> Launcher:
    """Launches the project, as its authors wrote it."""
    register_once(ZOO, DOMAIN)
    return launcher(ZOO)


# denials ---------------------------------------------------------------------------------------

IMPOSSIBLE: Final = f"""
chains:
  default:
    enforce:
      - name: bill
        use: env
        with: {{set: {{A: "1"}}, container: nobody}}
        when: {{task: {ZOO}.one}}
"""


def test_what_cannot_be_done_fails_the_execution_at_once_and_says_why(
    pyflyte: Pyflyte, webhook: MakeWebhook, launch: Launcher
) -> None:
    webhook(HEAD + IMPOSSIBLE, NAMESPACE, files=FILES)
    run = launch("inner", "launch-denied")
    # At once: the first answer says so.
    assert run.has_failed
    message = run.sync().error.message
    said = ("kubetailor", f"task {ZOO}.one at node ", "step 'bill'", "nobody")
    assert [word for word in said if word not in message] == [], message
    assert run.pods == []

    with pytest.raises(StackError) as error:
        pyflyte(
            *("run", "--remote", "--project", PROJECT, "--domain", DOMAIN),
            *("remote-task", f"{ZOO}.one:{VERSION}", "--x", "3"),
            folder=FOLDER,
        )
    assert [word for word in said if word not in str(error.value)] == [], error.value


def test_a_denied_pod_fails_its_task_at_once_and_says_why(
    core: Core, webhook: MakeWebhook, launch: Launcher
) -> None:
    webhook(f"phases: [admit]\n{IMPOSSIBLE}", NAMESPACE)
    denied = launch("inner", "admit-denied")

    message = denied.wait_for_failure()
    said = ("kubetailor", "step 'bill'", "nobody")
    assert [word for word in said if word not in message] == [], message
    assert [code for _, code in creations(core, denied)] == [422]


# the webhook is not there ----------------------------------------------------------------------


def test_without_an_answer_nothing_starts(
    client: Client, pyflyte: Pyflyte, webhook: MakeWebhook, launch: Launcher
) -> None:
    asked = webhook(NESTED, NAMESPACE, files=FILES)
    ((port, server),) = asked.replicas.items()
    server.kill()
    run = launch("both", "launch-down")
    assert run.has_failed
    message = run.sync().error.message
    assert "failed calling webhook" in message
    assert "flyte.kubetailor.dev" in message
    workflows = client.list("flyte.lyft.com/v1alpha1", "FlyteWorkflow", NAMESPACE)
    assert run.name not in [found["metadata"]["name"] for found in workflows]
    assert run.pods == []

    asked.serve(port)
    remote = pyflyte.remote(DOMAIN)
    again = remote.client.relaunch_execution(run.execution.id, name="launch-up")
    with ExitStack() as stack:
        run = Run.started(client, remote, DOMAIN, again.name, stack)
        for pod in run.wait_for_pods(2):
            assert tolerated(pod) == ["batch"]


def test_a_pod_that_gets_no_answer_is_tried_again(
    core: Core, webhook: MakeWebhook, launch: Launcher
) -> None:
    asked = webhook(NESTED.replace("launch, admit", "admit"), NAMESPACE, files=FILES)
    ((port, server),) = asked.replicas.items()
    server.kill()
    run = launch("both", "admit-down")

    def refused() -> bool:
        codes = [code for _, code in creations(core, run)]
        return len(codes) > 1 and set(codes) == {500}

    wait_for("its pods to be refused, and again", refused)
    assert run.pods == []
    asked.serve(port)
    for pod in run.wait_for_pods(2):
        assert tolerated(pod) == ["batch"]
