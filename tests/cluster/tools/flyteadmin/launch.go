package main

import (
	"context"
	"log"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

// CreateExecution launches a launch plan, or a task alone.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:1270.
func (s *adminServer) CreateExecution(
	ctx context.Context, request *admin.ExecutionCreateRequest,
) (*admin.ExecutionCreateResponse, error) {
	if len(request.GetInputs().GetLiterals()) == 0 {
		request.Inputs = request.GetSpec().GetInputs()
	}
	return s.launch(ctx, request)
}

// RelaunchExecution launches the stored spec and the stored inputs of an execution again. Only the name and
// overwrite_cache are new: labels and annotations cannot be changed.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:1294.
func (s *adminServer) RelaunchExecution(
	ctx context.Context, request *admin.ExecutionRelaunchRequest,
) (*admin.ExecutionCreateResponse, error) {
	existing, err := s.execution(request.GetId())
	if err != nil {
		return nil, err
	}
	spec := proto.CloneOf(existing.GetSpec())
	spec.Metadata.Mode = admin.ExecutionMetadata_RELAUNCH
	spec.Metadata.ReferenceExecution = existing.GetId()
	spec.OverwriteCache = request.GetOverwriteCache()
	inputs := &core.LiteralMap{}
	if err := s.data.ReadProtobuf(ctx, existing.userInputs, inputs); err != nil {
		return nil, err
	}
	return s.launch(ctx, &admin.ExecutionCreateRequest{
		Project: request.GetId().GetProject(), Domain: request.GetId().GetDomain(), Name: request.GetName(),
		Spec: spec, Inputs: inputs,
	})
}

// launched is what is run: a launch plan's workflow, or that of a single task, for which plan is nil.
type launched struct {
	workflow workflow
	plan     *admin.LaunchPlan
	inputs   *core.LiteralMap
}

// launchedBy looks up what a request launches and completes its inputs.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:458, 901.
func (s *adminServer) launchedBy(ctx context.Context, request *admin.ExecutionCreateRequest) (launched, error) {
	entity := request.GetSpec().GetLaunchPlan()
	if entity.GetResourceType() == core.ResourceType_TASK {
		of, err := s.task(entity)
		if err != nil {
			return launched{}, err
		}
		wrapped, plan, err := s.singleTask(ctx, request, of)
		if err != nil {
			return launched{}, err
		}
		inputs, err := executionInputs(request.GetInputs(), plan.GetSpec().GetFixedInputs(), plan.GetClosure().GetExpectedInputs())
		return launched{workflow: wrapped, inputs: inputs}, err
	}
	found, err := s.launchPlan(entity)
	if err != nil {
		return launched{}, err
	}
	plan := proto.CloneOf(found.LaunchPlan)
	inputs, err := executionInputs(request.GetInputs(), plan.GetSpec().GetFixedInputs(), plan.GetClosure().GetExpectedInputs())
	if err != nil {
		return launched{}, err
	}
	of, err := s.workflow(plan.GetSpec().GetWorkflowId())
	return launched{workflow: of, plan: plan, inputs: inputs}, err
}

func (s *adminServer) launch(
	ctx context.Context, request *admin.ExecutionCreateRequest,
) (*admin.ExecutionCreateResponse, error) {
	acceptedAt := time.Now()
	if err := s.validateExecutionRequest(request); err != nil {
		return nil, err
	}
	run, err := s.launchedBy(ctx, request)
	if err != nil {
		return nil, err
	}
	id := &core.WorkflowExecutionIdentifier{
		Project: request.GetProject(), Domain: request.GetDomain(), Name: request.GetName(),
	}
	if id.GetName() == "" {
		id.Name = generatedExecutionName()
	}
	inputs, err := s.offload(ctx, run.inputs, id, "inputs")
	if err != nil {
		return nil, err
	}
	userInputs, err := s.offload(ctx, request.GetInputs(), id, "user_inputs")
	if err != nil {
		return nil, err
	}
	spec := request.GetSpec()
	if spec.GetMetadata() == nil {
		spec.Metadata = &admin.ExecutionMetadata{}
	}
	spec.Metadata.Principal = ""
	if err := s.inheritFromParent(spec.GetMetadata()); err != nil {
		return nil, err
	}
	prepared, err := s.prepare(id, request, run, inputs, acceptedAt)
	if err != nil {
		return nil, err
	}
	if run.plan.GetSpec().GetConcurrencyPolicy() != nil {
		if err := s.checkConcurrency(run.plan); err != nil {
			return nil, err
		}
	}
	// Where the cluster refuses the FlyteWorkflow of a launch plan, the call succeeds and the execution has
	// failed; the launch of a task alone fails itself (execution_manager.go:642, 1124).
	refused := s.submit(ctx, prepared, run)
	if refused != nil && run.plan == nil {
		return nil, refused
	}
	row := newExecution(id, spec, prepared, run, refused)
	row.inputs, row.userInputs = inputs, userInputs
	if !s.store.executions.create(executionKey(id), row) {
		return nil, alreadyExists("value with matching execution already exists (%s)", id.GetName())
	}
	if refused != nil {
		log.Printf("execution %s:%s:%s failed at once: %v", id.GetProject(), id.GetDomain(), id.GetName(), refused)
	}
	return &admin.ExecutionCreateResponse{Id: id}, nil
}

// generatedExecutionName is the name of an execution that was given none: the letter a and 19 of the
// letters and digits of Kubernetes' own random names (flyteadmin/pkg/common/executions.go:11).
func generatedExecutionName() string {
	return "a" + rand.String(19)
}

// inheritFromParent sets the nesting of an execution that a node of another one launched; that node must be
// known. Source: flyteadmin/pkg/manager/impl/execution_manager.go:283.
func (s *adminServer) inheritFromParent(metadata *admin.ExecutionMetadata) error {
	node := metadata.GetParentNodeExecution()
	if node == nil {
		return nil
	}
	if _, err := s.nodeExecution(node); err != nil {
		return err
	}
	parent, err := s.execution(node.GetExecutionId())
	if err != nil {
		return err
	}
	metadata.Principal = parent.GetSpec().GetMetadata().GetPrincipal()
	metadata.Nesting = parent.GetSpec().GetMetadata().GetNesting() + 1
	return nil
}

// checkConcurrency counts the active executions of all versions of a launch plan
// (flyteadmin/pkg/manager/impl/execution_manager.go:1182).
func (s *adminServer) checkConcurrency(plan *admin.LaunchPlan) error {
	policy, id := plan.GetSpec().GetConcurrencyPolicy(), plan.GetId()
	active := int32(0)
	for _, row := range s.store.executions.list() {
		launched := row.GetSpec().GetLaunchPlan()
		switch row.GetClosure().GetPhase() {
		case core.WorkflowExecution_QUEUED, core.WorkflowExecution_RUNNING:
			if launched.GetName() == id.GetName() && row.GetId().GetProject() == id.GetProject() &&
				row.GetId().GetDomain() == id.GetDomain() {
				active++
			}
		}
	}
	if active >= policy.GetMax() &&
		policy.GetBehavior() == admin.ConcurrencyLimitBehavior_CONCURRENCY_LIMIT_BEHAVIOR_SKIP {
		return alreadyExists("concurrency limit (%d) reached for launch plan %s; skipping execution",
			policy.GetMax(), id.GetName())
	}
	return nil
}

// newExecution: flyteadmin/pkg/repositories/transformers/execution.go:62.
func newExecution(
	id *core.WorkflowExecutionIdentifier, spec *admin.ExecutionSpec, with prepared, run launched, refused error,
) execution {
	spec.Metadata.SystemMetadata = &admin.SystemMetadata{Namespace: with.workflow.Namespace}
	spec.SecurityContext = with.config.GetSecurityContext()
	if run.plan != nil {
		spec.MaxParallelism = with.config.GetMaxParallelism()
	}
	spec.Inputs = nil
	now := timestamppb.Now()
	closure := &admin.ExecutionClosure{
		CreatedAt: now, UpdatedAt: now, WorkflowId: run.workflow.GetId(),
		StateChangeDetails: &admin.ExecutionStateChangeDetails{
			State: admin.ExecutionState_EXECUTION_ACTIVE, Principal: spec.GetMetadata().GetPrincipal(), OccurredAt: now,
		},
	}
	if refused != nil {
		failure := &core.ExecutionError{Code: "Unknown", Message: refused.Error(), Kind: core.ExecutionError_SYSTEM}
		if known, ok := status.FromError(refused); ok {
			failure.Code, failure.Message = known.Code().String(), known.Message()
			if known.Code() == codes.InvalidArgument {
				failure.Kind = core.ExecutionError_USER
			}
		}
		closure.Phase = core.WorkflowExecution_FAILED
		closure.OutputResult = &admin.ExecutionClosure_Error{Error: failure}
	}
	return execution{Execution: &admin.Execution{Id: id, Spec: spec, Closure: closure}}
}
