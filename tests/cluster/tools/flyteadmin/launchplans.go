package main

import (
	"bytes"
	"context"
	"log"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytestdlib/pbhash"
)

// CreateLaunchPlan keeps a launch plan, inactive, of a registered workflow.
// Source: flyteadmin/pkg/manager/impl/launch_plan_manager.go:53.
func (s *adminServer) CreateLaunchPlan(
	ctx context.Context, request *admin.LaunchPlanCreateRequest,
) (*admin.LaunchPlanCreateResponse, error) {
	if err := validateID(request.GetSpec().GetWorkflowId(), core.ResourceType_WORKFLOW); err != nil {
		return nil, err
	}
	of, err := s.workflow(request.GetSpec().GetWorkflowId())
	if err != nil {
		return nil, err
	}
	row, err := s.newLaunchPlan(ctx, request, of)
	if err != nil {
		return nil, err
	}
	if s.store.launchPlans.create(idKey(request.GetId()), row) {
		return &admin.LaunchPlanCreateResponse{}, nil
	}
	existing, _ := s.store.launchPlans.get(idKey(request.GetId()))
	if bytes.Equal(existing.digest, row.digest) {
		return nil, alreadyExists("launch plan with identical structure already exists")
	}
	return nil, differentStructure("launch plan", request.GetId(), existing.GetSpec(), row.GetSpec())
}

// newLaunchPlan checks a launch plan against its workflow and completes its inputs
// (flyteadmin/pkg/manager/impl/validation/launch_plan_validator.go:19, transformers/launch_plan.go:14).
func (s *adminServer) newLaunchPlan(
	ctx context.Context, request *admin.LaunchPlanCreateRequest, of workflow,
) (launchPlan, error) {
	id, spec := request.GetId(), request.GetSpec()
	if err := validateID(id, core.ResourceType_LAUNCH_PLAN); err != nil {
		return launchPlan{}, err
	}
	if err := s.validateProjectAndDomain(id.GetProject(), id.GetDomain()); err != nil {
		return launchPlan{}, err
	}
	if err := validateLabels(spec.GetLabels()); err != nil {
		return launchPlan{}, err
	}
	if err := validateLiterals(spec.GetFixedInputs(), "fixed_inputs"); err != nil {
		return launchPlan{}, err
	}
	if err := validateParameters(spec.GetDefaultInputs(), "default_inputs"); err != nil {
		return launchPlan{}, err
	}
	interfaces := of.GetClosure().GetCompiledWorkflow().GetPrimary().GetTemplate().GetInterface()
	expected, err := expectedInputs(interfaces.GetInputs(), spec.GetFixedInputs(), spec.GetDefaultInputs())
	if err != nil {
		return launchPlan{}, err
	}
	if conditions := spec.GetEntityMetadata().GetLaunchConditions(); conditions != nil {
		return launchPlan{}, invalid("Launch condition must be empty, found %v", conditions)
	}
	spec.DefaultInputs = expected
	plan := &admin.LaunchPlan{
		Id: id, Spec: spec,
		Closure: &admin.LaunchPlanClosure{ExpectedInputs: expected, ExpectedOutputs: interfaces.GetOutputs()},
	}
	digest, err := pbhash.ComputeHash(ctx, plan)
	if err != nil {
		return launchPlan{}, err
	}
	plan.Closure.CreatedAt = timestamppb.Now()
	plan.Closure.UpdatedAt = plan.GetClosure().GetCreatedAt()
	return launchPlan{LaunchPlan: plan, digest: digest}, nil
}

func (s *adminServer) GetLaunchPlan(_ context.Context, request *admin.ObjectGetRequest) (*admin.LaunchPlan, error) {
	if err := validateID(request.GetId(), core.ResourceType_LAUNCH_PLAN); err != nil {
		return nil, err
	}
	found, err := s.launchPlan(request.GetId())
	return found.LaunchPlan, err
}

func (s *adminServer) launchPlan(id *core.Identifier) (launchPlan, error) {
	found, ok := s.store.launchPlans.get(idKey(id))
	if !ok {
		return launchPlan{}, notFound("LAUNCH_PLAN", id)
	}
	return found, nil
}

