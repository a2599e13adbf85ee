package main

import (
	"maps"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

// labelCases are the rules of labels, which hold for requests, launch plans and projects alike.
var labelCases = []struct {
	name   string
	labels map[string]string
	code   codes.Code
	part   string
}{
	{"none", nil, codes.OK, ""},
	{"16", many(16), codes.OK, ""},
	{"17", many(17), codes.InvalidArgument, "labels map cannot exceed 16 entries"},
	{"with a prefix", map[string]string{"example.com/a": "B_1.c"}, codes.OK, ""},
	{"an empty value", map[string]string{"a": ""}, codes.OK, ""},
	{"a space in the key", map[string]string{"a b": "c"}, codes.InvalidArgument, "invalid label key [a b]"},
	{"an empty key", map[string]string{"": "c"}, codes.InvalidArgument, "invalid label key []"},
	{"two slashes", map[string]string{"a/b/c": "d"}, codes.InvalidArgument, "invalid label key [a/b/c]"},
	{"JSON as a value", map[string]string{"a": "{}"}, codes.InvalidArgument, "invalid label value [{}]"},
	{"64 letters", map[string]string{"a": strings.Repeat("x", 64)}, codes.InvalidArgument, "invalid label value"},
}

func TestLabels(t *testing.T) {
	for _, test := range labelCases {
		t.Run(test.name, func(t *testing.T) {
			h := start(t)
			h.register()
			labels := &admin.Labels{Values: test.labels}
			for _, entity := range []*core.Identifier{planID("plan"), taskID("one")} {
				_, err := h.admin.CreateExecution(t.Context(), request(entity, labelled(maps.Clone(test.labels))))
				wantError(t, err, test.code, test.part)
			}
			err := h.createPlan("other", "wf", func(spec *admin.LaunchPlanSpec) { spec.Labels = labels })
			wantError(t, err, test.code, test.part)
			_, err = h.admin.UpdateProject(t.Context(), &admin.Project{Id: project, Labels: labels})
			wantError(t, err, test.code, test.part)
		})
	}
}

func TestAnnotationsAreNotValidated(t *testing.T) {
	h := start(t)
	h.register(func(spec *admin.LaunchPlanSpec) { spec.Annotations = &admin.Annotations{Values: many(17)} })
	wantMap(t, "17 of a launch plan", h.launch(request(planID("plan"))).Annotations, many(17))
	odd := map[string]string{"a b": strings.Repeat("{}", 100)}
	wantMap(t, "an odd one", h.launch(request(planID("plan"), annotated(odd))).Annotations, odd)
}

func TestLaunchRequests(t *testing.T) {
	edit := func(change func(*admin.ExecutionCreateRequest)) *admin.ExecutionCreateRequest {
		made := request(planID("plan"))
		change(made)
		return made
	}
	named := func(name string) *admin.ExecutionCreateRequest {
		return edit(func(r *admin.ExecutionCreateRequest) { r.Name = name })
	}
	h := start(t)
	h.register()
	for _, test := range []struct {
		name    string
		request *admin.ExecutionCreateRequest
		code    codes.Code
		part    string
	}{
		{"no name", named(""), codes.OK, ""},
		{"a name", named("a-1"), codes.OK, ""},
		{"capitals pass here", named("Abc"), codes.OK, ""},
		{"a digit first", named("1a"), codes.InvalidArgument, "invalid name format: 1a"},
		{"an underscore", named("a_b"), codes.InvalidArgument, "does not match regex"},
		{"63 letters", named(strings.Repeat("a", 63)), codes.OK, ""},
		{"64 letters", named(strings.Repeat("a", 64)), codes.InvalidArgument, "exceeded length 63"},
		{"no project", edit(func(r *admin.ExecutionCreateRequest) { r.Project = "" }), codes.InvalidArgument, "missing project"},
		{"no domain", edit(func(r *admin.ExecutionCreateRequest) { r.Domain = "" }), codes.InvalidArgument, "missing domain"},
		{"an unknown project", edit(func(r *admin.ExecutionCreateRequest) { r.Project = "x" }), codes.InvalidArgument, "project [x]"},
		{"an unknown domain", edit(func(r *admin.ExecutionCreateRequest) { r.Domain = "x" }), codes.InvalidArgument, "domain [x] is unrecognized"},
		{"no spec", edit(func(r *admin.ExecutionCreateRequest) { r.Spec = nil }), codes.InvalidArgument, "missing spec"},
		{"no launch plan", edit(func(r *admin.ExecutionCreateRequest) { r.Spec.LaunchPlan = nil }), codes.InvalidArgument, "missing id"},
		{"a workflow", request(workflowID("wf")), codes.InvalidArgument, "Invalid reference entity"},
		{"an unknown launch plan", request(planID("no")), codes.NotFound, "LAUNCH_PLAN"},
		{"an unknown task", request(taskID("no")), codes.NotFound, "TASK"},
		{"another domain of the project", edit(func(r *admin.ExecutionCreateRequest) { r.Domain = "production" }), codes.OK, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := h.admin.CreateExecution(t.Context(), test.request)
			wantError(t, err, test.code, test.part)
		})
	}
}

