package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/flytek8s"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/utils"
)

type quantities map[core.Resources_ResourceName]resource.Quantity

// each visits the quantities of the set in the order in which FlyteAdmin writes them.
func (r *resourceSet) each(visit func(name core.Resources_ResourceName, value *resource.Quantity)) {
	visit(core.Resources_CPU, &r.CPU)
	visit(core.Resources_MEMORY, &r.Memory)
	visit(core.Resources_EPHEMERAL_STORAGE, &r.EphemeralStorage)
	visit(core.Resources_GPU, &r.GPU)
}

// platformResources is the most specific TASK_RESOURCE attribute whole, else FlyteAdmin's config: of an
// attribute that only sets a limit, the default is nothing, not the config's.
// Source: flyteadmin/pkg/manager/impl/util/resources.go:83 (GetTaskResources).
func (s *adminServer) platformResources(id *core.Identifier) taskResources {
	workflow := ""
	if id.GetResourceType() == core.ResourceType_WORKFLOW {
		workflow = id.GetName()
	}
	matched := s.matching(admin.MatchableResource_TASK_RESOURCE, id.GetProject(), id.GetDomain(), workflow)
	if matched == nil {
		return s.config.TaskResources
	}
	attributes := matched.GetTaskResourceAttributes()
	return taskResources{Defaults: fromSpec(attributes.GetDefaults()), Limits: fromSpec(attributes.GetLimits())}
}

// fromSpec reads an attribute's quantities; one that cannot be read counts as unset (resources.go:19, 59).
func fromSpec(spec *admin.TaskResourceSpec) resourceSet {
	return resourceSet{
		CPU: lenient(spec.GetCpu()), GPU: lenient(spec.GetGpu()), Memory: lenient(spec.GetMemory()),
		EphemeralStorage: lenient(spec.GetEphemeralStorage()),
	}
}

func lenient(text string) resource.Quantity {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return quantity
}

// setTaskDefaults fills in and cuts to size the resources of a task with a container, at each launch; CPU
// and memory always, the others where the task or the platform says something. A k8s_pod is left alone.
// Source: flyteadmin/pkg/manager/impl/execution_manager.go:189 (setCompiledTaskDefaults).
func setTaskDefaults(template *core.TaskTemplate, platform taskResources) {
	container := template.GetContainer()
	if container == nil {
		return
	}
	requests, limits := lenientEntries(container.GetResources().GetRequests()), lenientEntries(container.GetResources().GetLimits())
	defaults, most := quantities{}, quantities{}
	platform.Defaults.each(func(name core.Resources_ResourceName, value *resource.Quantity) { defaults[name] = *value })
	platform.Limits.each(func(name core.Resources_ResourceName, value *resource.Quantity) { most[name] = *value })
	final := &core.Resources{}
	platform.Defaults.each(func(name core.Resources_ResourceName, _ *resource.Quantity) {
		request, limit, byDefault := requests[name], limits[name], defaults[name]
		always := name == core.Resources_CPU || name == core.Resources_MEMORY
		if !always && request.IsZero() && limit.IsZero() && byDefault.IsZero() {
			return
		}
		adjusted := flytek8s.AdjustOrDefaultResource(request, limit, byDefault, most[name])
		final.Requests = append(final.Requests, &core.Resources_ResourceEntry{Name: name, Value: adjusted.Request.String()})
		final.Limits = append(final.Limits, &core.Resources_ResourceEntry{Name: name, Value: adjusted.Limit.String()})
	})
	container.Resources = final
}

func lenientEntries(entries []*core.Resources_ResourceEntry) quantities {
	read := quantities{}
	for _, entry := range entries {
		read[entry.GetName()] = lenient(entry.GetValue())
	}
	return read
}

// validateContainerResources holds a container's resources to the platform's limits at registration
// (flyteadmin/pkg/manager/impl/validation/task_validator.go:216).
func validateContainerResources(id *core.Identifier, resources *core.Resources, most resourceSet) error {
	requests, err := strictEntries(id, resources.GetRequests())
	if err != nil {
		return err
	}
	limits, err := strictEntries(id, resources.GetLimits())
	if err != nil {
		return err
	}
	return validateResources(id, requests, limits, most)
}

