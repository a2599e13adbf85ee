package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytepropeller/pkg/compiler"
	"github.com/flyteorg/flyte/flytestdlib/pbhash"

	"github.com/wI2L/jsondiff"
)

// CreateTask compiles and keeps a task. A version is registered once: the same task again is AlreadyExists,
// which clients pass over, another is InvalidArgument.
// Source: flyteadmin/pkg/manager/impl/task_manager.go:61.
func (s *adminServer) CreateTask(
	ctx context.Context, request *admin.TaskCreateRequest,
) (*admin.TaskCreateResponse, error) {
	id, template := request.GetId(), request.GetSpec().GetTemplate()
	if err := s.validateTask(id, template); err != nil {
		return nil, err
	}
	template.Id = id
	compiled, err := compiler.CompileTask(template)
	if err != nil {
		return nil, err
	}
	digest, err := pbhash.ComputeHash(ctx, compiled)
	if err != nil {
		return nil, err
	}
	row := task{
		Task: &admin.Task{
			Id:               id,
			Closure:          &admin.TaskClosure{CompiledTask: compiled, CreatedAt: timestamppb.Now()},
			ShortDescription: request.GetSpec().GetDescription().GetShortDescription(),
		},
		digest: digest,
	}
	if s.store.tasks.create(idKey(id), row) {
		return &admin.TaskCreateResponse{}, nil
	}
	existing, _ := s.store.tasks.get(idKey(id))
	if bytes.Equal(existing.digest, digest) {
		return nil, alreadyExists("task with identical structure already exists")
	}
	return nil, differentStructure("task", id, existing.GetClosure().GetCompiledTask(), compiled)
}

// validateTask: flyteadmin/pkg/manager/impl/validation/task_validator.go:78, 109.
func (s *adminServer) validateTask(id *core.Identifier, template *core.TaskTemplate) error {
	if err := validateID(id, core.ResourceType_TASK); err != nil {
		return err
	}
	if err := s.validateProjectAndDomain(id.GetProject(), id.GetDomain()); err != nil {
		return err
	}
	switch {
	case template == nil:
		return missing("spec")
	case template.GetType() == "":
		return missing("type")
	case template.GetMetadata() == nil:
		return missing("metadata")
	case template.GetMetadata().GetRuntime() != nil && template.GetMetadata().GetRuntime().GetVersion() == "":
		return missing("runtime version")
	case template.GetInterface() == nil:
		return missing("typed interface")
	}
	limits := s.platformResources(id).Limits
	if container := template.GetContainer(); container != nil {
		if err := required(field{"image", container.GetImage()}); err != nil {
			return err
		}
		return validateContainerResources(template.GetId(), container.GetResources(), limits)
	}
	if pod := template.GetK8SPod(); pod != nil {
		return validatePod(template.GetId(), pod, limits)
	}
	return nil
}

// differentStructure shows where a registered version and what was sent now differ
// (flyteadmin/pkg/errors/errors.go:130, 146).
func differentStructure(entity string, id *core.Identifier, registered, sent protoadapt.MessageV1) error {
	text := fmt.Sprintf("%v %s with different structure already exists. (Please register a new version of the %s):\n",
		id.GetName(), entity, entity)
	forth, _ := jsondiff.Compare(registered, sent)
	back, _ := jsondiff.Compare(sent, registered)
	now := map[string]any{}
	for _, change := range forth {
		now[change.Path] = change.Value
	}
	var differences []string
	for _, change := range back {
		if value, ok := now[change.Path]; ok {
			differences = append(differences, fmt.Sprintf("%v:\n\t- %v \n\t+ %v", change.Path, change.Value, value))
		}
	}
	return invalid("%s%s", text, strings.Join(differences, "\n"))
}

func (s *adminServer) GetTask(_ context.Context, request *admin.ObjectGetRequest) (*admin.Task, error) {
	found, err := s.task(request.GetId())
	return found.Task, err
}

func (s *adminServer) task(id *core.Identifier) (task, error) {
	found, ok := s.store.tasks.get(idKey(id))
	if !ok {
		return task{}, notFound("TASK", id)
	}
	return found, nil
}

func (s *adminServer) ListTasks(_ context.Context, request *admin.ResourceListRequest) (*admin.TaskList, error) {
	rows, err := inScope(s.store.tasks.list(), taskColumns, request.GetId(), request.GetLimit())
	if err != nil {
		return nil, err
	}
	found, token, err := query(rows, taskColumns, request, "")
	if err != nil {
		return nil, err
	}
	listed := &admin.TaskList{Token: token}
	for _, row := range found {
		listed.Tasks = append(listed.Tasks, row.Task)
	}
	return listed, nil
}

func (s *adminServer) ListTaskIds(
	_ context.Context, request *admin.NamedEntityIdentifierListRequest,
) (*admin.NamedEntityIdentifierList, error) {
	return names(s.store.tasks.list(), taskColumns, request)
}
