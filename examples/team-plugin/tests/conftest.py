pytest_plugins = "kubetailor.registry.testing"
