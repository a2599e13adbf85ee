package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/event"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/service"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) *timestamppb.Timestamp {
	return timestamppb.New(noon.Add(time.Duration(seconds) * time.Second))
}

func workflowEvent(id *core.WorkflowExecutionIdentifier, phase core.WorkflowExecution_Phase) *admin.WorkflowExecutionEventRequest {
	return &admin.WorkflowExecutionEventRequest{Event: &event.WorkflowExecutionEvent{
		ExecutionId: id, Phase: phase, OccurredAt: at(int(phase)), ProducerId: "propeller",
	}}
}

func nodeEvent(id *core.NodeExecutionIdentifier, phase core.NodeExecution_Phase) *admin.NodeExecutionEventRequest {
	return &admin.NodeExecutionEventRequest{Event: &event.NodeExecutionEvent{
		Id: id, Phase: phase, OccurredAt: at(int(phase)), ProducerId: "propeller", SpecNodeId: id.GetNodeId(),
	}}
}

func taskEvent(node *core.NodeExecutionIdentifier, phase core.TaskExecution_Phase, version uint32) *admin.TaskExecutionEventRequest {
	return &admin.TaskExecutionEventRequest{Event: &event.TaskExecutionEvent{
		TaskId: taskID("one"), ParentNodeExecutionId: node, Phase: phase, PhaseVersion: version,
		OccurredAt: at(int(phase)), TaskType: "python-task",
	}}
}

// launched is an execution and its node n0.
func (h *harness) launched() (*core.WorkflowExecutionIdentifier, *core.NodeExecutionIdentifier) {
	h.t.Helper()
	h.register()
	created, err := h.admin.CreateExecution(h.t.Context(), request(planID("plan")))
	must(h.t, err)
	return created.GetId(), &core.NodeExecutionIdentifier{ExecutionId: created.GetId(), NodeId: "n0"}
}

func wantTerminalDetail(t *testing.T, err error) {
	t.Helper()
	wantError(t, err, codes.FailedPrecondition, "nvalid phase change")
	reason, ok := status.Convert(err).Details()[0].(*admin.EventFailureReason)
	if !ok || reason.GetAlreadyInTerminalState() == nil {
		t.Errorf("details: %v", status.Convert(err).Details())
	}
}

func TestEventsOfAnExecution(t *testing.T) {
	h := start(t)
	id, _ := h.launched()
	say := func(phase core.WorkflowExecution_Phase, edit func(*event.WorkflowExecutionEvent)) error {
		said := workflowEvent(id, phase)
		if edit != nil {
			edit(said.GetEvent())
		}
		_, err := h.admin.CreateWorkflowEvent(t.Context(), said)
		return err
	}
	must(t, say(core.WorkflowExecution_RUNNING, nil))
	wantError(t, say(core.WorkflowExecution_RUNNING, nil), codes.AlreadyExists, "already recorded")
	wantError(t, say(core.WorkflowExecution_QUEUED, nil), codes.FailedPrecondition, "Cannot go from RUNNING to QUEUED")
	must(t, say(core.WorkflowExecution_SUCCEEDED, func(said *event.WorkflowExecutionEvent) {
		said.OutputResult = &event.WorkflowExecutionEvent_OutputData{OutputData: literals("o0", integer(2))}
	}))
	wantTerminalDetail(t, say(core.WorkflowExecution_FAILED, nil))
	closure := h.execution(id).GetClosure()
	passed := at(int(core.WorkflowExecution_SUCCEEDED)).AsTime().Sub(at(int(core.WorkflowExecution_RUNNING)).AsTime())
	if closure.GetPhase() != core.WorkflowExecution_SUCCEEDED || closure.GetDuration().AsDuration() != passed {
		t.Errorf("closure: %v", closure)
	}
	data, err := h.admin.GetExecutionData(t.Context(), &admin.WorkflowExecutionGetDataRequest{Id: id})
	must(t, err)
	if o0 := data.GetFullOutputs().GetLiterals()["o0"].GetScalar().GetPrimitive().GetInteger(); o0 != 2 {
		t.Errorf("o0=%d", o0)
	}
	id.Name = "none"
	wantError(t, say(core.WorkflowExecution_RUNNING, nil), codes.NotFound, "execution")
}

