"""``kubetailor launch``, ``override`` and ``execution``."""
