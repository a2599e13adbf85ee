module kubetailor.dev/tools/crds

go 1.26

// Nothing is imported, only files are taken from them: `go mod tidy` would drop both.
require (
	github.com/cert-manager/cert-manager v1.18.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
