package main

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/event"
)

// CreateNodeEvent records what Propeller says of a node; the first event makes its node execution.
// Source: flyteadmin/pkg/manager/impl/node_execution_manager.go:80, 125, 204.
func (s *adminServer) CreateNodeEvent(
	ctx context.Context, request *admin.NodeExecutionEventRequest,
) (*admin.NodeExecutionEventResponse, error) {
	said := request.GetEvent()
	if _, err := s.execution(said.GetId().GetExecutionId()); err != nil {
		return nil, err
	}
	if err := s.checkReferences(said); err != nil {
		return nil, err
	}
	if err := s.offloadNodeData(ctx, said); err != nil {
		return nil, err
	}
	err := s.store.nodeExecutions.change(nodeExecutionKey(said.GetId()), func(row nodeExecution, found bool) (nodeExecution, error) {
		if !found {
			return newNodeExecution(said), nil
		}
		now, next := row.GetClosure().GetPhase(), said.GetPhase()
		if now == next {
			return row, alreadyExists("This phase was already recorded %v for %+v", now, said.GetId())
		}
		if isNodeTerminal(now) {
			return row, alreadyTerminal(next.String(), "Invalid phase change from %s to %s for node execution %v", now, next, said.GetId())
		}
		row.NodeExecution = proto.CloneOf(row.NodeExecution)
		applyNodeEvent(&row, said)
		return row, nil
	})
	return &admin.NodeExecutionEventResponse{}, err
}

// checkReferences wants the executions that an event names to be known.
func (s *adminServer) checkReferences(said *event.NodeExecutionEvent) error {
	if parent := said.GetParentNodeMetadata(); parent != nil {
		id := &core.NodeExecutionIdentifier{ExecutionId: said.GetId().GetExecutionId(), NodeId: parent.GetNodeId()}
		if _, err := s.nodeExecution(id); err != nil {
			return err
		}
	}
	if parent := said.GetParentTaskMetadata(); parent != nil {
		if _, err := s.taskExecution(parent.GetId()); err != nil {
			return err
		}
	}
	if child := said.GetWorkflowNodeMetadata(); child != nil {
		if _, err := s.execution(child.GetExecutionId()); err != nil {
			return err
		}
	}
	return nil
}

// offloadNodeData puts inline inputs and outputs into the bucket, FlyteAdmin's default policy
// (transformers/node_execution.go:49, 376).
func (s *adminServer) offloadNodeData(ctx context.Context, said *event.NodeExecutionEvent) error {
	id := said.GetId()
	if inputs := said.GetInputData(); inputs != nil {
		uri, err := s.offload(ctx, inputs, id.GetExecutionId(), id.GetNodeId(), "offloaded_inputs")
		if err != nil {
			return err
		}
		said.InputValue = &event.NodeExecutionEvent_InputUri{InputUri: uri.String()}
	}
	if outputs := said.GetOutputData(); outputs != nil {
		uri, err := s.offload(ctx, outputs, id.GetExecutionId(), id.GetNodeId(), "offloaded_outputs")
		if err != nil {
			return err
		}
		said.OutputResult = &event.NodeExecutionEvent_OutputUri{OutputUri: uri.String()}
	}
	return nil
}

// newNodeExecution: flyteadmin/pkg/repositories/transformers/node_execution.go:101.
func newNodeExecution(said *event.NodeExecutionEvent) nodeExecution {
	row := nodeExecution{NodeExecution: &admin.NodeExecution{
		Id:      said.GetId(),
		Closure: &admin.NodeExecutionClosure{CreatedAt: said.GetOccurredAt()},
		Metadata: &admin.NodeExecutionMetaData{
			RetryGroup: said.GetRetryGroup(), SpecNodeId: said.GetSpecNodeId(),
		},
	}}
	if parent := said.GetParentNodeMetadata(); parent != nil {
		row.parentNode = parent.GetNodeId()
	}
	if parent := said.GetParentTaskMetadata(); parent != nil {
		row.parentTask = taskExecutionKey(parent.GetId())
	}
	applyNodeEvent(&row, said)
	return row
}

// applyNodeEvent: flyteadmin/pkg/repositories/transformers/node_execution.go:206.
func applyNodeEvent(row *nodeExecution, said *event.NodeExecutionEvent) {
	closure := row.GetClosure()
	if row.GetInputUri() == "" {
		row.InputUri = said.GetInputUri()
	}
	closure.Phase = said.GetPhase()
	closure.UpdatedAt = firstSet(said.GetReportedAt(), said.GetOccurredAt())
	if said.GetPhase() == core.NodeExecution_RUNNING {
		closure.StartedAt, closure.DeckUri = said.GetOccurredAt(), said.GetDeckUri()
	}
	if isNodeTerminal(said.GetPhase()) {
		endNode(closure, said)
	}
	if child := said.GetWorkflowNodeMetadata(); child != nil && closure.GetWorkflowNodeMetadata() == nil {
		closure.TargetMetadata = &admin.NodeExecutionClosure_WorkflowNodeMetadata{
			WorkflowNodeMetadata: &admin.WorkflowNodeMetadata{ExecutionId: child.GetExecutionId()},
		}
	}
	if task := said.GetTaskNodeMetadata(); task != nil {
		metadata := &admin.TaskNodeMetadata{CheckpointUri: task.GetCheckpointUri()}
		if task.GetCatalogKey() != nil {
			metadata.CacheStatus, metadata.CatalogKey = task.GetCacheStatus(), task.GetCatalogKey()
		}
		closure.TargetMetadata = &admin.NodeExecutionClosure_TaskNodeMetadata{TaskNodeMetadata: metadata}
		if dynamic := task.GetDynamicWorkflow(); dynamic != nil {
			row.dynamic = dynamic.GetCompiledWorkflow()
			if dynamic.GetDynamicJobSpecUri() != "" {
				closure.DynamicJobSpecUri = dynamic.GetDynamicJobSpecUri()
			}
		}
	}
	metadata := row.GetMetadata()
	metadata.IsParentNode = metadata.GetIsParentNode() || said.GetIsParent()
	metadata.IsDynamic = metadata.GetIsDynamic() || said.GetIsDynamic()
	metadata.IsArray = metadata.GetIsArray() || said.GetIsArray()
}

// endNode: flyteadmin/pkg/repositories/transformers/node_execution.go:49.
func endNode(closure *admin.NodeExecutionClosure, said *event.NodeExecutionEvent) {
	if closure.GetStartedAt() != nil {
		closure.Duration = since(closure.GetStartedAt().AsTime(), said.GetOccurredAt().AsTime())
	}
	switch {
	case said.GetOutputUri() != "":
		closure.OutputResult = &admin.NodeExecutionClosure_OutputUri{OutputUri: said.GetOutputUri()}
	case said.GetError() != nil:
		closure.OutputResult = &admin.NodeExecutionClosure_Error{Error: said.GetError()}
	}
	closure.DeckUri = said.GetDeckUri()
}

// isNodeTerminal: flyteadmin/pkg/common/executions.go:27.
func isNodeTerminal(phase core.NodeExecution_Phase) bool {
	return slices.Contains([]core.NodeExecution_Phase{
		core.NodeExecution_SUCCEEDED, core.NodeExecution_FAILED, core.NodeExecution_TIMED_OUT,
		core.NodeExecution_ABORTED, core.NodeExecution_SKIPPED, core.NodeExecution_RECOVERED,
	}, phase)
}

func since(start, end time.Time) *durationpb.Duration {
	return durationpb.New(end.Sub(start))
}
