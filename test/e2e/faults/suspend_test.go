package faults

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// kubernetes#134521: when a Job was resumed between a round's reading it and
// writing its status, every further status was refused as invalid.
func TestSuspendChangesWhileAStatusIsWritten_134521(t *testing.T) {
	t.Parallel()
	suspended := spec(2, 2)
	suspended.Suspend = ptr(true)
	cases := map[string]struct {
		spec batchv1.JobSpec
		// first and then are the values of spec.suspend that follow each other;
		// the status that answers the first is held back.
		first, then string
		ends        bool
	}{
		"suspended, then resumed":           {spec(2, 2), "true", "false", true},
		"born suspended, then resumed":      {suspended, "", "false", true},
		"resumed, then suspended":           {suspended, "false", "true", false},
		"born running, then suspended":      {spec(2, 2), "", "true", false},
		"suspended, then suspended as well": {spec(2, 2), "true", "true", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			gate := NewGate()
			defer gate.Open()
			if tc.first == "" {
				l.proxy.On(Statuses, gate.Hold, Times(1))
			}
			job := l.create("wavering", tc.spec)
			if tc.first != "" {
				l.wait("wavering", "the executor is done with it", func(j *batchv1.Job) bool {
					return j.Status.Active == 2 || isTrue(j, batchv1.JobSuspended)
				})
				l.proxy.On(Statuses, gate.Hold, Times(1))
				l.patch("wavering", `{"spec":{"suspend":`+tc.first+`}}`)
			}
			l.arrived(gate)
			l.patch("wavering", `{"spec":{"suspend":`+tc.then+`},"metadata":{"annotations":{"example.com/then":""}}}`)
			gate.Open()
			if !tc.ends {
				l.wait("wavering", "suspended", func(j *batchv1.Job) bool {
					return isTrue(j, batchv1.JobSuspended) && j.Status.Active == 0 && j.Status.StartTime == nil
				})
				return
			}
			pods := l.active(job, 2)
			j := l.wait("wavering", "running", func(j *batchv1.Job) bool { return j.Status.Active == 2 && !isTrue(j, batchv1.JobSuspended) })
			if j.Status.StartTime == nil {
				t.Errorf("the Job runs without a start time: %s", describe(j))
			}
			l.succeed(pods...)
			l.ends("wavering", batchv1.JobComplete, 2, 0)
		})
	}
}

// kubernetes#132144: a suspended Job with nothing to complete met its success
// criteria, and never completed.
func TestNothingToCompleteWhileSuspended_132144(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]batchv1.JobSpec{"indexed": indexed(0, 0), "not indexed": spec(0, 0), "not indexed, some at once": spec(0, 3)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			s.Suspend = ptr(true)
			job := l.create("nothing", s)
			l.ends("nothing", batchv1.JobComplete, 0, 0)
			l.wantCreated[job.UID] = 0
		})
	}
}

// kubernetes#139281: the spec of a suspended Job could not be changed before its
// first status was written. A change that comes between the first reading of the
// Job and the first status reaches the pods.
func TestSuspendedJobChangesBeforeItsFirstStatus_139281(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	gate := NewGate()
	defer gate.Open()
	l.proxy.On(Statuses, gate.Hold, Times(1))
	s := spec(2, 2)
	s.Suspend = ptr(true)
	job := l.create("changed", s)
	l.arrived(gate)
	l.patch("changed", `{"spec":{"template":{"metadata":{"labels":{"color":"blue"}},"spec":{"nodeSelector":{"pool":"batch"}}}}}`)
	l.patch("changed", `{"spec":{"parallelism":1}}`)
	gate.Open()
	l.wait("changed", "suspended", func(j *batchv1.Job) bool { return isTrue(j, batchv1.JobSuspended) })
	l.patch("changed", `{"spec":{"suspend":false}}`)
	for n := range 2 {
		pod := l.active(job, 1)[0]
		if pod.Labels["color"] != "blue" || pod.Spec.NodeSelector["pool"] != "batch" {
			t.Errorf("pod %d has labels %v and node selector %v", n, pod.Labels, pod.Spec.NodeSelector)
		}
		l.succeed(pod)
		l.wait("changed", "the pod is counted", func(j *batchv1.Job) bool { return int(j.Status.Succeeded) == n+1 })
	}
	l.ends("changed", batchv1.JobComplete, 2, 0)
	l.wantCreated[job.UID] = 2
}

// A pod that succeeds in the very moment in which it is deleted, because it is
// not wanted any more, has succeeded.
func TestSuccessIsNotLostToADeletion(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"suspended":   `{"spec":{"suspend":true}}`,
		"scaled down": `{"spec":{"parallelism":0}}`,
	}
	for name, change := range cases {
		for _, s := range []batchv1.JobSpec{spec(2, 2), indexed(2, 2)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				job := l.create("racing", s)
				pods := l.active(job, 2)
				l.wait("racing", "two active", func(j *batchv1.Job) bool { return j.Status.Active == 2 })
				gate := NewGate()
				defer gate.Open()
				l.proxy.On(Match{Verb: "patch", Resource: "pods", Name: pods[0].Name}, gate.Hold, Times(1))
				l.patch("racing", change)
				l.arrived(gate)
				l.succeed(pods[0])
				gate.Open()
				l.wait("racing", "the success is counted", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 })
			})
		}
	}
}
