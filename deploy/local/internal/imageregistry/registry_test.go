package imageregistry

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// store is containerd with some images.
type store struct {
	imagesapi.ImagesClient
	images map[string]*types.Descriptor
}

func (s store) Get(ctx context.Context, r *imagesapi.GetImageRequest, _ ...grpc.CallOption) (*imagesapi.GetImageResponse, error) {
	md, _ := metadata.FromOutgoingContext(ctx)
	if got := md.Get(namespaceHeader); len(got) != 1 || got[0] != Namespace {
		return nil, status.Error(codes.FailedPrecondition, "namespace is required")
	}
	if r.Name == "docker.io/library/broken:1" {
		return nil, status.Error(codes.Unavailable, "containerd is gone")
	}
	target, ok := s.images[r.Name]
	if !ok {
		return nil, status.Error(codes.NotFound, "not found")
	}
	return &imagesapi.GetImageResponse{Image: &imagesapi.Image{Name: r.Name, Target: target}}, nil
}

func TestRegistry(t *testing.T) {
	h := handler(store{images: map[string]*types.Descriptor{
		"docker.io/library/busybox:latest": {MediaType: "application/m", Digest: "sha256:1", Size: 123},
		"example.com/a/b@sha256:2":         {MediaType: "application/m", Digest: "sha256:2", Size: 7},
	}})
	cases := map[string]struct {
		method, url string
		want        int
		wantDigest  string
	}{
		"the version of the protocol":     {"GET", "/v2/", http.StatusOK, ""},
		"a name with a tag":               {"HEAD", "/v2/library/busybox/manifests/latest?ns=docker.io", http.StatusOK, "sha256:1"},
		"a name with a digest":            {"HEAD", "/v2/a/b/manifests/sha256:2?ns=example.com", http.StatusOK, "sha256:2"},
		"the name in another registry":    {"HEAD", "/v2/library/busybox/manifests/latest?ns=quay.io", http.StatusNotFound, ""},
		"no registry":                     {"HEAD", "/v2/library/busybox/manifests/latest", http.StatusNotFound, ""},
		"a manifest, which is not served": {"GET", "/v2/library/busybox/manifests/latest?ns=docker.io", http.StatusNotFound, ""},
		"anything else":                   {"HEAD", "/v2/library/busybox/blobs/sha256:1?ns=docker.io", http.StatusNotFound, ""},
		"containerd does not answer":      {"HEAD", "/v2/library/broken/manifests/1?ns=docker.io", http.StatusBadGateway, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(tc.method, tc.url, nil))
			if w.Code != tc.want || w.Header().Get("Docker-Content-Digest") != tc.wantDigest {
				t.Errorf("got %d, digest %q; want %d, %q", w.Code, w.Header().Get("Docker-Content-Digest"), tc.want, tc.wantDigest)
			}
			if tc.wantDigest == "sha256:1" && (w.Header().Get("Content-Length") != "123" || w.Header().Get("Content-Type") != "application/m") {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
}
