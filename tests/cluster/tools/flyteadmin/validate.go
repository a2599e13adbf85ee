package main

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

const (
	// maxLabels is the most labels that a request, a launch plan or a project may bring
	// (flyteadmin/pkg/manager/impl/validation/project_validator.go:21).
	maxLabels = 16
	// maxExecutionName is the longest name of an execution (validation/execution_validator.go:20).
	maxExecutionName = 63
	// maxOutputBytes is the most output data that an event may bring inline
	// (flyteadmin/pkg/runtime/application_config_provider.go:57).
	maxOutputBytes = 2 * 1024 * 1024
)

// executionName is what a name of an execution must look like (validation/execution_validator.go:22).
var executionName = regexp.MustCompile(`^[a-z][a-z\-0-9]*$`)

type field struct{ name, value string }

func required(fields ...field) error {
	for _, field := range fields {
		if field.value == "" {
			return missing(field.name)
		}
	}
	return nil
}

// validateLabels holds labels to 16 entries and to Kubernetes' rules. Annotations have no such check: a bad
// annotation is found when the FlyteWorkflow is created.
// Source: flyteadmin/pkg/manager/impl/validation/validation.go:52, 67.
func validateLabels(labels *admin.Labels) error {
	if len(labels.GetValues()) > maxLabels {
		return invalid("labels map cannot exceed %d entries", maxLabels)
	}
	for name, value := range labels.GetValues() {
		if faults := validation.IsQualifiedName(name); len(faults) > 0 {
			return invalid("invalid label key [%s]: %v", name, faults)
		}
		if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
			return invalid("invalid label value [%s]: %v", value, faults)
		}
	}
	return nil
}

// validateIDFields wants every part of an identifier (validation/validation.go:79).
func validateIDFields(id *core.Identifier) error {
	if id == nil {
		return missing("id")
	}
	return required(
		field{"project", id.GetProject()}, field{"domain", id.GetDomain()},
		field{"name", id.GetName()}, field{"version", id.GetVersion()},
	)
}

// validateID wants a full identifier of the given type (validation/validation.go:99).
func validateID(id *core.Identifier, kind core.ResourceType) error {
	if id == nil {
		return missing("id")
	}
	if id.GetResourceType() != kind {
		return invalid("unexpected resource type %s for identifier [%+v], expected %s instead",
			strings.ToLower(id.GetResourceType().String()), id, strings.ToLower(kind.String()))
	}
	return validateIDFields(id)
}

// validateExecutionID wants every part of an execution's identifier (validation/execution_validator.go:156).
func validateExecutionID(id *core.WorkflowExecutionIdentifier) error {
	if id == nil {
		return missing("id")
	}
	return required(
		field{"project", id.GetProject()}, field{"domain", id.GetDomain()}, field{"name", id.GetName()},
	)
}

// validateProjectAndDomain wants a registered, active project and a configured domain
// (validation/project_validator.go:65).
func (s *adminServer) validateProjectAndDomain(project, domain string) error {
	known, ok := s.store.projects.get(project)
	if !ok {
		return invalid("failed to validate that project [%s] and domain [%s] are registered, err: [%v]",
			project, domain, notFound("project", project))
	}
	if known.GetState() != admin.Project_ACTIVE {
		return withDetail(invalid("project [%s] is not active", project), &admin.InactiveProject{Id: project})
	}
	for _, configured := range s.config.Domains {
		if configured.ID == domain {
			return nil
		}
	}
	return invalid("domain [%s] is unrecognized by system", domain)
}

// validateExecutionRequest checks what a launch brings, before anything is looked up
// (validation/execution_validator.go:29). A name is checked in lower case, so capitals pass here and are
// refused by Kubernetes.
func (s *adminServer) validateExecutionRequest(request *admin.ExecutionCreateRequest) error {
	err := required(field{"project", request.GetProject()}, field{"domain", request.GetDomain()})
	if err != nil {
		return err
	}
	if name := strings.ToLower(request.GetName()); name != "" {
		if len(name) > maxExecutionName {
			return invalid("size of name exceeded length %d : %s", maxExecutionName, name)
		}
		if !executionName.MatchString(name) {
			return invalid("invalid name format: %s, does not match regex '%s'", name, executionName)
		}
	}
	if err := s.validateProjectAndDomain(request.GetProject(), request.GetDomain()); err != nil {
		return err
	}
	if request.GetSpec() == nil {
		return missing("spec")
	}
	entity := request.GetSpec().GetLaunchPlan()
	if err := validateIDFields(entity); err != nil {
		return err
	}
	switch entity.GetResourceType() {
	case core.ResourceType_LAUNCH_PLAN, core.ResourceType_TASK:
	default:
		return invalid("Invalid reference entity resource type [%v], only LAUNCH_PLAN and TASK allowed",
			entity.GetResourceType())
	}
	if err := validateLiterals(request.GetInputs(), "inputs"); err != nil {
		return err
	}
	return validateLabels(request.GetSpec().GetLabels())
}

// validateOutputData holds inline outputs of an event to 2 MiB (validation/validation.go:329); the code that
// FlyteAdmin uses is ResourceExhausted.
func validateOutputData(outputs *core.LiteralMap) error {
	if size := proto.Size(outputs); outputs != nil && size > maxOutputBytes {
		return exhausted("Output data size exceeds platform configured threshold (%v > %v)", size, maxOutputBytes)
	}
	return nil
}
