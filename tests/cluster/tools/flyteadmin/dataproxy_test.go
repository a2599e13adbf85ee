package main

import (
	"crypto/md5"
	"encoding/base32"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/service"
)

func digestOf(content string) []byte {
	sum := md5.Sum([]byte(content))
	return sum[:]
}

// upload sends content where the server says, with the headers that it asks for.
func (h *harness) upload(request *service.CreateUploadLocationRequest, content string) *service.CreateUploadLocationResponse {
	h.t.Helper()
	location, err := h.proxy.CreateUploadLocation(h.t.Context(), request)
	must(h.t, err)
	put, err := http.NewRequestWithContext(h.t.Context(), http.MethodPut, location.GetSignedUrl(), strings.NewReader(content))
	must(h.t, err)
	for name, value := range location.GetHeaders() {
		put.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(put)
	must(h.t, err)
	must(h.t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		h.t.Fatal(answer.Status)
	}
	return location
}

func TestUploadAndDownload(t *testing.T) {
	h := start(t)
	digest := digestOf("code")
	location := h.upload(&service.CreateUploadLocationRequest{
		Project: project, Domain: development, Filename: "fast.tar.gz", ContentMd5: digest,
		ExpiresIn: durationpb.New(time.Minute), AddContentMd5Metadata: true,
	}, "code")
	want := "s3://flyte/flytesnacks/development/" + base32.StdEncoding.EncodeToString(digest) + "/fast.tar.gz"
	if location.GetNativeUrl() != want && location.GetNativeUrl() != strings.ReplaceAll(want, "=", "%3D") {
		t.Errorf("native URL: %s", location.GetNativeUrl())
	}
	if location.GetHeaders()["Content-MD5"] != base64.StdEncoding.EncodeToString(digest) {
		t.Errorf("headers: %v", location.GetHeaders())
	}
	signed, err := url.Parse(location.GetSignedUrl())
	must(t, err)
	if signed.Query().Get("X-Amz-Signature") == "" || signed.Query().Get("X-Amz-Expires") != "60" {
		t.Errorf("not signed: %s", signed)
	}
	got, err := h.proxy.CreateDownloadLocation(t.Context(), &service.CreateDownloadLocationRequest{NativeUrl: location.GetNativeUrl()})
	must(t, err)
	answer, err := http.Get(got.GetSignedUrl())
	must(t, err)
	defer answer.Body.Close()
	text := make([]byte, 10)
	n, _ := answer.Body.Read(text)
	if string(text[:n]) != "code" {
		t.Errorf("got %q", text[:n])
	}
}

func TestUploadLocations(t *testing.T) {
	hour := durationpb.New(time.Hour)
	for _, test := range []struct {
		name    string
		request *service.CreateUploadLocationRequest
		code    codes.Code
		part    string
	}{
		{"by digest", &service.CreateUploadLocationRequest{Project: project, Domain: development, ContentMd5: digestOf("a"), ExpiresIn: hour}, codes.OK, ""},
		{"by root", &service.CreateUploadLocationRequest{Project: project, Domain: development, FilenameRoot: "r"}, codes.OK, ""},
		{"by neither", &service.CreateUploadLocationRequest{Project: project, Domain: development}, codes.InvalidArgument, "content_md5 or filename_root"},
		{"no project", &service.CreateUploadLocationRequest{Domain: development, FilenameRoot: "r"}, codes.InvalidArgument, "project and domain"},
		{
			"too long", &service.CreateUploadLocationRequest{Project: project, Domain: development, FilenameRoot: "r", ExpiresIn: durationpb.New(2 * time.Hour)},
			codes.InvalidArgument, "exceeds max allowed",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := start(t).proxy.CreateUploadLocation(t.Context(), test.request)
			wantError(t, err, test.code, test.part)
		})
	}
}

