package cronjob

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/executor/api"
)

// live reads from the API server, not from a cache.
type live struct{ client kubernetes.Interface }

// liveJob reads a Job by its name. nil: there is none.
func (l live) liveJob(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, api.Timeout)
	defer cancel()
	job, err := l.client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading job %s: %w", name, err)
	}
	return job, nil
}

// liveCron reads the CronJob and stores it in its state. errGone: it does not exist any
// more.
func (l live) liveCron(ctx context.Context, s *cronState) (*batchv1.CronJob, error) {
	ctx, cancel := context.WithTimeout(ctx, api.Timeout)
	defer cancel()
	cron, err := l.client.BatchV1().CronJobs(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading cron job: %w", err)
	}
	if cron.UID != s.uid {
		return nil, errGone
	}
	cron.ManagedFields = nil
	s.observe(cron)
	return cron, nil
}
