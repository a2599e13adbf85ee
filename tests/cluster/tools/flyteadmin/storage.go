package main

import (
	"context"
	"log"
	"strings"

	s3 "github.com/flyteorg/stow/s3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytestdlib/promutils"
	"github.com/flyteorg/flyte/flytestdlib/storage"
)

// bucketConfig says where the bucket is.
type bucketConfig struct {
	endpoint, accessKey, secretKey, bucket string
}

// newDataStore opens the bucket by Flyte's own storage library. A first write makes the bucket
// where it is missing, and shows at once where that cannot be.
func newDataStore(config bucketConfig, scope promutils.Scope) (*storage.DataStore, error) {
	data, err := storage.NewDataStore(&storage.Config{
		Type: storage.TypeStow,
		Stow: storage.StowConfig{Kind: s3.Kind, Config: map[string]string{
			s3.ConfigAuthType: "accesskey", s3.ConfigAccessKeyID: config.accessKey, s3.ConfigSecretKey: config.secretKey,
			s3.ConfigEndpoint: config.endpoint, s3.ConfigRegion: "us-east-1", s3.ConfigDisableSSL: "true",
		}},
		InitContainer:         config.bucket,
		MultiContainerEnabled: true,
		Limits:                storage.LimitsConfig{GetLimitMegabytes: 100},
	}, scope)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	probe, err := data.ConstructReference(ctx, data.GetBaseContainerFQN(ctx), "metadata", "admin", "started")
	if err != nil {
		return nil, err
	}
	return data, data.WriteRaw(ctx, probe, 0, storage.Options{}, strings.NewReader(""))
}

// offload writes literals under metadata/PROJECT/DOMAIN/EXECUTION in the bucket
// (flyteadmin/pkg/common/data_store.go:18).
func (s *adminServer) offload(
	ctx context.Context, literals *core.LiteralMap, id *core.WorkflowExecutionIdentifier, path ...string,
) (storage.DataReference, error) {
	if literals == nil {
		literals = &core.LiteralMap{}
	}
	parts := append([]string{"metadata", id.GetProject(), id.GetDomain(), id.GetName()}, path...)
	return s.write(ctx, literals, parts...)
}

func (s *adminServer) write(
	ctx context.Context, message protoadapt.MessageV1, path ...string,
) (storage.DataReference, error) {
	uri, err := s.data.ConstructReference(ctx, s.data.GetBaseContainerFQN(ctx), path...)
	if err == nil {
		err = s.data.WriteProtobuf(ctx, uri, storage.Options{}, message)
	}
	if err != nil {
		return "", status.Errorf(codes.Internal, "Failed to write protobuf for %v with err: %v", path, err)
	}
	return uri, nil
}

// read gives the literals that are stored at a URI. Where they cannot be read, the answer is empty and the
// call goes on, as in FlyteAdmin (flyteadmin/pkg/manager/impl/util/data.go:53).
func (s *adminServer) read(ctx context.Context, uri storage.DataReference) *core.LiteralMap {
	literals := &core.LiteralMap{}
	if uri == "" {
		return literals
	}
	if err := s.data.ReadProtobuf(ctx, uri, literals); err != nil {
		log.Printf("cannot read %s: %v", uri, err)
	}
	return literals
}
