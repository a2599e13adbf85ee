package main

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	kubeerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/event"
)

const denial = `admission webhook "kubetailor.dev" denied the request: no`

func (h *harness) deny() {
	h.flyte.PrependReactor("create", "flyteworkflows", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New(denial)
	})
}

func TestADeniedLaunchPlanHasFailedAtOnce(t *testing.T) {
	h := start(t)
	h.register()
	h.deny()
	created, err := h.admin.CreateExecution(t.Context(), request(planID("plan")))
	must(t, err)
	closure := h.execution(created.GetId()).GetClosure()
	if closure.GetPhase() != core.WorkflowExecution_FAILED {
		t.Errorf("phase: %v", closure.GetPhase())
	}
	failure := closure.GetError()
	if failure.GetCode() != "Internal" || failure.GetKind() != core.ExecutionError_SYSTEM ||
		failure.GetMessage() != "failed to create workflow in propeller "+denial {
		t.Errorf("error: %v", failure)
	}
}

func TestADeniedTaskFailsTheCall(t *testing.T) {
	h := start(t)
	h.register()
	h.deny()
	named := request(taskID("one"))
	named.Name = "denied"
	_, err := h.admin.CreateExecution(t.Context(), named)
	wantError(t, err, codes.Internal, "failed to create workflow in propeller "+denial)
	_, err = h.admin.GetExecution(t.Context(), &admin.WorkflowExecutionGetRequest{Id: executionID("denied")})
	wantError(t, err, codes.NotFound, "")
}

func TestNamesOfExecutions(t *testing.T) {
	h := start(t)
	h.register()
	created, err := h.admin.CreateExecution(t.Context(), request(planID("plan")))
	must(t, err)
	if name := created.GetId().GetName(); !regexp.MustCompile(`^a[bcdfghjklmnpqrstvwxz2456789]{19}$`).MatchString(name) {
		t.Errorf("generated: %s", name)
	}
	named := request(planID("plan"))
	named.Name = "mine"
	if got := h.launch(named); got.Name != "mine" || got.Labels["execution-id"] != "mine" || got.ExecutionID.GetName() != "mine" {
		t.Errorf("got %s %v", got.Name, got.Labels)
	}
	_, err = h.admin.CreateExecution(t.Context(), named)
	wantError(t, err, codes.AlreadyExists, "mine")
}

