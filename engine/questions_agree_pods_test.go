package engine_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A decision deletes the pods that ChoosePodsToDelete names, in its order, as far
// as one decision may.
func TestChoosePodsToDeleteIsWhatDecisionsDo(t *testing.T) {
	bad, tooMany := 0, 0
	allStart := func(req *request) { req.UnstartedPods, req.Spec.Options = nil, nil }
	agreement(t, allStart, func(t *rapid.T, req *request, resp *jobpolicyv1.DecideJobResponse) bool {
		facts := resp.GetExplanation().GetFacts()
		if facts == nil || facts.WantedActive == nil || len(resp.GetDelete()) == 0 {
			return false
		}
		// Pods of failed indexes take no place from others, as upstream (manageJob, v1.37).
		limit := facts.GetWantedActive()
		if spec := req.GetSpec(); spec.Completions != nil {
			limit = min(spec.GetParallelism(), max(0, spec.GetCompletions()-facts.GetSucceeded()))
		}
		question := &jobpolicyv1.ScaleDown{Pods: req.GetActivePods().GetPods(), Excess: max(0, req.GetPods().GetActive()-limit)}
		if req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
			question.Completions = req.GetSpec().Completions
		}
		answers, err := engine.ChoosePodsToDelete(&jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{question}})
		if err != nil {
			t.Fatal(err)
		}
		answer := answers.GetChoices()[0]
		want := answer.GetDelete()[:min(len(answer.GetDelete()), atMost(req.GetSettings().GetMaxPodChanges()))]
		if diff := cmp.Diff(want, resp.GetDelete(), protocmp.Transform()); diff != "" {
			t.Fatalf("deleted pods (-answer +decision):\n%s", diff)
		}
		for _, d := range want {
			switch d.GetReason() {
			case jobpolicyv1.DeleteReason_DELETE_REASON_BAD_INDEX:
				bad++
			case jobpolicyv1.DeleteReason_DELETE_REASON_TOO_MANY:
				tooMany++
			}
		}
		return true
	})
	if bad == 0 || tooMany == 0 {
		t.Errorf("pods with a bad index: %d, pods too many: %d; want some of both", bad, tooMany)
	}
}

// A decision completes, fails and creates pods for the indexes that ComputeIndexes
// names.
func TestComputeIndexesIsWhatDecisionsDo(t *testing.T) {
	created, failed := 0, 0
	onlyIndexes := func(req *request) {
		keep := req.GetStatus().GetFailedIndexes()
		undecided(req)
		req.Retry = nil
		if req.GetStatus() != nil {
			req.Status.FailedIndexes = keep
		}
	}
	agreement(t, onlyIndexes, func(t *rapid.T, req *request, resp *jobpolicyv1.DecideJobResponse) bool {
		spec := req.GetSpec()
		if spec.GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED || spec.GetPodFailurePolicy() != nil || resp.GetStatus() == nil {
			return false
		}
		question := &jobpolicyv1.JobIndexes{
			Completions: spec.GetCompletions(), CompletedIndexes: req.GetStatus().GetCompletedIndexes(),
			FailedIndexes: req.GetStatus().GetFailedIndexes(), MaxMissing: resp.GetCreate().GetCount(),
		}
		var succeeded, exhausted []int32
		for _, pod := range req.GetUnaccountedPods() {
			if pod.Index != nil && pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED {
				succeeded = append(succeeded, pod.GetIndex())
			}
		}
		for _, pod := range newlyFailed(req) {
			if pod.Index != nil && spec.BackoffLimitPerIndex != nil && pod.GetIndexFailureCount() >= spec.GetBackoffLimitPerIndex() {
				exhausted = append(exhausted, pod.GetIndex())
			}
		}
		question.NewlySucceeded, question.NewlyFailed = indexset.Of(succeeded...).Message(), indexset.Of(exhausted...).Message()
		answers, err := engine.ComputeIndexes(&jobpolicyv1.ComputeIndexesRequest{Jobs: []*jobpolicyv1.JobIndexes{question}})
		if err != nil {
			t.Fatal(err)
		}
		answer := answers.GetProgress()[0]
		status := resp.GetStatus()
		if a, b := indexes(answer.GetCompletedIndexes()), indexes(status.GetCompletedIndexes()); !slices.Equal(a.Ranges(), b.Ranges()) {
			t.Fatalf("the decision completes %v, by the answer these are %v", b, a)
		}
		if spec.BackoffLimitPerIndex != nil {
			failed += len(exhausted)
			if a, b := indexes(answer.GetFailedIndexes()), indexes(status.GetFailedIndexes()); !slices.Equal(a.Ranges(), b.Ranges()) {
				t.Fatalf("the decision fails %v, by the answer these are %v", b, a)
			}
			return true // some of the missing indexes may have to wait
		}
		if resp.GetCreate() == nil {
			return false
		}
		created++
		if a, b := indexes(answer.GetMissingIndexes()), indexes(resp.GetCreate().GetIndexes()); !slices.Equal(a.Ranges(), b.Ranges()) {
			t.Fatalf("the decision creates pods for %v, by the answer %v are missing", b, a)
		}
		return true
	})
	if created == 0 || failed == 0 {
		t.Errorf("decisions that created pods: %d, indexes that failed: %d; want some of both", created, failed)
	}
}

