package executor

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/fakes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// gangServing is an API server that serves gangs only while served is set.
type gangServing struct{ served atomic.Bool }

var errNotServed = apierrors.NewNotFound(schema.GroupResource{Group: "scheduling.k8s.io"}, "")

func (*gangServing) ServerVersionWithContext(context.Context) (*version.Info, error) {
	return &version.Info{Minor: "37", GitVersion: "v1.37.2"}, nil
}

func (g *gangServing) ServerResourcesForGroupVersionWithContext(context.Context, string) (*metav1.APIResourceList, error) {
	if !g.served.Load() {
		return nil, errNotServed
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "workloads"}, {Name: "podgroups"}}}, nil
}

// refuse answers requests about gangs.
func (g *gangServing) refuse(clienttesting.Action) (bool, runtime.Object, error) {
	return !g.served.Load(), nil, errNotServed
}

// Without the API of gangs, only pods of gangs wait: the executor is not kept from its work, and
// it goes on by itself when the API appears.
func TestGangsThatAreServedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, serving := newServer(testJob(gangJob)), &gangServing{}
		s.PrependReactor("*", "workloads", serving.refuse)
		s.PrependReactor("*", "podgroups", serving.refuse)
		cfg := gangConfig(s, &script{Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			if req.GetPods().GetActive() == 0 {
				return applying(gangDecision(true))(req)
			}
			return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
		}})
		var err error
		if cfg.APIServer, err = api.NewServer(api.ServerConfig{Gangs: true, Logger: cfg.Logger}); err != nil {
			t.Fatal(err)
		}
		fakes.Run(t, func(ctx context.Context) error { cfg.APIServer.Run(ctx, serving); return nil })
		e := start(t, cfg)
		time.Sleep(5 * time.Minute)
		if err := e.Ready(); err != nil {
			t.Errorf("Ready() = %v, want nil: the caches of Jobs and pods are filled", err)
		}
		if err := cfg.APIServer.Ready(t.Context()); err == nil {
			t.Error("the API server's Ready() = nil without gangs")
		}
		if slices.Contains(s.Done(), "create pods") {
			t.Error("a pod of a gang was created outside of one")
		}
		if text := s.AwaitEvent(t, "FailedCreate").Message; !strings.Contains(text, "scheduling.k8s.io/v1beta1") {
			t.Errorf("event %q, want it to name the API", text)
		}
		serving.served.Store(true)
		time.Sleep(5 * time.Minute)
		s.WantWrites(t, "create workloads", "create podgroups", "create pods", "create pods", "update jobs/status")
	})
}
