package main

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytepropeller/pkg/apis/flyteworkflow/v1alpha1"
)

// levels are the sources of an execution's settings, strongest first.
var levels = []string{"request", "plan", "workflow", "project-domain", "project", "config"}

func from(level string) map[string]string {
	return map[string]string{"from": level, "only-" + level: "yes"}
}

func attributesFrom(level string) *admin.MatchingAttributes {
	return &admin.MatchingAttributes{Target: &admin.MatchingAttributes_WorkflowExecutionConfig{
		WorkflowExecutionConfig: &admin.WorkflowExecutionConfig{
			MaxParallelism: parallelism(level), Labels: &admin.Labels{Values: from(level)},
			Annotations: &admin.Annotations{Values: from(level)}, Envs: envsFrom(level),
			RawOutputDataConfig: rawOutputFrom(level), SecurityContext: securityFrom(level),
		},
	}}
}

func parallelism(level string) int32 {
	for i, name := range levels {
		if name == level {
			return int32(i + 1)
		}
	}
	return 0
}

func envsFrom(level string) *admin.Envs {
	return &admin.Envs{Values: []*core.KeyValuePair{{Key: "FROM", Value: level}, {Key: "ONLY_" + level, Value: "yes"}}}
}

func rawOutputFrom(level string) *admin.RawOutputDataConfig {
	return &admin.RawOutputDataConfig{OutputLocationPrefix: "s3://" + level}
}

func securityFrom(level string) *core.SecurityContext {
	return &core.SecurityContext{RunAs: &core.Identity{K8SServiceAccount: level}}
}

// settleFrom sets everything at a level and at all below it, and gives what is launched and its request.
func settleFrom(t *testing.T, first int) *harness {
	t.Helper()
	sets := func(level string) bool { return parallelism(level) > int32(first) }
	h := start(t, func(c *config) {
		if sets("config") {
			c.FlyteAdmin = applicationConfig{
				EventVersion: 2, MaxParallelism: parallelism("config"), Labels: from("config"), Annotations: from("config"),
				Envs:                 map[string]string{"FROM": "config", "ONLY_config": "yes"},
				OutputLocationPrefix: "s3://config", K8SServiceAccount: "config",
			}
		}
	})
	h.register(func(spec *admin.LaunchPlanSpec) {
		if sets("plan") {
			spec.MaxParallelism, spec.Labels = parallelism("plan"), &admin.Labels{Values: from("plan")}
			spec.Annotations = &admin.Annotations{Values: from("plan")}
			spec.Envs, spec.RawOutputDataConfig = envsFrom("plan"), rawOutputFrom("plan")
			spec.SecurityContext = securityFrom("plan")
		}
	})
	if sets("workflow") {
		_, err := h.admin.UpdateWorkflowAttributes(t.Context(), &admin.WorkflowAttributesUpdateRequest{
			Attributes: &admin.WorkflowAttributes{
				Project: project, Domain: development, Workflow: "wf", MatchingAttributes: attributesFrom("workflow"),
			},
		})
		must(t, err)
	}
	if sets("project-domain") {
		_, err := h.admin.UpdateProjectDomainAttributes(t.Context(), &admin.ProjectDomainAttributesUpdateRequest{
			Attributes: &admin.ProjectDomainAttributes{
				Project: project, Domain: development, MatchingAttributes: attributesFrom("project-domain"),
			},
		})
		must(t, err)
	}
	if sets("project") {
		_, err := h.admin.UpdateProjectAttributes(t.Context(), &admin.ProjectAttributesUpdateRequest{
			Attributes: &admin.ProjectAttributes{Project: project, MatchingAttributes: attributesFrom("project")},
		})
		must(t, err)
	}
	return h
}

func requestFrom(entity *core.Identifier, all bool) *admin.ExecutionCreateRequest {
	if !all {
		return request(entity)
	}
	return request(entity, labelled(from("request")), annotated(from("request")), func(spec *admin.ExecutionSpec) {
		spec.MaxParallelism, spec.Envs = parallelism("request"), envsFrom("request")
		spec.RawOutputDataConfig, spec.SecurityContext = rawOutputFrom("request"), securityFrom("request")
	})
}

func userMap(got map[string]string) map[string]string {
	kept := maps.Clone(got)
	for _, system := range []string{"domain", "execution-id", "project", "shard-key", "workflow-name"} {
		delete(kept, system)
	}
	return kept
}

