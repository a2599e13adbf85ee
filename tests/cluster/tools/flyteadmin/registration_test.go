package main

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
)

func TestAVersionOfATaskIsRegisteredOnce(t *testing.T) {
	h := start(t)
	must(t, h.createTask(taskSpec("one")))
	wantError(t, h.createTask(taskSpec("one")), codes.AlreadyExists, "task with identical structure already exists")
	err := h.createTask(taskSpec("one", func(task *core.TaskTemplate) { task.GetContainer().Image = "example.com/t:2" }))
	wantError(t, err, codes.InvalidArgument, "one task with different structure already exists. (Please register a new version of the task)")
	wantError(t, err, codes.InvalidArgument, "\n\t- example.com/t:1 \n\t+ example.com/t:2")
}

func TestWorkflowsAndLaunchPlansToo(t *testing.T) {
	h := start(t)
	h.register()
	must(t, h.createTask(taskSpec("two")))
	_, err := h.admin.CreateWorkflow(t.Context(), workflowSpec("wf", taskNode("one")))
	wantError(t, err, codes.AlreadyExists, "workflow with identical structure already exists")
	if _, ok := status.Convert(err).Details()[0].(*admin.CreateWorkflowFailureReason); !ok {
		t.Errorf("details: %v", status.Convert(err).Details())
	}
	_, err = h.admin.CreateWorkflow(t.Context(), workflowSpec("wf", taskNode("two")))
	wantError(t, err, codes.InvalidArgument, "wf workflow with different structure already exists")
	wantError(t, h.createPlan("plan", "wf"), codes.AlreadyExists, "launch plan with identical structure already exists")
	err = h.createPlan("plan", "wf", func(spec *admin.LaunchPlanSpec) { spec.MaxParallelism = 1 })
	wantError(t, err, codes.InvalidArgument, "plan launch plan with different structure already exists")
}

func TestAPlanThatWasActivatedIsStillIdentical(t *testing.T) {
	h := start(t)
	h.register()
	_, err := h.admin.UpdateLaunchPlan(t.Context(), &admin.LaunchPlanUpdateRequest{Id: planID("plan"), State: admin.LaunchPlanState_ACTIVE})
	must(t, err)
	wantError(t, h.createPlan("plan", "wf"), codes.AlreadyExists, "identical")
}

func TestWhatIsMissing(t *testing.T) {
	h := start(t)
	for name, ask := range map[string]func() error{
		"task": func() error {
			_, err := h.admin.GetTask(t.Context(), &admin.ObjectGetRequest{Id: taskID("a")})
			return err
		},
		"workflow": func() error {
			_, err := h.admin.GetWorkflow(t.Context(), &admin.ObjectGetRequest{Id: workflowID("a")})
			return err
		},
		"plan": func() error {
			_, err := h.admin.GetLaunchPlan(t.Context(), &admin.ObjectGetRequest{Id: planID("a")})
			return err
		},
		"active plan": func() error {
			_, err := h.admin.GetActiveLaunchPlan(t.Context(), &admin.ActiveLaunchPlanRequest{
				Id: &admin.NamedEntityIdentifier{Project: project, Domain: development, Name: "a"},
			})
			return err
		},
		"execution": func() error {
			_, err := h.admin.GetExecution(t.Context(), &admin.WorkflowExecutionGetRequest{Id: executionID("a")})
			return err
		},
		"launch plan's workflow": func() error { return h.createPlan("a", "none") },
	} {
		t.Run(name, func(t *testing.T) { wantError(t, ask(), codes.NotFound, "") })
	}
	_, err := h.admin.CreateWorkflow(t.Context(), workflowSpec("wf", taskNode("none")))
	wantError(t, err, codes.InvalidArgument, "failed to compile workflow")
	_, err = h.admin.GetWorkflow(t.Context(), &admin.ObjectGetRequest{Id: taskID("a")})
	wantError(t, err, codes.InvalidArgument, "unexpected resource type task")
}

func executionID(name string) *core.WorkflowExecutionIdentifier {
	return &core.WorkflowExecutionIdentifier{Project: project, Domain: development, Name: name}
}

