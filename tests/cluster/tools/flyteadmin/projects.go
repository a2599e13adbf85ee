package main

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
)

// defaultProject is the project that is there from the start.
const defaultProject = "flytesnacks"

// RegisterProject adds a project (flyteadmin/pkg/manager/impl/project_manager.go:31).
func (s *adminServer) RegisterProject(
	_ context.Context, request *admin.ProjectRegisterRequest,
) (*admin.ProjectRegisterResponse, error) {
	project := request.GetProject()
	if project == nil {
		return nil, missing("project")
	}
	if err := required(field{"project_name", project.GetName()}); err != nil {
		return nil, err
	}
	if err := validateProjectFields(project); err != nil {
		return nil, err
	}
	if !s.store.projects.create(project.GetId(), project) {
		return nil, alreadyExists("project %s already exists", project.GetId())
	}
	return &admin.ProjectRegisterResponse{}, nil
}

// UpdateProject changes what is given of a project; what is empty stays, the state always is as given
// (flyteadmin/pkg/manager/impl/project_manager.go:91, repositories/gormimpl/project_repo.go:97).
func (s *adminServer) UpdateProject(_ context.Context, given *admin.Project) (*admin.ProjectUpdateResponse, error) {
	err := s.store.projects.change(given.GetId(), func(known *admin.Project, found bool) (*admin.Project, error) {
		if !found {
			return nil, notFound("project", given.GetId())
		}
		if err := validateProjectFields(given); err != nil {
			return nil, err
		}
		changed := proto.CloneOf(known)
		changed.State = given.GetState()
		if given.GetName() != "" {
			changed.Name = given.GetName()
		}
		if given.GetDescription() != "" {
			changed.Description = given.GetDescription()
		}
		if len(given.GetLabels().GetValues()) > 0 {
			changed.Labels = given.GetLabels()
		}
		return changed, nil
	})
	return &admin.ProjectUpdateResponse{}, err
}

func (s *adminServer) GetProject(_ context.Context, request *admin.ProjectGetRequest) (*admin.Project, error) {
	if err := required(field{"project_id", request.GetId()}); err != nil {
		return nil, err
	}
	known, ok := s.store.projects.get(request.GetId())
	if !ok {
		return nil, notFound("project", request.GetId())
	}
	return s.withDomains(known), nil
}

// ListProjects leaves out archived projects unless it is given filters
// (flyteadmin/pkg/repositories/gormimpl/project_repo.go:62).
func (s *adminServer) ListProjects(_ context.Context, request *admin.ProjectListRequest) (*admin.Projects, error) {
	rows := s.store.projects.list()
	if request.GetFilters() == "" {
		rows = slices.DeleteFunc(rows, func(project *admin.Project) bool {
			return project.GetState() == admin.Project_ARCHIVED
		})
	}
	found, token, err := query(rows, projectColumns, request, "identifier")
	if err != nil {
		return nil, err
	}
	listed := &admin.Projects{Token: token}
	for _, project := range found {
		listed.Projects = append(listed.Projects, s.withDomains(project))
	}
	return listed, nil
}

func (s *adminServer) GetDomains(context.Context, *admin.GetDomainRequest) (*admin.GetDomainsResponse, error) {
	return &admin.GetDomainsResponse{Domains: s.domains()}, nil
}

func (s *adminServer) domains() []*admin.Domain {
	var domains []*admin.Domain
	for _, configured := range s.config.Domains {
		domains = append(domains, &admin.Domain{Id: configured.ID, Name: configured.Name})
	}
	return domains
}

func (s *adminServer) withDomains(project *admin.Project) *admin.Project {
	complete := proto.CloneOf(project)
	complete.Domains = s.domains()
	return complete
}

// validateProjectFields: flyteadmin/pkg/manager/impl/validation/project_validator.go:41.
func validateProjectFields(project *admin.Project) error {
	if err := required(field{"project_id", project.GetId()}); err != nil {
		return err
	}
	if err := validateLabels(project.GetLabels()); err != nil {
		return err
	}
	if faults := validation.IsDNS1123Label(project.GetId()); len(faults) > 0 {
		return invalid("invalid project id [%s]: %v", project.GetId(), faults)
	}
	if len(project.GetName()) > 64 {
		return invalid("project_name cannot exceed 64 characters")
	}
	if len(project.GetDescription()) > 300 {
		return invalid("project_description cannot exceed 300 characters")
	}
	if project.GetDomains() != nil {
		return invalid("Domains are currently only set system wide. Please retry without domains included in your request.")
	}
	return nil
}
