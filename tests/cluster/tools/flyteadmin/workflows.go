package main

import (
	"bytes"
	"context"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytepropeller/pkg/compiler"
	"github.com/flyteorg/flyte/flytepropeller/pkg/compiler/common"
	"github.com/flyteorg/flyte/flytestdlib/pbhash"
)

// startAndEnd are the nodes that the compiler adds to each workflow.
const startAndEnd = 2

// CreateWorkflow compiles a workflow with the registered tasks and launch plans that it refers to, and
// keeps it, here and in the bucket.
// Source: flyteadmin/pkg/manager/impl/workflow_manager.go:133.
func (s *adminServer) CreateWorkflow(
	ctx context.Context, request *admin.WorkflowCreateRequest,
) (*admin.WorkflowCreateResponse, error) {
	id := request.GetId()
	if err := validateID(id, core.ResourceType_WORKFLOW); err != nil {
		return nil, err
	}
	if err := s.validateProjectAndDomain(id.GetProject(), id.GetDomain()); err != nil {
		return nil, err
	}
	if request.GetSpec().GetTemplate() == nil {
		return nil, missing("spec")
	}
	request.Spec.Template.Id = id
	compiled, err := s.compile(request.GetSpec())
	if err != nil {
		return nil, invalid("failed to compile workflow for [%+v] with err: %v", id, err)
	}
	nodes := len(compiled.GetPrimary().GetTemplate().GetNodes()) - startAndEnd
	if most := s.config.Registration.MaxWorkflowNodes; most != 0 && nodes > most {
		return nil, invalid("number of nodes in workflow [%+v] exceeds limit (%v > %v)", id, nodes, most)
	}
	digest, err := pbhash.ComputeHash(ctx, compiled)
	if err != nil {
		return nil, err
	}
	if existing, ok := s.store.workflows.get(idKey(id)); ok {
		return nil, workflowExists(id, existing, digest, compiled)
	}
	closure := &admin.WorkflowClosure{CompiledWorkflow: compiled, CreatedAt: timestamppb.Now()}
	reference, err := s.write(ctx, closure,
		"metadata", "admin", id.GetProject(), id.GetDomain(), id.GetName(), id.GetVersion())
	if err != nil {
		return nil, err
	}
	row := workflow{
		Workflow: &admin.Workflow{
			Id: id, Closure: closure, ShortDescription: request.GetSpec().GetDescription().GetShortDescription(),
		},
		digest: digest, closure: reference,
	}
	if !s.store.workflows.create(idKey(id), row) {
		existing, _ := s.store.workflows.get(idKey(id))
		return nil, workflowExists(id, existing, digest, compiled)
	}
	return &admin.WorkflowCreateResponse{}, nil
}

// compile: flyteadmin/pkg/manager/impl/workflow_manager.go:64 (getCompiledWorkflow).
func (s *adminServer) compile(spec *admin.WorkflowSpec) (*core.CompiledWorkflowClosure, error) {
	needed, err := compiler.GetRequirements(spec.GetTemplate(), spec.GetSubWorkflows())
	if err != nil {
		return nil, err
	}
	// The compiler refuses nil, though a workflow may well have no tasks.
	tasks := []*core.CompiledTask{}
	for _, id := range needed.GetRequiredTaskIds() {
		found, err := s.task(id)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, proto.CloneOf(found.GetClosure().GetCompiledTask()))
	}
	var plans []common.InterfaceProvider
	for _, id := range needed.GetRequiredLaunchPlanIds() {
		found, err := s.launchPlan(id)
		if err != nil {
			return nil, err
		}
		plans = append(plans, compiler.NewLaunchPlanInterfaceProvider(found.LaunchPlan))
	}
	return compiler.CompileWorkflow(spec.GetTemplate(), spec.GetSubWorkflows(), tasks, plans)
}

// workflowExists: flyteadmin/pkg/errors/errors.go:162, 184.
func workflowExists(
	id *core.Identifier, existing workflow, digest []byte, compiled *core.CompiledWorkflowClosure,
) error {
	if bytes.Equal(existing.digest, digest) {
		return withDetail(alreadyExists("workflow with identical structure already exists"),
			&admin.CreateWorkflowFailureReason{Reason: &admin.CreateWorkflowFailureReason_ExistsIdenticalStructure{
				ExistsIdenticalStructure: &admin.WorkflowErrorExistsIdenticalStructure{Id: id},
			}})
	}
	return withDetail(differentStructure("workflow", id, existing.GetClosure().GetCompiledWorkflow(), compiled),
		&admin.CreateWorkflowFailureReason{Reason: &admin.CreateWorkflowFailureReason_ExistsDifferentStructure{
			ExistsDifferentStructure: &admin.WorkflowErrorExistsDifferentStructure{Id: id},
		}})
}

func (s *adminServer) GetWorkflow(_ context.Context, request *admin.ObjectGetRequest) (*admin.Workflow, error) {
	if err := validateID(request.GetId(), core.ResourceType_WORKFLOW); err != nil {
		return nil, err
	}
	found, err := s.workflow(request.GetId())
	return found.Workflow, err
}

func (s *adminServer) workflow(id *core.Identifier) (workflow, error) {
	found, ok := s.store.workflows.get(idKey(id))
	if !ok {
		return workflow{}, notFound("WORKFLOW", id)
	}
	return found, nil
}

// ListWorkflows gives each workflow's interface and nothing else of its closure
// (flyteadmin/pkg/repositories/transformers/workflow.go:60).
func (s *adminServer) ListWorkflows(
	_ context.Context, request *admin.ResourceListRequest,
) (*admin.WorkflowList, error) {
	rows, err := inScope(s.store.workflows.list(), workflowColumns, request.GetId(), request.GetLimit())
	if err != nil {
		return nil, err
	}
	found, token, err := query(rows, workflowColumns, request, "")
	if err != nil {
		return nil, err
	}
	listed := &admin.WorkflowList{Token: token}
	for _, row := range found {
		primary := row.GetClosure().GetCompiledWorkflow().GetPrimary()
		listed.Workflows = append(listed.Workflows, &admin.Workflow{
			Id: row.GetId(), ShortDescription: row.GetShortDescription(),
			Closure: &admin.WorkflowClosure{
				CreatedAt: row.GetClosure().GetCreatedAt(),
				CompiledWorkflow: &core.CompiledWorkflowClosure{Primary: &core.CompiledWorkflow{
					Template: &core.WorkflowTemplate{Interface: primary.GetTemplate().GetInterface()},
				}},
			},
		})
	}
	return listed, nil
}

// ListWorkflowIds leaves out the workflows that were made for single tasks, which FlyteAdmin marks as
// generated by the system (flyteadmin/pkg/manager/impl/util/single_task_execution.go:145).
func (s *adminServer) ListWorkflowIds(
	_ context.Context, request *admin.NamedEntityIdentifierListRequest,
) (*admin.NamedEntityIdentifierList, error) {
	rows := slices.DeleteFunc(s.store.workflows.list(), func(row workflow) bool { return isGenerated(row.GetId()) })
	return names(rows, workflowColumns, request)
}
