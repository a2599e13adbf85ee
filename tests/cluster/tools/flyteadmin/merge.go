package main

import (
	"maps"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

// executionConfig is what a request, a launch plan, a matchable attribute and FlyteAdmin's config may each
// say of an execution.
type executionConfig interface {
	GetMaxParallelism() int32
	GetRawOutputDataConfig() *admin.RawOutputDataConfig
	GetSecurityContext() *core.SecurityContext
	GetAnnotations() *admin.Annotations
	GetLabels() *admin.Labels
	GetInterruptible() *wrapperspb.BoolValue
	GetOverwriteCache() bool
	GetEnvs() *admin.Envs
}

// mergeExecutionConfig fills what the stronger merged leaves empty from the weaker. Maps are taken whole or
// not at all: no key of a weaker source is added to a map of a stronger one. What it takes it shares, as
// FlyteAdmin does, so a request's maps are the merged maps.
// Source: flyteadmin/pkg/manager/impl/util/shared.go:289 (MergeIntoExecConfig).
func mergeExecutionConfig(merged *admin.WorkflowExecutionConfig, weaker executionConfig) {
	if merged.GetMaxParallelism() == 0 && weaker.GetMaxParallelism() > 0 {
		merged.MaxParallelism = weaker.GetMaxParallelism()
	}
	if merged.GetSecurityContext() == nil && runsAsSomebody(weaker.GetSecurityContext()) {
		merged.SecurityContext = weaker.GetSecurityContext()
	}
	if merged.GetRawOutputDataConfig().GetOutputLocationPrefix() == "" &&
		weaker.GetRawOutputDataConfig().GetOutputLocationPrefix() != "" {
		merged.RawOutputDataConfig = weaker.GetRawOutputDataConfig()
	}
	if len(merged.GetLabels().GetValues()) == 0 && len(weaker.GetLabels().GetValues()) > 0 {
		merged.Labels = weaker.GetLabels()
	}
	if len(merged.GetAnnotations().GetValues()) == 0 && len(weaker.GetAnnotations().GetValues()) > 0 {
		merged.Annotations = weaker.GetAnnotations()
	}
	if merged.GetInterruptible() == nil && weaker.GetInterruptible() != nil {
		merged.Interruptible = weaker.GetInterruptible()
	}
	if !merged.GetOverwriteCache() && weaker.GetOverwriteCache() {
		merged.OverwriteCache = true
	}
	if len(merged.GetEnvs().GetValues()) == 0 && len(weaker.GetEnvs().GetValues()) > 0 {
		merged.Envs = weaker.GetEnvs()
	}
}

func runsAsSomebody(context *core.SecurityContext) bool {
	identity := context.GetRunAs()
	return identity.GetK8SServiceAccount() != "" || identity.GetIamRole() != "" || identity.GetExecutionIdentity() != ""
}

// executionConfigOf merges, strongest first: the request, the launch plan, the most specific attributes of
// workflow, project-domain or project, the project's attributes, the deprecated auth fields, FlyteAdmin's
// config. A single-task execution has no launch plan here.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:328 (getExecutionConfig).
func (s *adminServer) executionConfigOf(
	request *admin.ExecutionCreateRequest, plan *admin.LaunchPlan,
) *admin.WorkflowExecutionConfig {
	merged := &admin.WorkflowExecutionConfig{}
	mergeExecutionConfig(merged, request.GetSpec())
	if plan != nil {
		mergeExecutionConfig(merged, plan.GetSpec())
	}
	project, domain := request.GetProject(), request.GetDomain()
	for _, attributes := range []*admin.MatchingAttributes{
		s.matching(admin.MatchableResource_WORKFLOW_EXECUTION_CONFIG, project, domain, plan.GetSpec().GetWorkflowId().GetName()),
		s.matching(admin.MatchableResource_WORKFLOW_EXECUTION_CONFIG, project, "", ""),
	} {
		if attributes != nil {
			mergeExecutionConfig(merged, attributes.GetWorkflowExecutionConfig())
		}
	}
	if auth := authContext(request, plan); merged.GetSecurityContext() == nil && runsAsSomebody(auth) {
		merged.SecurityContext = auth
	}
	mergeExecutionConfig(merged, &s.config.FlyteAdmin)
	if merged.GetSecurityContext() == nil {
		merged.SecurityContext = &core.SecurityContext{}
	}
	if merged.GetSecurityContext().GetRunAs() == nil {
		merged.SecurityContext.RunAs = &core.Identity{}
	}
	return merged
}

// authContext reads the deprecated auth fields: the request's, else one of the launch plan's.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:703 (resolveAuthRole).
func authContext(request *admin.ExecutionCreateRequest, plan *admin.LaunchPlan) *core.SecurityContext {
	spec := plan.GetSpec()
	var identity *core.Identity
	switch {
	case request.GetSpec().GetAuthRole() != nil:
		role := request.GetSpec().GetAuthRole()
		identity = &core.Identity{IamRole: role.GetAssumableIamRole(), K8SServiceAccount: role.GetKubernetesServiceAccount()}
	case spec.GetAuthRole() != nil:
		role := spec.GetAuthRole()
		identity = &core.Identity{IamRole: role.GetAssumableIamRole(), K8SServiceAccount: role.GetKubernetesServiceAccount()}
	case spec.GetAuth() != nil:
		auth := spec.GetAuth()
		identity = &core.Identity{IamRole: auth.GetAssumableIamRole(), K8SServiceAccount: auth.GetKubernetesServiceAccount()}
	default:
		identity = &core.Identity{IamRole: spec.GetRole()}
	}
	return &core.SecurityContext{RunAs: identity}
}

// checkEntries holds a launch plan's execution to the configured numbers of labels or annotations, 0 meaning
// no limit. Single-task executions are never held to it.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:134 (validateMapSize), 1019-1027.
func checkEntries(values map[string]string, name string, most int) error {
	if most != 0 && len(values) > most {
		return invalid("%s has too many entries [%v > %v]", name, len(values), most)
	}
	return nil
}

// addProjectLabels adds the project's labels under keys that are not taken. It writes into the map it is
// given, as FlyteAdmin does: where the request brought labels, the stored spec then has the project's too,
// and a relaunch keeps them.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:2038 (addProjectLabels).
func (s *adminServer) addProjectLabels(project string, labels map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	known, _ := s.store.projects.get(project)
	for name, value := range known.GetLabels().GetValues() {
		if _, taken := labels[name]; !taken {
			labels[name] = value
		}
	}
	return labels
}

func copied(values map[string]string) map[string]string {
	return maps.Clone(values)
}
