package main

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/flyteorg/stow"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/service"
	"github.com/flyteorg/flyte/flytestdlib/storage"
)

// Source of this file: flyteadmin/dataproxy/service.go.

const (
	// maxExpiry and fileNameLength are FlyteAdmin's defaults (flyteadmin/pkg/config/config.go).
	maxExpiry      = time.Hour
	fileNameLength = 20
)

// dataProxyServer hands out signed URLs into the bucket, and data by flyte:// URL.
type dataProxyServer struct {
	service.UnimplementedDataProxyServiceServer
	admin *adminServer
}

// CreateUploadLocation signs a PUT. A full name that is taken is given again only for the same content.
func (s *dataProxyServer) CreateUploadLocation(
	ctx context.Context, request *service.CreateUploadLocationRequest,
) (*service.CreateUploadLocationResponse, error) {
	if request.GetProject() == "" || request.GetDomain() == "" {
		return nil, invalid("project and domain are required parameters")
	}
	root, digest := request.GetFilenameRoot(), request.GetContentMd5()
	if root == "" && len(digest) == 0 {
		return nil, invalid("content_md5 or filename_root is a required parameter")
	}
	expiry, err := validExpiry(request.GetExpiresIn())
	if err != nil {
		return nil, err
	}
	name := request.GetFilename()
	exact := root != "" && name != ""
	if root == "" {
		root = base32.StdEncoding.EncodeToString(digest)
	}
	if name == "" {
		name = rand.String(fileNameLength)
	}
	parts := slices.DeleteFunc(
		[]string{request.GetOrg(), request.GetProject(), request.GetDomain(), root, name},
		func(part string) bool { return part == "" })
	data := s.admin.data
	location, err := data.ConstructReference(ctx, data.GetBaseContainerFQN(ctx), parts...)
	if err != nil {
		return nil, err
	}
	if exact {
		if err := s.checkFree(ctx, location, digest); err != nil {
			return nil, err
		}
	}
	signed, err := data.CreateSignedURL(ctx, location, storage.SignedURLProperties{
		Scope: stow.ClientMethodPut, ExpiresIn: expiry,
		ContentMD5:            base64.StdEncoding.EncodeToString(digest),
		AddContentMD5Metadata: request.GetAddContentMd5Metadata(),
	})
	if err != nil {
		return nil, status.Errorf(codes.Internal, "failed to create a signed url. Error: %v", err)
	}
	return &service.CreateUploadLocationResponse{
		SignedUrl: signed.URL.String(), NativeUrl: location.String(),
		ExpiresAt: timestamppb.New(time.Now().Add(expiry)), Headers: signed.RequiredRequestHeaders,
	}, nil
}

func (s *dataProxyServer) checkFree(ctx context.Context, location storage.DataReference, digest []byte) error {
	known, err := s.admin.data.Head(ctx, location)
	if err != nil {
		return status.Errorf(codes.Internal, "failed to check if file exists at location [%s], Error: %v", location, err)
	}
	if !known.Exists() {
		return nil
	}
	written := base64.StdEncoding.EncodeToString(digest)
	same := known.ContentMD5() == written
	if known.ContentMD5() == "" {
		same = slices.Contains(
			[]string{hex.EncodeToString(digest), base32.StdEncoding.EncodeToString(digest), written}, known.Etag())
	}
	if len(digest) == 0 || !same {
		return alreadyExists("file already exists at location [%v], specify a matching hash if you wish to rewrite", location)
	}
	return nil
}

// CreateDownloadLocation signs a GET of a location.
func (s *dataProxyServer) CreateDownloadLocation(
	ctx context.Context, request *service.CreateDownloadLocationRequest,
) (*service.CreateDownloadLocationResponse, error) {
	url, expires, err := s.signGet(ctx, request.GetNativeUrl(), request.GetExpiresIn())
	if err != nil {
		return nil, err
	}
	return &service.CreateDownloadLocationResponse{SignedUrl: url, ExpiresAt: expires}, nil
}

// CreateDownloadLink signs a GET of a node's deck, the only artifact that FlyteAdmin links to.
func (s *dataProxyServer) CreateDownloadLink(
	ctx context.Context, request *service.CreateDownloadLinkRequest,
) (*service.CreateDownloadLinkResponse, error) {
	if request.GetArtifactType() == service.ArtifactType_ARTIFACT_TYPE_UNDEFINED {
		return nil, invalid("invalid artifact type [%v]", request.GetArtifactType())
	}
	if request.GetNodeExecutionId() == nil {
		return nil, invalid("unsupported source [%T]", request.GetSource())
	}
	node, err := s.admin.nodeExecution(request.GetNodeExecutionId())
	if err != nil {
		return nil, invalid("failed to find node execution [%v]. Error: %v", request.GetNodeExecutionId(), err)
	}
	deck := node.GetClosure().GetDeckUri()
	if deck == "" {
		return nil, status.Errorf(codes.NotFound, "no deckUrl found for request [%+v]", request)
	}
	known, err := s.admin.data.Head(ctx, storage.DataReference(deck))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "failed to head object before signing url. Error: %v", err)
	}
	if !known.Exists() {
		return nil, status.Error(codes.NotFound, "object not found")
	}
	url, expires, err := s.signGet(ctx, deck, request.GetExpiresIn())
	if err != nil {
		return nil, err
	}
	urls := []string{url}
	return &service.CreateDownloadLinkResponse{
		SignedUrl: urls, ExpiresAt: expires, PreSignedUrls: &service.PreSignedURLs{SignedUrl: urls, ExpiresAt: expires},
	}, nil
}

