package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
)

// A Job that replaces failed pods only has lost the node of pod a-0, and a minute later takes it for failed.
func TestPodsOnLostNodes(t *testing.T) {
	lost := func(wait time.Duration, then func(*tape)) func(*tape) {
		return func(tp *tape) {
			starts(tp, func(job *batchv1.Job) {
				job.Spec.PodReplacementPolicy = new(batchv1.Failed)
				job.Annotations = map[string]string{wire.Policy: "{job: {terminationDeadlineSeconds: 60}}"}
			})
			tp.deletes(user, "a-0")
			tp.wait(wait)
			then(tp)
		}
	}
	node := func(state corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "node-a"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: state}}},
		}
	}
	// onNode is such a Job that looks at the pod's node. The node is in this state after unready, and a minute later the pod
	// is overdue.
	onNode := func(state corev1.ConditionStatus, unready time.Duration, then func(*tape)) func(*tape) {
		return func(tp *tape) {
			starts(tp, func(job *batchv1.Job) {
				job.Spec.PodReplacementPolicy = new(batchv1.Failed)
				job.Annotations = map[string]string{wire.Policy: "{job: {terminationDeadlineSeconds: 60, terminationDeadlineNode: NotReady}}"}
			})
			set := func(state corev1.ConditionStatus) {
				tp.commit("node-lifecycle", "update", "nodes", "status", node(state), node(state))
			}
			set(corev1.ConditionTrue)
			tp.edit("scheduler", "a-0", func(pod *corev1.Pod) { pod.Spec.NodeName = "a" })
			tp.deletes(user, "a-0")
			tp.wait(unready)
			set(state)
			tp.wait(2*time.Minute - unready)
			then(tp)
		}
	}
	record := func(tp *tape) {
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active, s.Terminating = 1, new(int32(0)); failedList(s, "a-0") })
	}
	replace := func(tp *tape) { create(tp, "a-2", noIndex) }
	runStreams(t, map[string]streamCase{
		"replaced in time":                          {play: lost(time.Minute, replace)},
		"replaced too early":                        {want: []string{"I6"}, play: lost(59*time.Second, replace)},
		"recorded in time":                          {play: lost(time.Minute, record)},
		"replaced in time, its node is not Ready":   {play: onNode(corev1.ConditionUnknown, 0, replace)},
		"recorded in time, its node is not Ready":   {play: onNode(corev1.ConditionFalse, time.Minute, record)},
		"replaced, and its node is Ready":           {want: []string{"I6"}, play: onNode(corev1.ConditionTrue, 0, replace)},
		"recorded, and its node is Ready":           {want: []string{"I2"}, play: onNode(corev1.ConditionTrue, 0, record)},
		"recorded when its node has just been lost": {play: onNode(corev1.ConditionUnknown, 2*time.Minute, record)},
		"recorded too early":                        {want: []string{"I2"}, play: lost(59*time.Second, record)},
	})
}

// The clock of an executor is set, and with it changes how many pods count as terminating. Nothing says so before the
// executor looks at the Job again; then its status is as prompt as any other.
func TestAClockThatIsSetMovesPodsAcrossTheirDeadline(t *testing.T) {
	set := func(before, after time.Duration, terminating int32, waits time.Duration) func(*tape) {
		return func(tp *tape) {
			tp.judge.rivals = false
			starts(tp, func(job *batchv1.Job) {
				job.Annotations = map[string]string{wire.Policy: "{job: {terminationDeadlineSeconds: 600}}"}
			})
			tp.judge.clocksSet(tp.now, before)
			tp.deletes(user, "a-0")
			tp.judge.asked(executorA, "job-a", tp.now)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
				s.Active, s.Terminating = 1, new(1-terminating)
				failedList(s, "a-0")
			})
			tp.wait(3 * time.Minute)
			tp.judge.clocksSet(tp.now, after)
			tp.wait(10 * time.Second)
			tp.judge.asked(executorA, "job-a", tp.now)
			tp.wait(waits)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Terminating = new(terminating) })
		}
	}
	runStreams(t, map[string]streamCase{
		"set back, and told at once":                {play: set(time.Hour, 0, 1, time.Second)},
		"set back, and told late":                   {want: []string{"late"}, play: set(time.Hour, 0, 1, 2*routine)},
		"set ahead, and told at once":               {play: set(0, time.Hour, 0, time.Second)},
		"set ahead, and told late":                  {want: []string{"late"}, play: set(0, time.Hour, 0, 2*routine)},
		"set back, but the pod stays overdue":       {want: []string{"late"}, play: set(time.Hour, time.Hour/2, 1, time.Second)},
		"set ahead, but the pod is not yet overdue": {want: []string{"late"}, play: set(0, time.Second, 0, time.Second)},
	})
}
