package tracker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
)

func TestNews(t *testing.T) {
	running := inPhase(corev1.PodRunning)
	cases := map[string]struct {
		before func(*Tracker)
		pod    *podcache.Pod
		want   News
	}{
		"a pod that was not known": {func(*Tracker) {}, podOf(1, 1, tracked), Change},
		"the echo of an own write": {func(tr *Tracker) { tr.Observe(podOf(1, 1, tracked), Response) }, podOf(1, 1, tracked), Nothing},
		"an older version":         {func(tr *Tracker) { tr.Observe(podOf(1, 5, tracked), Watch) }, podOf(1, 4, tracked, running), Nothing},
		"a pod that begins to run": {func(tr *Tracker) { tr.Observe(podOf(1, 1, tracked), Watch) }, podOf(1, 2, tracked, running), Detail},
		"a pod of two is ready": {func(tr *Tracker) {
			tr.Observe(podOf(1, 1, tracked), Watch)
			tr.Observe(podOf(2, 2, tracked), Watch)
		}, podOf(1, 3, tracked, running, isReady), Detail},
		"the last pod is ready": {func(tr *Tracker) {
			tr.Observe(podOf(1, 1, tracked), Watch)
			tr.Observe(podOf(2, 2, tracked, running, isReady), Watch)
		}, podOf(1, 3, tracked, running, isReady), AllReady},
		"a ready pod changes otherwise": {func(tr *Tracker) {
			tr.Observe(podOf(1, 1, tracked, running, isReady), Watch)
		}, podOf(1, 2, tracked, running, isReady), Detail},
		"a container restarts":      {func(tr *Tracker) { tr.Observe(podOf(1, 1, tracked, running), Watch) }, podOf(1, 2, tracked, running, restarted(1)), Change},
		"a pod ends":                {func(tr *Tracker) { tr.Observe(podOf(1, 1, tracked), Watch) }, podOf(1, 2, tracked, inPhase(corev1.PodFailed)), Change},
		"an ended pod changes":      {func(tr *Tracker) { tr.Observe(podOf(1, 1, tracked, inPhase(corev1.PodFailed)), Watch) }, podOf(1, 2, tracked, inPhase(corev1.PodFailed)), Change},
		"somebody else releases it": {func(tr *Tracker) { tr.Observe(podOf(1, 1, tracked, inPhase(corev1.PodFailed)), Watch) }, podOf(1, 2, inPhase(corev1.PodFailed)), Change},
		"a call under way releases it": {func(tr *Tracker) {
			tr.Observe(podOf(1, 1, tracked, inPhase(corev1.PodFailed)), Watch)
			tr.BeginCall()
		}, podOf(1, 2, inPhase(corev1.PodFailed)), Detail},
		"a pod comes while one is being created": {func(tr *Tracker) { tr.BeginCreate(NoIndex) }, podOf(1, 1, tracked), Detail},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New()
			tc.before(tr)
			if got := tr.Observe(tc.pod, Watch); got != tc.want {
				t.Errorf("news %d, want %d", got, tc.want)
			}
		})
	}
}

// If a response shows a version before the watch does, the tracker replaces its copy by the
// watch's, which the informer keeps in any case.
func TestOneCopyOfAPodIsKept(t *testing.T) {
	tr := New()
	answer, watched := podOf(1, 2, tracked), podOf(1, 2, tracked)
	for _, v := range []struct {
		pod, want *podcache.Pod
		source    Source
	}{{answer, answer, Response}, {watched, watched, Watch}, {podOf(1, 2, tracked), watched, Response}, {podOf(1, 1, tracked), watched, Watch}} {
		tr.Observe(v.pod, v.source)
		if got := tr.pods.records[v.pod.UID].pod; got != v.want {
			t.Errorf("after version %s from %d another copy is kept than was wanted", v.pod.ResourceVersion, v.source)
		}
	}
	listed := podOf(1, 2, tracked)
	tr.Keep(listed)
	tr.Keep(podOf(1, 1, tracked))
	if got := tr.pods.records[watched.UID].pod; got != listed {
		t.Errorf("after a new list the copy of version %s is not the list's", got.ResourceVersion)
	}
	tr.Keep(podOf(2, 3, tracked))
	if tr.Len() != 1 {
		t.Errorf("%d pods are known, want 1", tr.Len())
	}
}