// A decision fails a Job at the time, waits until it, deletes the finished Job or
// keeps it, as ComputeDeadlines says.
func TestComputeDeadlinesIsWhatDecisionsDo(t *testing.T) {
	seen := map[string]int{}
	timed := func(req *request) {
		spec := req.GetSpec()
		spec.Suspend, spec.Deleting, req.NamespaceDeleting = false, false, false
		switch spec.GetParallelism() % 3 {
		case 0:
			spec.ActiveDeadlineSeconds = proto.Int64(int64(spec.GetBackoffLimit() % 20))
			if spec.GetBackoffLimit()%5 == 0 {
				notStarted(req)
			}
		case 1:
			spec.TtlSecondsAfterFinished = proto.Int32(spec.GetBackoffLimit() % 20)
			spec.Options = &jobpolicyv1.JobOptions{TtlSecondsAfterComplete: proto.Int32(3), DefaultTtlSecondsAfterFinished: proto.Int32(7)}
		}
		for i, c := range req.GetStatus().GetConditions() {
			if i%2 == 0 {
				c.LastTransitionTime = req.GetStatus().GetStartTime()
			}
		}
	}
	agreement(t, timed, func(t *rapid.T, req *request, resp *jobpolicyv1.DecideJobResponse) bool {
		answer, err := engine.ComputeDeadlines(&jobpolicyv1.ComputeDeadlinesRequest{
			Now: req.GetNow(), Jobs: []*jobpolicyv1.JobLifetime{{Spec: req.GetSpec(), Status: req.GetStatus(), HasRun: req.GetPods().GetHasRun()}},
		})
		if err != nil {
			t.Fatal(err)
		}
		d, rule := answer.GetDeadlines()[0], answered(resp, "deadlinePassed")
		if waitsForOptions(req) {
			if rule.GetDetail() != "the Job does not start" {
				return false // It has a verdict, or no deadline, or pods that the question does not tell.
			}
			seen["does not start"]++
		}
		if rule != nil && req.GetSpec().ActiveDeadlineSeconds != nil {
			seen["asked"]++
			if rule.GetDecided() != d.GetActiveDeadlinePassed() {
				t.Fatalf("the decision says %v, the answer %v", rule, d)
			}
		}
		if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
			return false
		}
		for _, w := range resp.GetExplanation().GetWaits() {
			expected := map[jobpolicyv1.WaitReason]*timestamppb.Timestamp{
				jobpolicyv1.WaitReason_WAIT_REASON_DEADLINE: d.GetActiveDeadline(), jobpolicyv1.WaitReason_WAIT_REASON_TTL: d.GetExpirationTime(),
			}
			if want, concerned := expected[w.GetReason()]; concerned {
				seen[w.GetReason().String()]++
				if want == nil || !want.AsTime().Equal(w.GetUntil().AsTime()) {
					t.Fatalf("the decision waits until %v, the answer is %v", w, d)
				}
			}
		}
		if isFinished(req.GetStatus()) {
			if (resp.GetDeleteJob() != nil) != d.GetExpired() || !proto.Equal(resp.GetDeleteJob().GetDueTime(), expiredAt(d)) {
				t.Fatalf("the decision deletes %v, the answer is %v", resp.GetDeleteJob(), d)
			}
		}
		if d.GetExpired() {
			seen["expired"]++
		}
		return d.ActiveDeadline != nil || d.ExpirationTime != nil
	})
	for _, want := range []string{"asked", "does not start", "expired", "WAIT_REASON_DEADLINE", "WAIT_REASON_TTL"} {
		if seen[want] == 0 {
			t.Errorf("no draw had %s: %v", want, seen)
		}
	}
}

// notStarted makes a Job one that has neither started nor pods, and whose options cannot be read.
func notStarted(req *request) {
	req.Spec.OptionProblems, req.Status = []string{"job: it cannot be read"}, nil
	req.Pods = &jobpolicyv1.PodSummary{}
	req.UnaccountedPods, req.UnlistedPods, req.ActivePods, req.UnstartedPods = nil, nil, nil, nil
	req.TerminatingPods, req.FinishedPods, req.ConfirmedReleases, req.InFlight = nil, nil, nil, nil
}

// waitsForOptions reports whether a Job does not start, unless it has pods that have not run.
func waitsForOptions(req *request) bool {
	return len(req.GetSpec().GetOptionProblems()) > 0 && req.GetStatus().GetStartTime() == nil && !req.GetPods().GetHasRun() && !isFinished(req.GetStatus())
}

// expiredAt is when the time to live ended of a Job that is to be deleted; nil for other
// Jobs.
func expiredAt(d *jobpolicyv1.JobDeadlines) *timestamppb.Timestamp {
	if d.GetExpired() {
		return d.GetExpirationTime()
	}
	return nil
}