// strictEntries refuses a resource that is given twice, is no quantity, or is a part of a GPU
// (task_validator.go:143, 181).
func strictEntries(id *core.Identifier, entries []*core.Resources_ResourceEntry) (quantities, error) {
	read := quantities{}
	for _, entry := range entries {
		name := entry.GetName()
		switch name {
		case core.Resources_CPU, core.Resources_MEMORY, core.Resources_GPU, core.Resources_EPHEMERAL_STORAGE:
		default:
			continue
		}
		if _, ok := read[name]; ok {
			return nil, invalid("can't specify %v limit for task [%+v] multiple times", name, id)
		}
		quantity, err := resource.ParseQuantity(entry.GetValue())
		if err != nil {
			return nil, invalid("Parsing of %v request failed for value %v - reason  %v. Please follow K8s "+
				"conventions for resources "+
				"https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/", name, entry.GetValue(), err)
		}
		if name == core.Resources_GPU && quantity.MilliValue()%1000 != 0 {
			return nil, invalid("gpu for [%+v] must be a whole number, got: %s instead", id, entry.GetValue())
		}
		read[name] = quantity
	}
	return read, nil
}

// validatePod holds each container of a k8s_pod to the platform's limits (task_validator.go:46). A resource
// whose name is not one of Flyte's, such as nvidia.com/gpu, is not looked at.
func validatePod(id *core.Identifier, pod *core.K8SPod, most resourceSet) error {
	if pod.GetPodSpec() == nil {
		return invalid("invalid TaskSpecification, pod tasks should specify their target as a K8sPod with a defined pod spec")
	}
	var spec corev1.PodSpec
	if err := utils.UnmarshalStructToObj(pod.GetPodSpec(), &spec); err != nil {
		return err
	}
	for i := range spec.Containers {
		resources := &spec.Containers[i].Resources
		if err := validateResources(id, podQuantities(resources.Requests), podQuantities(resources.Limits), most); err != nil {
			return err
		}
	}
	return nil
}

func podQuantities(list corev1.ResourceList) quantities {
	read := quantities{}
	for name, quantity := range list {
		if name == corev1.ResourceEphemeralStorage {
			name = corev1.ResourceName(core.Resources_EPHEMERAL_STORAGE.String())
		}
		read[core.Resources_ResourceName(core.Resources_ResourceName_value[strings.ToUpper(name.String())])] = quantity
	}
	return read
}

// validateResources compares whole units, as FlyteAdmin does: 2500m passes a limit of 3 and counts as 3
// (task_validator.go:234).
func validateResources(id *core.Identifier, requests, limits quantities, platform resourceSet) error {
	most := quantities{}
	platform.each(func(name core.Resources_ResourceName, value *resource.Quantity) {
		if !value.IsZero() {
			most[name] = *value
		}
	})
	const tooMuch = "Requested %v %s [%v] is greater than current limit set in the platform configuration [%v]. " +
		"Please contact Flyte Admins to change these limits or consult the configuration"
	for name, request := range requests {
		limit, limited := limits[name]
		ceiling, capped := most[name]
		if name == core.Resources_GPU {
			if limited && request.Value() != limit.Value() {
				return invalid("For extended resource 'gpu' the default value must equal the limit value for task [%+v]", id)
			}
		} else if limited {
			if limit.Value() < request.Value() {
				return invalid("Requested %v default [%v] is greater than the limit [%v]. Please fix your configuration",
					name, request.String(), limit.String())
			}
			if capped && name != core.Resources_UNKNOWN && limit.Value() > ceiling.Value() {
				return invalid(tooMuch, name, "limit", limit.String(), ceiling.String())
			}
		}
		if capped && request.Value() > ceiling.Value() {
			return invalid(tooMuch, name, "default", request.String(), ceiling.String())
		}
	}
	return nil
}
