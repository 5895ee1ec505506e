package executor

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// onePod answers that each Job has one pod.
func onePod(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if req.GetPods().GetActive() == 0 {
		d.Disposition, d.Create = jobpolicyv1.Disposition_DISPOSITION_APPLY, &jobpolicyv1.CreatePods{Count: 1}
	}
	return d, nil
}

// standBy makes an Executor that has filled its pod cache, and keeps it up to date until the test
// ends.
func standBy(t *testing.T, cfg Config) *Executor {
	t.Helper()
	e := build(t, cfg)
	standing, stop := context.WithCancel(context.Background())
	var warm sync.WaitGroup
	t.Cleanup(func() {
		stop()
		warm.Wait()
	})
	e.StandBy(standing, warm.Go)
	time.Sleep(time.Minute)
	return e
}

// What the leader before did last has not come to a standby's pod cache yet. The standby
// must not do it once more (invariant I6).
func TestAWarmStandbyListsTheJobsPodsBeforeItActs(t *testing.T) {
	cases := map[string]struct {
		before  bool // The pod is there before the cache is filled.
		created bool // The leader before has created a pod.
		lists   int  // of the pods of the namespace
		creates int
	}{
		"a pod that the cache lacks": {created: true, lists: 1, creates: 0},
		"no pod at all":              {lists: 1, creates: 1},
		"a Job at rest":              {before: true, created: true, lists: 0, creates: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(testJob())
				lists := s.Count("list", "pods")
				s.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
					return true, watch.NewFake(), nil // Nothing arrives.
				})
				s.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					jobs, err := s.Tracker().List(jobResource, jobKind, "")
					if list, ok := jobs.(*batchv1.JobList); ok {
						list.ResourceVersion = "1000"
					}
					return true, jobs, err
				})
				create := func() {
					if _, err := s.CoreV1().Pods("ns").Create(t.Context(), testPod(2), metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if tc.before {
					create()
				}
				e := standBy(t, testConfig(s, &script{Otherwise: onePod}))
				if tc.created && !tc.before {
					create()
				}
				own := len(s.Done())
				run(t, e)
				time.Sleep(time.Second)
				if got := lists(); got != tc.lists {
					t.Errorf("%d lists of pods, want %d", got, tc.lists)
				}
				if got := len(s.Done()) - own; got != tc.creates {
					t.Errorf("%q, want %d pods created", s.Done()[own:], tc.creates)
				}
			})
		})
	}
}

// The cache is newer than the list of Jobs, and the watcher is in the middle of a new list, whose
// pods come in the order of their names. What it got says nothing about the others.
func TestANewListDoesNotVerifyTheCacheBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(testJob(), testPod(2))
		list := func(resource, version string) {
			s.PrependReactor("list", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
				if resource == "jobs" {
					return true, &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []batchv1.Job{*testJob()}}, nil
				}
				return true, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []corev1.Pod{*testPod(2)}}, nil
			})
		}
		list("jobs", "900")
		list("pods", "1000")
		e := standBy(t, testConfig(s, &script{}))
		run(t, e)
		time.Sleep(time.Second)
		st := e.jobs.With(testKey, func(*tracker.Job) {})
		for _, step := range []struct {
			version  string
			mustList bool
		}{{"950", true}, {"1000", true}, {"1001", false}, {"990", false}} {
			e.podWatch.recordVersion(cachedPod(3, func(p *corev1.Pod) { p.ResourceVersion = step.version }))
			st.Mark(tracker.UnverifiedPods)
			d := &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY}
			if got := e.podWatch.mustList(st, d); got != step.mustList {
				t.Errorf("after a pod of version %s: the pods must be listed: %v, want %v", step.version, got, step.mustList)
			}
		}
	})
}
