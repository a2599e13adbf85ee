"""``kubetailor webhook``: the server, and what a cluster needs for it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import cast, get_args

import click

from kubetailor.plugins.cli.options import config_option, no_config
from kubetailor.plugins.cli.output import fail
from kubetailor.plugins.webhook.manifests import installation, manifests
from kubetailor.plugins.webhook.objects import CertificatesBy
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.registry.location import config_path
from kubetailor.workloads import InvalidObjectError, dump_yaml
from kubetailor.workloads.names import check_name

__all__ = ["webhook"]

_SERVER = ("uvicorn", "prometheus_client", "cryptography")


@click.group()
def webhook() -> None:
    """Tailor what is created in a cluster.

    By a mutating admission webhook.
    """


def _secret(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise click.BadParameter(f"expected NAMESPACE/NAME, found {text!r}")
    return namespace, name


@webhook.command()
@config_option
@click.option(
    "--host",
    default="0.0.0.0",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8443,
    show_default=True,
    help="The port to listen on; 0 for any that is free.",
)
@click.option(
    "--certificates",
    type=click.Path(path_type=Path),
    default=Path("/certificates"),
    show_default=True,
    metavar="DIR",
    help="The folder with tls.crt and tls.key; they are read again when they change.",
)
@click.option(
    "--self-signed",
    metavar="NAMESPACE/NAME",
    callback=_secret,
    help="Make the certificates here, keep them in this Secret, renew them, and let the webhook "
    "configuration of the same name trust them. In a cluster only.",
)
def serve(
    config: Path | None,
    host: str,
    port: int,
    certificates: Path,
    self_signed: tuple[str, str] | None,
) -> None:
    """Serve /mutate, /healthz, /readyz and /metrics by HTTPS.

    The config is read again when its file changes; one that cannot be used is refused and the old
    one stays. Logs are JSON lines on stdout.
    """
    if missing := [name for name in _SERVER if find_spec(name) is None]:
        fail(f"{', '.join(missing)} is not installed: pip install 'kubetailor[webhook]'")
    from kubetailor.plugins.webhook.serving import serve as run

    found = config_path(config)
    if found is None:
        raise no_config()
    run(found, host=host, port=port, certificates=certificates, self_signed=self_signed)


def _image(_: click.Context, __: click.Parameter, text: str) -> str:
    # A variable that is not set, most of the time.
    if not text or any(map(str.isspace, text)):
        raise click.BadParameter(f"expected an image, found {text!r}")
    return text


def _namespace(_: click.Context, __: click.Parameter, text: str) -> str:
    try:
        return check_name(text, "namespace")
    except InvalidObjectError as error:
        raise click.BadParameter(str(error)) from None


@webhook.command("manifests")
@config_option
@click.option(
    "--image",
    required=True,
    callback=_image,
    metavar="IMAGE",
    help="The image that has kubetailor[webhook].",
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="kubetailor-system",
    show_default=True,
    callback=_namespace,
    help="The namespace.",
)
@click.option(
    "--certificates",
    type=click.Choice(get_args(CertificatesBy)),
    default="self-signed",
    show_default=True,
    help="Who makes the certificates.",
)
def manifests_(config: Path | None, image: str, namespace: str, certificates: str) -> None:
    """Print all that a cluster needs, for `kubectl apply -f -`.

    The config, and plugin files beside it, become a ConfigMap.
    """
    found = config_path(config)
    if found is None:
        raise no_config()
    by = cast("CertificatesBy", certificates)
    found_installation = installation(load_tailor(found), image, namespace, by)
    click.echo(dump_yaml(manifests(found_installation)), nl=False)