func wantFrom(t *testing.T, level string, got *v1alpha1.FlyteWorkflow) {
	t.Helper()
	wantMap(t, "labels", userMap(got.Labels), from(level))
	wantMap(t, "annotations", got.Annotations, from(level))
	wantMap(t, "envs", got.ExecutionConfig.EnvironmentVariables, map[string]string{"FROM": level, "ONLY_" + level: "yes"})
	if want := uint32(parallelism(level)); got.ExecutionConfig.MaxParallelism != want {
		t.Errorf("max_parallelism: got %d, want %d", got.ExecutionConfig.MaxParallelism, want)
	}
	if prefix := got.RawOutputDataConfig.GetOutputLocationPrefix(); prefix != "s3://"+level {
		t.Errorf("raw output: got %s", prefix)
	}
	if got.ServiceAccountName != level || got.SecurityContext.GetRunAs().GetK8SServiceAccount() != level {
		t.Errorf("service account: got %s", got.ServiceAccountName)
	}
}

func TestTheStrongestSourceGivesTheWholeMap(t *testing.T) {
	for first, level := range levels {
		t.Run("launch plan/"+level, func(t *testing.T) {
			h := settleFrom(t, first)
			wantFrom(t, level, h.launch(requestFrom(planID("plan"), first == 0)))
		})
	}
	// A single task has neither a launch plan nor a workflow whose attributes count.
	for first, want := range []string{"request", "project-domain", "project-domain", "project-domain", "project", "config"} {
		t.Run("task/"+levels[first], func(t *testing.T) {
			h := settleFrom(t, first)
			wantFrom(t, want, h.launch(requestFrom(taskID("one"), first == 0)))
		})
	}
}

func TestOneAnnotationOfTheRequestDropsAllOfTheLaunchPlan(t *testing.T) {
	h := start(t)
	h.register(func(spec *admin.LaunchPlanSpec) {
		spec.Labels = &admin.Labels{Values: map[string]string{"plan": "yes"}}
		spec.Annotations = &admin.Annotations{Values: map[string]string{"plan": "yes"}}
	})
	got := h.launch(request(planID("plan"), annotated(map[string]string{"mine": "1"})))
	wantMap(t, "annotations", got.Annotations, map[string]string{"mine": "1"})
	wantMap(t, "labels", userMap(got.Labels), map[string]string{"plan": "yes"})
}

func TestInterruptibleAndOverwriteCache(t *testing.T) {
	yes, no := wrapperspb.Bool(true), wrapperspb.Bool(false)
	for _, test := range []struct {
		name                  string
		request, plan         *wrapperspb.BoolValue
		config, overwrite     bool
		wantSet, want, wantOC bool
	}{
		{name: "nobody says anything"},
		{name: "config says true", config: true, wantSet: true, want: true},
		{name: "a launch plan's false beats config", plan: no, config: true, wantSet: true},
		{name: "a request's true beats a launch plan's false", request: yes, plan: no, wantSet: true, want: true},
		{name: "overwrite_cache of any source holds", overwrite: true, wantOC: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t, func(c *config) { c.FlyteAdmin.Interruptible = test.config })
			h.register(func(spec *admin.LaunchPlanSpec) { spec.Interruptible, spec.OverwriteCache = test.plan, test.overwrite })
			got := h.launch(request(planID("plan"), func(spec *admin.ExecutionSpec) { spec.Interruptible = test.request })).ExecutionConfig
			if (got.Interruptible != nil) != test.wantSet || (test.wantSet && *got.Interruptible != test.want) {
				t.Errorf("interruptible: got %v", got.Interruptible)
			}
			if got.OverwriteCache != test.wantOC {
				t.Errorf("overwrite_cache: got %v", got.OverwriteCache)
			}
		})
	}
}

func TestDeprecatedAuthCountsWhereNoSourceHasASecurityContext(t *testing.T) {
	role := func(name string) *admin.AuthRole { return &admin.AuthRole{AssumableIamRole: name} }
	for _, test := range []struct {
		name    string
		request func(*admin.ExecutionSpec)
		plan    func(*admin.LaunchPlanSpec)
		want    string
	}{
		{"request", func(s *admin.ExecutionSpec) { s.AuthRole = role("a") }, func(s *admin.LaunchPlanSpec) { s.AuthRole = role("b") }, "a"},
		{"launch plan's auth_role", nil, func(s *admin.LaunchPlanSpec) { s.AuthRole, s.Role = role("b"), "d" }, "b"},
		{"launch plan's auth", nil, func(s *admin.LaunchPlanSpec) { s.Auth, s.Role = &admin.Auth{AssumableIamRole: "c"}, "d" }, "c"},
		{"launch plan's role", nil, func(s *admin.LaunchPlanSpec) { s.Role = "d" }, "d"},
		{"security context", nil, func(s *admin.LaunchPlanSpec) {
			s.Role, s.SecurityContext = "d", &core.SecurityContext{RunAs: &core.Identity{IamRole: "e"}}
		}, "e"},
		{"an empty security context says nothing", nil, func(s *admin.LaunchPlanSpec) {
			s.Role, s.SecurityContext = "d", &core.SecurityContext{RunAs: &core.Identity{}}
		}, "d"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t, func(c *config) { c.FlyteAdmin.RoleNameKey = "iam/role" })
			h.register(test.plan)
			edit := test.request
			if edit == nil {
				edit = func(*admin.ExecutionSpec) {}
			}
			wantMap(t, "annotations", h.launch(request(planID("plan"), edit)).Annotations, map[string]string{"iam/role": test.want})
		})
	}
}

