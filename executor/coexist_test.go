package executor

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Beside the built-in controller, the executor leaves alone the pods of unmanaged Jobs and
// pods without an owner, whether or not it saw their Job's deletion (invariant I9).
func TestBesideTheBuiltinControllerOnlyOwnOrphansAreReleased(t *testing.T) {
	builtin := func(j *batchv1.Job) { j.Spec.ManagedBy = nil }
	unlabelled := func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, nil }
	cases := map[string]struct {
		job  *batchv1.Job
		pod  *corev1.Pod
		then []func(*corev1.Pod) // what becomes of the pod when the Job goes
		seen bool                // whether it is released if the executor sees the Job go
	}{
		"the pod of a Job of ours":                   {job: testJob(), pod: testPod(2), seen: true},
		"the pod that a Job of ours leaves loose":    {job: testJob(), pod: testPod(2), then: []func(*corev1.Pod){loose}, seen: true},
		"the pod of an unmanaged Job":                {job: testJob(unmanaged), pod: testPod(2)},
		"the pod that an unmanaged Job leaves loose": {job: testJob(unmanaged), pod: testPod(2), then: []func(*corev1.Pod){loose}},
		"the pod of the built-in controller's":       {job: testJob(builtin), pod: testPod(2)},
		"a loose pod that an unmanaged Job selects":  {job: testJob(unmanaged), pod: testPod(2, loose)},
		"a loose pod of nobody":                      {job: testJob(unmanaged), pod: testPod(2, unlabelled)},
	}
	for name, tc := range cases {
		for _, replace := range []bool{false, true} {
			for _, restarted := range []bool{false, true} {
				t.Run(name+map[bool]string{true: ", in its place"}[replace]+map[bool]string{true: ", after a restart"}[restarted], func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newServer(tc.job.DeepCopy(), tc.pod.DeepCopy())
						if restarted {
							s.jobGoes(tc.then)
						}
						cfg := testConfig(s, &script{})
						cfg.ReplaceBuiltin = replace
						start(t, cfg)
						time.Sleep(time.Minute)
						if !restarted {
							s.jobGoes(tc.then)
							time.Sleep(time.Minute)
						}
						want := replace || (tc.seen && !restarted)
						if got := !hasFinalizer(s.pod(t, "pod-2")); got != want {
							t.Errorf("the pod was released: %v, want %v", got, want)
						}
					})
				})
			}
		}
	}
}

// jobGoes deletes the Job, and changes its pod.
func (s *server) jobGoes(change []func(*corev1.Pod)) {
	s.Lock()
	defer s.Unlock()
	if len(change) > 0 {
		s.replace(podResource, testPod(2, change...))
	}
	must(s.Tracker().Delete(jobResource, "ns", "job"))
}