func TestTasksThatAreNotWhole(t *testing.T) {
	h := start(t)
	for part, edit := range map[string]func(*core.TaskTemplate){
		"missing type":            func(task *core.TaskTemplate) { task.Type = "" },
		"missing metadata":        func(task *core.TaskTemplate) { task.Metadata = nil },
		"missing runtime version": func(task *core.TaskTemplate) { task.Metadata.Runtime.Version = "" },
		"missing typed interface": func(task *core.TaskTemplate) { task.Interface = nil },
		"missing image":           func(task *core.TaskTemplate) { task.GetContainer().Image = "" },
		"with a defined pod spec": func(task *core.TaskTemplate) { task.Target = &core.TaskTemplate_K8SPod{K8SPod: &core.K8SPod{}} },
	} {
		t.Run(part, func(t *testing.T) { wantError(t, h.createTask(taskSpec("one", edit)), codes.InvalidArgument, part) })
	}
}

func entries(pairs ...string) []*core.Resources_ResourceEntry {
	var made []*core.Resources_ResourceEntry
	for i := 0; i < len(pairs); i += 2 {
		name := core.Resources_ResourceName(core.Resources_ResourceName_value[pairs[i]])
		made = append(made, &core.Resources_ResourceEntry{Name: name, Value: pairs[i+1]})
	}
	return made
}

func TestResourcesAtRegistration(t *testing.T) {
	// The limits are FlyteAdmin's defaults: 2 CPUs, 1Gi, 1 GPU.
	for _, test := range []struct {
		name             string
		requests, limits []*core.Resources_ResourceEntry
		code             codes.Code
		part             string
	}{
		{"within", entries("CPU", "1", "MEMORY", "1Gi"), entries("CPU", "2"), codes.OK, ""},
		{"whole units are compared", entries("CPU", "1500m"), nil, codes.OK, ""},
		{"too many CPUs", entries("CPU", "3"), nil, codes.InvalidArgument, "Requested CPU default [3] is greater than current limit set in the platform configuration [2]"},
		{"a limit that is too high", entries("CPU", "1"), entries("CPU", "3"), codes.InvalidArgument, "Requested CPU limit [3]"},
		{"a lone limit is not looked at", nil, entries("CPU", "3"), codes.OK, ""},
		{"more than its own limit", entries("MEMORY", "1Gi"), entries("MEMORY", "500Mi"), codes.InvalidArgument, "is greater than the limit [500Mi]"},
		{"two GPUs", entries("GPU", "2"), nil, codes.InvalidArgument, "Requested GPU default [2]"},
		{"half a GPU", entries("GPU", "500m"), nil, codes.InvalidArgument, "must be a whole number"},
		{"unequal GPUs", entries("GPU", "1"), entries("GPU", "0"), codes.InvalidArgument, "must equal the limit"},
		{"twice", entries("CPU", "1", "CPU", "2"), nil, codes.InvalidArgument, "multiple times"},
		{"no quantity", entries("CPU", "many"), nil, codes.InvalidArgument, "Parsing of CPU request failed"},
		{"storage has no limit", entries("EPHEMERAL_STORAGE", "1Ti"), nil, codes.OK, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t)
			err := h.createTask(taskSpec("one", func(task *core.TaskTemplate) {
				task.GetContainer().Resources = &core.Resources{Requests: test.requests, Limits: test.limits}
			}))
			wantError(t, err, test.code, test.part)
		})
	}
}

func TestResourcesOfAPodAtRegistration(t *testing.T) {
	for _, test := range []struct {
		name     string
		requests map[string]any
		code     codes.Code
		part     string
	}{
		{"within", map[string]any{"cpu": "2"}, codes.OK, ""},
		{"too many CPUs", map[string]any{"cpu": "3"}, codes.InvalidArgument, "Requested CPU default [3]"},
		{"nvidia.com/gpu is not looked at", map[string]any{"nvidia.com/gpu": "8"}, codes.OK, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, err := structpb.NewStruct(map[string]any{"containers": []any{map[string]any{
				"name": "main", "resources": map[string]any{"requests": test.requests},
			}}})
			must(t, err)
			err = start(t).createTask(taskSpec("one", func(task *core.TaskTemplate) {
				task.Target = &core.TaskTemplate_K8SPod{K8SPod: &core.K8SPod{PodSpec: spec}}
			}))
			wantError(t, err, test.code, test.part)
		})
	}
}

