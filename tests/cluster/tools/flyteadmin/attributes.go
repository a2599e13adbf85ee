package main

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
)

// matching is a copy of the most specific attributes of a type: the workflow's, else the project-domain's,
// else the project's; nil where there are none.
// Source: flyteadmin/pkg/repositories/gormimpl/resource_repo.go:89 (Get), models/resource.go:8 (priorities).
func (s *adminServer) matching(
	kind admin.MatchableResource, project, domain, workflow string,
) *admin.MatchingAttributes {
	scopes := []string{attributesKey(kind, project, "", "")}
	if domain != "" {
		scopes = append(scopes, attributesKey(kind, project, domain, ""))
	}
	if domain != "" && workflow != "" {
		scopes = append(scopes, attributesKey(kind, project, domain, workflow))
	}
	for i := len(scopes) - 1; i >= 0; i-- {
		if found, ok := s.store.attributes.get(scopes[i]); ok {
			return proto.CloneOf(found.GetAttributes())
		}
	}
	return nil
}

func attributesKey(kind admin.MatchableResource, project, domain, workflow string) string {
	return key(kind.String(), project, domain, workflow)
}

// attributesKind is the type of what is set. FlyteAdmin knows more types; one that no rule of this server
// reads is refused rather than stored and ignored.
func attributesKind(attributes *admin.MatchingAttributes) (admin.MatchableResource, error) {
	switch attributes.GetTarget().(type) {
	case *admin.MatchingAttributes_WorkflowExecutionConfig:
		return admin.MatchableResource_WORKFLOW_EXECUTION_CONFIG, nil
	case *admin.MatchingAttributes_TaskResourceAttributes:
		return admin.MatchableResource_TASK_RESOURCE, nil
	case nil:
		return 0, missing("matching_attributes")
	default:
		return 0, status.Errorf(codes.Unimplemented,
			"attributes of type %T: this server knows WORKFLOW_EXECUTION_CONFIG and TASK_RESOURCE", attributes.GetTarget())
	}
}

func (s *adminServer) putAttributes(project, domain, workflow string, attributes *admin.MatchingAttributes) error {
	kind, err := attributesKind(attributes)
	if err != nil {
		return err
	}
	row := &admin.MatchableAttributesConfiguration{
		Project: project, Domain: domain, Workflow: workflow, Attributes: attributes,
	}
	return s.store.attributes.change(attributesKey(kind, project, domain, workflow),
		func(*admin.MatchableAttributesConfiguration, bool) (*admin.MatchableAttributesConfiguration, error) {
			return row, nil
		})
}

func (s *adminServer) UpdateProjectDomainAttributes(
	_ context.Context, request *admin.ProjectDomainAttributesUpdateRequest,
) (*admin.ProjectDomainAttributesUpdateResponse, error) {
	given := request.GetAttributes()
	if given == nil {
		return nil, missing("attributes")
	}
	if err := s.validateProjectAndDomain(given.GetProject(), given.GetDomain()); err != nil {
		return nil, err
	}
	err := s.putAttributes(given.GetProject(), given.GetDomain(), "", given.GetMatchingAttributes())
	return &admin.ProjectDomainAttributesUpdateResponse{}, err
}

func (s *adminServer) GetProjectDomainAttributes(
	_ context.Context, request *admin.ProjectDomainAttributesGetRequest,
) (*admin.ProjectDomainAttributesGetResponse, error) {
	if err := s.validateProjectAndDomain(request.GetProject(), request.GetDomain()); err != nil {
		return nil, err
	}
	found := s.matching(request.GetResourceType(), request.GetProject(), request.GetDomain(), "")
	if found == nil {
		return nil, notFound("Resource", request)
	}
	return &admin.ProjectDomainAttributesGetResponse{Attributes: &admin.ProjectDomainAttributes{
		Project: request.GetProject(), Domain: request.GetDomain(), MatchingAttributes: found,
	}}, nil
}

func (s *adminServer) DeleteProjectDomainAttributes(
	_ context.Context, request *admin.ProjectDomainAttributesDeleteRequest,
) (*admin.ProjectDomainAttributesDeleteResponse, error) {
	if err := s.validateProjectAndDomain(request.GetProject(), request.GetDomain()); err != nil {
		return nil, err
	}
	s.store.attributes.remove(attributesKey(request.GetResourceType(), request.GetProject(), request.GetDomain(), ""))
	return &admin.ProjectDomainAttributesDeleteResponse{}, nil
}

