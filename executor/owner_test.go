package executor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An owner reference means an object in the same namespace, and anybody may write any UID
// there. So a pod of another namespace is not the Job's, whatever its reference says. It is the
// orphan of a Job that does not exist (invariant I9).
func TestAPodOfAnotherNamespaceIsNotTheJobs(t *testing.T) {
	stranger := testPod(2, func(p *corev1.Pod) { p.Namespace, p.Status.Phase = "other", corev1.PodSucceeded })
	running := testPod(3, func(p *corev1.Pod) { p.Namespace = "other" })
	for name, jobFirst := range map[string]bool{"the Job is seen first": true, "the pods are seen first": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				decider := &script{Otherwise: resting(0)}
				cfg := testConfig(s, decider)
				cfg.ReplaceBuiltin = true
				e := start(t, cfg)
				time.Sleep(time.Second)
				job := func() { must(s.Tracker().Create(jobResource, testJob(), "ns")) }
				pods := func() {
					must(s.Tracker().Create(podResource, stranger.DeepCopy(), "other"))
					must(s.Tracker().Create(podResource, running.DeepCopy(), "other"))
				}
				for _, appear := range map[bool][]func(){true: {job, pods}, false: {pods, job}}[jobFirst] {
					appear()
					time.Sleep(time.Second)
				}
				must(s.Tracker().Create(podResource, testPod(4), "ns"))
				time.Sleep(time.Minute)
				synctest.Wait()
				asked := decider.Requests()
				if len(asked) == 0 {
					t.Fatal("the engine is not asked about the Job")
				}
				if last := asked[len(asked)-1]; last.GetPods().GetActive() != 1 || len(last.GetUnaccountedPods()) != 0 {
					t.Errorf("the last request has the pods %v and %v, want the Job's one", last.GetPods(), last.GetUnaccountedPods())
				}
				if known, ok := e.jobs.Existing(testUID(1)); !ok || known.Namespace != "ns" {
					t.Error("the Job is not known, or in another namespace")
				}
				for _, pod := range []*corev1.Pod{stranger, running} {
					live, err := s.CoreV1().Pods("other").Get(context.Background(), pod.Name, metav1.GetOptions{})
					if err != nil || hasFinalizer(live) {
						t.Errorf("%s: finalizers %v, error %v; want it there and released", pod.Name, live.Finalizers, err)
					}
				}
				must(s.Tracker().Update(jobResource, testJob(func(j *batchv1.Job) {
					j.ResourceVersion = "1000000"
					j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
				}), "ns"))
				time.Sleep(time.Minute)
				if _, err := s.CoreV1().Pods("other").Get(context.Background(), running.Name, metav1.GetOptions{}); err != nil {
					t.Errorf("the running pod of another namespace: %v", err)
				}
			})
		})
	}
}

// The API server does not check that the name and the UID of an owner reference belong together.
// So that there is no Job of the name says nothing about the Job of the UID.
func TestAPodWithAWrongOwnerNameHidesNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		decider := &script{Otherwise: resting(0)}
		cfg := testConfig(s, decider)
		cfg.ReplaceBuiltin = true
		start(t, cfg)
		time.Sleep(time.Second)
		must(s.Tracker().Create(podResource, testPod(2, func(p *corev1.Pod) { p.OwnerReferences[0].Name = "mistaken" }), "ns"))
		time.Sleep(time.Minute)
		must(s.Tracker().Create(jobResource, testJob(), "ns"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(decider.Requests()) == 0 {
			t.Error("the engine is not asked about the Job")
		}
	})
}