func TestAWorkflowMayHaveOnlySoManyNodes(t *testing.T) {
	h := start(t, func(c *config) { c.Registration.MaxWorkflowNodes = 1 })
	must(t, h.createTask(taskSpec("one")))
	_, err := h.admin.CreateWorkflow(t.Context(), workflowSpec("wf", taskNode("one")))
	must(t, err)
	two := workflowSpec("two", taskNode("one"))
	second := taskNode("one")
	second.Id, second.Inputs = "n1", bindings(variables("x"), "")
	two.Spec.Template.Nodes = append(two.Spec.Template.Nodes, second)
	_, err = h.admin.CreateWorkflow(t.Context(), two)
	wantError(t, err, codes.InvalidArgument, "exceeds limit (2 > 1)")
}

func parameter(value *core.Literal) *core.Parameter {
	return &core.Parameter{Var: &core.Variable{Type: integerType}, Behavior: &core.Parameter_Default{Default: value}}
}

func defaults(name string, value *core.Literal) *core.ParameterMap {
	return &core.ParameterMap{Parameters: map[string]*core.Parameter{name: parameter(value)}}
}

func TestInputsOfALaunchPlan(t *testing.T) {
	for _, test := range []struct {
		name     string
		defaults *core.ParameterMap
		fixed    *core.LiteralMap
		part     string
	}{
		{name: "none"},
		{name: "a default", defaults: defaults("x", integer(7))},
		{name: "a fixed input", fixed: literals("x", integer(7))},
		{name: "an unknown default", defaults: defaults("y", integer(7)), part: "unexpected default_input y"},
		{name: "an unknown fixed input", fixed: literals("y", integer(7)), part: "unexpected fixed_input y"},
		{name: "a default of another type", defaults: defaults("x", text("a")), part: "Type mismatch for Parameter x"},
		{name: "a fixed input of another type", fixed: literals("x", text("a")), part: "invalid fixed_input wrong type x"},
		{
			name:     "neither default nor required",
			defaults: &core.ParameterMap{Parameters: map[string]*core.Parameter{"x": {Var: &core.Variable{Type: integerType}}}},
			part:     "neither default, nor is required",
		},
		{name: "a fixed input without a value", fixed: literals("x", &core.Literal{}), part: "missing valid literal in fixed_inputs x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t)
			h.register()
			err := h.createPlan("other", "wf", func(spec *admin.LaunchPlanSpec) {
				spec.DefaultInputs, spec.FixedInputs = test.defaults, test.fixed
			})
			code := codes.OK
			if test.part != "" {
				code = codes.InvalidArgument
			}
			wantError(t, err, code, test.part)
		})
	}
}

func TestInputsOfAnExecution(t *testing.T) {
	for _, test := range []struct {
		name  string
		plan  func(*admin.LaunchPlanSpec)
		given *core.LiteralMap
		want  int64
		part  string
	}{
		{"given", nil, literals("x", integer(1)), 1, ""},
		{"missing", nil, nil, 0, "expected_inputs x missing"},
		{"unknown", nil, literals("y", integer(1)), 0, "invalid input y"},
		{"of another type", nil, literals("x", text("a")), 0, "invalid x input wrong type"},
		{"by default", func(s *admin.LaunchPlanSpec) { s.DefaultInputs = defaults("x", integer(7)) }, nil, 7, ""},
		{"over the default", func(s *admin.LaunchPlanSpec) { s.DefaultInputs = defaults("x", integer(7)) }, literals("x", integer(1)), 1, ""},
		{"fixed", func(s *admin.LaunchPlanSpec) { s.FixedInputs = literals("x", integer(9)) }, nil, 9, ""},
		{"over a fixed one", func(s *admin.LaunchPlanSpec) { s.FixedInputs = literals("x", integer(9)) }, literals("x", integer(1)), 0, "invalid input x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t)
			if test.plan == nil {
				test.plan = func(*admin.LaunchPlanSpec) {}
			}
			h.register(test.plan)
			launched := request(planID("plan"))
			launched.Inputs = test.given
			created, err := h.admin.CreateExecution(t.Context(), launched)
			if test.part != "" {
				wantError(t, err, codes.InvalidArgument, test.part)
				return
			}
			must(t, err)
			got := h.flyteWorkflow(created.GetId()).Inputs.GetLiterals()["x"].GetScalar().GetPrimitive().GetInteger()
			data, err := h.admin.GetExecutionData(t.Context(), &admin.WorkflowExecutionGetDataRequest{Id: created.GetId()})
			must(t, err)
			stored := data.GetFullInputs().GetLiterals()["x"].GetScalar().GetPrimitive().GetInteger()
			if got != test.want || stored != test.want {
				t.Errorf("got %d, stored %d, want %d", got, stored, test.want)
			}
		})
	}
}

