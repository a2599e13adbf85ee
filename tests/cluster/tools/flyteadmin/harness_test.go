package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corefake "k8s.io/client-go/kubernetes/fake"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/service"
	"github.com/flyteorg/flyte/flytepropeller/pkg/apis/flyteworkflow/v1alpha1"
	flytefake "github.com/flyteorg/flyte/flytepropeller/pkg/client/clientset/versioned/fake"
	"github.com/flyteorg/flyte/flytestdlib/promutils"
)

const (
	project     = defaultProject
	development = "development"
	namespace   = "flytesnacks-development"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// bucketServer is as much of S3 over HTTP as Flyte's storage library uses.
func bucketServer(t *testing.T) *httptest.Server {
	var mu sync.Mutex
	objects := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		isBucket := strings.Count(strings.Trim(r.URL.Path, "/"), "/") == 0
		switch {
		case r.Method == http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			objects[r.URL.Path] = body
		case isBucket:
			_, _ = io.WriteString(w, `<?xml version="1.0"?><ListBucketResult></ListBucketResult>`)
		default:
			body, ok := objects[r.URL.Path]
			if !ok {
				w.WriteHeader(http.StatusNotFound)
				if r.Method == http.MethodGet {
					_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`)
				}
				return
			}
			w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(body)))
			http.ServeContent(w, r, "", time.Now(), bytes.NewReader(body))
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// harness is a server over a real connection; only the cluster and the bucket are not real.
type harness struct {
	t     *testing.T
	admin service.AdminServiceClient
	proxy service.DataProxyServiceClient
	flyte *flytefake.Clientset
	core  *corefake.Clientset
	conn  *grpc.ClientConn
}

func start(t *testing.T, settings ...func(*config)) *harness {
	t.Helper()
	configured := defaultConfig()
	for _, set := range settings {
		set(configured)
	}
	bucket := bucketServer(t)
	data, err := newDataStore(
		bucketConfig{endpoint: bucket.URL, accessKey: "key", secretKey: "secret", bucket: "flyte"}, promutils.NewTestScope())
	must(t, err)
	flyte, core := flytefake.NewSimpleClientset(), corefake.NewClientset()
	server := newServer(configured, data, &cluster{flyte: flyte, core: core})
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &harness{
		t: t, flyte: flyte, core: core, conn: conn,
		admin: service.NewAdminServiceClient(conn), proxy: service.NewDataProxyServiceClient(conn),
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the code of an error, codes.OK for none, and a part of its message.
func wantError(t *testing.T, err error, code codes.Code, part string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), part) {
		t.Fatalf("got %v, want %s with %q", err, code, part)
	}
}

func wantMap(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(got)+len(want) > 0 && !maps.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func id(kind core.ResourceType, name, version string) *core.Identifier {
	return &core.Identifier{ResourceType: kind, Project: project, Domain: development, Name: name, Version: version}
}

func taskID(name string) *core.Identifier     { return id(core.ResourceType_TASK, name, "v1") }
func workflowID(name string) *core.Identifier { return id(core.ResourceType_WORKFLOW, name, "v1") }
func planID(name string) *core.Identifier     { return id(core.ResourceType_LAUNCH_PLAN, name, "v1") }

func variables(names ...string) *core.VariableMap {
	made := map[string]*core.Variable{}
	for _, name := range names {
		made[name] = &core.Variable{Type: integerType}
	}
	return &core.VariableMap{Variables: made}
}

var integerType = &core.LiteralType{Type: &core.LiteralType_Simple{Simple: core.SimpleType_INTEGER}}

func integer(value int64) *core.Literal {
	return &core.Literal{Value: &core.Literal_Scalar{Scalar: &core.Scalar{Value: &core.Scalar_Primitive{
		Primitive: &core.Primitive{Value: &core.Primitive_Integer{Integer: value}},
	}}}}
}

func text(value string) *core.Literal {
	return &core.Literal{Value: &core.Literal_Scalar{Scalar: &core.Scalar{Value: &core.Scalar_Primitive{
		Primitive: &core.Primitive{Value: &core.Primitive_StringValue{StringValue: value}},
	}}}}
}

func literals(name string, value *core.Literal) *core.LiteralMap {
	return &core.LiteralMap{Literals: map[string]*core.Literal{name: value}}
}

// taskSpec is a task with the input x and the output o0, both integers.
func taskSpec(name string, edits ...func(*core.TaskTemplate)) *admin.TaskCreateRequest {
	template := &core.TaskTemplate{
		Id: taskID(name), Type: "python-task",
		Metadata:  &core.TaskMetadata{Runtime: &core.RuntimeMetadata{Version: "1.16.31"}, Retries: &core.RetryStrategy{}},
		Interface: &core.TypedInterface{Inputs: variables("x"), Outputs: variables("o0")},
		Target: &core.TaskTemplate_Container{Container: &core.Container{
			Image: "example.com/t:1", Args: []string{"pyflyte-execute"},
		}},
	}
	for _, edit := range edits {
		edit(template)
	}
	return &admin.TaskCreateRequest{Id: taskID(name), Spec: &admin.TaskSpec{Template: template}}
}

// workflowSpec is a workflow of one node n0, which runs the target with the input x.
func workflowSpec(name string, target *core.Node) *admin.WorkflowCreateRequest {
	target.Id = "n0"
	target.Inputs = bindings(variables("x"), "")
	return &admin.WorkflowCreateRequest{Id: workflowID(name), Spec: &admin.WorkflowSpec{Template: &core.WorkflowTemplate{
		Id: workflowID(name), Interface: &core.TypedInterface{Inputs: variables("x"), Outputs: variables("o0")},
		Nodes: []*core.Node{target}, Outputs: bindings(variables("o0"), "n0"),
	}}}
}

func taskNode(task string) *core.Node {
	return &core.Node{Metadata: &core.NodeMetadata{Name: task}, Target: &core.Node_TaskNode{
		TaskNode: &core.TaskNode{Reference: &core.TaskNode_ReferenceId{ReferenceId: taskID(task)}},
	}}
}

func launchPlanNode(plan string) *core.Node {
	return &core.Node{Metadata: &core.NodeMetadata{Name: plan}, Target: &core.Node_WorkflowNode{
		WorkflowNode: &core.WorkflowNode{Reference: &core.WorkflowNode_LaunchplanRef{LaunchplanRef: planID(plan)}},
	}}
}

func (h *harness) createTask(request *admin.TaskCreateRequest) error {
	_, err := h.admin.CreateTask(h.t.Context(), request)
	return err
}

func (h *harness) createPlan(name, workflow string, edits ...func(*admin.LaunchPlanSpec)) error {
	spec := &admin.LaunchPlanSpec{WorkflowId: workflowID(workflow)}
	for _, edit := range edits {
		edit(spec)
	}
	_, err := h.admin.CreateLaunchPlan(h.t.Context(), &admin.LaunchPlanCreateRequest{Id: planID(name), Spec: spec})
	return err
}

// register registers the task one, the workflow wf of it, and the launch plan plan of that.
func (h *harness) register(edits ...func(*admin.LaunchPlanSpec)) {
	h.t.Helper()
	must(h.t, h.createTask(taskSpec("one")))
	_, err := h.admin.CreateWorkflow(h.t.Context(), workflowSpec("wf", taskNode("one")))
	must(h.t, err)
	must(h.t, h.createPlan("plan", "wf", edits...))
}

// request launches an entity with x=1.
func request(entity *core.Identifier, edits ...func(*admin.ExecutionSpec)) *admin.ExecutionCreateRequest {
	spec := &admin.ExecutionSpec{LaunchPlan: entity}
	for _, edit := range edits {
		edit(spec)
	}
	return &admin.ExecutionCreateRequest{
		Project: project, Domain: development, Spec: spec, Inputs: literals("x", integer(1)),
	}
}

// launch launches and gives what was created in the cluster.
func (h *harness) launch(request *admin.ExecutionCreateRequest) *v1alpha1.FlyteWorkflow {
	h.t.Helper()
	created, err := h.admin.CreateExecution(h.t.Context(), request)
	must(h.t, err)
	return h.flyteWorkflow(created.GetId())
}

func (h *harness) flyteWorkflow(id *core.WorkflowExecutionIdentifier) *v1alpha1.FlyteWorkflow {
	h.t.Helper()
	found, err := h.flyte.FlyteworkflowV1alpha1().FlyteWorkflows(id.GetProject()+"-"+id.GetDomain()).
		Get(h.t.Context(), id.GetName(), metav1.GetOptions{})
	must(h.t, err)
	return found
}

func (h *harness) execution(id *core.WorkflowExecutionIdentifier) *admin.Execution {
	h.t.Helper()
	found, err := h.admin.GetExecution(h.t.Context(), &admin.WorkflowExecutionGetRequest{Id: id})
	must(h.t, err)
	return found
}

func labelled(labels map[string]string) func(*admin.ExecutionSpec) {
	return func(spec *admin.ExecutionSpec) { spec.Labels = &admin.Labels{Values: labels} }
}

func annotated(annotations map[string]string) func(*admin.ExecutionSpec) {
	return func(spec *admin.ExecutionSpec) { spec.Annotations = &admin.Annotations{Values: annotations} }
}
