package wire

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/podcache"
)

// Every version of the group batch that Kubernetes has served or may serve names the same object.
func TestGroupKindAndUIDSayWhoTheControllerIs(t *testing.T) {
	cases := map[string]struct {
		version, kind string
		want          bool
	}{
		"the version of today":    {"batch/v1", "", true},
		"a removed version":       {"batch/v1beta1", "", true},
		"an older one":            {"batch/v2alpha1", "", true},
		"a version to come":       {"batch/v9", "", true},
		"another group":           {"example.com/v1", "", false},
		"a group that ends so":    {"batch.example.com/v1", "", false},
		"no group":                {"v1", "", false},
		"no version":              {"", "", false},
		"two slashes":             {"batch/v1/x", "", false},
		"another kind":            {"batch/v1", "ScheduledJob", false},
		"the kind in lower case":  {"batch/v1", "cronjob", false},
		"the group in upper case": {"BATCH/v1", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := func(kind string) []metav1.OwnerReference {
				if tc.kind != "" {
					kind = tc.kind
				}
				return []metav1.OwnerReference{{APIVersion: tc.version, Kind: kind, Name: "owner", UID: "u", Controller: ptr.To(true)}}
			}
			cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "u"}}
			run := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", OwnerReferences: ref("CronJob")}}
			if got := ControlsJob(cron, run); got != tc.want {
				t.Errorf("the CronJob controls the Job: %v, want %v", got, tc.want)
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "u"}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", OwnerReferences: ref("Job")}}
			if got := ControlsPod(job, pod); got != tc.want {
				t.Errorf("the Job controls the pod: %v, want %v", got, tc.want)
			}
			if cached, other := podcache.From(pod).ControllingJob(); (cached != nil) != tc.want || other == tc.want {
				t.Errorf("the cached pod has the Job %v, and another controller: %v; want the Job: %v", cached, other, tc.want)
			}
			pod.Namespace, run.Namespace = "elsewhere", "elsewhere"
			if ControlsJob(cron, run) || ControlsPod(job, pod) {
				t.Error("an owner reference means an object of another namespace")
			}
		})
	}
}
