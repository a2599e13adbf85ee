package main

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/event"
)

func TestListsOfWorkflowsAndLaunchPlans(t *testing.T) {
	h := start(t)
	h.register()
	must(t, h.createPlan("other", "wf"))
	second := planID("plan")
	second.Version = "v2"
	_, err := h.admin.CreateLaunchPlan(t.Context(), &admin.LaunchPlanCreateRequest{
		Id: second, Spec: &admin.LaunchPlanSpec{WorkflowId: workflowID("wf")},
	})
	must(t, err)
	_, err = h.admin.UpdateLaunchPlan(t.Context(), &admin.LaunchPlanUpdateRequest{Id: second, State: admin.LaunchPlanState_ACTIVE})
	must(t, err)
	// A single task is launched through a workflow and a plan that are made for it.
	h.launch(request(taskID("one")))
	const generated = ".flytegen.one"

	listed := func(name, filters string) []string {
		t.Helper()
		found, err := h.admin.ListLaunchPlans(t.Context(), &admin.ResourceListRequest{
			Id: &admin.NamedEntityIdentifier{Project: project, Domain: development, Name: name}, Limit: 9, Filters: filters,
		})
		must(t, err)
		var got []string
		for _, plan := range found.GetLaunchPlans() {
			got = append(got, plan.GetId().GetName()+" "+plan.GetId().GetVersion())
		}
		slices.Sort(got)
		return got
	}
	for _, test := range []struct {
		name, filters string
		want          []string
	}{
		{"plan", "", []string{"plan v1", "plan v2"}},
		{"plan", "eq(state,1)", []string{"plan v2"}},
		{"plan", "eq(state,0)", []string{"plan v1"}},
		{"", "eq(workflow.name,wf)", []string{"other v1", "plan v1", "plan v2"}},
		{"none", "", nil},
	} {
		if got := listed(test.name, test.filters); !slices.Equal(got, test.want) {
			t.Errorf("%s %s: got %v", test.name, test.filters, got)
		}
	}

	scope := &admin.NamedEntityIdentifierListRequest{Project: project, Domain: development, Limit: 9}
	plans, err := h.admin.ListLaunchPlanIds(t.Context(), scope)
	must(t, err)
	workflows, err := h.admin.ListWorkflowIds(t.Context(), scope)
	must(t, err)
	for what, test := range map[string]struct {
		got  []*admin.NamedEntityIdentifier
		want []string
	}{
		"plans": {plans.GetEntities(), []string{"plan", "other"}}, "workflows": {workflows.GetEntities(), []string{"wf"}},
	} {
		var got []string
		for _, entity := range test.got {
			got = append(got, entity.GetName())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("names of %s: got %v", what, got)
		}
	}
	if got := listed(generated, ""); len(got) != 1 {
		t.Errorf("the plan that was made for the task: %v", got)
	}

	found, err := h.admin.ListWorkflows(t.Context(), &admin.ResourceListRequest{
		Id: &admin.NamedEntityIdentifier{Project: project, Domain: development, Name: "wf"}, Limit: 9,
	})
	must(t, err)
	if len(found.GetWorkflows()) != 1 {
		t.Fatalf("workflows: %v", found)
	}
	closure := found.GetWorkflows()[0].GetClosure()
	template := closure.GetCompiledWorkflow().GetPrimary().GetTemplate()
	if template.GetInterface().GetInputs().GetVariables()["x"] == nil || closure.GetCreatedAt() == nil {
		t.Errorf("closure: %v", closure)
	}
	if len(template.GetNodes()) != 0 || len(closure.GetCompiledWorkflow().GetTasks()) != 0 {
		t.Errorf("more than the interface: %v", closure)
	}
}

func TestDomains(t *testing.T) {
	h := start(t, func(c *config) { c.Domains = c.Domains[:2] })
	found, err := h.admin.GetDomains(t.Context(), &admin.GetDomainRequest{})
	must(t, err)
	var got []string
	for _, domain := range found.GetDomains() {
		got = append(got, domain.GetId()+" "+domain.GetName())
	}
	if !slices.Equal(got, []string{"development development", "staging staging"}) {
		t.Errorf("got %v", got)
	}
}

func TestNodesOfATask(t *testing.T) {
	h := start(t)
	id, node := h.launched()
	_, err := h.admin.CreateNodeEvent(t.Context(), nodeEvent(node, core.NodeExecution_RUNNING))
	must(t, err)
	_, err = h.admin.CreateTaskEvent(t.Context(), taskEvent(node, core.TaskExecution_RUNNING, 0))
	must(t, err)
	attempt := &core.TaskExecutionIdentifier{TaskId: taskID("one"), NodeExecutionId: node}
	unknown := &core.TaskExecutionIdentifier{TaskId: taskID("one"), NodeExecutionId: node, RetryAttempt: 1}

	made := nodeEvent(&core.NodeExecutionIdentifier{ExecutionId: id, NodeId: "of-task"}, core.NodeExecution_QUEUED)
	for of, code := range map[*core.TaskExecutionIdentifier]codes.Code{unknown: codes.NotFound, attempt: codes.OK} {
		made.Event.ParentTaskMetadata = &event.ParentTaskExecutionMetadata{Id: of}
		_, err := h.admin.CreateNodeEvent(t.Context(), made)
		wantError(t, err, code, "")
	}

	for _, test := range []struct {
		name  string
		of    *core.TaskExecutionIdentifier
		limit uint32
		code  codes.Code
	}{
		{"its nodes", attempt, 9, codes.OK},
		{"an attempt that is not there", unknown, 9, codes.NotFound},
		{"no limit", attempt, 0, codes.InvalidArgument},
	} {
		t.Run(test.name, func(t *testing.T) {
			listed, err := h.admin.ListNodeExecutionsForTask(t.Context(), &admin.NodeExecutionForTaskListRequest{
				TaskExecutionId: test.of, Limit: test.limit,
			})
			wantError(t, err, test.code, "")
			if got := listed.GetNodeExecutions(); err == nil && (len(got) != 1 || got[0].GetId().GetNodeId() != "of-task") {
				t.Errorf("got %v", got)
			}
		})
	}
	// They are the task's, not the workflow's.
	listed, err := h.admin.ListNodeExecutions(t.Context(), &admin.NodeExecutionListRequest{WorkflowExecutionId: id, Limit: 9})
	must(t, err)
	if got := listed.GetNodeExecutions(); len(got) != 1 || got[0].GetId().GetNodeId() != "n0" {
		t.Errorf("the workflow's: %v", got)
	}

	found, err := h.admin.GetTaskExecution(t.Context(), &admin.TaskExecutionGetRequest{Id: attempt})
	must(t, err)
	if found.GetClosure().GetPhase() != core.TaskExecution_RUNNING || found.GetClosure().GetTaskType() != "python-task" {
		t.Errorf("attempt: %v", found)
	}
	_, err = h.admin.GetTaskExecution(t.Context(), &admin.TaskExecutionGetRequest{Id: unknown})
	wantError(t, err, codes.NotFound, "task execution")
}
