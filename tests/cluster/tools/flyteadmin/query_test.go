package main

import (
	"slices"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
)

func TestLists(t *testing.T) {
	h := start(t)
	for i := range 5 {
		spec := taskSpec("one")
		spec.Id.Version = "v" + strconv.Itoa(i)
		must(t, h.createTask(spec))
	}
	must(t, h.createTask(taskSpec("two")))
	scope := &admin.NamedEntityIdentifier{Project: project, Domain: development, Name: "one"}
	latest := &admin.Sort{Key: "created_at", Direction: admin.Sort_DESCENDING}
	for _, test := range []struct {
		name    string
		request *admin.ResourceListRequest
		want    []string
		token   string
		part    string
	}{
		{"all", &admin.ResourceListRequest{Id: scope, Limit: 9}, []string{"v0", "v1", "v2", "v3", "v4"}, "", ""},
		{"the latest", &admin.ResourceListRequest{Id: scope, Limit: 1, SortBy: latest}, []string{"v4"}, "1", ""},
		{"a page", &admin.ResourceListRequest{Id: scope, Limit: 2, Token: "2"}, []string{"v2", "v3"}, "4", ""},
		{"beyond", &admin.ResourceListRequest{Id: scope, Limit: 2, Token: "9"}, nil, "", ""},
		{"eq", &admin.ResourceListRequest{Id: scope, Limit: 9, Filters: "eq(version,v3)"}, []string{"v3"}, "", ""},
		{"two filters", &admin.ResourceListRequest{Id: scope, Limit: 9, Filters: "ne(version,v3)+value_in(version,v2;v3;v4)"}, []string{"v2", "v4"}, "", ""},
		{"gte", &admin.ResourceListRequest{Id: scope, Limit: 9, Filters: "gte(version, v3)"}, []string{"v3", "v4"}, "", ""},
		{"no limit", &admin.ResourceListRequest{Id: scope}, nil, "", "invalid value for limit"},
		{"a bad token", &admin.ResourceListRequest{Id: scope, Limit: 1, Token: "-1"}, nil, "", "invalid pagination token"},
		{"a bad filter", &admin.ResourceListRequest{Id: scope, Limit: 1, Filters: "version=v3"}, nil, "", "filters"},
		{"an unknown column", &admin.ResourceListRequest{Id: scope, Limit: 1, Filters: "eq(colour,red)"}, nil, "", "'colour' is invalid filter"},
		{"an unknown function", &admin.ResourceListRequest{Id: scope, Limit: 1, Filters: "like(version,v)"}, nil, "", "unrecognized filter function: like"},
		{"no project", &admin.ResourceListRequest{Id: &admin.NamedEntityIdentifier{Domain: "d"}, Limit: 1}, nil, "", "missing project"},
	} {
		t.Run(test.name, func(t *testing.T) {
			listed, err := h.admin.ListTasks(t.Context(), test.request)
			if test.part != "" {
				wantError(t, err, codes.InvalidArgument, test.part)
				return
			}
			must(t, err)
			var got []string
			for _, task := range listed.GetTasks() {
				got = append(got, task.GetId().GetVersion())
			}
			if !slices.Equal(got, test.want) || listed.GetToken() != test.token {
				t.Errorf("got %v, token %q", got, listed.GetToken())
			}
		})
	}
	ids, err := h.admin.ListTaskIds(t.Context(), &admin.NamedEntityIdentifierListRequest{Project: project, Domain: development, Limit: 9})
	must(t, err)
	if got := ids.GetEntities(); len(got) != 2 || got[0].GetName() != "one" || got[1].GetName() != "two" {
		t.Errorf("ids: %v", got)
	}
}

func TestExecutionsAreListedByLaunchPlan(t *testing.T) {
	h := start(t)
	h.register()
	h.launch(request(planID("plan")))
	h.launch(request(taskID("one")))
	scope := &admin.NamedEntityIdentifier{Project: project, Domain: development}
	for filters, want := range map[string]int{
		"": 2, "eq(launch_plan.name,plan)": 1, "eq(task.name,one)": 1, "eq(phase,RUNNING)": 0, "eq(workflow.name,wf)": 1,
	} {
		listed, err := h.admin.ListExecutions(t.Context(), &admin.ResourceListRequest{Id: scope, Limit: 9, Filters: filters})
		must(t, err)
		if got := len(listed.GetExecutions()); got != want {
			t.Errorf("%s: got %d", filters, got)
		}
	}
}

func TestWhatIsNotThereSaysSo(t *testing.T) {
	h := start(t)
	_, err := h.admin.RecoverExecution(t.Context(), &admin.ExecutionRecoverRequest{})
	wantError(t, err, codes.Unimplemented, "FlyteAdmin's stand-in does not have this part")
	// Without auth FlyteAdmin has no AuthMetadataService either, and clients go on without it.
	err = h.conn.Invoke(t.Context(), "/flyteidl.service.AuthMetadataService/GetOAuth2Metadata", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
	wantError(t, err, codes.Unimplemented, "unknown service")
	_, err = h.admin.UpdateProjectAttributes(t.Context(), &admin.ProjectAttributesUpdateRequest{Attributes: &admin.ProjectAttributes{
		Project: project, MatchingAttributes: &admin.MatchingAttributes{Target: &admin.MatchingAttributes_PluginOverrides{}},
	}})
	wantError(t, err, codes.Unimplemented, "WORKFLOW_EXECUTION_CONFIG and TASK_RESOURCE")
	health, err := grpc_health_v1.NewHealthClient(h.conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	must(t, err)
	if health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v", health)
	}
	found, err := h.admin.GetVersion(t.Context(), &admin.GetVersionRequest{})
	must(t, err)
	if found.GetControlPlaneVersion().GetVersion() != version {
		t.Errorf("version: %v", found)
	}
}
