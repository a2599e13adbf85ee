package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyteorg/flyte/flytepropeller/pkg/apis/flyteworkflow/v1alpha1"
	flyteclient "github.com/flyteorg/flyte/flytepropeller/pkg/client/clientset/versioned"
)

// cluster is where FlyteWorkflows are created and deleted.
type cluster struct {
	flyte flyteclient.Interface
	core  kubernetes.Interface
}

func newCluster(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	config.UserAgent = "flyteadmin"
	flyte, err := flyteclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{flyte: flyte, core: core}, nil
}

// create creates a FlyteWorkflow, and its namespace where it is missing: a namespace per project and domain
// is FlyteAdmin's doing too, by its cluster resource controller
// (flyteadmin/pkg/clusterresource/controller.go). One that is already there is none of create's business
// (flyteadmin/pkg/workflowengine/impl/k8s_executor.go:78).
func (c *cluster) create(ctx context.Context, workflow *v1alpha1.FlyteWorkflow) error {
	if err := c.ensureNamespace(ctx, workflow.Namespace); err != nil {
		return err
	}
	_, err := c.flyte.FlyteworkflowV1alpha1().FlyteWorkflows(workflow.Namespace).Create(ctx, workflow, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *cluster) ensureNamespace(ctx context.Context, name string) error {
	_, err := c.core.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if !errors.IsNotFound(err) {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = c.core.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// delete deletes a FlyteWorkflow; one that is gone already is no fault (k8s_executor.go:90).
func (c *cluster) delete(ctx context.Context, namespace, name string) error {
	background := metav1.DeletePropagationBackground
	err := c.flyte.FlyteworkflowV1alpha1().FlyteWorkflows(namespace).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: &background})
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