// UpdateLaunchPlan makes a version active, which ends the activity of any other version of that name, or
// inactive. Source: flyteadmin/pkg/manager/impl/launch_plan_manager.go:224, 269, 331.
func (s *adminServer) UpdateLaunchPlan(
	_ context.Context, request *admin.LaunchPlanUpdateRequest,
) (*admin.LaunchPlanUpdateResponse, error) {
	found, err := s.launchPlan(request.GetId())
	if err != nil {
		return nil, err
	}
	if request.GetState() == admin.LaunchPlanState_ACTIVE {
		if active, ok := s.activeLaunchPlan(found.GetId()); ok {
			if err := s.setLaunchPlanState(active.GetId(), admin.LaunchPlanState_INACTIVE); err != nil {
				return nil, err
			}
		}
		if found.GetSpec().GetEntityMetadata().GetSchedule() != nil {
			log.Printf("launch plan %s has a schedule: this server starts nothing by schedule", found.GetId().GetName())
		}
	}
	return &admin.LaunchPlanUpdateResponse{}, s.setLaunchPlanState(found.GetId(), request.GetState())
}

func (s *adminServer) setLaunchPlanState(id *core.Identifier, state admin.LaunchPlanState) error {
	return s.store.launchPlans.change(idKey(id), func(row launchPlan, _ bool) (launchPlan, error) {
		row.LaunchPlan = proto.CloneOf(row.LaunchPlan)
		row.Closure.State = state
		row.Closure.UpdatedAt = timestamppb.Now()
		return row, nil
	})
}

// named is whatever has the first three parts of an identifier.
type named interface {
	GetProject() string
	GetDomain() string
	GetName() string
}

func (s *adminServer) activeLaunchPlan(of named) (launchPlan, bool) {
	for _, row := range s.store.launchPlans.list() {
		id := row.GetId()
		if row.GetClosure().GetState() == admin.LaunchPlanState_ACTIVE && id.GetProject() == of.GetProject() &&
			id.GetDomain() == of.GetDomain() && id.GetName() == of.GetName() {
			return row, true
		}
	}
	return launchPlan{}, false
}

func (s *adminServer) GetActiveLaunchPlan(
	_ context.Context, request *admin.ActiveLaunchPlanRequest,
) (*admin.LaunchPlan, error) {
	id := request.GetId()
	err := required(
		field{"project", id.GetProject()}, field{"domain", id.GetDomain()}, field{"name", id.GetName()},
	)
	if err != nil {
		return nil, err
	}
	active, ok := s.activeLaunchPlan(id)
	if !ok {
		return nil, status.Errorf(codes.NotFound, "No active launch plan could be found: %s:%s:%s",
			id.GetProject(), id.GetDomain(), id.GetName())
	}
	return active.LaunchPlan, nil
}

func (s *adminServer) ListLaunchPlans(
	_ context.Context, request *admin.ResourceListRequest,
) (*admin.LaunchPlanList, error) {
	return listLaunchPlans(s.store.launchPlans.list(), request.GetId(), request)
}

func (s *adminServer) ListActiveLaunchPlans(
	_ context.Context, request *admin.ActiveLaunchPlanListRequest,
) (*admin.LaunchPlanList, error) {
	rows := slices.DeleteFunc(s.store.launchPlans.list(), func(row launchPlan) bool {
		return row.GetClosure().GetState() != admin.LaunchPlanState_ACTIVE
	})
	scope := &admin.NamedEntityIdentifier{Project: request.GetProject(), Domain: request.GetDomain()}
	return listLaunchPlans(rows, scope, unfiltered{request})
}

func listLaunchPlans(
	rows []launchPlan, scope *admin.NamedEntityIdentifier, request listRequest,
) (*admin.LaunchPlanList, error) {
	rows, err := inScope(rows, launchPlanColumns, scope, request.GetLimit())
	if err != nil {
		return nil, err
	}
	found, token, err := query(rows, launchPlanColumns, request, "")
	if err != nil {
		return nil, err
	}
	listed := &admin.LaunchPlanList{Token: token}
	for _, row := range found {
		listed.LaunchPlans = append(listed.LaunchPlans, row.LaunchPlan)
	}
	return listed, nil
}

func (s *adminServer) ListLaunchPlanIds(
	_ context.Context, request *admin.NamedEntityIdentifierListRequest,
) (*admin.NamedEntityIdentifierList, error) {
	rows := slices.DeleteFunc(s.store.launchPlans.list(), func(row launchPlan) bool { return isGenerated(row.GetId()) })
	return names(rows, launchPlanColumns, request)
}

// unfiltered is a request for a list that cannot be filtered.
type unfiltered struct {
	*admin.ActiveLaunchPlanListRequest
}

func (unfiltered) GetFilters() string { return "" }
