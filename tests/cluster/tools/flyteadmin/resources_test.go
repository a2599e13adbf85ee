package main

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

func shown(list []*core.Resources_ResourceEntry) string {
	var parts []string
	for _, entry := range list {
		parts = append(parts, fmt.Sprintf("%s=%s", entry.GetName(), entry.GetValue()))
	}
	return strings.Join(parts, " ")
}

func TestResourcesAtLaunch(t *testing.T) {
	for _, test := range []struct {
		name             string
		requests, limits []*core.Resources_ResourceEntry
		want, wantLimits string
	}{
		{"by default", nil, nil, "CPU=2 MEMORY=200Mi", "CPU=2 MEMORY=200Mi"},
		{"the limit is the request", entries("CPU", "1"), nil, "CPU=1 MEMORY=200Mi", "CPU=1 MEMORY=200Mi"},
		{"the request is the limit", nil, entries("CPU", "1"), "CPU=1 MEMORY=200Mi", "CPU=1 MEMORY=200Mi"},
		{"cut to the platform's limit", nil, entries("CPU", "8"), "CPU=2 MEMORY=200Mi", "CPU=2 MEMORY=200Mi"},
		{"both", entries("MEMORY", "300Mi"), entries("MEMORY", "400Mi"), "CPU=2 MEMORY=300Mi", "CPU=2 MEMORY=400Mi"},
		{"a GPU", entries("GPU", "1"), nil, "CPU=2 MEMORY=200Mi GPU=1", "CPU=2 MEMORY=200Mi GPU=1"},
		{
			"storage", entries("EPHEMERAL_STORAGE", "1Gi"), nil,
			"CPU=2 MEMORY=200Mi EPHEMERAL_STORAGE=1Gi", "CPU=2 MEMORY=200Mi EPHEMERAL_STORAGE=1Gi",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t)
			must(t, h.createTask(taskSpec("one", func(task *core.TaskTemplate) {
				task.GetContainer().Resources = &core.Resources{Requests: test.requests, Limits: test.limits}
			})))
			for _, task := range h.launch(request(taskID("one"))).Tasks {
				resources := task.GetContainer().GetResources()
				if got := shown(resources.GetRequests()); got != test.want {
					t.Errorf("requests: got %s, want %s", got, test.want)
				}
				if got := shown(resources.GetLimits()); got != test.wantLimits {
					t.Errorf("limits: got %s, want %s", got, test.wantLimits)
				}
			}
			registered, err := h.admin.GetTask(t.Context(), &admin.ObjectGetRequest{Id: taskID("one")})
			must(t, err)
			wrapped, err := h.admin.GetWorkflow(t.Context(), &admin.ObjectGetRequest{Id: workflowID(generatedPrefix + "one")})
			must(t, err)
			for _, kept := range append(wrapped.GetClosure().GetCompiledWorkflow().GetTasks(), registered.GetClosure().GetCompiledTask()) {
				if got := shown(kept.GetTemplate().GetContainer().GetResources().GetRequests()); got != shown(test.requests) {
					t.Errorf("what is registered is now %s", got)
				}
			}
		})
	}
}

func TestResourceAttributesStandForTheWholeConfig(t *testing.T) {
	h := start(t, func(c *config) { c.TaskResources.Defaults.GPU = resource.MustParse("1") })
	h.register()
	_, err := h.admin.UpdateProjectDomainAttributes(t.Context(), &admin.ProjectDomainAttributesUpdateRequest{
		Attributes: &admin.ProjectDomainAttributes{
			Project: project, Domain: development,
			MatchingAttributes: &admin.MatchingAttributes{Target: &admin.MatchingAttributes_TaskResourceAttributes{
				TaskResourceAttributes: &admin.TaskResourceAttributes{
					Defaults: &admin.TaskResourceSpec{Cpu: "3", Memory: "no quantity"}, Limits: &admin.TaskResourceSpec{Cpu: "4"},
				},
			}},
		},
	})
	must(t, err)
	got := h.launch(request(planID("plan")))
	for _, task := range got.Tasks {
		if requests := shown(task.GetContainer().GetResources().GetRequests()); requests != "CPU=3 MEMORY=0" {
			t.Errorf("got %s", requests)
		}
	}
	platform := got.ExecutionConfig.TaskResources
	if platform.Requests.CPU.String() != "3" || platform.Limits.CPU.String() != "4" || !platform.Limits.Memory.IsZero() {
		t.Errorf("got %+v", platform)
	}
	must(t, h.createTask(taskSpec("big", func(task *core.TaskTemplate) {
		task.GetContainer().Resources = &core.Resources{Requests: entries("CPU", "4", "GPU", "8")}
	})))
}
