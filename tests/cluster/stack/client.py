"""A client of the API server, for tests: plain JSON in and out."""

from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from typing import Any, Final

import requests
import yaml

from .process import wait_for

__all__ = ["ApiError", "Client"]

_SECONDS: Final = 60


class ApiError(Exception):
    """The API server refused.

    Attributes:
        code: the HTTP status.
        message: its message.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code: int = code
        self.message: str = message


class Client:
    """Objects by apiVersion, kind, namespace and name. One connection for each thread."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._url: str = cluster["server"]
        self._authority: str = cluster["certificate-authority"]
        self._token: str = config["users"][0]["user"]["token"]
        self._headers: dict[str, str] = {"Authorization": f"Bearer {self._token}"}
        self._local = threading.local()
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    def impersonating(self, user: str, group: str) -> Client:
        """A client that acts as somebody else."""
        found = copy.copy(self)
        found._headers = {**self._headers, "Impersonate-User": user, "Impersonate-Group": group}
        found._local = threading.local()
        return found

    @property
    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.headers.update(self._headers)
            session.verify = self._authority
            session.trust_env = False
        return session

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> str:
        """One request; the body of its answer.

        Raises:
            ApiError: it was refused.
        """
        return self.answer(method, path, body, content_type=content_type, **query).text

    def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> requests.Response:
        """One request; its answer, headers and all.

        Raises:
            ApiError: it was refused.
        """
        answer = self._session.request(
            method,
            self._url + path,
            params=query,
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            timeout=_SECONDS,
        )
        if answer.status_code >= 300:
            try:
                message = answer.json()["message"]
            except (ValueError, KeyError):
                message = answer.text
            raise ApiError(answer.status_code, message)
        return answer

    def path(self, api: str, kind: str, namespace: str | None = None, name: str = "") -> str:
        """The path of an object, or of all of a kind."""
        root = f"/apis/{api}" if "/" in api else f"/api/{api}"
        if (api, kind) not in self._resources:
            for found in json.loads(self.raw("GET", root))["resources"]:
                if "/" not in found["name"]:
                    self._resources[api, found["kind"]] = (found["name"], found["namespaced"])
        resource, namespaced = self._resources[api, kind]
        place = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{root}{place}/{resource}" + (f"/{name}" if name else "")

    def create(self, obj: dict[str, Any], **query: str) -> Any:
        """Create an object; it comes back as the API server keeps it."""
        path = self.path(obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace"))
        return json.loads(self.raw("POST", path, obj, **query))

    def get(self, api: str, kind: str, namespace: str | None, name: str) -> Any:
        """An object."""
        return json.loads(self.raw("GET", self.path(api, kind, namespace, name)))

    def list(self, api: str, kind: str, namespace: str | None = None, **query: str) -> list[Any]:
        """All objects of a kind; query is `labelSelector` and the like."""
        found = json.loads(self.raw("GET", self.path(api, kind, namespace), **query))
        items: list[Any] = found["items"]
        # The items of a list do not say what they are.
        return [{"apiVersion": api, "kind": kind, **item} for item in items]

    def patch(
        self,
        api: str,
        kind: str,
        namespace: str | None,
        name: str,
        patch: Any,
        subresource: str = "",
    ) -> Any:
        """Merge a patch into an object, or into its `status`."""
        path = self.path(api, kind, namespace, name) + (f"/{subresource}" if subresource else "")
        text = self.raw("PATCH", path, patch, content_type="application/merge-patch+json")
        return json.loads(text)

    def replace(self, obj: dict[str, Any]) -> Any:
        """Replace an object."""
        metadata = obj["metadata"]
        path = self.path(
            obj["apiVersion"], obj["kind"], metadata.get("namespace"), metadata["name"]
        )
        return json.loads(self.raw("PUT", path, obj))

    def delete(self, api: str, kind: str, namespace: str | None, name: str) -> None:
        """Delete an object, if it is there."""
        try:
            self.raw("DELETE", self.path(api, kind, namespace, name))
        except ApiError as error:
            if error.code != 404:
                raise

    def namespace(self, name: str, **labels: str) -> str:
        """A namespace in which pods can be made, its service account and all."""
        self.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )
        wait_for(
            f"the service account of {name}",
            lambda: self.get("v1", "ServiceAccount", name, "default"),
        )
        return name
