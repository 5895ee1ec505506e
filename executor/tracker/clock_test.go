package tracker

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A pod ended no later than this process saw its end. If the clock was set back, or a node's
// clock is fast, its end must not lie in the future, which would delay the next pod.
func TestAPodEndedWhenItWasSeenAtTheLatest(t *testing.T) {
	cases := map[string]struct{ fast, set, want time.Duration }{ // want: how long ago
		"clocks agree":           {fast: 0, set: 0, want: 10 * time.Second},
		"the clock was set back": {fast: 0, set: -time.Hour, want: 10 * time.Second},
		"a node is fast":         {fast: time.Hour, set: 0, want: 10 * time.Second},
		"a node is slow":         {fast: -time.Minute, set: 0, want: 70 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(epoch) + time.Hour) // The pod was created at epoch.
				tr := New(Key{}, nil)
				tr.ObservePod(podOf(1, 1, tracked, inPhase(corev1.PodFailed), endedAt(time.Now().Add(tc.fast), 1)), Watch)
				time.Sleep(10 * time.Second)
				now := time.Now().Add(tc.set)
				v := mustView(t, tr, ViewOptions{MaxRows: 10, Now: now})
				row, fact := v.Unaccounted[0].GetFinishedTime().AsTime(), v.Retry.GetRecentFailures()[0].GetFinishedTime().AsTime()
				if now.Sub(row) != tc.want || now.Sub(fact) != tc.want {
					t.Errorf("it ended %v ago, and failed %v ago, want %v", now.Sub(row), now.Sub(fact), tc.want)
				}
			})
		})
	}
}

// That a pod is being deleted says nothing about when it ends.
func TestAPodEndedWhenItsEndWasSeenNotItsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch) + time.Hour)
		tr := New(Key{}, nil)
		tr.ObservePod(podOf(1, 1, tracked, deletedAt(time.Now(), 30)), Watch)
		time.Sleep(30 * time.Second)
		tr.ObservePod(podOf(1, 2, tracked, deletedAt(time.Now(), 30), inPhase(corev1.PodFailed), endedAt(time.Now(), 1)), Watch)
		time.Sleep(10 * time.Second)
		now := time.Now()
		v := mustView(t, tr, ViewOptions{MaxRows: 10, Now: now})
		row, fact := v.Unaccounted[0].GetFinishedTime().AsTime(), v.Retry.GetRecentFailures()[0].GetFinishedTime().AsTime()
		if want := 10 * time.Second; now.Sub(row) != want || now.Sub(fact) != want {
			t.Errorf("it ended %v ago, and failed %v ago, want %v", now.Sub(row), now.Sub(fact), want)
		}
	})
}