func TestEventsOfANodeAndItsTask(t *testing.T) {
	h := start(t)
	id, node := h.launched()
	_, err := h.admin.CreateTaskEvent(t.Context(), taskEvent(node, core.TaskExecution_QUEUED, 0))
	wantError(t, err, codes.NotFound, "node execution")
	for _, phase := range []core.NodeExecution_Phase{core.NodeExecution_QUEUED, core.NodeExecution_RUNNING} {
		said := nodeEvent(node, phase)
		said.Event.InputValue = &event.NodeExecutionEvent_InputData{InputData: literals("x", integer(1))}
		_, err := h.admin.CreateNodeEvent(t.Context(), said)
		must(t, err)
		_, err = h.admin.CreateNodeEvent(t.Context(), nodeEvent(node, phase))
		wantError(t, err, codes.AlreadyExists, "already recorded")
	}
	for _, step := range []struct {
		phase   core.TaskExecution_Phase
		version uint32
		code    codes.Code
	}{
		{core.TaskExecution_QUEUED, 0, codes.OK},
		{core.TaskExecution_QUEUED, 0, codes.AlreadyExists},
		{core.TaskExecution_RUNNING, 0, codes.OK},
		{core.TaskExecution_RUNNING, 1, codes.OK},
		{core.TaskExecution_RUNNING, 1, codes.AlreadyExists},
		{core.TaskExecution_SUCCEEDED, 0, codes.OK},
		{core.TaskExecution_FAILED, 0, codes.FailedPrecondition},
	} {
		said := taskEvent(node, step.phase, step.version)
		said.Event.Reason = step.phase.String()
		said.Event.InputValue = &event.TaskExecutionEvent_InputData{InputData: literals("x", integer(1))}
		if step.phase == core.TaskExecution_SUCCEEDED {
			said.Event.OutputResult = &event.TaskExecutionEvent_OutputData{OutputData: literals("o0", integer(2))}
		}
		_, err := h.admin.CreateTaskEvent(t.Context(), said)
		if status.Code(err) != step.code {
			t.Fatalf("%v: got %v", step, err)
		}
	}
	done := nodeEvent(node, core.NodeExecution_SUCCEEDED)
	done.Event.OutputResult = &event.NodeExecutionEvent_OutputData{OutputData: literals("o0", integer(2))}
	_, err = h.admin.CreateNodeEvent(t.Context(), done)
	must(t, err)
	_, err = h.admin.CreateNodeEvent(t.Context(), nodeEvent(node, core.NodeExecution_FAILED))
	wantTerminalDetail(t, err)

	nodes, err := h.admin.ListNodeExecutions(t.Context(), &admin.NodeExecutionListRequest{WorkflowExecutionId: id, Limit: 9})
	must(t, err)
	tasks, err := h.admin.ListTaskExecutions(t.Context(), &admin.TaskExecutionListRequest{NodeExecutionId: node, Limit: 9})
	must(t, err)
	if len(nodes.GetNodeExecutions()) != 1 || len(tasks.GetTaskExecutions()) != 1 {
		t.Fatalf("got %v, %v", nodes, tasks)
	}
	closure := tasks.GetTaskExecutions()[0].GetClosure()
	if closure.GetPhase() != core.TaskExecution_SUCCEEDED || len(closure.GetReasons()) != 3 || closure.GetDuration() == nil {
		t.Errorf("closure: %v", closure)
	}
	for url, want := range map[string]int64{
		nodeURL(node) + "/o": 2, nodeURL(node) + "/0/o": 2, nodeURL(node) + "/0/i/x": 1, nodeURL(node) + "/o/o0": 2, nodeURL(node) + "/i/x": 1,
	} {
		answer, err := h.proxy.GetData(t.Context(), &service.GetDataRequest{FlyteUrl: url})
		must(t, err)
		found := answer.GetLiteral()
		for _, literal := range answer.GetLiteralMap().GetLiterals() {
			found = literal
		}
		if got := found.GetScalar().GetPrimitive().GetInteger(); got != want {
			t.Errorf("%s: got %d", url, got)
		}
	}
}

