// Package imageregistry answers for every image registry, inside a cluster that
// cannot reach any: it resolves the names of images that containerd already has.
//
// A manifest that says "image: busybox" asks for the latest version, and so for
// a pull at every start of a container (imagePullPolicy Always). containerd then
// asks the registry which image the name stands for, and fetches only what it
// does not have. Here that is nothing: an image is loaded before it is used, and
// the registry answers 404 for an image that was not loaded.
package imageregistry

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Namespace is containerd's namespace of the kubelet's images.
const Namespace = "k8s.io"

// namespaceHeader carries it in calls to containerd.
const namespaceHeader = "containerd-namespace"

// Run serves at address until ctx ends. socket is containerd's.
func Run(ctx context.Context, address, socket string) error {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	server := &http.Server{
		Addr:              address,
		Handler:           handler(imagesapi.NewImagesClient(conn)),
		ReadHeaderTimeout: 10 * time.Second,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

// handler serves the one question of the registry protocol (OCI distribution
// specification) that is left when nothing has to be fetched.
func handler(images imagesapi.ImagesClient) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{path...}", func(w http.ResponseWriter, r *http.Request) {
		path := r.PathValue("path")
		if path == "" {
			return // the version of the protocol is served
		}
		name, ok := imageName(r.URL.Query().Get("ns"), path)
		if !ok || r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		descriptor, err := resolve(r.Context(), images, name)
		switch {
		case status.Code(err) == codes.NotFound:
			http.NotFound(w, r)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadGateway)
		default:
			w.Header().Set("Content-Type", descriptor.MediaType)
			w.Header().Set("Content-Length", strconv.FormatInt(descriptor.Size, 10))
			w.Header().Set("Docker-Content-Digest", descriptor.Digest)
		}
	})
	return mux
}

// imageName makes containerd's name of an image from the registry's name and
// REPOSITORY/manifests/REFERENCE.
func imageName(registry, path string) (name string, ok bool) {
	repository, reference, ok := strings.Cut(path, "/manifests/")
	if !ok || registry == "" || repository == "" || reference == "" {
		return "", false
	}
	separator := ":"
	if strings.Contains(reference, ":") { // a digest, sha256:…
		separator = "@"
	}
	return registry + "/" + repository + separator + reference, true
}

func resolve(ctx context.Context, images imagesapi.ImagesClient, name string) (*types.Descriptor, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, namespaceHeader, Namespace)
	response, err := images.Get(ctx, &imagesapi.GetImageRequest{Name: name})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return response.GetImage().GetTarget(), nil
}