func datetime(at *timestamppb.Timestamp) *core.Literal {
	return &core.Literal{Value: &core.Literal_Scalar{Scalar: &core.Scalar{Value: &core.Scalar_Primitive{
		Primitive: &core.Primitive{Value: &core.Primitive_Datetime{Datetime: at}},
	}}}}
}

func TestDatetimes(t *testing.T) {
	for _, test := range []struct {
		name string
		at   *timestamppb.Timestamp
		part string
	}{
		{"the last that there is", &timestamppb.Timestamp{Seconds: 253402300799, Nanos: 999999999}, ""},
		{"the year 10000", &timestamppb.Timestamp{Seconds: 253402300800}, "after 9999-12-31"},
		{"before the year 1", &timestamppb.Timestamp{Seconds: -62135596801}, "before 0001-01-01"},
		{"too many nanoseconds", &timestamppb.Timestamp{Nanos: 1000000000}, "out-of-range nanos"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code := codes.OK
			if test.part != "" {
				code = codes.InvalidArgument
			}
			given := datetime(test.at)
			kind := &core.LiteralType{Type: &core.LiteralType_Simple{Simple: core.SimpleType_DATETIME}}
			byDefault := &core.ParameterMap{Parameters: map[string]*core.Parameter{
				"x": {Var: &core.Variable{Type: kind}, Behavior: &core.Parameter_Default{Default: given}},
			}}
			wantError(t, validateParameters(byDefault, "default_inputs"), code, test.part)

			h := start(t)
			when := taskSpec("when", func(task *core.TaskTemplate) { task.Interface.Inputs.Variables["x"].Type = kind })
			must(t, h.createTask(when))
			launched := request(taskID("when"))
			launched.Inputs = literals("x", given)
			_, err := h.admin.CreateExecution(t.Context(), launched)
			wantError(t, err, code, test.part)
		})
	}
}

func TestOneVersionOfALaunchPlanIsActive(t *testing.T) {
	h := start(t)
	h.register()
	second := planID("plan")
	second.Version = "v2"
	_, err := h.admin.CreateLaunchPlan(t.Context(), &admin.LaunchPlanCreateRequest{
		Id: second, Spec: &admin.LaunchPlanSpec{WorkflowId: workflowID("wf")},
	})
	must(t, err)
	activate := func(id *core.Identifier, state admin.LaunchPlanState) {
		_, err := h.admin.UpdateLaunchPlan(t.Context(), &admin.LaunchPlanUpdateRequest{Id: id, State: state})
		must(t, err)
	}
	active := func() []string {
		listed, err := h.admin.ListActiveLaunchPlans(t.Context(), &admin.ActiveLaunchPlanListRequest{Project: project, Domain: development, Limit: 10})
		must(t, err)
		versions := []string{}
		for _, plan := range listed.GetLaunchPlans() {
			versions = append(versions, plan.GetId().GetVersion())
		}
		return versions
	}
	want := func(versions ...string) {
		t.Helper()
		if got := active(); len(got) != len(versions) || (len(got) == 1 && got[0] != versions[0]) {
			t.Fatalf("active: got %v, want %v", got, versions)
		}
	}
	want()
	activate(planID("plan"), admin.LaunchPlanState_ACTIVE)
	want("v1")
	activate(second, admin.LaunchPlanState_ACTIVE)
	want("v2")
	found, err := h.admin.GetActiveLaunchPlan(t.Context(), &admin.ActiveLaunchPlanRequest{
		Id: &admin.NamedEntityIdentifier{Project: project, Domain: development, Name: "plan"},
	})
	must(t, err)
	if found.GetId().GetVersion() != "v2" {
		t.Errorf("got %v", found.GetId())
	}
	activate(second, admin.LaunchPlanState_INACTIVE)
	want()
}