func TestNodesOfNodes(t *testing.T) {
	h := start(t)
	id, node := h.launched()
	_, err := h.admin.CreateNodeEvent(t.Context(), nodeEvent(node, core.NodeExecution_RUNNING))
	must(t, err)
	inner := nodeEvent(&core.NodeExecutionIdentifier{ExecutionId: id, NodeId: "n0-0-n0"}, core.NodeExecution_QUEUED)
	inner.Event.ParentNodeMetadata = &event.ParentNodeExecutionMetadata{NodeId: "n0"}
	_, err = h.admin.CreateNodeEvent(t.Context(), inner)
	must(t, err)
	dynamic := nodeEvent(node, core.NodeExecution_DYNAMIC_RUNNING)
	dynamic.Event.IsParent, dynamic.Event.IsDynamic = true, true
	compiled := &core.CompiledWorkflowClosure{Primary: &core.CompiledWorkflow{Template: &core.WorkflowTemplate{Id: workflowID("made")}}}
	dynamic.Event.TargetMetadata = &event.NodeExecutionEvent_TaskNodeMetadata{TaskNodeMetadata: &event.TaskNodeMetadata{
		DynamicWorkflow: &event.DynamicWorkflowNodeMetadata{Id: workflowID("made"), CompiledWorkflow: compiled, DynamicJobSpecUri: "s3://f"},
	}}
	_, err = h.admin.CreateNodeEvent(t.Context(), dynamic)
	must(t, err)
	for parent, want := range map[string]string{"": "n0", "n0": "n0-0-n0"} {
		listed, err := h.admin.ListNodeExecutions(t.Context(), &admin.NodeExecutionListRequest{
			WorkflowExecutionId: id, UniqueParentId: parent, Limit: 9,
		})
		must(t, err)
		if got := listed.GetNodeExecutions(); len(got) != 1 || got[0].GetId().GetNodeId() != want {
			t.Errorf("children of %q: %v", parent, got)
		}
	}
	data, err := h.admin.GetNodeExecutionData(t.Context(), &admin.NodeExecutionGetDataRequest{Id: node})
	must(t, err)
	if data.GetDynamicWorkflow().GetId().GetName() != "made" || data.GetDynamicWorkflow().GetDynamicJobSpecUri() != "s3://f" {
		t.Errorf("dynamic: %v", data.GetDynamicWorkflow())
	}
	for of, code := range map[*core.NodeExecutionIdentifier]codes.Code{
		node: codes.OK, inner.GetEvent().GetId(): codes.NotFound, {ExecutionId: id, NodeId: "none"}: codes.NotFound,
	} {
		answer, err := h.admin.GetDynamicNodeWorkflow(t.Context(), &admin.GetDynamicNodeWorkflowRequest{Id: of})
		wantError(t, err, code, "")
		if name := answer.GetCompiledWorkflow().GetPrimary().GetTemplate().GetId().GetName(); err == nil && name != "made" {
			t.Errorf("dynamic workflow: %s", name)
		}
	}
	found, err := h.admin.GetNodeExecution(t.Context(), &admin.NodeExecutionGetRequest{Id: node})
	must(t, err)
	if !found.GetMetadata().GetIsParentNode() || !found.GetMetadata().GetIsDynamic() {
		t.Errorf("metadata: %v", found.GetMetadata())
	}
}

func TestLogsAndPartsOfATaskAreMerged(t *testing.T) {
	a, b, renamed := &core.TaskLog{Uri: "a", Name: "A"}, &core.TaskLog{Uri: "b", Name: "B"}, &core.TaskLog{Uri: "c", Name: "A"}
	if got := mergeLogs([]*core.TaskLog{a, b}, []*core.TaskLog{renamed}); len(got) != 2 || got[0] != renamed || got[1] != b {
		t.Errorf("logs: %v", got)
	}
	part := func(index, attempt uint32, phase core.TaskExecution_Phase) *event.ExternalResourceInfo {
		return &event.ExternalResourceInfo{Index: index, RetryAttempt: attempt, Phase: phase, ExternalId: "pod"}
	}
	merged := mergeTaskMetadata(
		&event.TaskExecutionMetadata{ExternalResources: []*event.ExternalResourceInfo{part(0, 0, core.TaskExecution_RUNNING), part(2, 0, core.TaskExecution_RUNNING)}},
		&event.TaskExecutionMetadata{ExternalResources: []*event.ExternalResourceInfo{part(1, 0, core.TaskExecution_QUEUED), part(0, 0, core.TaskExecution_FAILED), part(0, 1, core.TaskExecution_QUEUED)}},
	).GetExternalResources()
	var got []core.TaskExecution_Phase
	for _, one := range merged {
		got = append(got, one.GetPhase())
	}
	want := []core.TaskExecution_Phase{core.TaskExecution_FAILED, core.TaskExecution_QUEUED, core.TaskExecution_QUEUED, core.TaskExecution_RUNNING}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestOutputsOfAnEventMayBeOnlySoLarge(t *testing.T) {
	h := start(t)
	id, node := h.launched()
	_, err := h.admin.CreateNodeEvent(t.Context(), nodeEvent(node, core.NodeExecution_RUNNING))
	must(t, err)
	for _, test := range []struct {
		length int
		code   codes.Code
		part   string
	}{
		{maxOutputBytes, codes.ResourceExhausted, "Output data size exceeds platform configured threshold"},
		{maxOutputBytes - 100, codes.OK, ""},
	} {
		outputs := literals("o0", text(strings.Repeat("x", test.length)))
		task := taskEvent(node, core.TaskExecution_SUCCEEDED, 0)
		task.Event.OutputResult = &event.TaskExecutionEvent_OutputData{OutputData: outputs}
		_, err := h.admin.CreateTaskEvent(t.Context(), task)
		wantError(t, err, test.code, test.part)
		all := workflowEvent(id, core.WorkflowExecution_SUCCEEDED)
		all.Event.OutputResult = &event.WorkflowExecutionEvent_OutputData{OutputData: outputs}
		_, err = h.admin.CreateWorkflowEvent(t.Context(), all)
		wantError(t, err, test.code, test.part)
	}
}
