package tracker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
)

func TestChange(t *testing.T) {
	running := inPhase(corev1.PodRunning)
	seen := func(pods ...*podcache.Pod) func(*Job) {
		return func(tr *Job) {
			for _, pod := range pods {
				tr.ObservePod(pod, Watch)
			}
		}
	}
	cases := map[string]struct {
		before func(*Job)
		pod    *podcache.Pod
		want   Change
	}{
		"a pod that was not known": {before: func(*Job) {}, pod: podOf(1, 1, tracked), want: Relevant},
		"the echo of an own write": {
			before: func(tr *Job) { tr.ObservePod(podOf(1, 1, tracked), Response) },
			pod:    podOf(1, 1, tracked), want: Unchanged,
		},
		"an older version":         {before: seen(podOf(1, 5, tracked)), pod: podOf(1, 4, tracked, running), want: Unchanged},
		"a pod that begins to run": {before: seen(podOf(1, 1, tracked)), pod: podOf(1, 2, tracked, running), want: Detail},
		"a pod of two is ready": {
			before: seen(podOf(1, 1, tracked), podOf(2, 2, tracked)),
			pod:    podOf(1, 3, tracked, running, isReady), want: Detail,
		},
		"the last pod is ready": {
			before: seen(podOf(1, 1, tracked), podOf(2, 2, tracked, running, isReady)),
			pod:    podOf(1, 3, tracked, running, isReady), want: AllReady,
		},
		"a ready pod changes otherwise": {
			before: seen(podOf(1, 1, tracked, running, isReady)),
			pod:    podOf(1, 2, tracked, running, isReady), want: Detail,
		},
		"a container restarts": {before: seen(podOf(1, 1, tracked, running)), pod: podOf(1, 2, tracked, running, restarted(1)), want: Relevant},
		"a pod ends":           {before: seen(podOf(1, 1, tracked)), pod: podOf(1, 2, tracked, inPhase(corev1.PodFailed)), want: Relevant},
		"an ended pod changes": {
			before: seen(podOf(1, 1, tracked, inPhase(corev1.PodFailed))),
			pod:    podOf(1, 2, tracked, inPhase(corev1.PodFailed)), want: Relevant,
		},
		"somebody else releases it": {
			before: seen(podOf(1, 1, tracked, inPhase(corev1.PodFailed))),
			pod:    podOf(1, 2, inPhase(corev1.PodFailed)), want: Relevant,
		},
		"a call under way releases it": {
			before: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, tracked, inPhase(corev1.PodFailed)), Watch)
				tr.BeginCall()
			},
			pod:  podOf(1, 2, inPhase(corev1.PodFailed)),
			want: Detail,
		},
		"a pod comes while one is being created": {
			before: func(tr *Job) { tr.BeginCreate(NoIndex) },
			pod:    podOf(1, 1, tracked), want: Detail,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			tc.before(tr)
			if got := tr.ObservePod(tc.pod, Watch); got != tc.want {
				t.Errorf("change %d, want %d", got, tc.want)
			}
		})
	}
}

// If a response shows a version before the watch does, the tracker replaces its copy by the
// watch's, which the informer keeps in any case.
func TestOneCopyOfAPodIsKept(t *testing.T) {
	tr := New(Key{}, nil)
	answer, watched := podOf(1, 2, tracked), podOf(1, 2, tracked)
	for _, v := range []struct {
		pod, want *podcache.Pod
		source    Source
	}{
		{pod: answer, want: answer, source: Response},
		{pod: watched, want: watched, source: Watch},
		{pod: podOf(1, 2, tracked), want: watched, source: Response},
		{pod: podOf(1, 1, tracked), want: watched, source: Watch},
	} {
		tr.ObservePod(v.pod, v.source)
		if got := tr.pods.records[v.pod.UID].Pod; got != v.want {
			t.Errorf("after version %s from %d another copy is kept than was wanted", v.pod.ResourceVersion, v.source)
		}
	}
	listed := podOf(1, 2, tracked)
	for _, v := range []*podcache.Pod{listed, podOf(1, 1, tracked)} {
		if change := tr.ObservePod(v, Watch); change != Unchanged {
			t.Errorf("version %s after a new list: change %d, want none", v.ResourceVersion, change)
		}
	}
	if got := tr.pods.records[watched.UID].Pod; got != listed {
		t.Errorf("after a new list the copy of version %s is not the list's", got.ResourceVersion)
	}
}
