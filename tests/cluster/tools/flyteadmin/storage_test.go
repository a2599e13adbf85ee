package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flyteorg/flyte/flytestdlib/promutils"
)

func TestABucketThatCannotBeMadeIsFoundAtTheStart(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`<?xml version="1.0"?><Error><Code>NoSuchBucket</Code></Error>`))
	}))
	defer refusing.Close()
	_, err := newDataStore(
		bucketConfig{endpoint: refusing.URL, accessKey: "key", secretKey: "secret", bucket: "flyte"}, promutils.NewTestScope())
	if err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("got %v", err)
	}
}
