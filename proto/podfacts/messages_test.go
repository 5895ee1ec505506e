package podfacts_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

func saidExit(i int) *jobpolicyv1.ContainerExit {
	return &jobpolicyv1.ContainerExit{ContainerName: "main", ExitCode: 1, Reason: "Error", TerminationMessage: fmt.Sprint("words of ", i)}
}

// A request has a row for each active pod whose restarts count. Only the messages of those that the end may tell are in it.
func TestActiveRowsHaveTheMessagesThatMayBeTold(t *testing.T) {
	counter := podfacts.New(podfacts.Policy{}, func(p podfacts.Pod) podfacts.Pod { return p })
	var counted []*podfacts.Counted[podfacts.Pod]
	for i := range 20 {
		e := &podfacts.Counted[podfacts.Pod]{Pod: podfacts.Pod{
			UID: []byte{byte(100 - i)}, Name: fmt.Sprintf("pod-%02d", i), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING, Tracked: true,
			LastExit: saidExit(i), LastExited: time.Unix(int64(1000+i/2), 0), // Two at a time.
		}}
		counter.Add(e, true)
		counted = append(counted, e)
	}
	for most, want := range map[int32][]string{0: nil, 1: {"pod-18"}, 3: {"pod-16", "pod-18", "pod-19"}} {
		options := &jobpolicyv1.JobOptions{EndCondition: true}
		if most > 0 {
			options.EndConditionFailures = &most
		}
		var says []string
		for _, row := range counter.Active(slices.Values(counted), nil, 100, options).GetPods() {
			bare := proto.CloneOf(row.GetLastExit())
			bare.TerminationMessage = ""
			if !proto.Equal(bare, &jobpolicyv1.ContainerExit{ContainerName: "main", ExitCode: 1, Reason: "Error"}) {
				t.Errorf("pod %s ended with %v", row.GetPodName(), row.GetLastExit())
			}
			if row.GetLastExit().GetTerminationMessage() != "" {
				says = append(says, row.GetPodName())
			}
		}
		slices.Sort(says)
		if !slices.Equal(says, want) {
			t.Errorf("of %d that are told, %v say something, want %v", most, says, want)
		}
	}
	if counted[0].Pod.LastExit.GetTerminationMessage() == "" {
		t.Error("what the owner of the pods knows was changed")
	}
}

// The resources of the next try do not depend on what a container said, and there may be a failed try of each index.
func TestFailedTriesHaveNoMessages(t *testing.T) {
	counter := podfacts.New(podfacts.Policy{Indexed: true, Completions: 5}, func(p podfacts.Pod) podfacts.Pod { return p })
	counter.KeepTries(slices.Values([]*podfacts.Counted[podfacts.Pod]{}))
	pod := triedPod(3, 0, []*jobpolicyv1.ContainerExit{saidExit(0)})
	pod.UID = []byte{1}
	counter.Add(&podfacts.Counted[podfacts.Pod]{Pod: pod}, true)
	want := []*jobpolicyv1.FailedTry{{Index: proto.Int32(3), ContainerExits: exits("Error", 1)}}
	if got := counter.FailedTries(); !sameTries(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if pod.Exits[0].GetTerminationMessage() == "" {
		t.Error("what the owner of the pod knows was changed")
	}
	if got := counter.Retry(nil).GetRecentFailures(); len(got) != 1 || got[0].GetFailure().GetContainerExits()[0].GetTerminationMessage() == "" {
		t.Errorf("the recent failure says nothing: %v", got)
	}
}
