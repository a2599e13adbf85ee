package main

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytestdlib/storage"
)

func (s *adminServer) nodeExecution(id *core.NodeExecutionIdentifier) (nodeExecution, error) {
	found, ok := s.store.nodeExecutions.get(nodeExecutionKey(id))
	if !ok {
		return nodeExecution{}, notFound("node execution", id)
	}
	return found, nil
}

func (s *adminServer) taskExecution(id *core.TaskExecutionIdentifier) (taskExecution, error) {
	found, ok := s.store.taskExecutions.get(taskExecutionKey(id))
	if !ok {
		return taskExecution{}, notFound("task execution", id)
	}
	return found, nil
}

func (s *adminServer) GetNodeExecution(
	_ context.Context, request *admin.NodeExecutionGetRequest,
) (*admin.NodeExecution, error) {
	found, err := s.nodeExecution(request.GetId())
	return found.NodeExecution, err
}

// ListNodeExecutions lists the children of a node, or without one the nodes that have no parent
// (flyteadmin/pkg/manager/impl/node_execution_manager.go:443).
func (s *adminServer) ListNodeExecutions(
	_ context.Context, request *admin.NodeExecutionListRequest,
) (*admin.NodeExecutionList, error) {
	of, parent := request.GetWorkflowExecutionId(), request.GetUniqueParentId()
	if err := validateExecutionID(of); err != nil {
		return nil, err
	}
	if parent != "" {
		if _, err := s.nodeExecution(&core.NodeExecutionIdentifier{ExecutionId: of, NodeId: parent}); err != nil {
			return nil, err
		}
	}
	return s.listNodeExecutions(request, func(row nodeExecution) bool {
		return executionKey(row.GetId().GetExecutionId()) == executionKey(of) && row.parentNode == parent && row.parentTask == ""
	})
}

func (s *adminServer) ListNodeExecutionsForTask(
	_ context.Context, request *admin.NodeExecutionForTaskListRequest,
) (*admin.NodeExecutionList, error) {
	if _, err := s.taskExecution(request.GetTaskExecutionId()); err != nil {
		return nil, err
	}
	return s.listNodeExecutions(request, func(row nodeExecution) bool {
		return row.parentTask == taskExecutionKey(request.GetTaskExecutionId())
	})
}

func (s *adminServer) listNodeExecutions(
	request listRequest, belongs func(nodeExecution) bool,
) (*admin.NodeExecutionList, error) {
	if request.GetLimit() == 0 {
		return nil, invalid("invalid value for limit")
	}
	rows := slices.DeleteFunc(s.store.nodeExecutions.list(), func(row nodeExecution) bool { return !belongs(row) })
	found, token, err := query(rows, nodeExecutionColumns, request, "")
	if err != nil {
		return nil, err
	}
	listed := &admin.NodeExecutionList{Token: token}
	for _, row := range found {
		listed.NodeExecutions = append(listed.NodeExecutions, row.NodeExecution)
	}
	return listed, nil
}

// GetNodeExecutionData gives inputs, outputs and, of a dynamic node, the workflow that it made
// (flyteadmin/pkg/manager/impl/node_execution_manager.go:507).
func (s *adminServer) GetNodeExecutionData(
	ctx context.Context, request *admin.NodeExecutionGetDataRequest,
) (*admin.NodeExecutionGetDataResponse, error) {
	found, err := s.nodeExecution(request.GetId())
	if err != nil {
		return nil, err
	}
	closure := found.GetClosure()
	data := &admin.NodeExecutionGetDataResponse{
		Inputs: &admin.UrlBlob{}, Outputs: &admin.UrlBlob{},
		FullInputs:  s.read(ctx, storage.DataReference(found.GetInputUri())),
		FullOutputs: s.read(ctx, storage.DataReference(closure.GetOutputUri())),
		FlyteUrls:   flyteURLs(nodeURL(request.GetId())),
	}
	if closure.GetDeckUri() != "" {
		data.FlyteUrls.Deck = nodeURL(request.GetId()) + "/d"
	}
	if found.dynamic != nil {
		data.DynamicWorkflow = &admin.DynamicWorkflowNodeMetadata{
			Id:               found.dynamic.GetPrimary().GetTemplate().GetId(),
			CompiledWorkflow: found.dynamic, DynamicJobSpecUri: closure.GetDynamicJobSpecUri(),
		}
	}
	return data, nil
}

func (s *adminServer) GetDynamicNodeWorkflow(
	_ context.Context, request *admin.GetDynamicNodeWorkflowRequest,
) (*admin.DynamicNodeWorkflowResponse, error) {
	found, err := s.nodeExecution(request.GetId())
	if err != nil {
		return nil, err
	}
	if found.dynamic == nil {
		return nil, status.Error(codes.NotFound, "node does not contain dynamic workflow")
	}
	return &admin.DynamicNodeWorkflowResponse{CompiledWorkflow: found.dynamic}, nil
}

func (s *adminServer) GetTaskExecution(
	_ context.Context, request *admin.TaskExecutionGetRequest,
) (*admin.TaskExecution, error) {
	found, err := s.taskExecution(request.GetId())
	return found.TaskExecution, err
}

func (s *adminServer) ListTaskExecutions(
	_ context.Context, request *admin.TaskExecutionListRequest,
) (*admin.TaskExecutionList, error) {
	if request.GetLimit() == 0 {
		return nil, invalid("invalid value for limit")
	}
	rows := slices.DeleteFunc(s.store.taskExecutions.list(), func(row taskExecution) bool {
		return nodeExecutionKey(row.GetId().GetNodeExecutionId()) != nodeExecutionKey(request.GetNodeExecutionId())
	})
	found, token, err := query(rows, taskExecutionColumns, request, "")
	if err != nil {
		return nil, err
	}
	listed := &admin.TaskExecutionList{Token: token}
	for _, row := range found {
		listed.TaskExecutions = append(listed.TaskExecutions, row.TaskExecution)
	}
	return listed, nil
}

func (s *adminServer) GetTaskExecutionData(
	ctx context.Context, request *admin.TaskExecutionGetDataRequest,
) (*admin.TaskExecutionGetDataResponse, error) {
	found, err := s.taskExecution(request.GetId())
	if err != nil {
		return nil, err
	}
	return &admin.TaskExecutionGetDataResponse{
		Inputs: &admin.UrlBlob{}, Outputs: &admin.UrlBlob{},
		FullInputs:  s.read(ctx, storage.DataReference(found.GetInputUri())),
		FullOutputs: s.read(ctx, storage.DataReference(found.GetClosure().GetOutputUri())),
		FlyteUrls: flyteURLs(fmt.Sprintf("%s/%d",
			nodeURL(request.GetId().GetNodeExecutionId()), request.GetId().GetRetryAttempt())),
	}, nil
}

// nodeURL and flyteURLs: flyteadmin/pkg/common/flyte_url.go:128, 159.
func nodeURL(id *core.NodeExecutionIdentifier) string {
	of := id.GetExecutionId()
	return fmt.Sprintf("flyte://v1/%s/%s/%s/%s", of.GetProject(), of.GetDomain(), of.GetName(), id.GetNodeId())
}

func flyteURLs(base string) *admin.FlyteURLs {
	return &admin.FlyteURLs{Inputs: base + "/i", Outputs: base + "/o"}
}
