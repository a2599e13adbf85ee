package main

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytestdlib/storage"
)

func (s *adminServer) execution(id *core.WorkflowExecutionIdentifier) (execution, error) {
	found, ok := s.store.executions.get(executionKey(id))
	if !ok {
		return execution{}, notFound("execution", id)
	}
	return found, nil
}

func (s *adminServer) GetExecution(
	_ context.Context, request *admin.WorkflowExecutionGetRequest,
) (*admin.Execution, error) {
	if err := validateExecutionID(request.GetId()); err != nil {
		return nil, err
	}
	found, err := s.execution(request.GetId())
	return found.Execution, err
}

// ListExecutions leaves out archived executions unless a filter names the state
// (flyteadmin/pkg/manager/impl/execution_manager.go:1776, 2147).
func (s *adminServer) ListExecutions(
	_ context.Context, request *admin.ResourceListRequest,
) (*admin.ExecutionList, error) {
	rows, err := inScope(s.store.executions.list(), executionColumns, request.GetId(), request.GetLimit())
	if err != nil {
		return nil, err
	}
	found, token, err := query(rows, executionColumns, request, "")
	if err != nil {
		return nil, err
	}
	listed := &admin.ExecutionList{Token: token}
	for _, row := range found {
		listed.Executions = append(listed.Executions, row.Execution)
	}
	return listed, nil
}

// TerminateExecution marks an execution as aborting and deletes its FlyteWorkflow. Propeller then ends what
// runs, and its event makes the execution aborted.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:1912, transformers/execution.go:350.
func (s *adminServer) TerminateExecution(
	ctx context.Context, request *admin.ExecutionTerminateRequest,
) (*admin.ExecutionTerminateResponse, error) {
	id := request.GetId()
	if err := validateExecutionID(id); err != nil {
		return nil, err
	}
	namespace := ""
	err := s.store.executions.change(executionKey(id), func(row execution, found bool) (execution, error) {
		if !found {
			return row, notFound("execution", id)
		}
		if phase := row.GetClosure().GetPhase(); isExecutionTerminal(phase) {
			return row, alreadyTerminal(phase.String(), "Cannot abort an already terminated workflow execution")
		}
		namespace = row.GetSpec().GetMetadata().GetSystemMetadata().GetNamespace()
		row.Execution = proto.CloneOf(row.Execution)
		row.Closure.Phase = core.WorkflowExecution_ABORTING
		row.Closure.OutputResult = &admin.ExecutionClosure_AbortMetadata{
			AbortMetadata: &admin.AbortMetadata{Cause: request.GetCause()},
		}
		return row, nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.cluster.delete(ctx, namespace, id.GetName()); err != nil {
		return nil, status.Errorf(codes.Internal, "failed to terminate execution: %v with err %v", id, err)
	}
	return &admin.ExecutionTerminateResponse{}, nil
}

// isExecutionTerminal: flyteadmin/pkg/common/executions.go:20.
func isExecutionTerminal(phase core.WorkflowExecution_Phase) bool {
	return slices.Contains([]core.WorkflowExecution_Phase{
		core.WorkflowExecution_SUCCEEDED, core.WorkflowExecution_FAILED,
		core.WorkflowExecution_TIMED_OUT, core.WorkflowExecution_ABORTED,
	}, phase)
}

// GetExecutionData gives the inputs and outputs whole, and no signed URLs, which is FlyteAdmin's default
// (flyteadmin/pkg/manager/impl/execution_manager.go:1705, util/data.go:32).
func (s *adminServer) GetExecutionData(
	ctx context.Context, request *admin.WorkflowExecutionGetDataRequest,
) (*admin.WorkflowExecutionGetDataResponse, error) {
	found, err := s.execution(request.GetId())
	if err != nil {
		return nil, err
	}
	return &admin.WorkflowExecutionGetDataResponse{
		Inputs: &admin.UrlBlob{}, Outputs: &admin.UrlBlob{},
		FullInputs:  s.read(ctx, found.inputs),
		FullOutputs: s.read(ctx, storage.DataReference(found.GetClosure().GetOutputs().GetUri())),
	}, nil
}
