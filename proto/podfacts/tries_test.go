package podfacts_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

func exits(reason string, codes ...int32) []*jobpolicyv1.ContainerExit {
	var out []*jobpolicyv1.ContainerExit
	for _, code := range codes {
		out = append(out, &jobpolicyv1.ContainerExit{ContainerName: "main", ExitCode: code, Reason: reason})
	}
	return out
}

// A pod's failure, if it was raised so often and has this index.
func triedPod(index, step int32, exits []*jobpolicyv1.ContainerExit, change ...func(*podfacts.Pod)) podfacts.Pod {
	pod := podfacts.Pod{Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, Index: &index, ResourceStep: step, Exits: exits, Finished: time.Unix(9, 0)}
	for _, c := range change {
		c(&pod)
	}
	return pod
}

func sameTries(a, b []*jobpolicyv1.FailedTry) bool {
	return slices.EqualFunc(a, b, func(a, b *jobpolicyv1.FailedTry) bool { return proto.Equal(a, b) })
}

func TestFailedTries(t *testing.T) {
	active := func(pod *podfacts.Pod) { pod.Phase, pod.Exits = jobpolicyv1.PodPhase_POD_PHASE_RUNNING, nil }
	succeeded := func(pod *podfacts.Pod) { pod.Phase, pod.Exits = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, nil }
	deleted := func(pod *podfacts.Pod) { pod.Deleting, pod.DeletionRequested = true, time.Unix(8, 0) }
	oom, failure := exits("OOMKilled", 137), exits("Error", 1)
	try := func(index *int32, step int32, exits []*jobpolicyv1.ContainerExit) *jobpolicyv1.FailedTry {
		return &jobpolicyv1.FailedTry{Index: index, ResourceStep: step, ContainerExits: exits}
	}
	cases := map[string]struct {
		indexed bool
		pods    []podfacts.Pod
		want    []*jobpolicyv1.FailedTry
	}{
		"each way of failing once":        {false, []podfacts.Pod{triedPod(0, 0, failure), triedPod(1, 0, oom), triedPod(2, 0, failure)}, []*jobpolicyv1.FailedTry{try(nil, 0, failure), try(nil, 0, oom)}},
		"the highest step only":           {false, []podfacts.Pod{triedPod(0, 2, failure), triedPod(1, 1, oom)}, []*jobpolicyv1.FailedTry{try(nil, 2, failure)}},
		"a raised pod that still runs":    {false, []podfacts.Pod{triedPod(0, 0, oom), triedPod(1, 1, nil, active)}, []*jobpolicyv1.FailedTry{try(nil, 1, nil)}},
		"a raised pod that has succeeded": {false, []podfacts.Pod{triedPod(0, 0, oom), triedPod(1, 1, nil, succeeded)}, []*jobpolicyv1.FailedTry{try(nil, 1, nil)}},
		"a pod that somebody deleted":     {false, []podfacts.Pod{triedPod(0, 1, exits("Error", 137), deleted)}, []*jobpolicyv1.FailedTry{try(nil, 1, nil)}},
		"by index": {
			true,
			[]podfacts.Pod{triedPod(3, 1, oom), triedPod(1, 0, failure), triedPod(3, 0, oom), triedPod(2, 0, failure), triedPod(2, 0, nil, active), triedPod(4, 1, oom), triedPod(4, 1, nil, succeeded), triedPod(9, 0, oom)},
			[]*jobpolicyv1.FailedTry{try(new(int32(1)), 0, failure), try(new(int32(3)), 1, oom)},
		},
		"an index whose deleted pod succeeded all the same": {
			true, []podfacts.Pod{triedPod(3, 0, oom), triedPod(3, 1, nil, succeeded, deleted)}, []*jobpolicyv1.FailedTry{try(new(int32(3)), 1, nil)},
		},
		"a step beyond the limit": {false, []podfacts.Pod{triedPod(0, 1000, oom)}, []*jobpolicyv1.FailedTry{try(nil, 64, oom)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			early, late := podfacts.New(podfacts.Policy{Indexed: tc.indexed, Completions: 5}, func(p podfacts.Pod) podfacts.Pod { return p }), podfacts.New(podfacts.Policy{Indexed: tc.indexed, Completions: 5}, func(p podfacts.Pod) podfacts.Pod { return p })
			early.KeepTries(slices.Values([]*podfacts.Counted[podfacts.Pod]{}))
			var counted []*podfacts.Counted[podfacts.Pod]
			for i, pod := range tc.pods {
				pod.UID = []byte{byte(i + 1)}
				for _, counter := range []*podfacts.Counter[podfacts.Pod]{early, late} {
					e := &podfacts.Counted[podfacts.Pod]{Pod: pod}
					counter.Add(e, true)
					counted = append(counted, e)
				}
			}
			if got := late.FailedTries(); got != nil {
				t.Errorf("got %v from a counter that keeps none", got)
			}
			late.KeepTries(slices.Values(counted))
			for which, counter := range map[string]*podfacts.Counter[podfacts.Pod]{"from the start": early, "begun later": late} {
				if got := counter.FailedTries(); !sameTries(got, tc.want) {
					t.Errorf("tries kept %s: %v, want %v", which, got, tc.want)
				}
			}
		})
	}
}
