"""One transformer for each pool of the cluster, made at run time."""

from kubetailor.registry import Pod, RegisterTransformer, hookimpl


@hookimpl
def register_transformers(register: RegisterTransformer) -> None:
    for pool in ("small", "large"):

        def choose(pod: Pod, *, pool: str = pool) -> None:
            """Let the pods run in a pool."""
            pod.select_node("example.com/pool", pool)

        register(choose, name=pool)
