package api

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/executor/telemetry"
)

// timeout bounds one call of the API server, including the wait for the client's rate
// limit.
const timeout = 60 * time.Second

// Client makes the calls. All fields are required.
type Client struct {
	Kubernetes kubernetes.Interface
	Tracer     telemetry.Tracer
}

// confirmTerminating is nil if the namespace is being deleted, or is gone. The API
// server that refused a pod may have meant an earlier namespace of that name.
func (c *Client) confirmTerminating(ctx context.Context, name string) error {
	namespace, err := c.Kubernetes.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading namespace %s, which is said to be terminating: %w", name, err)
	case namespace.DeletionTimestamp == nil:
		return fmt.Errorf("namespace %s was said to be terminating and is not", name)
	}
	return nil
}

// ConsistentList makes the first list of an informer read the newest state instead of
// whatever a lagging API server has cached: pods must not look older than the statuses
// that count them.
func ConsistentList(options *metav1.ListOptions) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
}
