package main

import (
	"context"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytepropeller/pkg/apis/flyteworkflow/v1alpha1"
	"github.com/flyteorg/flyte/flytepropeller/pkg/compiler/transformers/k8s"
	"github.com/flyteorg/flyte/flytestdlib/storage"
)

// finalizer is Propeller's (flytepropeller/pkg/controller/controller.go:65).
const finalizer = "flyte.org/finalizer"

// prepared is a FlyteWorkflow that is ready but for what Flyte's compiler puts in it.
type prepared struct {
	config   *admin.WorkflowExecutionConfig
	workflow *v1alpha1.FlyteWorkflow
	closure  *core.CompiledWorkflowClosure
	id       *core.WorkflowExecutionIdentifier
}

// prepare decides all that FlyteAdmin decides of a FlyteWorkflow: labels, annotations, permissions, limits.
// Source: flyteadmin/pkg/workflowengine/impl/prepare_execution.go:118, and for what goes in,
// flyteadmin/pkg/manager/impl/execution_manager.go:458, 901.
func (s *adminServer) prepare(
	id *core.WorkflowExecutionIdentifier, request *admin.ExecutionCreateRequest, run launched,
	inputs storage.DataReference, acceptedAt time.Time,
) (prepared, error) {
	platform := s.platformResources(run.workflow.GetId())
	closure := proto.CloneOf(run.workflow.GetClosure().GetCompiledWorkflow())
	for _, task := range closure.GetTasks() {
		setTaskDefaults(task.GetTemplate(), platform)
	}
	config := s.executionConfigOf(request, run.plan)
	labels, annotations := config.GetLabels().GetValues(), config.GetAnnotations().GetValues()
	if run.plan != nil {
		most := s.config.Registration
		if err := checkEntries(labels, "labels", most.MaxLabelEntries); err != nil {
			return prepared{}, err
		}
		if err := checkEntries(annotations, "annotations", most.MaxAnnotationEntries); err != nil {
			return prepared{}, err
		}
	}
	labels = s.addProjectLabels(request.GetProject(), labels)
	at := metav1.NewTime(acceptedAt)
	object := &v1alpha1.FlyteWorkflow{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceOf(id), Labels: maps.Clone(labels), Annotations: maps.Clone(annotations),
			Finalizers: []string{finalizer},
		},
		ExecutionID:     v1alpha1.WorkflowExecutionIdentifier{WorkflowExecutionIdentifier: id},
		AcceptedAt:      &at,
		WorkflowMeta:    &v1alpha1.WorkflowMeta{EventVersion: v1alpha1.EventVersion(s.config.FlyteAdmin.EventVersion)},
		ExecutionConfig: executionOverrides(config, platform, recovered(request.GetSpec().GetMetadata())),
	}
	if config.GetRawOutputDataConfig() != nil {
		object.RawOutputDataConfig = v1alpha1.RawOutputDataConfig{RawOutputDataConfig: config.GetRawOutputDataConfig()}
	}
	s.addPermissions(object, config.GetSecurityContext())
	if s.config.FlyteAdmin.UseOffloadedWorkflowClosure {
		object.WorkflowClosureReference = run.workflow.closure
	}
	if s.config.FlyteAdmin.UseOffloadedInputs {
		object.OffloadedInputs = inputs
	}
	return prepared{config: config, workflow: object, closure: closure, id: id}, nil
}

// namespaceOf is where executions of a project and domain run, by FlyteAdmin's default template
// (flyteadmin/pkg/runtime/namespace_config_provider.go:13).
func namespaceOf(id *core.WorkflowExecutionIdentifier) string {
	return id.GetProject() + "-" + id.GetDomain()
}

func recovered(metadata *admin.ExecutionMetadata) *core.WorkflowExecutionIdentifier {
	if metadata.GetMode() == admin.ExecutionMetadata_RECOVERED {
		return metadata.GetReferenceExecution()
	}
	return nil
}

// addPermissions writes the role into the annotation roleNameKey, unless the user gave that one, and the
// service account into the object (prepare_execution.go:30; user annotations are added after it, :144).
func (s *adminServer) addPermissions(object *v1alpha1.FlyteWorkflow, security *core.SecurityContext) {
	object.SecurityContext = *proto.CloneOf(security)
	identity := security.GetRunAs()
	if role := identity.GetIamRole(); role != "" {
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		key := s.config.FlyteAdmin.RoleNameKey
		if _, given := object.Annotations[key]; !given {
			object.Annotations[key] = role
		}
	}
	object.ServiceAccountName = identity.GetK8SServiceAccount()
}

// executionOverrides: prepare_execution.go:48. Environment variables that no source sets stay absent, and so
// does interruptible, which would overwrite what tasks say.
func executionOverrides(
	config *admin.WorkflowExecutionConfig, platform taskResources, recovered *core.WorkflowExecutionIdentifier,
) v1alpha1.ExecutionConfig {
	overrides := v1alpha1.ExecutionConfig{
		TaskPluginImpls:   map[string]v1alpha1.TaskPluginOverride{},
		RecoveryExecution: v1alpha1.WorkflowExecutionIdentifier{WorkflowExecutionIdentifier: recovered},
		MaxParallelism:    uint32(config.GetMaxParallelism()),
		OverwriteCache:    config.GetOverwriteCache(),
		TaskResources: v1alpha1.TaskResources{
			Requests: resourceSpec(platform.Defaults), Limits: resourceSpec(platform.Limits),
		},
	}
	if config.GetInterruptible() != nil {
		interruptible := config.GetInterruptible().GetValue()
		overrides.Interruptible = &interruptible
	}
	if config.GetEnvs() != nil {
		overrides.EnvironmentVariables = map[string]string{}
		for _, env := range config.GetEnvs().GetValues() {
			overrides.EnvironmentVariables[env.GetKey()] = env.GetValue()
		}
	}
	return overrides
}

func resourceSpec(set resourceSet) v1alpha1.TaskResourceSpec {
	return v1alpha1.TaskResourceSpec{
		CPU: set.CPU, Memory: set.Memory, EphemeralStorage: set.EphemeralStorage, GPU: set.GPU,
	}
}

// submit builds the object with Flyte's own builder, lays what was prepared over it and creates it. User
// labels win over the builder's (prepare_execution.go:142).
// Source: flyteadmin/pkg/workflowengine/impl/k8s_executor.go:36.
func (s *adminServer) submit(ctx context.Context, with prepared, run launched) error {
	object := with.workflow
	built, err := k8s.BuildFlyteWorkflow(with.closure, run.inputs, with.id, object.Namespace)
	if err != nil {
		return err
	}
	object.TypeMeta, object.Name, object.GenerateName = built.TypeMeta, built.Name, built.GenerateName
	labels := built.Labels
	maps.Copy(labels, object.Labels)
	object.Labels = labels
	object.NodeDefaults = built.NodeDefaults
	if object.WorkflowClosureReference == "" {
		object.WorkflowSpec, object.SubWorkflows, object.Tasks = built.WorkflowSpec, built.SubWorkflows, built.Tasks
	}
	if object.OffloadedInputs == "" {
		object.Inputs = built.Inputs
	}
	if err := s.cluster.create(ctx, object); err != nil {
		return status.Errorf(codes.Internal, "failed to create workflow in propeller %v", err)
	}
	return nil
}
