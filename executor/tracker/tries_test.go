package tracker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// What failed pods had is told from the first question on that asks for it, also of pods that were seen
// before it; and never otherwise.
func TestFailedTriesAreToldWhenAskedFor(t *testing.T) {
	j := New(Key{}, nil)
	j.SetPolicy(Policy{})
	observe := func(name, version, step string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("00000000-0000-0000-0000-00000000000" + name), ResourceVersion: version,
			Annotations: map[string]string{podcache.ResourceStepAnnotation: step},
		}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{outOfMemory("main")}}
		j.ObservePod(podcache.From(pod), Watch)
	}
	asks := &jobpolicyv1.JobOptions{NextTryResources: &jobpolicyv1.NextTryResources{}}
	told := func(options *jobpolicyv1.JobOptions) []*jobpolicyv1.FailedTry {
		view := j.View(ViewOptions{MaxRows: 10, Options: options})
		return view.Retry.GetFailedTries()
	}
	want := func(step int32) []*jobpolicyv1.FailedTry {
		exit := &jobpolicyv1.ContainerExit{ContainerName: "main", ExitCode: 137, Reason: "OOMKilled", Signal: 9}
		return []*jobpolicyv1.FailedTry{{ResourceStep: step, ContainerExits: []*jobpolicyv1.ContainerExit{exit}}}
	}
	observe("1", "5", "none")
	if got := told(nil); got != nil {
		t.Errorf("nobody asked, and %v is told", got)
	}
	if diff := cmp.Diff(want(0), told(asks), protocmp.Transform()); diff != "" {
		t.Errorf("of a pod that was seen before (-want +got):\n%s", diff)
	}
	observe("2", "6", "1")
	if diff := cmp.Diff(want(1), told(asks), protocmp.Transform()); diff != "" {
		t.Errorf("of a raised pod (-want +got):\n%s", diff)
	}
}
