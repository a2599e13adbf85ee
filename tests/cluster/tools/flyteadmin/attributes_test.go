package main

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
)

const executionConfigKind = admin.MatchableResource_WORKFLOW_EXECUTION_CONFIG

func TestAttributesAreReadChangedAndDeleted(t *testing.T) {
	h := settleFrom(t, 2)
	workflow := func() (string, error) {
		found, err := h.admin.GetWorkflowAttributes(t.Context(), &admin.WorkflowAttributesGetRequest{
			Project: project, Domain: development, Workflow: "wf", ResourceType: executionConfigKind,
		})
		return found.GetAttributes().GetMatchingAttributes().GetWorkflowExecutionConfig().GetLabels().GetValues()["from"], err
	}
	want := func(level string) {
		t.Helper()
		got, err := workflow()
		must(t, err)
		if got != level {
			t.Errorf("got %s, want %s", got, level)
		}
	}
	want("workflow")
	_, err := h.admin.DeleteWorkflowAttributes(t.Context(), &admin.WorkflowAttributesDeleteRequest{
		Project: project, Domain: development, Workflow: "wf", ResourceType: executionConfigKind,
	})
	must(t, err)
	want("project-domain")
	found, err := h.admin.GetProjectDomainAttributes(t.Context(), &admin.ProjectDomainAttributesGetRequest{
		Project: project, Domain: development, ResourceType: executionConfigKind,
	})
	must(t, err)
	wantMap(t, "project-domain", found.GetAttributes().GetMatchingAttributes().GetWorkflowExecutionConfig().GetLabels().GetValues(), from("project-domain"))
	_, err = h.admin.DeleteProjectDomainAttributes(t.Context(), &admin.ProjectDomainAttributesDeleteRequest{
		Project: project, Domain: development, ResourceType: executionConfigKind,
	})
	must(t, err)
	want("project")
	_, err = h.admin.DeleteProjectAttributes(t.Context(), &admin.ProjectAttributesDeleteRequest{Project: project, ResourceType: executionConfigKind})
	must(t, err)
	_, err = workflow()
	wantError(t, err, codes.NotFound, "")
	// A project without attributes shows those of the config.
	got, err := h.admin.GetProjectAttributes(t.Context(), &admin.ProjectAttributesGetRequest{Project: project, ResourceType: executionConfigKind})
	must(t, err)
	wantMap(t, "config", got.GetAttributes().GetMatchingAttributes().GetWorkflowExecutionConfig().GetLabels().GetValues(), from("config"))
}

func TestAttributesOfWhatIsNotThere(t *testing.T) {
	h := start(t)
	_, err := h.admin.UpdateProjectAttributes(t.Context(), &admin.ProjectAttributesUpdateRequest{})
	wantError(t, err, codes.InvalidArgument, "missing attributes")
	_, err = h.admin.UpdateProjectAttributes(t.Context(), &admin.ProjectAttributesUpdateRequest{
		Attributes: &admin.ProjectAttributes{Project: "none", MatchingAttributes: attributesFrom("project")},
	})
	wantError(t, err, codes.InvalidArgument, "project [none]")
	_, err = h.admin.UpdateProjectDomainAttributes(t.Context(), &admin.ProjectDomainAttributesUpdateRequest{
		Attributes: &admin.ProjectDomainAttributes{Project: project, Domain: "none", MatchingAttributes: attributesFrom("project")},
	})
	wantError(t, err, codes.InvalidArgument, "domain [none]")
	_, err = h.admin.UpdateWorkflowAttributes(t.Context(), &admin.WorkflowAttributesUpdateRequest{
		Attributes: &admin.WorkflowAttributes{Project: project, Domain: development, MatchingAttributes: attributesFrom("project")},
	})
	wantError(t, err, codes.InvalidArgument, "missing name")
	_, err = h.admin.UpdateProjectDomainAttributes(t.Context(), &admin.ProjectDomainAttributesUpdateRequest{
		Attributes: &admin.ProjectDomainAttributes{Project: project, Domain: development},
	})
	wantError(t, err, codes.InvalidArgument, "missing matching_attributes")
}