func (s *dataProxyServer) signGet(
	ctx context.Context, location string, expiresIn *durationpb.Duration,
) (string, *timestamppb.Timestamp, error) {
	expiry, err := validExpiry(expiresIn)
	if err != nil {
		return "", nil, err
	}
	signed, err := s.admin.data.CreateSignedURL(ctx, storage.DataReference(location),
		storage.SignedURLProperties{Scope: stow.ClientMethodGet, ExpiresIn: expiry})
	if err != nil {
		return "", nil, status.Errorf(codes.Internal, "failed to create a signed url. Error: %v", err)
	}
	return signed.URL.String(), timestamppb.New(time.Now().Add(expiry)), nil
}

func validExpiry(expiresIn *durationpb.Duration) (time.Duration, error) {
	if expiresIn == nil {
		return maxExpiry, nil
	}
	if wanted := expiresIn.AsDuration(); expiresIn.IsValid() && wanted >= 0 && wanted <= maxExpiry {
		return wanted, nil
	}
	return 0, invalid("expiresIn [%v] is invalid or exceeds max allowed expiration [%v]", expiresIn, maxExpiry)
}

// flyteURL names inputs, outputs or the deck of a node or of one attempt, and maybe one literal of them
// (flyteadmin/pkg/common/flyte_url.go:25).
var flyteURL = regexp.MustCompile(
	`^flyte://v1/([\w-]+)/([\w-]+)/([\w-]+)/([\w-]+)(?:/([0-9]+))?/(?:([iod])|([io])/([\w-]+))$`)

// GetData gives what a flyte:// URL names.
func (s *dataProxyServer) GetData(
	ctx context.Context, request *service.GetDataRequest,
) (*service.GetDataResponse, error) {
	parts := flyteURL.FindStringSubmatch(request.GetFlyteUrl())
	if parts == nil {
		return nil, invalid("failed to parse artifact url [%s]", request.GetFlyteUrl())
	}
	node := &core.NodeExecutionIdentifier{
		ExecutionId: &core.WorkflowExecutionIdentifier{Project: parts[1], Domain: parts[2], Name: parts[3]}, NodeId: parts[4],
	}
	attempt, kind, name := parts[5], parts[6]+parts[7], parts[8]
	var literals *core.LiteralMap
	switch {
	case kind == "d" && attempt != "":
		return nil, invalid("deck type cannot be specified with a retry attempt, just use the node instead")
	case kind == "d":
		link, err := s.CreateDownloadLink(ctx, &service.CreateDownloadLinkRequest{
			ArtifactType: service.ArtifactType_ARTIFACT_TYPE_DECK,
			Source:       &service.CreateDownloadLinkRequest_NodeExecutionId{NodeExecutionId: node},
		})
		return &service.GetDataResponse{
			Data: &service.GetDataResponse_PreSignedUrls{PreSignedUrls: link.GetPreSignedUrls()},
		}, err
	case attempt != "":
		number, _ := strconv.Atoi(attempt)
		id, err := s.attempt(node, number)
		if err != nil {
			return nil, err
		}
		data, err := s.admin.GetTaskExecutionData(ctx, &admin.TaskExecutionGetDataRequest{Id: id})
		if err != nil {
			return nil, err
		}
		literals = inputsOrOutputs(kind, data)
	default:
		data, err := s.admin.GetNodeExecutionData(ctx, &admin.NodeExecutionGetDataRequest{Id: node})
		if err != nil {
			return nil, err
		}
		literals = inputsOrOutputs(kind, data)
	}
	if name == "" {
		return &service.GetDataResponse{Data: &service.GetDataResponse_LiteralMap{LiteralMap: literals}}, nil
	}
	literal, ok := literals.GetLiterals()[name]
	if !ok {
		return nil, invalid("name [%v] not found in [%s]", name, request.GetFlyteUrl())
	}
	return &service.GetDataResponse{Data: &service.GetDataResponse_Literal{Literal: literal}}, nil
}

// attempt is one attempt of the task of a node, whose name is not in a flyte:// URL.
func (s *dataProxyServer) attempt(node *core.NodeExecutionIdentifier, number int) (*core.TaskExecutionIdentifier, error) {
	for _, row := range s.admin.store.taskExecutions.list() {
		id := row.GetId()
		if nodeExecutionKey(id.GetNodeExecutionId()) == nodeExecutionKey(node) && int(id.GetRetryAttempt()) == number {
			return id, nil
		}
	}
	return nil, invalid("no task executions were listed [%v], attempt %d", node, number)
}

func inputsOrOutputs(kind string, data interface {
	GetFullInputs() *core.LiteralMap
	GetFullOutputs() *core.LiteralMap
},
) *core.LiteralMap {
	if kind == "i" {
		return data.GetFullInputs()
	}
	return data.GetFullOutputs()
}
