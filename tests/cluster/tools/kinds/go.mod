module kubetailor.dev/tools/kinds

go 1.26.0

// Nothing is imported, only files are taken from them: `go mod tidy` would drop them all.
require (
	github.com/argoproj/argo-workflows/v4 v4.0.5
	github.com/kserve/kserve v0.15.0
	github.com/kubeflow/spark-operator/v2 v2.3.0
	github.com/kubeflow/trainer/v2 v2.2.1
	github.com/project-codeflare/appwrapper v1.1.2
	github.com/ray-project/kuberay/ray-operator v1.5.0
	sigs.k8s.io/jobset v0.11.1
	sigs.k8s.io/lws v0.7.0
)
