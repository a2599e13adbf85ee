package main

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

// Source of this file: flyteadmin/pkg/manager/impl/util/single_task_execution.go.

const (
	generatedPrefix = ".flytegen."
	maxNodeID       = 63
	// defaultRetries are those of a task that says nothing of retries.
	defaultRetries = 3
)

func isGenerated(id *core.Identifier) bool {
	return strings.HasPrefix(id.GetName(), generatedPrefix)
}

// generatedNodeID is the end of a task's name, without what no node id may have (:33).
func generatedNodeID(task string) string {
	task = task[max(0, len(task)-maxNodeID):]
	return strings.Map(func(letter rune) rune {
		if letter == '-' || unicode.IsLetter(letter) || unicode.IsNumber(letter) {
			return letter
		}
		return -1
	}, task)
}

// singleTask is the workflow of one node and its launch plan by which a task runs alone. Both are made at
// the first launch of the task's version and kept; the launch plan takes its security from that first
// launch, though no later one reads it from there (:70, :167).
func (s *adminServer) singleTask(
	ctx context.Context, request *admin.ExecutionCreateRequest, of task,
) (workflow, launchPlan, error) {
	id := generatedID(of.GetId(), core.ResourceType_WORKFLOW)
	wrapped, err := s.workflow(id)
	if status.Code(err) == codes.NotFound {
		wrapped, err = s.createGeneratedWorkflow(ctx, id, of)
	}
	if err != nil {
		return workflow{}, launchPlan{}, err
	}
	id = generatedID(of.GetId(), core.ResourceType_LAUNCH_PLAN)
	plan, err := s.launchPlan(id)
	if status.Code(err) == codes.NotFound {
		plan, err = s.newLaunchPlan(ctx, &admin.LaunchPlanCreateRequest{
			Id: id,
			Spec: &admin.LaunchPlanSpec{
				WorkflowId: &core.Identifier{
					ResourceType: core.ResourceType_WORKFLOW,
					Project:      of.GetId().GetProject(), Domain: of.GetId().GetDomain(),
					Name: of.GetId().GetName(), Version: of.GetId().GetVersion(),
				},
				EntityMetadata: &admin.LaunchPlanMetadata{}, DefaultInputs: &core.ParameterMap{},
				FixedInputs: &core.LiteralMap{}, Labels: &admin.Labels{}, Annotations: &admin.Annotations{},
				AuthRole: request.GetSpec().GetAuthRole(), SecurityContext: request.GetSpec().GetSecurityContext(),
			},
		}, wrapped)
		if err == nil {
			s.store.launchPlans.create(idKey(id), plan)
		}
	}
	return wrapped, plan, err
}

func (s *adminServer) createGeneratedWorkflow(ctx context.Context, id *core.Identifier, of task) (workflow, error) {
	template := of.GetClosure().GetCompiledTask().GetTemplate()
	retries := template.GetMetadata().GetRetries()
	if retries == nil {
		retries = &core.RetryStrategy{Retries: defaultRetries}
	}
	nodeID := generatedNodeID(of.GetId().GetName())
	_, err := s.CreateWorkflow(ctx, &admin.WorkflowCreateRequest{
		Id: id,
		Spec: &admin.WorkflowSpec{Template: &core.WorkflowTemplate{
			Id: id, Interface: template.GetInterface(),
			Nodes: []*core.Node{{
				Id:       nodeID,
				Metadata: &core.NodeMetadata{Name: nodeID, Retries: retries},
				Inputs:   bindings(template.GetInterface().GetInputs(), ""),
				Target: &core.Node_TaskNode{TaskNode: &core.TaskNode{
					Reference: &core.TaskNode_ReferenceId{ReferenceId: of.GetId()},
				}},
			}},
			Outputs: bindings(template.GetInterface().GetOutputs(), nodeID),
		}},
	})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return workflow{}, err
	}
	return s.workflow(id)
}

func generatedID(of *core.Identifier, kind core.ResourceType) *core.Identifier {
	return &core.Identifier{
		ResourceType: kind, Project: of.GetProject(), Domain: of.GetDomain(),
		Name: generatedPrefix + of.GetName(), Version: of.GetVersion(),
	}
}

// bindings are those of all variables to the same names of a node; the node "" is the workflow's start (:50).
func bindings(variables *core.VariableMap, nodeID string) []*core.Binding {
	var bound []*core.Binding
	for name := range variables.GetVariables() {
		bound = append(bound, &core.Binding{Var: name, Binding: &core.BindingData{
			Value: &core.BindingData_Promise{Promise: &core.OutputReference{NodeId: nodeID, Var: name}},
		}})
	}
	slices.SortFunc(bound, func(a, b *core.Binding) int { return strings.Compare(a.GetVar(), b.GetVar()) })
	return bound
}
