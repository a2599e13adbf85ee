package main

import (
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytestdlib/storage"
)

// table is one kind of entity in memory, in the order of creation. What it holds is never changed in
// place: change puts a new value there, so a value that was read can be used without a lock.
type table[V any] struct {
	mu   sync.RWMutex
	rows map[string]V
	keys []string
}

func newTable[V any]() *table[V] {
	return &table[V]{rows: map[string]V{}}
}

func (t *table[V]) get(key string) (V, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	row, ok := t.rows[key]
	return row, ok
}

// create adds a row and says whether the key was free.
func (t *table[V]) create(key string, row V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.rows[key]; ok {
		return false
	}
	t.rows[key] = row
	t.keys = append(t.keys, key)
	return true
}

// change puts what edit makes of the row (the zero value and false where there is none) in its place,
// unless edit returns an error.
func (t *table[V]) change(key string, edit func(row V, found bool) (V, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	row, found := t.rows[key]
	row, err := edit(row, found)
	if err != nil {
		return err
	}
	if !found {
		t.keys = append(t.keys, key)
	}
	t.rows[key] = row
	return nil
}

func (t *table[V]) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.rows[key]; !ok {
		return
	}
	delete(t.rows, key)
	for i, other := range t.keys {
		if other == key {
			t.keys = append(t.keys[:i:i], t.keys[i+1:]...)
			return
		}
	}
}

func (t *table[V]) list() []V {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rows := make([]V, 0, len(t.keys))
	for _, key := range t.keys {
		rows = append(rows, t.rows[key])
	}
	return rows
}

type task struct {
	*admin.Task
	digest []byte
}

type workflow struct {
	*admin.Workflow
	digest []byte
	// Where the compiled closure is stored, for FlyteWorkflows that only refer to it.
	closure storage.DataReference
}

type launchPlan struct {
	*admin.LaunchPlan
	digest []byte
}

type execution struct {
	*admin.Execution
	inputs     storage.DataReference
	userInputs storage.DataReference
}

type nodeExecution struct {
	*admin.NodeExecution
	parentNode string
	parentTask string
	dynamic    *core.CompiledWorkflowClosure
}

type taskExecution struct {
	*admin.TaskExecution
	phaseVersion uint32
}

// store is all that the server knows. It has no database: what is in it is lost when the process ends.
type store struct {
	projects       *table[*admin.Project]
	attributes     *table[*admin.MatchableAttributesConfiguration]
	tasks          *table[task]
	workflows      *table[workflow]
	launchPlans    *table[launchPlan]
	executions     *table[execution]
	nodeExecutions *table[nodeExecution]
	taskExecutions *table[taskExecution]
}

func newStore() *store {
	return &store{
		projects:       newTable[*admin.Project](),
		attributes:     newTable[*admin.MatchableAttributesConfiguration](),
		tasks:          newTable[task](),
		workflows:      newTable[workflow](),
		launchPlans:    newTable[launchPlan](),
		executions:     newTable[execution](),
		nodeExecutions: newTable[nodeExecution](),
		taskExecutions: newTable[taskExecution](),
	}
}

func key(parts ...string) string {
	return strings.Join(parts, "\x00")
}

func idKey(id *core.Identifier) string {
	return key(id.GetProject(), id.GetDomain(), id.GetName(), id.GetVersion())
}

func executionKey(id *core.WorkflowExecutionIdentifier) string {
	return key(id.GetProject(), id.GetDomain(), id.GetName())
}

func nodeExecutionKey(id *core.NodeExecutionIdentifier) string {
	return key(executionKey(id.GetExecutionId()), id.GetNodeId())
}

func taskExecutionKey(id *core.TaskExecutionIdentifier) string {
	return key(
		nodeExecutionKey(id.GetNodeExecutionId()),
		idKey(id.GetTaskId()),
		strconv.FormatUint(uint64(id.GetRetryAttempt()), 10),
	)
}

// firstSet is the first time that is set: a reporter of events may leave reported_at empty.
func firstSet(times ...*timestamppb.Timestamp) *timestamppb.Timestamp {
	for _, time := range times {
		if time.GetSeconds() != 0 || time.GetNanos() != 0 {
			return time
		}
	}
	return nil
}