func TestAFullNameIsTakenOnce(t *testing.T) {
	h := start(t)
	request := &service.CreateUploadLocationRequest{Project: project, Domain: development, FilenameRoot: "r", Filename: "f"}
	h.upload(request, "one")
	_, err := h.proxy.CreateUploadLocation(t.Context(), request)
	wantError(t, err, codes.AlreadyExists, "specify a matching hash")
	request.ContentMd5 = digestOf("two")
	_, err = h.proxy.CreateUploadLocation(t.Context(), request)
	wantError(t, err, codes.AlreadyExists, "specify a matching hash")
}

func TestDataByURL(t *testing.T) {
	h := start(t)
	for flyteURL, code := range map[string]codes.Code{
		"http://x":                        codes.InvalidArgument,
		"flyte://v1/p/d/e/n/z":            codes.InvalidArgument,
		"flyte://v1/p/d/e/n/0/d":          codes.InvalidArgument,
		"flyte://v1/p/d/e/n/i":            codes.NotFound,
		"flyte://v1/p/d/e/n/0/o":          codes.InvalidArgument,
		"flyte://v1/p/d/e/n/o/name/other": codes.InvalidArgument,
	} {
		_, err := h.proxy.GetData(t.Context(), &service.GetDataRequest{FlyteUrl: flyteURL})
		wantError(t, err, code, "")
	}
}

func TestTheDeckOfANodeIsLinkedTo(t *testing.T) {
	h := start(t)
	id, node := h.launched()
	location := h.upload(&service.CreateUploadLocationRequest{
		Project: project, Domain: development, FilenameRoot: "deck", Filename: "deck.html",
	}, "<html>")
	decks := map[string]string{"n0": location.GetNativeUrl(), "gone": "s3://flyte/none/deck.html", "none": ""}
	for name, deck := range decks {
		said := nodeEvent(&core.NodeExecutionIdentifier{ExecutionId: id, NodeId: name}, core.NodeExecution_SUCCEEDED)
		said.Event.DeckUri = deck
		_, err := h.admin.CreateNodeEvent(t.Context(), said)
		must(t, err)
	}
	source := func(name string) *service.CreateDownloadLinkRequest_NodeExecutionId {
		return &service.CreateDownloadLinkRequest_NodeExecutionId{
			NodeExecutionId: &core.NodeExecutionIdentifier{ExecutionId: node.GetExecutionId(), NodeId: name},
		}
	}
	const deck = service.ArtifactType_ARTIFACT_TYPE_DECK
	for _, test := range []struct {
		name    string
		request *service.CreateDownloadLinkRequest
		code    codes.Code
		part    string
	}{
		{"a deck", &service.CreateDownloadLinkRequest{ArtifactType: deck, Source: source("n0")}, codes.OK, ""},
		{"no type", &service.CreateDownloadLinkRequest{Source: source("n0")}, codes.InvalidArgument, "invalid artifact type"},
		{"no node", &service.CreateDownloadLinkRequest{ArtifactType: deck}, codes.InvalidArgument, "unsupported source"},
		{
			"an unknown node", &service.CreateDownloadLinkRequest{ArtifactType: deck, Source: source("n9")},
			codes.InvalidArgument, "failed to find node execution",
		},
		{"no deck", &service.CreateDownloadLinkRequest{ArtifactType: deck, Source: source("none")}, codes.NotFound, "no deckUrl found"},
		{"a deck that is gone", &service.CreateDownloadLinkRequest{ArtifactType: deck, Source: source("gone")}, codes.NotFound, "object not found"},
		{
			"for too long", &service.CreateDownloadLinkRequest{ArtifactType: deck, Source: source("n0"), ExpiresIn: durationpb.New(48 * time.Hour)},
			codes.InvalidArgument, "exceeds max allowed",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			link, err := h.proxy.CreateDownloadLink(t.Context(), test.request)
			wantError(t, err, test.code, test.part)
			if err != nil {
				return
			}
			urls := link.GetPreSignedUrls().GetSignedUrl()
			if len(urls) != 1 {
				t.Fatalf("got %v", link)
			}
			answer, err := http.Get(urls[0])
			must(t, err)
			defer answer.Body.Close()
			page, err := io.ReadAll(answer.Body)
			must(t, err)
			if string(page) != "<html>" {
				t.Errorf("got %q", page)
			}
		})
	}
}
