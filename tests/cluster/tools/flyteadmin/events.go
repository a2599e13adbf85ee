package main

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/event"
)

// CreateWorkflowEvent records what Propeller says of an execution. A phase that is recorded already, a step
// back and a change of an ended execution are refused, each in the way that Propeller expects.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:1542.
func (s *adminServer) CreateWorkflowEvent(
	ctx context.Context, request *admin.WorkflowExecutionEventRequest,
) (*admin.WorkflowExecutionEventResponse, error) {
	said := request.GetEvent()
	if said.GetExecutionId() == nil {
		return nil, invalid("Workflow event handler request event doesn't have an execution id - %v", said)
	}
	if err := validateOutputData(said.GetOutputData()); err != nil {
		return nil, err
	}
	if said.GetOutputUri() == "" && said.GetOutputData() != nil {
		uri, err := s.offload(ctx, said.GetOutputData(), said.GetExecutionId(), "offloaded_outputs")
		if err != nil {
			return nil, err
		}
		said.OutputResult = &event.WorkflowExecutionEvent_OutputUri{OutputUri: uri.String()}
	}
	err := s.store.executions.change(executionKey(said.GetExecutionId()), func(row execution, found bool) (execution, error) {
		if !found {
			return row, notFound("execution", said.GetExecutionId())
		}
		if err := checkPhase(row.GetClosure().GetPhase(), said); err != nil {
			return row, err
		}
		row.Execution = proto.CloneOf(row.Execution)
		applyWorkflowEvent(row.GetClosure(), said)
		return row, nil
	})
	return &admin.WorkflowExecutionEventResponse{}, err
}

func checkPhase(now core.WorkflowExecution_Phase, said *event.WorkflowExecutionEvent) error {
	next, id := said.GetPhase(), said.GetExecutionId()
	switch {
	case next != core.WorkflowExecution_QUEUED && next == now:
		return alreadyExists("This phase %s was already recorded for workflow execution %v", now, id)
	case isExecutionTerminal(now):
		return alreadyTerminal(now.String(), "Invalid phase change from %s to %s for workflow execution %v", now, next, id)
	case now == core.WorkflowExecution_RUNNING && next == core.WorkflowExecution_QUEUED,
		now == core.WorkflowExecution_ABORTING && !isExecutionTerminal(next):
		return status.Errorf(codes.FailedPrecondition, "Cannot go from %s to %s for workflow execution %v", now, next, id)
	}
	return nil
}

// applyWorkflowEvent: flyteadmin/pkg/repositories/transformers/execution.go:221.
func applyWorkflowEvent(closure *admin.ExecutionClosure, said *event.WorkflowExecutionEvent) {
	closure.Phase, closure.UpdatedAt = said.GetPhase(), said.GetOccurredAt()
	if said.GetPhase() == core.WorkflowExecution_RUNNING {
		closure.StartedAt = said.GetOccurredAt()
	} else if isExecutionTerminal(said.GetPhase()) && closure.GetStartedAt() != nil {
		closure.Duration = since(closure.GetStartedAt().AsTime(), said.GetOccurredAt().AsTime())
	}
	switch {
	case said.GetOutputUri() != "":
		closure.OutputResult = &admin.ExecutionClosure_Outputs{Outputs: &admin.LiteralMapBlob{
			Data: &admin.LiteralMapBlob_Uri{Uri: said.GetOutputUri()},
		}}
	case said.GetError() != nil:
		closure.OutputResult = &admin.ExecutionClosure_Error{Error: said.GetError()}
	}
}
