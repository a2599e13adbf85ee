"""Where the speech team's tasks run."""

from kubetailor.registry import Pod, transformer


@transformer
def spot(pod: Pod, *, pool: str = "spot") -> None:
    """Let the task run on the team's spot pool."""
    pod.select_node("example.com/pool", pool)
    pod.tolerate("example.com/spot", effect="NoSchedule")
