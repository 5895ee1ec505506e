package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
)

// quotaTries are tries to create a pod: the first one when all have seen the Job, and the others so long after one another. A
// quota refuses all but the last one.
type quotaTries struct {
	after []time.Duration
	// asks: the Job's options limit the delay to 5 s.
	asks bool
	// before and between happen a second before the first try and just before the last one.
	before, between func(*tape, types.UID)
}

func (q quotaTries) play(tp *tape) {
	tp.judge.rivals = false
	uid := tp.job("a", func(job *batchv1.Job) {
		if q.asks {
			job.Annotations = map[string]string{wire.Policy: "{job: {retryDelay: {quotaMaxSeconds: 5}}}"}
		}
	})
	tp.wait(time.Hour)
	if q.before != nil {
		q.before(tp, uid)
	}
	tp.wait(sec)
	tp.judge.podTried(executorA, uid, true, tp.now)
	for i, d := range q.after {
		last := i == len(q.after)-1
		tp.wait(d - time.Millisecond)
		if last && q.between != nil {
			q.between(tp, uid)
		}
		tp.wait(time.Millisecond)
		tp.judge.podTried(executorA, uid, !last, tp.now)
	}
}

func TestTriesAfterAQuotaRefusedPods(t *testing.T) {
	times := func(after ...time.Duration) []time.Duration { return after }
	pod := func(tp *tape, uid types.UID) { tp.pod(others, uid, "theirs", noIndex) }
	fault := func(tp *tape, _ types.UID) { tp.judge.disturbed(tp.now) }
	hindrance := func(tp *tape, _ types.UID) { tp.judge.hindered("ns", tp.now, sec) }
	anothers := func(tp *tape, _ types.UID) { tp.judge.quotaHinders("ns", tp.now) }
	another := func(tp *tape, uid types.UID) { tp.judge.podTried(executorB, uid, true, tp.now) }
	broken := []string{"options"}
	runStreams(t, map[string]streamCase{
		"each delay is twice the last one":             {play: quotaTries{after: times(sec, 2*sec, 4*sec, 8*sec, 16*sec, 32*sec, 60*sec, 60*sec)}.play},
		"options end the delay sooner":                 {play: quotaTries{asks: true, after: times(sec, 2*sec, 4*sec, 5*sec, 5*sec+20*time.Millisecond)}.play},
		"options are not heeded":                       {play: quotaTries{asks: true, after: times(sec, 2*sec, 4*sec, 8*sec, 16*sec)}.play, want: broken},
		"late without options":                         {play: quotaTries{after: times(sec, 2*sec, 90*sec)}.play, want: broken},
		"late, and something failed meanwhile":         {play: quotaTries{asks: true, after: times(sec, 30*sec), between: fault}.play},
		"late, and executors were kept from acting":    {play: quotaTries{asks: true, after: times(sec, 30*sec), between: hindrance}.play},
		"late, and the quota refused a pod of another": {play: quotaTries{asks: true, after: times(sec, 30*sec), between: anothers}.play, want: broken},
		"late, and something happened to the Job":      {play: quotaTries{asks: true, after: times(sec, 30*sec), between: pod}.play},
		"late, and another executor has tried":         {play: quotaTries{asks: true, after: times(sec, 30*sec), between: another}.play},
		"early":                                        {play: quotaTries{after: times(sec, sec)}.play, want: broken},
		"early, as options limit the delay":            {play: quotaTries{asks: true, after: times(sec, 2*sec, 4*sec, 4*sec)}.play, want: broken},
		"early, again and again":                       {play: quotaTries{after: times(sec/5, sec/5, sec/5)}.play, want: broken},
		"early, of one decision":                       {play: quotaTries{after: times(sec, 50*time.Millisecond, 2*sec)}.play},
		"early, and something happened to the Job":     {play: quotaTries{after: times(sec, sec), between: pod}.play},
		"early, and something had just happened to it": {play: quotaTries{after: times(sec, sec), before: pod}.play},
	})
}
