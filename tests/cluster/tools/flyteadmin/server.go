package main

import (
	"context"
	"log"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/service"
	"github.com/flyteorg/flyte/flytestdlib/storage"
)

// version is that of the FlyteAdmin whose rules this server follows.
const version = "v1.16.8"

// maxMessageBytes is above gRPC's default, as deployments of FlyteAdmin set it (grpc.maxMessageSizeBytes).
const maxMessageBytes = 64 * 1024 * 1024

// adminServer is the AdminService. Methods that it does not have answer Unimplemented.
type adminServer struct {
	service.UnimplementedAdminServiceServer
	config  *config
	store   *store
	data    *storage.DataStore
	cluster *cluster
}

// newServer registers the services that a FlyteAdmin without auth has and its clients call. It has no
// AuthMetadataService and no IdentityService: FlyteAdmin has them only with auth
// (flyteadmin/pkg/server/service.go:162).
func newServer(config *config, data *storage.DataStore, cluster *cluster) *grpc.Server {
	admins := &adminServer{config: config, store: newStore(), data: data, cluster: cluster}
	admins.store.projects.create(defaultProject, &admin.Project{
		Id: defaultProject, Name: defaultProject, Description: "flytesnacks description",
	})
	server := grpc.NewServer(grpc.UnaryInterceptor(logged),
		grpc.MaxRecvMsgSize(maxMessageBytes), grpc.MaxSendMsgSize(maxMessageBytes))
	service.RegisterAdminServiceServer(server, admins)
	service.RegisterDataProxyServiceServer(server, &dataProxyServer{admin: admins})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	return server
}

func (s *adminServer) GetVersion(context.Context, *admin.GetVersionRequest) (*admin.GetVersionResponse, error) {
	return &admin.GetVersionResponse{ControlPlaneVersion: &admin.Version{Version: version, Build: "stand-in"}}, nil
}

// logged writes one line a call, turns a panic into an error of that call, and says of a method that is not
// there whose it is not.
func logged(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (response any, err error) {
	start, method := time.Now(), path.Base(info.FullMethod)
	defer func() {
		if fault := recover(); fault != nil {
			err = status.Errorf(codes.Internal, "panic in %s: %v", method, fault)
		}
		if err != nil {
			response = nil
		}
		log.Printf("%s %s %s %s", method, status.Code(err), time.Since(start).Round(time.Millisecond), status.Convert(err).Message())
	}()
	response, err = handler(ctx, request)
	if status.Code(err) == codes.Unimplemented {
		err = status.Errorf(codes.Unimplemented, "FlyteAdmin's stand-in does not have this part of %s: %s",
			info.FullMethod, status.Convert(err).Message())
	}
	return response, err
}
