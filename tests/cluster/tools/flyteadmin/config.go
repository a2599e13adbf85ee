package main

import (
	"fmt"
	"os"

	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

// config holds those settings of FlyteAdmin's own config file that its rules read, under FlyteAdmin's own
// names. An unknown key is an error.
type config struct {
	FlyteAdmin    applicationConfig  `json:"flyteadmin"`
	TaskResources taskResources      `json:"task_resources"`
	Registration  registrationConfig `json:"registration"`
	Domains       []domain           `json:"domains"`
}

// applicationConfig is part of flyteadmin/pkg/runtime/interfaces/application_configuration.go:25.
type applicationConfig struct {
	RoleNameKey                 string            `json:"roleNameKey"`
	EventVersion                int               `json:"eventVersion"`
	MaxParallelism              int32             `json:"maxParallelism"`
	Labels                      map[string]string `json:"labels"`
	Annotations                 map[string]string `json:"annotations"`
	Interruptible               bool              `json:"interruptible"`
	OverwriteCache              bool              `json:"overwriteCache"`
	AssumableIamRole            string            `json:"assumableIamRole"`
	K8SServiceAccount           string            `json:"k8sServiceAccount"`
	OutputLocationPrefix        string            `json:"outputLocationPrefix"`
	Envs                        map[string]string `json:"envs"`
	UseOffloadedWorkflowClosure bool              `json:"useOffloadedWorkflowClosure"`
	UseOffloadedInputs          bool              `json:"useOffloadedInputs"`
}

// taskResources is what the platform gives a task by default, and the most that one may have.
type taskResources struct {
	Defaults resourceSet `json:"defaults"`
	Limits   resourceSet `json:"limits"`
}

type resourceSet struct {
	CPU              resource.Quantity `json:"cpu"`
	GPU              resource.Quantity `json:"gpu"`
	Memory           resource.Quantity `json:"memory"`
	EphemeralStorage resource.Quantity `json:"ephemeralStorage"`
}

type registrationConfig struct {
	MaxWorkflowNodes     int `json:"maxWorkflowNodes"`
	MaxLabelEntries      int `json:"maxLabelEntries"`
	MaxAnnotationEntries int `json:"maxAnnotationEntries"`
}

type domain struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// defaultConfig has FlyteAdmin's own defaults: flyteadmin/pkg/runtime/application_config_provider.go:23,
// task_resource_provider.go:12, registration_validation_provider.go:11.
func defaultConfig() *config {
	return &config{
		FlyteAdmin: applicationConfig{EventVersion: 2, MaxParallelism: 25},
		TaskResources: taskResources{
			Defaults: resourceSet{CPU: resource.MustParse("2"), Memory: resource.MustParse("200Mi")},
			Limits: resourceSet{
				CPU: resource.MustParse("2"), Memory: resource.MustParse("1Gi"), GPU: resource.MustParse("1"),
			},
		},
		Registration: registrationConfig{MaxWorkflowNodes: 100},
		Domains: []domain{
			{ID: "development", Name: "development"},
			{ID: "staging", Name: "staging"},
			{ID: "production", Name: "production"},
		},
	}
}

// loadConfig reads a YAML file over the defaults; without a file it is the defaults.
func loadConfig(path string) (*config, error) {
	loaded := defaultConfig()
	if path == "" {
		return loaded, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(text, loaded); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return loaded, nil
}

// The methods below make applicationConfig the last, weakest source of mergeExecutionConfig.

func (c *applicationConfig) GetMaxParallelism() int32 { return c.MaxParallelism }

func (c *applicationConfig) GetRawOutputDataConfig() *admin.RawOutputDataConfig {
	return &admin.RawOutputDataConfig{OutputLocationPrefix: c.OutputLocationPrefix}
}

func (c *applicationConfig) GetSecurityContext() *core.SecurityContext {
	return &core.SecurityContext{
		RunAs: &core.Identity{IamRole: c.AssumableIamRole, K8SServiceAccount: c.K8SServiceAccount},
	}
}

func (c *applicationConfig) GetLabels() *admin.Labels {
	return &admin.Labels{Values: copied(c.Labels)}
}

func (c *applicationConfig) GetAnnotations() *admin.Annotations {
	return &admin.Annotations{Values: copied(c.Annotations)}
}

// GetInterruptible knows only true: false would overwrite what a workflow says.
func (c *applicationConfig) GetInterruptible() *wrapperspb.BoolValue {
	if !c.Interruptible {
		return nil
	}
	return wrapperspb.Bool(true)
}

func (c *applicationConfig) GetOverwriteCache() bool { return c.OverwriteCache }

func (c *applicationConfig) GetEnvs() *admin.Envs {
	envs := &admin.Envs{}
	for name, value := range c.Envs {
		envs.Values = append(envs.Values, &core.KeyValuePair{Key: name, Value: value})
	}
	return envs
}
