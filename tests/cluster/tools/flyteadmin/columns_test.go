package main

import (
	"maps"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

func read[V any](row V, known columns[V]) map[string]string {
	values := map[string]string{}
	for name, column := range known {
		values[name] = column(row)
	}
	return values
}

// with gives the columns that come with an identifier of the development domain.
func with(name string, more map[string]string) map[string]string {
	values := map[string]string{"project": project, "domain": development, "name": name, "version": "v1"}
	maps.Copy(values, more)
	return values
}

// TestColumns has every column of every list: one that is added without a value here fails.
func TestColumns(t *testing.T) {
	const noonText, laterText = "2026-01-01T12:00:00Z", "2026-01-01T12:01:30Z"
	long := durationpb.New(90500 * time.Millisecond)
	launched := execution{Execution: &admin.Execution{
		Id: executionID("e"),
		Spec: &admin.ExecutionSpec{
			LaunchPlan: planID("plan"), Metadata: &admin.ExecutionMetadata{Mode: admin.ExecutionMetadata_CHILD_WORKFLOW},
		},
		Closure: &admin.ExecutionClosure{
			Phase: core.WorkflowExecution_FAILED, CreatedAt: at(0), UpdatedAt: at(90), StartedAt: at(0), Duration: long,
			WorkflowId: workflowID("wf"),
			StateChangeDetails: &admin.ExecutionStateChangeDetails{
				State: admin.ExecutionState_EXECUTION_ARCHIVED,
			},
			OutputResult: &admin.ExecutionClosure_Error{Error: &core.ExecutionError{Code: "Denied", Kind: core.ExecutionError_USER}},
		},
	}}
	stopped := execution{Execution: &admin.Execution{
		Id: executionID("s"), Spec: &admin.ExecutionSpec{LaunchPlan: taskID("one")},
		Closure: &admin.ExecutionClosure{
			Phase:        core.WorkflowExecution_ABORTED,
			OutputResult: &admin.ExecutionClosure_AbortMetadata{AbortMetadata: &admin.AbortMetadata{Cause: "enough"}},
		},
	}}
	node := &core.NodeExecutionIdentifier{ExecutionId: executionID("e"), NodeId: "n0"}
	for name, test := range map[string]struct{ got, want map[string]string }{
		"project": {
			read(&admin.Project{Id: "p", Name: "P", Description: "d", State: admin.Project_ARCHIVED}, projectColumns),
			map[string]string{"identifier": "p", "name": "P", "description": "d", "state": "1"},
		},
		"task": {
			read(task{Task: &admin.Task{Id: taskID("one"), Closure: &admin.TaskClosure{
				CreatedAt: at(0), CompiledTask: &core.CompiledTask{Template: &core.TaskTemplate{Type: "spark"}},
			}}}, taskColumns),
			with("one", map[string]string{"type": "spark", "created_at": noonText}),
		},
		"workflow": {
			read(workflow{Workflow: &admin.Workflow{Id: workflowID("wf"), Closure: &admin.WorkflowClosure{CreatedAt: at(0)}}}, workflowColumns),
			with("wf", map[string]string{"created_at": noonText}),
		},
		"launch plan": {
			read(launchPlan{LaunchPlan: &admin.LaunchPlan{
				Id: planID("plan"), Spec: &admin.LaunchPlanSpec{WorkflowId: workflowID("wf")},
				Closure: &admin.LaunchPlanClosure{CreatedAt: at(0), UpdatedAt: at(90), State: admin.LaunchPlanState_ACTIVE},
			}}, launchPlanColumns),
			with("plan", map[string]string{
				"created_at": noonText, "updated_at": laterText, "state": "1", "workflow.name": "wf", "workflow.version": "v1",
			}),
		},
		"execution": {read(launched, executionColumns), map[string]string{
			"project": project, "domain": development, "name": "e",
			"execution_project": project, "execution_domain": development, "execution_name": "e",
			"phase": "FAILED", "created_at": noonText, "execution_created_at": noonText, "updated_at": laterText,
			"started_at": noonText, "duration": "90.5", "mode": "4", "abort_cause": "", "error_kind": "USER", "error_code": "Denied",
			"launch_entity": "launch_plan", "state": "1", "launch_plan.name": "plan", "task.name": "",
			"workflow.name": "wf", "workflow.version": "v1",
		}},
		"execution of a task": {read(stopped, executionColumns), map[string]string{
			"project": project, "domain": development, "name": "s",
			"execution_project": project, "execution_domain": development, "execution_name": "s",
			"phase": "ABORTED", "created_at": "", "execution_created_at": "", "updated_at": "",
			"started_at": "", "duration": "0", "mode": "0", "abort_cause": "enough", "error_kind": "UNKNOWN", "error_code": "",
			"launch_entity": "task", "state": "0", "launch_plan.name": "", "task.name": "one",
			"workflow.name": "", "workflow.version": "",
		}},
		"node execution": {
			read(nodeExecution{NodeExecution: &admin.NodeExecution{Id: node, Closure: &admin.NodeExecutionClosure{
				Phase: core.NodeExecution_RUNNING, CreatedAt: at(0), UpdatedAt: at(90), StartedAt: at(0), Duration: long,
			}}}, nodeExecutionColumns),
			map[string]string{
				"node_id": "n0", "phase": "RUNNING", "created_at": noonText, "updated_at": laterText,
				"started_at": noonText, "duration": "90.5",
			},
		},
		"task execution": {
			read(taskExecution{TaskExecution: &admin.TaskExecution{
				Id: &core.TaskExecutionIdentifier{TaskId: taskID("one"), NodeExecutionId: node, RetryAttempt: 2},
				Closure: &admin.TaskExecutionClosure{
					Phase: core.TaskExecution_QUEUED, CreatedAt: at(0), UpdatedAt: at(90), StartedAt: at(0), Duration: long,
				},
			}}, taskExecutionColumns),
			map[string]string{
				"name": "one", "retry_attempt": "2", "phase": "QUEUED", "created_at": noonText, "updated_at": laterText,
				"started_at": noonText, "duration": "90.5",
			},
		},
	} {
		t.Run(name, func(t *testing.T) { wantMap(t, name, test.got, test.want) })
	}
}

// TestComparisons sorts by what a column means: "10" comes after "9", and a fraction of a second before the next.
func TestComparisons(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"9", "10", -1},
		{"90.5", "90.5", 0},
		{"1", "0.25", 1},
		{"2026-01-01T12:00:00.5Z", "2026-01-01T12:00:00Z", 1},
		{"2026-01-01T13:00:00+01:00", "2026-01-01T12:00:00Z", 0},
		{"9", "v10", -1},
		{"v9", "v10", 1},
	} {
		if got := compare(test.a, test.b); got != test.want {
			t.Errorf("%s, %s: got %d", test.a, test.b, got)
		}
	}
}

