package main

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/event"
)

// CreateTaskEvent records what Propeller says of an attempt of a task; the first event makes its task
// execution. Source: flyteadmin/pkg/manager/impl/task_execution_manager.go:63, 128.
func (s *adminServer) CreateTaskEvent(
	ctx context.Context, request *admin.TaskExecutionEventRequest,
) (*admin.TaskExecutionEventResponse, error) {
	said := request.GetEvent()
	id := &core.TaskExecutionIdentifier{
		TaskId: said.GetTaskId(), NodeExecutionId: said.GetParentNodeExecutionId(), RetryAttempt: said.GetRetryAttempt(),
	}
	if err := validateOutputData(said.GetOutputData()); err != nil {
		return nil, err
	}
	if _, err := s.nodeExecution(id.GetNodeExecutionId()); err != nil {
		return nil, err
	}
	if err := s.offloadTaskData(ctx, said); err != nil {
		return nil, err
	}
	err := s.store.taskExecutions.change(taskExecutionKey(id), func(row taskExecution, found bool) (taskExecution, error) {
		if !found {
			return newTaskExecution(id, said), nil
		}
		now, next := row.GetClosure().GetPhase(), said.GetPhase()
		if now == next && row.phaseVersion >= said.GetPhaseVersion() {
			return row, alreadyExists("have already recorded task execution phase %s (version: %d) for %v",
				next, said.GetPhaseVersion(), id)
		}
		if isTaskTerminal(now) {
			return row, alreadyTerminal(next.String(), "invalid phase change from %v to %v for task execution %v", now, next, id)
		}
		row.TaskExecution = proto.CloneOf(row.TaskExecution)
		applyTaskEvent(&row, said)
		return row, nil
	})
	return &admin.TaskExecutionEventResponse{}, err
}

// offloadTaskData: flyteadmin/pkg/repositories/transformers/task_execution.go:52, 554.
func (s *adminServer) offloadTaskData(ctx context.Context, said *event.TaskExecutionEvent) error {
	node, task := said.GetParentNodeExecutionId(), said.GetTaskId()
	path := func(suffix string) []string {
		return []string{
			node.GetNodeId(), task.GetProject(), task.GetDomain(), task.GetName(), task.GetVersion(),
			strconv.FormatUint(uint64(said.GetRetryAttempt()), 10), suffix,
		}
	}
	if inputs := said.GetInputData(); inputs != nil {
		uri, err := s.offload(ctx, inputs, node.GetExecutionId(), path("offloaded_inputs")...)
		if err != nil {
			return err
		}
		said.InputValue = &event.TaskExecutionEvent_InputUri{InputUri: uri.String()}
	}
	if outputs := said.GetOutputData(); outputs != nil {
		uri, err := s.offload(ctx, outputs, node.GetExecutionId(), path("offloaded_outputs")...)
		if err != nil {
			return err
		}
		said.OutputResult = &event.TaskExecutionEvent_OutputUri{OutputUri: uri.String()}
	}
	return nil
}

func newTaskExecution(id *core.TaskExecutionIdentifier, said *event.TaskExecutionEvent) taskExecution {
	row := taskExecution{TaskExecution: &admin.TaskExecution{
		Id:      id,
		Closure: &admin.TaskExecutionClosure{CreatedAt: said.GetOccurredAt(), TaskType: said.GetTaskType()},
	}}
	applyTaskEvent(&row, said)
	return row
}

// applyTaskEvent: flyteadmin/pkg/repositories/transformers/task_execution.go:406.
func applyTaskEvent(row *taskExecution, said *event.TaskExecutionEvent) {
	closure := row.GetClosure()
	if row.GetInputUri() == "" {
		row.InputUri = said.GetInputUri()
	}
	started := closure.GetPhase() != core.TaskExecution_RUNNING && said.GetPhase() == core.TaskExecution_RUNNING
	closure.Phase, row.phaseVersion = said.GetPhase(), said.GetPhaseVersion()
	closure.UpdatedAt = firstSet(said.GetReportedAt(), said.GetOccurredAt())
	closure.Logs = mergeLogs(closure.GetLogs(), said.GetLogs())
	closure.EventVersion = max(closure.GetEventVersion(), said.GetEventVersion())
	closure.CustomInfo = mergeCustomInfo(closure.GetCustomInfo(), said.GetCustomInfo())
	closure.Metadata = mergeTaskMetadata(closure.GetMetadata(), said.GetMetadata())
	addReasons(closure, said)
	if started {
		closure.StartedAt = said.GetOccurredAt()
	}
	if !isTaskTerminal(said.GetPhase()) {
		return
	}
	if closure.GetStartedAt() == nil {
		closure.StartedAt = said.GetOccurredAt()
	}
	closure.Duration = since(closure.GetStartedAt().AsTime(), said.GetOccurredAt().AsTime())
	switch {
	case said.GetOutputUri() != "":
		closure.OutputResult = &admin.TaskExecutionClosure_OutputUri{OutputUri: said.GetOutputUri()}
	case said.GetError() != nil:
		closure.OutputResult = &admin.TaskExecutionClosure_Error{Error: said.GetError()}
	}
}

