package tracker

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
)

// The pods are kept in maps, whose order is random.
func TestPodsAreGivenOutInOrder(t *testing.T) {
	j := &Job{}
	j.pods.records, j.pods.strays = map[types.UID]*record{}, map[types.UID]*record{}
	var want []string
	for i := range 50 {
		name := fmt.Sprintf("pod-%02d", i)
		want = append(want, name)
		r := &record{}
		r.Pod = &podcache.Pod{Name: name, HasTrackingFinalizer: true}
		j.pods.records[types.UID(name)], j.pods.strays[types.UID(name)] = r, r
	}
	for list, pods := range map[string][]*podcache.Pod{"WithTrackingFinalizer": j.WithTrackingFinalizer(), "Strays": j.Strays()} {
		var got []string
		for _, pod := range pods {
			got = append(got, pod.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s() = %v, want %v", list, got, want)
		}
	}
}
