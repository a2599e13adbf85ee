"""Executions whose closure is not in the FlyteWorkflow."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

from flytekit.core.options import Options
from flytekit.models.common import Labels

from kubetailor.plugins.execution.marks import EXECUTION_KEYS

from .executions import Run, register
from .launched import DOMAIN, FILES, NAMESPACE, NESTED, VERSION, ZOO, tolerated
from .stack.core import Core
from .stack.flyte import start_propeller, start_standin
from .stack.pyflyte import Pyflyte
from .stack.s3 import S3
from .stack.webhook import Webhook


def test_of_an_offloaded_closure_only_the_objects_are_tailored(s3: S3, tmp_path: Path) -> None:
    """FlyteAdmin has one such setting for all, so this is a cluster of its own."""
    with ExitStack() as stack:
        core = Core(tmp_path, stack)
        settings = {"flyteadmin": {"useOffloadedWorkflowClosure": True}}
        endpoint = start_standin(core, s3, stack, **settings)
        start_propeller(core, s3, endpoint, stack)
        core.client.namespace(NAMESPACE)
        pyflyte = Pyflyte(endpoint, s3)
        register(pyflyte, ZOO, domain=DOMAIN)
        asked = Webhook(core, stack, NESTED, NAMESPACE, files=FILES)
        remote = pyflyte.remote(DOMAIN)
        plan = remote.fetch_launch_plan(name=f"{ZOO}.inner", version=VERSION)
        options = Options(labels=Labels({"team": "vision"}))
        remote.execute(plan, inputs={"x": 3}, execution_name="offloaded", options=options)
        run = Run(core.client, remote, DOMAIN, "offloaded")
        (pod,) = run.wait_for_pods(1)

        workflow = run.flyte_workflow
        assert workflow["workflowClosureReference"].startswith("s3://")
        assert not workflow.get("tasks")
        keys = json.loads(workflow["metadata"]["annotations"].pop(EXECUTION_KEYS))
        assert keys == {"labels": ["team"]}
        assert not workflow["metadata"]["annotations"]
        assert tolerated(pod) == ["batch"]
        assert pod["metadata"]["annotations"]["example.com/times"] == "1"
        labels = pod["metadata"]["labels"]
        assert (labels["team"], labels["cost-centre"]) == ("vision", "speech")

        (said,) = asked.decisions(run.name)
        assert said["level"] == "warning"
        assert "offloaded" in said["reason"]
        (port,) = asked.replicas
        assert "\nkubetailor_offloaded_total 1.0\n" in asked.ask(port, "/metrics")