func (s *adminServer) UpdateWorkflowAttributes(
	_ context.Context, request *admin.WorkflowAttributesUpdateRequest,
) (*admin.WorkflowAttributesUpdateResponse, error) {
	given := request.GetAttributes()
	if given == nil {
		return nil, missing("attributes")
	}
	if err := s.validateWorkflowScope(given.GetProject(), given.GetDomain(), given.GetWorkflow()); err != nil {
		return nil, err
	}
	err := s.putAttributes(given.GetProject(), given.GetDomain(), given.GetWorkflow(), given.GetMatchingAttributes())
	return &admin.WorkflowAttributesUpdateResponse{}, err
}

func (s *adminServer) GetWorkflowAttributes(
	_ context.Context, request *admin.WorkflowAttributesGetRequest,
) (*admin.WorkflowAttributesGetResponse, error) {
	if err := s.validateWorkflowScope(request.GetProject(), request.GetDomain(), request.GetWorkflow()); err != nil {
		return nil, err
	}
	found := s.matching(request.GetResourceType(), request.GetProject(), request.GetDomain(), request.GetWorkflow())
	if found == nil {
		return nil, notFound("Resource", request)
	}
	return &admin.WorkflowAttributesGetResponse{Attributes: &admin.WorkflowAttributes{
		Project: request.GetProject(), Domain: request.GetDomain(), Workflow: request.GetWorkflow(),
		MatchingAttributes: found,
	}}, nil
}

func (s *adminServer) DeleteWorkflowAttributes(
	_ context.Context, request *admin.WorkflowAttributesDeleteRequest,
) (*admin.WorkflowAttributesDeleteResponse, error) {
	if err := s.validateWorkflowScope(request.GetProject(), request.GetDomain(), request.GetWorkflow()); err != nil {
		return nil, err
	}
	s.store.attributes.remove(attributesKey(
		request.GetResourceType(), request.GetProject(), request.GetDomain(), request.GetWorkflow()))
	return &admin.WorkflowAttributesDeleteResponse{}, nil
}

func (s *adminServer) validateWorkflowScope(project, domain, workflow string) error {
	if err := s.validateProjectAndDomain(project, domain); err != nil {
		return err
	}
	return required(field{"name", workflow})
}

func (s *adminServer) UpdateProjectAttributes(
	_ context.Context, request *admin.ProjectAttributesUpdateRequest,
) (*admin.ProjectAttributesUpdateResponse, error) {
	given := request.GetAttributes()
	if given == nil {
		return nil, missing("attributes")
	}
	if err := s.validateProject(given.GetProject(), true); err != nil {
		return nil, err
	}
	err := s.putAttributes(given.GetProject(), "", "", given.GetMatchingAttributes())
	return &admin.ProjectAttributesUpdateResponse{}, err
}

// GetProjectAttributes fills an execution config from FlyteAdmin's config, and is FlyteAdmin's config where
// the project has none (flyteadmin/pkg/manager/impl/resources/resource_manager.go:204).
func (s *adminServer) GetProjectAttributes(
	_ context.Context, request *admin.ProjectAttributesGetRequest,
) (*admin.ProjectAttributesGetResponse, error) {
	if err := s.validateProject(request.GetProject(), false); err != nil {
		return nil, err
	}
	found := s.matching(request.GetResourceType(), request.GetProject(), "", "")
	if request.GetResourceType() == admin.MatchableResource_WORKFLOW_EXECUTION_CONFIG {
		merged := found.GetWorkflowExecutionConfig()
		if merged == nil {
			merged = &admin.WorkflowExecutionConfig{}
		}
		mergeExecutionConfig(merged, &s.config.FlyteAdmin)
		found = &admin.MatchingAttributes{
			Target: &admin.MatchingAttributes_WorkflowExecutionConfig{WorkflowExecutionConfig: merged},
		}
	}
	if found == nil {
		return nil, notFound("Resource", request)
	}
	return &admin.ProjectAttributesGetResponse{
		Attributes: &admin.ProjectAttributes{Project: request.GetProject(), MatchingAttributes: found},
	}, nil
}

func (s *adminServer) DeleteProjectAttributes(
	_ context.Context, request *admin.ProjectAttributesDeleteRequest,
) (*admin.ProjectAttributesDeleteResponse, error) {
	if err := s.validateProject(request.GetProject(), true); err != nil {
		return nil, err
	}
	s.store.attributes.remove(attributesKey(request.GetResourceType(), request.GetProject(), "", ""))
	return &admin.ProjectAttributesDeleteResponse{}, nil
}

// validateProject wants a registered project, which must be active to be changed
// (flyteadmin/pkg/manager/impl/validation/project_validator.go:90, 108).
func (s *adminServer) validateProject(id string, change bool) error {
	known, ok := s.store.projects.get(id)
	if !ok {
		return invalid("failed to validate that project [%s] is registered, err: [%v]", id, notFound("project", id))
	}
	if change && known.GetState() != admin.Project_ACTIVE {
		return invalid("project [%s] is not active", id)
	}
	return nil
}