func TestAUserAnnotationBeatsTheRoleOfTheSameKey(t *testing.T) {
	h := start(t, func(c *config) { c.FlyteAdmin.RoleNameKey, c.FlyteAdmin.AssumableIamRole = "iam/role", "config" })
	h.register()
	got := h.launch(request(planID("plan"), annotated(map[string]string{"iam/role": "mine", "other": "1"})))
	wantMap(t, "annotations", got.Annotations, map[string]string{"iam/role": "mine", "other": "1"})
}

func TestUserLabelsBeatTheSystemLabels(t *testing.T) {
	h := start(t)
	h.register()
	for _, entity := range []*core.Identifier{planID("plan"), taskID("one")} {
		got := h.launch(request(entity, labelled(map[string]string{"execution-id": "parent", "shard-key": "99"})))
		if got.Labels["execution-id"] != "parent" || got.Labels["shard-key"] != "99" || got.Labels["project"] != project {
			t.Errorf("got %v", got.Labels)
		}
	}
}

func TestProjectLabelsFillTheKeysThatAreFree(t *testing.T) {
	h := start(t)
	h.register()
	_, err := h.admin.UpdateProject(t.Context(), &admin.Project{
		Id: project, Labels: &admin.Labels{Values: map[string]string{"team": "project", "cost": "project"}},
	})
	must(t, err)
	for _, entity := range []*core.Identifier{planID("plan"), taskID("one")} {
		wantMap(t, "none given", userMap(h.launch(request(entity)).Labels), map[string]string{"team": "project", "cost": "project"})
		created, err := h.admin.CreateExecution(t.Context(), request(entity, labelled(map[string]string{"team": "mine"})))
		must(t, err)
		want := map[string]string{"team": "mine", "cost": "project"}
		wantMap(t, "one given", userMap(h.flyteWorkflow(created.GetId()).Labels), want)
		wantMap(t, "stored with the request's", h.execution(created.GetId()).GetSpec().GetLabels().GetValues(), want)
	}
}

func TestProjectLabelsAreNotWrittenIntoWhereLabelsCameFrom(t *testing.T) {
	attributes := func(h *harness) map[string]string {
		got, err := h.admin.GetProjectDomainAttributes(t.Context(), &admin.ProjectDomainAttributesGetRequest{
			Project: project, Domain: development, ResourceType: executionConfigKind,
		})
		must(t, err)
		return got.GetAttributes().GetMatchingAttributes().GetWorkflowExecutionConfig().GetLabels().GetValues()
	}
	plan := func(h *harness) map[string]string {
		got, err := h.admin.GetLaunchPlan(t.Context(), &admin.ObjectGetRequest{Id: planID("plan")})
		must(t, err)
		return got.GetSpec().GetLabels().GetValues()
	}
	for _, test := range []struct {
		level string
		first int
		read  func(*harness) map[string]string
	}{{"plan", 1, plan}, {"project-domain", 3, attributes}} {
		t.Run(test.level, func(t *testing.T) {
			h := settleFrom(t, test.first)
			_, err := h.admin.UpdateProject(t.Context(), &admin.Project{
				Id: project, Labels: &admin.Labels{Values: map[string]string{"team": "project"}},
			})
			must(t, err)
			want := from(test.level)
			wantMap(t, "before", test.read(h), want)
			got := h.launch(request(planID("plan"))).Labels
			if got["from"] != test.level || got["team"] != "project" {
				t.Errorf("labels: %v", got)
			}
			wantMap(t, "after", test.read(h), want)
		})
	}
}

func many(count int) map[string]string {
	made := map[string]string{}
	for i := range count {
		made["key-"+strconv.Itoa(i)] = "v"
	}
	return made
}

func TestConfiguredNumbersOfEntriesHoldForLaunchPlansAlone(t *testing.T) {
	for _, most := range []int{0, 2} {
		h := start(t, func(c *config) { c.Registration.MaxLabelEntries, c.Registration.MaxAnnotationEntries = most, most })
		h.register()
		for name, edit := range map[string]func(*admin.ExecutionSpec){
			"labels": labelled(many(3)), "annotations": annotated(many(3)),
		} {
			t.Run(fmt.Sprintf("%s/%d", name, most), func(t *testing.T) {
				_, err := h.admin.CreateExecution(t.Context(), request(planID("plan"), edit))
				if most == 0 {
					must(t, err)
				} else {
					wantError(t, err, codes.InvalidArgument, name+" has too many entries [3 > 2]")
				}
				_, err = h.admin.CreateExecution(t.Context(), request(taskID("one"), edit))
				must(t, err)
			})
		}
	}
}
