"""What Kubernetes would refuse, checked on the parts that a chain changed."""

from kubetailor.workloads.validation.walk import validate

__all__ = ["validate"]
