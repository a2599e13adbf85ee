package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	for _, test := range []struct{ name, text, cpu, part string }{
		{"nothing", "", "2", ""},
		{"one setting leaves the others", "task_resources: {limits: {cpu: 8}}", "8", ""},
		{"an unknown key", "flyteadmin: {maxParalelism: 3}", "", "maxParalelism"},
		{"no YAML", "a: [", "", "yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			must(t, os.WriteFile(path, []byte(test.text), 0o600))
			got, err := loadConfig(path)
			if test.part != "" {
				if err == nil || !strings.Contains(err.Error(), test.part) || !strings.Contains(err.Error(), path) {
					t.Fatalf("got %v", err)
				}
				return
			}
			must(t, err)
			limits := got.TaskResources.Limits
			if limits.CPU.String() != test.cpu || limits.Memory.String() != "1Gi" || got.FlyteAdmin.MaxParallelism != 25 || len(got.Domains) != 3 {
				t.Errorf("got %+v", got)
			}
		})
	}
	if _, err := loadConfig("none.yaml"); err == nil {
		t.Error("a missing file is no error")
	}
}