func TestListsByNumberAndDuration(t *testing.T) {
	h := start(t)
	id, _ := h.launched()
	for i, name := range []string{"n0", "n1"} {
		of := &core.NodeExecutionIdentifier{ExecutionId: id, NodeId: name}
		running, done := nodeEvent(of, core.NodeExecution_RUNNING), nodeEvent(of, core.NodeExecution_SUCCEEDED)
		running.Event.OccurredAt, done.Event.OccurredAt = at(0), at(100-91*i)
		_, err := h.admin.CreateNodeEvent(t.Context(), running)
		must(t, err)
		_, err = h.admin.CreateNodeEvent(t.Context(), done)
		must(t, err)
	}
	listed, err := h.admin.ListNodeExecutions(t.Context(), &admin.NodeExecutionListRequest{
		WorkflowExecutionId: id, Limit: 9, SortBy: &admin.Sort{Key: "duration", Direction: admin.Sort_ASCENDING},
	})
	must(t, err)
	if got := listed.GetNodeExecutions(); len(got) != 2 || got[0].GetId().GetNodeId() != "n1" {
		t.Errorf("9 s before 100 s: got %v", got)
	}
	for filters, want := range map[string]int{"gt(duration,9)": 1, "gte(duration,9)": 2, "lt(duration,100)": 1, "lte(duration,8.9)": 0} {
		listed, err := h.admin.ListNodeExecutions(t.Context(), &admin.NodeExecutionListRequest{
			WorkflowExecutionId: id, Limit: 9, Filters: filters,
		})
		must(t, err)
		if got := len(listed.GetNodeExecutions()); got != want {
			t.Errorf("%s: got %d", filters, got)
		}
	}
}
