package tracker

import (
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Each of 60,000 indexes has two failed pods. A request cannot list all of them, and it
// lists both of an index or none: those of recorded pods first, then those that have waited
// longest. The engine would reject a request with more rows than the contract allows.
func TestSiblingsFitIntoARequest(t *testing.T) {
	const indexes = 60_000
	tr := New()
	tr.SetPolicy(Policy{Indexed: true, LimitedPerIndex: true})
	for n := range 2 * indexes {
		tr.Observe(podOf(n, 1, tracked, inPhase(corev1.PodFailed), withIndex(strconv.Itoa(n%indexes))), Watch)
	}
	v := mustView(t, tr, ViewOptions{
		MaxRows: 99_000, Uncounted: &batchv1.UncountedTerminatedPods{Failed: []types.UID{uidOf(indexes - 1)}},
	})
	rows := map[int32]int{}
	for _, row := range v.Unaccounted {
		rows[row.GetIndex()]++
	}
	for index, n := range rows {
		if n != 2 {
			t.Errorf("index %d has %d rows, want both pods or none", index, n)
		}
	}
	if len(rows) != maxRows/2 || rows[0] == 0 || rows[indexes-1] == 0 || rows[indexes-2] != 0 {
		t.Errorf("%d indexes have rows, want the recorded one and as many as fit: %d", len(rows), maxRows/2)
	}
	if listed, unlisted := len(v.Unaccounted), int(v.Unlisted.GetFailed()); listed+unlisted != 2*indexes {
		t.Errorf("%d pods are listed and %d are counted, want %d together", listed, unlisted, 2*indexes)
	}
}