func addReasons(closure *admin.TaskExecutionClosure, said *event.TaskExecutionEvent) {
	add := func(at *timestamppb.Timestamp, text string) {
		closure.Reasons = append(closure.Reasons, &admin.Reason{OccurredAt: at, Message: text})
		closure.Reason = text
	}
	for _, reason := range said.GetReasons() {
		add(reason.GetOccurredAt(), reason.GetReason())
	}
	if reason := said.GetReason(); len(said.GetReasons()) == 0 && reason != "" && reason != closure.GetReason() {
		add(said.GetOccurredAt(), reason)
	}
}

// mergeLogs keeps the latest logs, and those before them that none of them replaces by URI or name
// (task_execution.go:224). The hints of when to show a log are for the console and are not read here.
func mergeLogs(before, latest []*core.TaskLog) []*core.TaskLog {
	merged := slices.Clone(latest)
	for _, log := range before {
		if !slices.ContainsFunc(latest, func(newer *core.TaskLog) bool {
			return newer.GetUri() == log.GetUri() || (newer.GetName() != "" && newer.GetName() == log.GetName())
		}) {
			merged = append(merged, log)
		}
	}
	return merged
}

func mergeCustomInfo(before, latest *structpb.Struct) *structpb.Struct {
	if before == nil || latest == nil {
		if latest == nil {
			return before
		}
		return latest
	}
	// An empty Struct comes over the wire without its map.
	merged := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for _, info := range []*structpb.Struct{before, latest} {
		maps.Copy(merged.GetFields(), info.GetFields())
	}
	return merged
}

// mergeTaskMetadata keeps one entry per index and attempt of a map task's subtasks, in that order
// (task_execution.go:324, 357).
func mergeTaskMetadata(before, latest *event.TaskExecutionMetadata) *event.TaskExecutionMetadata {
	if before == nil || latest == nil {
		if latest == nil {
			return before
		}
		return latest
	}
	merged := proto.CloneOf(before)
	if latest.GetGeneratedName() != "" {
		merged.GeneratedName = latest.GetGeneratedName()
	}
	if latest.GetPluginIdentifier() != "" {
		merged.PluginIdentifier = latest.GetPluginIdentifier()
	}
	if latest.GetInstanceClass() != event.TaskExecutionMetadata_DEFAULT {
		merged.InstanceClass = latest.GetInstanceClass()
	}
	merged.ResourcePoolInfo = latest.GetResourcePoolInfo()
	for _, part := range latest.GetExternalResources() {
		at := slices.IndexFunc(merged.GetExternalResources(), func(known *event.ExternalResourceInfo) bool {
			return known.GetIndex() == part.GetIndex() && known.GetRetryAttempt() == part.GetRetryAttempt()
		})
		if at < 0 {
			merged.ExternalResources = append(merged.ExternalResources, part)
			continue
		}
		known := merged.ExternalResources[at]
		known.Phase, known.Logs = part.GetPhase(), mergeLogs(known.GetLogs(), part.GetLogs())
		if part.GetExternalId() != "" {
			known.ExternalId = part.GetExternalId()
		}
		if part.GetCacheStatus() != core.CatalogCacheStatus_CACHE_DISABLED {
			known.CacheStatus = part.GetCacheStatus()
		}
		if part.GetCustomInfo() != nil {
			known.CustomInfo = part.GetCustomInfo()
		}
	}
	slices.SortStableFunc(merged.GetExternalResources(), func(a, b *event.ExternalResourceInfo) int {
		if a.GetIndex() != b.GetIndex() {
			return int(a.GetIndex()) - int(b.GetIndex())
		}
		return int(a.GetRetryAttempt()) - int(b.GetRetryAttempt())
	})
	return merged
}

// isTaskTerminal: flyteadmin/pkg/common/executions.go:36.
func isTaskTerminal(phase core.TaskExecution_Phase) bool {
	return slices.Contains([]core.TaskExecution_Phase{
		core.TaskExecution_SUCCEEDED, core.TaskExecution_FAILED, core.TaskExecution_ABORTED,
	}, phase)
}
