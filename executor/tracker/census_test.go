package tracker

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
)

func TestCensusListsPodsUpToABound(t *testing.T) {
	tracker := New()
	for i := range 3 {
		tracker.Observe(podcache.From(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint(i), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), ResourceVersion: "1",
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}), Watch)
	}
	for most, want := range map[int]int{0: 0, 2: 0, 3: 3} {
		if c := tracker.Census(most); c.Known != 3 || len(c.Pods) != want || c.Summary.GetActive() != 3 {
			t.Errorf("at most %d: %d known, %d listed, %d active; want 3, %d, 3", most, c.Known, len(c.Pods), c.Summary.GetActive(), want)
		}
	}
}