func TestAnArchivedProjectTakesNothing(t *testing.T) {
	h := start(t)
	h.register()
	_, err := h.admin.UpdateProject(t.Context(), &admin.Project{Id: project, State: admin.Project_ARCHIVED})
	must(t, err)
	wantError(t, h.createTask(taskSpec("two")), codes.InvalidArgument, "is not active")
	_, err = h.admin.CreateExecution(t.Context(), request(planID("plan")))
	wantError(t, err, codes.InvalidArgument, "is not active")
	listed, err := h.admin.ListProjects(t.Context(), &admin.ProjectListRequest{Limit: 10})
	must(t, err)
	if len(listed.GetProjects()) != 0 {
		t.Errorf("listed: %v", listed)
	}
}

func TestProjects(t *testing.T) {
	h := start(t)
	register := func(project *admin.Project) error {
		_, err := h.admin.RegisterProject(t.Context(), &admin.ProjectRegisterRequest{Project: project})
		return err
	}
	for _, test := range []struct {
		name    string
		project *admin.Project
		code    codes.Code
		part    string
	}{
		{"new", &admin.Project{Id: "speech", Name: "Speech"}, codes.OK, ""},
		{"again", &admin.Project{Id: "speech", Name: "Speech"}, codes.AlreadyExists, "speech"},
		{"no name", &admin.Project{Id: "other"}, codes.InvalidArgument, "missing project_name"},
		{"no id", &admin.Project{Name: "x"}, codes.InvalidArgument, "missing project_id"},
		{"an id that is no DNS label", &admin.Project{Id: "A_b", Name: "x"}, codes.InvalidArgument, "invalid project id [A_b]"},
		{"a long name", &admin.Project{Id: "a", Name: strings.Repeat("x", 65)}, codes.InvalidArgument, "64 characters"},
		{"with domains", &admin.Project{Id: "a", Name: "x", Domains: []*admin.Domain{{Id: "d"}}}, codes.InvalidArgument, "system wide"},
	} {
		t.Run(test.name, func(t *testing.T) { wantError(t, register(test.project), test.code, test.part) })
	}
	listed, err := h.admin.ListProjects(t.Context(), &admin.ProjectListRequest{Limit: 10})
	must(t, err)
	if got := listed.GetProjects(); len(got) != 2 || got[0].GetId() != project || len(got[1].GetDomains()) != 3 {
		t.Errorf("got %v", got)
	}
	_, err = h.admin.GetProject(t.Context(), &admin.ProjectGetRequest{Id: "none"})
	wantError(t, err, codes.NotFound, "none")
}
