package executor

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	clienttesting "k8s.io/client-go/testing"
)

// A slowClient is one that lists Jobs slowly.
type (
	slowClient struct {
		*server
		by time.Duration
	}
	slowBatch struct {
		typedbatchv1.BatchV1Interface
		by time.Duration
	}
	slowJobs struct {
		typedbatchv1.JobInterface
		by time.Duration
	}
)

func (c slowClient) BatchV1() typedbatchv1.BatchV1Interface {
	return slowBatch{c.server.BatchV1(), c.by}
}

func (b slowBatch) Jobs(namespace string) typedbatchv1.JobInterface {
	return slowJobs{b.BatchV1Interface.Jobs(namespace), b.by}
}

func (j slowJobs) List(ctx context.Context, opts metav1.ListOptions) (*batchv1.JobList, error) {
	time.Sleep(j.by)
	return j.JobInterface.List(ctx, opts)
}

// Pods are listed after Jobs, so that they are never older than a status that counts them.
func TestJobsAreReadBeforePods(t *testing.T) {
	s := newServer(testJob(), testPod(2))
	podsAsked := func() bool {
		return slices.ContainsFunc(s.Actions(), func(a clienttesting.Action) bool { return a.GetResource().Resource == "pods" })
	}
	cfg := testConfig(s, &script{})
	cfg.Client = slowClient{s, time.Minute}
	inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
		time.Sleep(59 * time.Second)
		if podsAsked() {
			t.Error("pods were asked for while Jobs were not known yet")
		}
		time.Sleep(2 * time.Second)
		if !podsAsked() {
			t.Error("pods were not asked for once Jobs were known")
		}
	})
}
