package world

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
)

// setsPolicy changes the options that a Job asks for.
func setsPolicy(text string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, wire.Policy, text) }
}

// A status of a started Job brings the last valid options along.
func TestTheLastValidOptionsAreWritten(t *testing.T) {
	const first, second = "{job: {ttlSecondsAfterFailed: 5}}", "{job: {ttlSecondsAfterFailed: 6}}"
	// writes writes a status with this annotation; empty: with none.
	writes := func(tp *tape, text string) {
		job := tp.stored["job-a"].(*batchv1.Job).DeepCopy()
		job.Status.Active = 1
		wire.WithLastValid(&job.ObjectMeta, text)
		tp.commit(executorA, "update", "jobs", "status", job, job)
	}
	wrong := []string{"options"}
	cases := map[string]streamCase{}
	for name, tc := range map[string]struct {
		then string // The options that the Job asks for later; empty: the first ones.
		text string
		want []string
	}{
		"the options":                   {text: first},
		"none":                          {want: wrong},
		"others":                        {text: second, want: wrong},
		"new options":                   {then: second, text: second},
		"old options":                   {then: second, text: first, want: wrong},
		"unreadable, the last ones":     {then: unreadable, text: first},
		"unreadable, others":            {then: unreadable, text: second, want: wrong},
		"unreadable, and they are lost": {then: unreadable, want: wrong},
	} {
		cases[name] = streamCase{want: tc.want, play: func(tp *tape) {
			starts(tp, setsPolicy(first))
			if tc.then != "" {
				tp.spec(setsPolicy(tc.then))
			}
			writes(tp, tc.text)
		}}
	}
	cases["nobody asks"] = streamCase{play: func(tp *tape) { starts(tp); writes(tp, "") }}
	cases["nobody asks, and it is there"] = streamCase{want: wrong, play: func(tp *tape) { starts(tp); writes(tp, first) }}
	cases["never valid, and it is there"] = streamCase{want: wrong, play: func(tp *tape) { starts(tp); tp.spec(setsPolicy(unreadable)); writes(tp, first) }}
	runStreams(t, cases)
}
