package api

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
)

// Timeout bounds one call of the API server, including the wait for the client's
// rate limit.
const Timeout = 60 * time.Second

// Client makes the calls. All fields are required.
type Client struct {
	Kubernetes kubernetes.Interface
	Tracer     telemetry.Tracer
	// Now tells wall time.
	Now func() time.Time
}

// Job reads a Job by its UID. ErrJobGone: there is no Job of that name, or it has another
// UID (invariant I8).
func (c *Client) Job(ctx context.Context, namespace, name string, uid types.UID) (*batchv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	job, err := c.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrJobGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading job: %w", err)
	}
	if job.UID != uid {
		return nil, ErrJobGone
	}
	job.ManagedFields = nil
	return job, nil
}

// UpdateStatus writes the Job's status and returns the Job as it is then. The API server
// refuses the write if the Job has changed since the given version. If no answer comes,
// UpdateStatus reads the Job: if that has the status, the write has succeeded.
func (c *Client) UpdateStatus(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	updated, err := c.Kubernetes.BatchV1().Jobs(job.Namespace).UpdateStatus(limited, job, metav1.UpdateOptions{})
	switch {
	case err == nil:
		updated.ManagedFields = nil
		return updated, nil
	case apierrors.IsNotFound(err):
		return nil, ErrJobGone
	case !OutcomeUnknown(err):
		return nil, err
	}
	live, readErr := c.Job(ctx, job.Namespace, job.Name, job.UID)
	if readErr != nil || !wire.SameStatus(&live.Status, &job.Status) {
		return nil, err
	}
	return live, nil
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
