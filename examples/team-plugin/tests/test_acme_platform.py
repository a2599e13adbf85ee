"""`tailor` is the fixture of kubetailor's helper for plugins.

`prove` runs a transformer and fails unless it keeps what every transformer promises: a second run
changes nothing, and no field is lost.
"""

from __future__ import annotations

import acme_platform
import pytest

from kubetailor.registry import StepError, TaskContext

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {
        "containers": [{"name": "main", "image": "registry.example.com/train:1"}],
        "dnsConfig": {"options": [{"name": "edns0"}, {"name": "ndots", "value": "5"}]},
        "tolerations": [{"key": "example.com/own", "operator": "Exists"}],
    },
}
TRAINING_RUN = {
    "apiVersion": "acme.example.com/v1",
    "kind": "TrainingRun",
    "metadata": {"name": "nightly"},
    "spec": {
        role: {"template": {"spec": {"containers": [{"name": role, "image": "acme:1"}]}}}
        for role in ("trainer", "evaluator")
    },
}


def test_spot_selects_the_pool_and_tolerates_its_taint(tailor):
    outcome = tailor.prove(acme_platform.spot, POD, pool="spot-large")
    outcome.assert_changes(
        {
            "spec.nodeSelector": {"acme.example.com/pool": "spot-large"},
            "spec.tolerations[1]": {
                "key": "acme.example.com/spot",
                "operator": "Exists",
                "effect": "NoSchedule",
            },
        }
    )


def test_cost_centre_labels_the_object_with_its_project(tailor):
    outcome = tailor.prove(acme_platform.cost_centre, POD, task=TaskContext(project="speech"))
    outcome.assert_changes({"metadata.labels": {"acme.example.com/cost-centre": "speech"}})


def test_cost_centre_leaves_what_has_no_project(tailor):
    task = TaskContext(project=None)
    tailor.prove(acme_platform.cost_centre, POD, task=task).assert_unchanged()


def test_ndots_takes_the_place_of_the_old_value_and_keeps_other_options(tailor):
    outcome = tailor.prove(acme_platform.ndots, POD)
    outcome.assert_changes({"spec.dnsConfig.options[1].value": "2"})


def test_a_step_can_pick_a_role_of_a_training_run(tailor):
    outcome = tailor.prove(acme_platform.spot, TRAINING_RUN, when={"role": "evaluator"})
    assert outcome["spec.trainer.template.spec.nodeSelector"] is None
    assert outcome["spec.evaluator.template.spec.nodeSelector"] == {"acme.example.com/pool": "spot"}


CHAIN = """
chains:
  default:
    steps:
      - use: acme_platform.spot
        when: {domain: development}
      - use: image
        with: {image: "%s"}
"""


@pytest.mark.parametrize("image", ["train:1", "train@sha256:" + "0" * 64, "host:5000/train:1"])
def test_images_with_a_fixed_tag_pass(tailor, image):
    outcome = tailor.chain(CHAIN % image).prove(POD, domain="production")
    outcome.assert_changes({"spec.containers[main].image": image})


@pytest.mark.parametrize("image", ["train", "train:latest", "host:5000/train"])
def test_images_that_may_be_another_tomorrow_are_refused(tailor, image):
    with pytest.raises(StepError, match="no fixed tag"):
        tailor.chain(CHAIN % image).run(POD, domain="production")
