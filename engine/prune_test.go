package engine_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/engine/snapshot"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A caller that has just started sees only the pods that are left. It decides as one that sees those, too, which a Job with
// keep_finished_pods has deleted: about pods, retry delays and resources, and about how the Job fails if it may fail no more.
func TestDeletedFinishedPodsChangeNoOtherDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, pods := drawSpec(t), drawFinishedPods(t)
		if spec.Options == nil {
			spec.Options = &jobpolicyv1.JobOptions{}
		}
		few := rapid.Int32Range(0, 2)
		spec.Options.KeepFinishedPods = &jobpolicyv1.KeepFinishedPods{Succeeded: proto.Int32(few.Draw(t, "succeeded")), Failed: proto.Int32(few.Draw(t, "failed"))}
		left := pods
		for range 3 { // Until none is left to delete.
			chosen := decideAbout(t, spec, pods, left).GetDeleteFinished()
			left = slices.DeleteFunc(slices.Clone(left), func(p snapshot.Pod) bool {
				return slices.ContainsFunc(chosen, func(uid []byte) bool { return bytes.Equal(uid, p.UID) })
			})
		}
		compareDecisions(t, decideAbout(t, spec, pods, pods), decideAbout(t, spec, pods, left))
		spec.BackoffLimit = 0
		compareDecisions(t, decideAbout(t, spec, pods, pods), decideAbout(t, spec, pods, left))
	})
}

func drawFinishedPods(t *rapid.T) []snapshot.Pod {
	var pods []snapshot.Pod
	for n := range rapid.IntRange(0, 12).Draw(t, "pods") {
		pod := snapshot.Pod{
			UID: numberedUID(n), Name: uidName(numberedUID(n)), Index: proto.Int32(rapid.Int32Range(0, 7).Draw(t, "index")),
			Phase:    rapid.SampledFrom([]jobpolicyv1.PodPhase{3, 3, 4, 4, 4, 2}).Draw(t, "phase"),
			Finished: epoch.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "finished")) * time.Second),
		}
		pod.Tracked = pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_RUNNING || rapid.IntRange(0, 5).Draw(t, "tracked") == 0
		if pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED {
			pod.Exits = []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: rapid.SampledFrom([]int32{1, 42, 43}).Draw(t, "exit"), Reason: rapid.SampledFrom([]string{"Error", "OOMKilled"}).Draw(t, "why")}}
			if rapid.IntRange(0, 3).Draw(t, "disrupted") == 0 {
				pod.Conditions = []*jobpolicyv1.PodConditionPattern{pattern("DisruptionTarget")}
			}
		}
		pods = append(pods, pod)
	}
	return pods
}

// decideAbout decides about a Job of which these pods are left. Its status has counted all.
func decideAbout(t *rapid.T, spec *jobpolicyv1.JobSpec, all, pods []snapshot.Pod) *jobpolicyv1.DecideJobResponse {
	status := &jobpolicyv1.JobStatus{StartTime: at(0), Failed: 3}
	if spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		status.CompletedIndexes = releasedSuccesses(all).Below(spec.GetCompletions()).Message()
	}
	req := snapshot.Request(spec, status, pods, snapshot.Options{ActivePods: true, Now: epoch.Add(10 * time.Second)})
	req.Now, req.Job = at(10*time.Second), &jobpolicyv1.JobRef{Uid: uid("job"), Namespace: "ns", Name: "job"}
	resp, err := engine.DecideJob(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// releasedSuccesses are the indexes of pods that the status must have counted before they were released.
func releasedSuccesses(pods []snapshot.Pod) indexset.Set {
	var done []int32
	for _, pod := range pods {
		if pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED && !pod.Tracked {
			done = append(done, *pod.Index)
		}
	}
	return indexset.Of(done...)
}

func compareDecisions(t *rapid.T, all, left *jobpolicyv1.DecideJobResponse) {
	for _, d := range []*jobpolicyv1.DecideJobResponse{all, left} {
		d.DeleteFinished, d.Explanation.Summary, d.Disposition, d.FollowUp = nil, "", 0, 0
	}
	if diff := cmp.Diff(all, left, protocmp.Transform()); diff != "" {
		t.Fatalf("deleting finished pods changes decisions (-all +left):\n%s", diff)
	}
}
