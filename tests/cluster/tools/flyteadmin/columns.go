package main

import (
	"strconv"
	"strings"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

// The columns are those of FlyteAdmin's tables that these entities have values for
// (flyteadmin/pkg/repositories/models).

var projectColumns = columns[*admin.Project]{
	"identifier":  func(p *admin.Project) string { return p.GetId() },
	"name":        func(p *admin.Project) string { return p.GetName() },
	"description": func(p *admin.Project) string { return p.GetDescription() },
	"state":       func(p *admin.Project) string { return number(int32(p.GetState())) },
}

var taskColumns = withID(columns[task]{
	"type":       func(t task) string { return t.GetClosure().GetCompiledTask().GetTemplate().GetType() },
	"created_at": func(t task) string { return moment(t.GetClosure().GetCreatedAt()) },
}, func(t task) *core.Identifier { return t.GetId() })

var workflowColumns = withID(columns[workflow]{
	"created_at": func(w workflow) string { return moment(w.GetClosure().GetCreatedAt()) },
}, func(w workflow) *core.Identifier { return w.GetId() })

var launchPlanColumns = withID(columns[launchPlan]{
	"created_at":       func(p launchPlan) string { return moment(p.GetClosure().GetCreatedAt()) },
	"updated_at":       func(p launchPlan) string { return moment(p.GetClosure().GetUpdatedAt()) },
	"state":            func(p launchPlan) string { return number(int32(p.GetClosure().GetState())) },
	"workflow.name":    func(p launchPlan) string { return p.GetSpec().GetWorkflowId().GetName() },
	"workflow.version": func(p launchPlan) string { return p.GetSpec().GetWorkflowId().GetVersion() },
}, func(p launchPlan) *core.Identifier { return p.GetId() })

var executionColumns = columns[execution]{
	"project":              func(e execution) string { return e.GetId().GetProject() },
	"domain":               func(e execution) string { return e.GetId().GetDomain() },
	"name":                 func(e execution) string { return e.GetId().GetName() },
	"execution_project":    func(e execution) string { return e.GetId().GetProject() },
	"execution_domain":     func(e execution) string { return e.GetId().GetDomain() },
	"execution_name":       func(e execution) string { return e.GetId().GetName() },
	"phase":                func(e execution) string { return e.GetClosure().GetPhase().String() },
	"created_at":           func(e execution) string { return moment(e.GetClosure().GetCreatedAt()) },
	"execution_created_at": func(e execution) string { return moment(e.GetClosure().GetCreatedAt()) },
	"updated_at":           func(e execution) string { return moment(e.GetClosure().GetUpdatedAt()) },
	"started_at":           func(e execution) string { return moment(e.GetClosure().GetStartedAt()) },
	"duration":             func(e execution) string { return seconds(e.GetClosure().GetDuration()) },
	"mode":                 func(e execution) string { return number(int32(e.GetSpec().GetMetadata().GetMode())) },
	"abort_cause":          func(e execution) string { return e.GetClosure().GetAbortMetadata().GetCause() },
	"error_kind":           func(e execution) string { return e.GetClosure().GetError().GetKind().String() },
	"error_code":           func(e execution) string { return e.GetClosure().GetError().GetCode() },
	"launch_entity": func(e execution) string {
		return strings.ToLower(e.GetSpec().GetLaunchPlan().GetResourceType().String())
	},
	"state": func(e execution) string {
		return number(int32(e.GetClosure().GetStateChangeDetails().GetState()))
	},
	"launch_plan.name": func(e execution) string { return launchedName(e, core.ResourceType_LAUNCH_PLAN) },
	"task.name":        func(e execution) string { return launchedName(e, core.ResourceType_TASK) },
	"workflow.name":    func(e execution) string { return e.GetClosure().GetWorkflowId().GetName() },
	"workflow.version": func(e execution) string { return e.GetClosure().GetWorkflowId().GetVersion() },
}

var nodeExecutionColumns = columns[nodeExecution]{
	"node_id":    func(n nodeExecution) string { return n.GetId().GetNodeId() },
	"phase":      func(n nodeExecution) string { return n.GetClosure().GetPhase().String() },
	"created_at": func(n nodeExecution) string { return moment(n.GetClosure().GetCreatedAt()) },
	"updated_at": func(n nodeExecution) string { return moment(n.GetClosure().GetUpdatedAt()) },
	"started_at": func(n nodeExecution) string { return moment(n.GetClosure().GetStartedAt()) },
	"duration":   func(n nodeExecution) string { return seconds(n.GetClosure().GetDuration()) },
}

var taskExecutionColumns = columns[taskExecution]{
	"retry_attempt": func(t taskExecution) string { return strconv.Itoa(int(t.GetId().GetRetryAttempt())) },
	"phase":         func(t taskExecution) string { return t.GetClosure().GetPhase().String() },
	"created_at":    func(t taskExecution) string { return moment(t.GetClosure().GetCreatedAt()) },
	"updated_at":    func(t taskExecution) string { return moment(t.GetClosure().GetUpdatedAt()) },
	"started_at":    func(t taskExecution) string { return moment(t.GetClosure().GetStartedAt()) },
	"duration":      func(t taskExecution) string { return seconds(t.GetClosure().GetDuration()) },
	"name":          func(t taskExecution) string { return t.GetId().GetTaskId().GetName() },
}

func withID[V any](known columns[V], id func(V) *core.Identifier) columns[V] {
	known["project"] = func(row V) string { return id(row).GetProject() }
	known["domain"] = func(row V) string { return id(row).GetDomain() }
	known["name"] = func(row V) string { return id(row).GetName() }
	known["version"] = func(row V) string { return id(row).GetVersion() }
	return known
}

func launchedName(e execution, kind core.ResourceType) string {
	if launched := e.GetSpec().GetLaunchPlan(); launched.GetResourceType() == kind {
		return launched.GetName()
	}
	return ""
}

func number(value int32) string {
	return strconv.Itoa(int(value))
}
