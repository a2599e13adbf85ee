"""The OpenAPI schemas of Kubernetes, each read once."""

from __future__ import annotations

import functools
import re
from typing import Any, Final

import kubernetes_validate
from jsonschema import Draft202012Validator
from kubernetes_validate.utils import schema_contents
from referencing import Registry, Resource

__all__ = ["check_core"]

VERSION: Final = kubernetes_validate.latest_version()
_FOLDER: Final = f"kubernetes-json-schema/v{VERSION}-local-strict"


def check_core(obj: Any) -> None:
    """Fail unless an object of Kubernetes' own is what its schema says, with no other field.

    Raises:
        jsonschema.ValidationError: it is not.
    """
    _validator(obj["apiVersion"], obj["kind"]).validate(obj)


@functools.cache
def _validator(api_version: str, kind: str) -> Draft202012Validator:
    # The files are named as `kubernetes_validate.validate` finds them, which reads them each time.
    api = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    schema = schema_contents(f"{_FOLDER}/{kind.lower()}-{api}.json", VERSION)
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ _definitions())


@functools.cache
def _definitions() -> Registry[Any]:
    definitions = schema_contents(f"{_FOLDER}/_definitions.json", VERSION)
    return Resource.from_contents(definitions) @ Registry()
