package podfacts

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	image         = jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE
	unschedulable = jobpolicyv1.PodStartProblem_POD_START_PROBLEM_UNSCHEDULABLE
)

func stuck(uid string, problem jobpolicyv1.PodStartProblem, since int64) *Counted[*Pod] {
	return &Counted[*Pod]{Pod: &Pod{
		UID: []byte(uid), Name: uid, Tracked: true,
		Start: &jobpolicyv1.PodStart{Problem: problem, Since: timestamppb.New(time.Unix(since, 0))},
	}}
}

func TestOnlyPodsWithAProblemThatIsAskedForAreListed(t *testing.T) {
	never := []*jobpolicyv1.NeverStarted{{Problem: image, AfterSeconds: new(int32(10))}}
	for _, asks := range []bool{true, false} {
		c := New(Policy{Starts: asks}, func(p *Pod) Pod { return *p })
		ended, released, calm := stuck("ended", image, 1), stuck("released", image, 1), stuck("calm", 0, 0)
		ended.Pod.Phase, released.Pod.Tracked, calm.Pod.Start = jobpolicyv1.PodPhase_POD_PHASE_FAILED, false, nil
		starts := stuck("starts", image, 1)
		for _, e := range []*Counted[*Pod]{stuck("b", image, 1), stuck("a", image, 5), stuck("node", unschedulable, 1), ended, released, calm, starts} {
			c.Add(e, true)
		}
		c.Remove(starts)
		starts.Pod = calm.Pod
		c.Add(starts, false)
		var got, want []string
		for _, row := range c.Unstarted(never, UIDs{"released": true}) {
			got = append(got, row.GetPodName())
		}
		if asks {
			want = []string{"a", "b"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("asked for: %t: listed %q, want %q", asks, got, want)
		}
		if rows, _ := c.Rows(nil, 10, nil); (rows[0].GetFailure().GetStart() != nil) != asks {
			t.Errorf("asked for: %t: the row of a failed pod says %v", asks, rows[0].GetFailure().GetStart())
		}
	}
}

func TestTheMostUrgentPodsAreListed(t *testing.T) {
	never := []*jobpolicyv1.NeverStarted{{Problem: image, AfterSeconds: new(int32(1))}, {Problem: unschedulable, AfterSeconds: new(int32(1000))}}
	c := New(Policy{Starts: true}, func(p *Pod) Pod { return *p })
	for n := range int64(maxUnstarted) {
		c.Add(stuck("u"+time.Unix(n, 0).String(), unschedulable, n), true)
	}
	c.Add(stuck("v", image, 500), true)
	rows := c.Unstarted(never, nil)
	if len(rows) != maxUnstarted || rows[maxUnstarted-1].GetPodName() != "v" {
		t.Errorf("%d rows, the last one of %q; want the most that a request may have, with the pod whose time is over first", len(rows), rows[len(rows)-1].GetPodName())
	}
}