func TestAFlyteWorkflow(t *testing.T) {
	h := start(t)
	h.register()
	got := h.launch(request(planID("plan")))
	if got.Namespace != namespace || !slices.Equal(got.Finalizers, []string{"flyte.org/finalizer"}) ||
		got.WorkflowMeta.EventVersion != 2 || got.AcceptedAt == nil {
		t.Errorf("got %+v", got.ObjectMeta)
	}
	labels := map[string]string{
		"domain": development, "execution-id": got.Name, "project": project, "workflow-name": "wf",
		"shard-key": got.Labels["shard-key"],
	}
	wantMap(t, "labels", got.Labels, labels)
	wantMap(t, "annotations", got.Annotations, nil)
	config := got.ExecutionConfig
	if config.MaxParallelism != 25 || config.Interruptible != nil || config.EnvironmentVariables != nil ||
		config.TaskResources.Requests.CPU.String() != "2" || config.TaskResources.Limits.Memory.String() != "1Gi" {
		t.Errorf("got %+v", config)
	}
	if got.WorkflowSpec == nil || len(got.Tasks) != 1 || got.WorkflowClosureReference != "" || got.Inputs == nil {
		t.Error("the closure is not inline")
	}
	if _, err := h.core.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAnOffloadedClosure(t *testing.T) {
	h := start(t, func(c *config) {
		c.FlyteAdmin.UseOffloadedWorkflowClosure, c.FlyteAdmin.UseOffloadedInputs = true, true
	})
	h.register()
	got := h.launch(request(planID("plan")))
	if got.WorkflowSpec != nil || got.Tasks != nil || got.Inputs != nil ||
		got.WorkflowClosureReference != "s3://flyte/metadata/admin/flytesnacks/development/wf/v1" ||
		got.OffloadedInputs.String() != "s3://flyte/metadata/flytesnacks/development/"+got.Name+"/inputs" {
		t.Errorf("got %s, %s, %v", got.WorkflowClosureReference, got.OffloadedInputs, got.WorkflowSpec)
	}
}

func TestASingleTask(t *testing.T) {
	h := start(t)
	long := "package.module_with_a_rather_long_name.and_another_module_of_that_kind.function"
	must(t, h.createTask(taskSpec(long, func(task *core.TaskTemplate) { task.Metadata.Retries.Retries = 2 })))
	got := h.launch(request(taskID(long)))
	if got.ID != "flytesnacks:development:.flytegen."+long {
		t.Errorf("workflow: %s", got.ID)
	}
	nodeID := "itharatherlongnameandanothermoduleofthatkindfunction"
	node, ok := got.Nodes[nodeID]
	if !ok || node.Name != nodeID {
		t.Fatalf("nodes: %v", got.Nodes)
	}
	if *node.RetryStrategy.MinAttempts != 3 {
		t.Errorf("attempts: %d", *node.RetryStrategy.MinAttempts)
	}
	if label := got.Labels["workflow-name"]; !strings.HasPrefix(label, "flytegen-package-module-with") || len(label) > 63 {
		t.Errorf("label: %s", label)
	}
	h.launch(request(taskID(long)))
	ids, err := h.admin.ListWorkflowIds(t.Context(), &admin.NamedEntityIdentifierListRequest{Project: project, Domain: development, Limit: 9})
	must(t, err)
	if len(ids.GetEntities()) != 0 {
		t.Errorf("listed: %v", ids)
	}
}

func TestATaskThatSaysNothingOfRetriesHasThree(t *testing.T) {
	h := start(t)
	must(t, h.createTask(taskSpec("one", func(task *core.TaskTemplate) { task.Metadata.Retries = nil })))
	got := h.launch(request(taskID("one")))
	if attempts := *got.Nodes["one"].RetryStrategy.MinAttempts; attempts != 4 {
		t.Errorf("attempts: %d", attempts)
	}
}

func TestTheSecurityOfTheFirstLaunchOfATaskIsNotThatOfTheSecond(t *testing.T) {
	h := start(t)
	must(t, h.createTask(taskSpec("one")))
	first := h.launch(request(taskID("one"), func(spec *admin.ExecutionSpec) { spec.SecurityContext = securityFrom("first") }))
	if first.ServiceAccountName != "first" {
		t.Errorf("got %s", first.ServiceAccountName)
	}
	if second := h.launch(request(taskID("one"))); second.ServiceAccountName != "" {
		t.Errorf("got %s", second.ServiceAccountName)
	}
}

func TestARelaunchReusesTheStoredSpec(t *testing.T) {
	h := start(t)
	h.register(func(spec *admin.LaunchPlanSpec) { spec.DefaultInputs = defaults("x", integer(7)) })
	launched := request(planID("plan"), labelled(map[string]string{"a": "1"}), annotated(map[string]string{"b": "2"}), func(spec *admin.ExecutionSpec) {
		spec.OverwriteCache = true
	})
	created, err := h.admin.CreateExecution(t.Context(), launched)
	must(t, err)
	again, err := h.admin.RelaunchExecution(t.Context(), &admin.ExecutionRelaunchRequest{Id: created.GetId(), Name: "again"})
	must(t, err)
	got := h.flyteWorkflow(again.GetId())
	wantMap(t, "labels", userMap(got.Labels), map[string]string{"a": "1"})
	wantMap(t, "annotations", got.Annotations, map[string]string{"b": "2"})
	if got.ExecutionConfig.OverwriteCache {
		t.Error("overwrite_cache is the relaunch's")
	}
	if x := got.Inputs.GetLiterals()["x"].GetScalar().GetPrimitive().GetInteger(); x != 1 {
		t.Errorf("x=%d", x)
	}
	metadata := h.execution(again.GetId()).GetSpec().GetMetadata()
	if metadata.GetMode() != admin.ExecutionMetadata_RELAUNCH || metadata.GetReferenceExecution().GetName() != created.GetId().GetName() {
		t.Errorf("metadata: %v", metadata)
	}
	if mode := h.execution(created.GetId()).GetSpec().GetMetadata().GetMode(); mode != admin.ExecutionMetadata_MANUAL {
		t.Errorf("the first one is now %v", mode)
	}
	_, err = h.admin.RelaunchExecution(t.Context(), &admin.ExecutionRelaunchRequest{Id: executionID("none")})
	wantError(t, err, codes.NotFound, "")
}

func TestTerminate(t *testing.T) {
	h := start(t)
	h.register()
	created, err := h.admin.CreateExecution(t.Context(), request(planID("plan")))
	must(t, err)
	terminate := &admin.ExecutionTerminateRequest{Id: created.GetId(), Cause: "enough"}
	_, err = h.admin.TerminateExecution(t.Context(), terminate)
	must(t, err)
	closure := h.execution(created.GetId()).GetClosure()
	if closure.GetPhase() != core.WorkflowExecution_ABORTING || closure.GetAbortMetadata().GetCause() != "enough" {
		t.Errorf("closure: %v", closure)
	}
	_, err = h.flyte.FlyteworkflowV1alpha1().FlyteWorkflows(namespace).
		Get(t.Context(), created.GetId().GetName(), metav1.GetOptions{})
	if !kubeerrors.IsNotFound(err) {
		t.Errorf("left in the cluster: %v", err)
	}
	_, err = h.admin.CreateWorkflowEvent(t.Context(), workflowEvent(created.GetId(), core.WorkflowExecution_ABORTED))
	must(t, err)
	_, err = h.admin.TerminateExecution(t.Context(), terminate)
	wantError(t, err, codes.FailedPrecondition, "already terminated")
	_, err = h.admin.TerminateExecution(t.Context(), &admin.ExecutionTerminateRequest{Id: executionID("none")})
	wantError(t, err, codes.NotFound, "")
}

func TestAChildLaunch(t *testing.T) {
	h := start(t)
	h.register(func(spec *admin.LaunchPlanSpec) {
		spec.Labels = &admin.Labels{Values: map[string]string{"plan": "ignored"}}
	})
	parent, err := h.admin.CreateExecution(t.Context(), request(planID("plan"), labelled(map[string]string{"team": "a"})))
	must(t, err)
	node := &core.NodeExecutionIdentifier{ExecutionId: parent.GetId(), NodeId: "n0"}
	// As Propeller does: the parent's labels without the shard key.
	labels := h.flyteWorkflow(parent.GetId()).Labels
	delete(labels, "shard-key")
	child := request(planID("plan"), labelled(labels), func(spec *admin.ExecutionSpec) {
		spec.Metadata = &admin.ExecutionMetadata{
			Mode: admin.ExecutionMetadata_CHILD_WORKFLOW, Nesting: 7, ParentNodeExecution: node,
		}
	})
	_, err = h.admin.CreateExecution(t.Context(), child)
	wantError(t, err, codes.NotFound, "node execution")
	_, err = h.admin.CreateNodeEvent(t.Context(), nodeEvent(node, core.NodeExecution_QUEUED))
	must(t, err)
	created, err := h.admin.CreateExecution(t.Context(), child)
	must(t, err)
	got := h.flyteWorkflow(created.GetId())
	if got.Name == parent.GetId().GetName() || got.Labels["execution-id"] != parent.GetId().GetName() ||
		got.Labels["team"] != "a" || got.Labels["plan"] != "" || got.Labels["shard-key"] == "" {
		t.Errorf("labels: %v", got.Labels)
	}
	if nesting := h.execution(created.GetId()).GetSpec().GetMetadata().GetNesting(); nesting != 1 {
		t.Errorf("nesting: %d", nesting)
	}
	must(t, err)
	said := nodeEvent(node, core.NodeExecution_RUNNING)
	said.Event.TargetMetadata = &event.NodeExecutionEvent_WorkflowNodeMetadata{
		WorkflowNodeMetadata: &event.WorkflowNodeMetadata{ExecutionId: created.GetId()},
	}
	_, err = h.admin.CreateNodeEvent(t.Context(), said)
	must(t, err)
	found, err := h.admin.GetNodeExecution(t.Context(), &admin.NodeExecutionGetRequest{Id: node})
	must(t, err)
	if found.GetClosure().GetWorkflowNodeMetadata().GetExecutionId().GetName() != created.GetId().GetName() {
		t.Errorf("closure: %v", found.GetClosure())
	}
}

func TestAWorkflowOfALaunchPlan(t *testing.T) {
	h := start(t)
	h.register()
	_, err := h.admin.CreateWorkflow(t.Context(), workflowSpec("outer", launchPlanNode("plan")))
	must(t, err)
	must(t, h.createPlan("outer", "outer"))
	got := h.launch(request(planID("outer")))
	if reference := got.Nodes["n0"].WorkflowNode.LaunchPlanRefID; reference.GetName() != "plan" {
		t.Errorf("got %v", reference)
	}
	_, err = h.admin.CreateWorkflow(t.Context(), workflowSpec("lost", launchPlanNode("none")))
	wantError(t, err, codes.InvalidArgument, "failed to compile workflow")
}

func TestASkippedLaunchWhereTooManyRun(t *testing.T) {
	h := start(t)
	h.register(func(spec *admin.LaunchPlanSpec) {
		spec.ConcurrencyPolicy = &admin.ConcurrencyPolicy{
			Max: 1, Behavior: admin.ConcurrencyLimitBehavior_CONCURRENCY_LIMIT_BEHAVIOR_SKIP,
		}
	})
	created, err := h.admin.CreateExecution(t.Context(), request(planID("plan")))
	must(t, err)
	_, err = h.admin.CreateWorkflowEvent(t.Context(), workflowEvent(created.GetId(), core.WorkflowExecution_RUNNING))
	must(t, err)
	_, err = h.admin.CreateExecution(t.Context(), request(planID("plan")))
	wantError(t, err, codes.AlreadyExists, "concurrency limit (1) reached for launch plan plan")
}

func TestManyAtOnce(t *testing.T) {
	h := start(t)
	h.register()
	_, err := h.admin.UpdateProject(t.Context(), &admin.Project{
		Id: project, Labels: &admin.Labels{Values: map[string]string{"team": "project"}},
	})
	must(t, err)
	const each = 20
	var group errgroup.Group
	for range each {
		for _, entity := range []*core.Identifier{planID("plan"), taskID("one")} {
			group.Go(func() error {
				created, err := h.admin.CreateExecution(t.Context(), request(entity, labelled(map[string]string{"a": "1"})))
				if err != nil {
					return err
				}
				_, err = h.admin.CreateWorkflowEvent(t.Context(), workflowEvent(created.GetId(), core.WorkflowExecution_RUNNING))
				return err
			})
			group.Go(func() error {
				_, err := h.admin.ListExecutions(t.Context(), &admin.ResourceListRequest{
					Id: &admin.NamedEntityIdentifier{Project: project, Domain: development}, Limit: 100,
				})
				return err
			})
		}
	}
	must(t, group.Wait())
	listed, err := h.admin.ListExecutions(t.Context(), &admin.ResourceListRequest{
		Id: &admin.NamedEntityIdentifier{Project: project, Domain: development}, Limit: 100, Filters: "eq(phase,RUNNING)",
	})
	must(t, err)
	if got := len(listed.GetExecutions()); got != 2*each {
		t.Errorf("got %d", got)
	}
}
