package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/writes"
)

// timeout bounds one call of the API server, including the wait for the client's rate
// limit.
const timeout = 60 * time.Second

// Client makes the calls. controller.Controller has one.
type Client struct {
	// Kubernetes makes the calls about all objects but pods and namespaces; Core makes those.
	Kubernetes kubernetes.Interface
	Core       typedcorev1.CoreV1Interface
	Tracer     telemetry.Tracer
	// Refused counts the writes that the API server refuses, by kind, and Recorder takes the events
	// about those that stay refused. Now tells wall time. With a nil Refused nobody is told.
	Refused  *prometheus.CounterVec
	Recorder record.EventRecorder
	Now      func() time.Time
}

// A Subject is the Job or CronJob that a write is for.
type Subject struct {
	// Object gets the events.
	Object runtime.Object
	// Refusals remember which writes are refused. nil: only the metric counts them.
	Refusals *writes.Refusals
}

// written records how a write of a kind ended. If the Subject has several objects that are written in
// this way, name is that of the written one, and object tells it from the others.
func (c *Client) written(s Subject, k writes.Kind, name, object string, err error) {
	switch {
	case c.Refused == nil:
		return
	case err == nil || errors.Is(err, ErrGone) || errors.Is(err, ErrPodEnded) || errors.Is(err, ErrPodStarted):
		s.Refusals.Succeeded(k, object)
		return
	}
	why := refusalOf(err)
	if why == "" {
		return
	}
	if !strings.Contains(why, name) {
		why = name + ": " + why
	}
	c.Refused.WithLabelValues(string(k)).Inc()
	if s.Refusals.Refused(k, object, c.Now(), why, name, object) {
		reason, message := k.Event(why)
		c.Recorder.Event(s.Object, corev1.EventTypeWarning, reason, message)
	}
}

// confirmTerminating is nil if the namespace is being deleted, or is gone. The API
// server that refused a pod may have meant an earlier namespace of that name.
func (c *Client) confirmTerminating(ctx context.Context, name string) error {
	namespace, err := c.Core.Namespaces().Get(ctx, name, metav1.GetOptions{})
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
