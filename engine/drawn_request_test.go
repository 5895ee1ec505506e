package engine_test

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// drawRequest draws any request that the contract allows, likely or not.
func drawRequest(t *rapid.T) *request {
	req := &request{
		RequestId: rapid.StringN(0, 10, 128).Draw(t, "id"),
		Now:       drawTime(t, "now"),
		Job:       &jobpolicyv1.JobRef{Uid: uid("job"), Namespace: "ns", Name: "job"},
		Spec:      drawAnySpec(t),
		Settings:  drawSettings(t),
	}
	names := &uidNames{t: t, left: rapid.Permutation(numbers(24)).Draw(t, "uids")}
	if rapid.IntRange(0, 5).Draw(t, "fresh job") > 0 {
		req.Status = drawStatus(t, names)
	}
	drawPods(t, req, names)
	if rapid.IntRange(0, 3).Draw(t, "termination deadline") == 0 {
		drawTerminating(t, req)
	}
	if rapid.IntRange(0, 3).Draw(t, "finished pods") == 0 {
		drawFinished(t, req)
	}
	if rapid.Bool().Draw(t, "unlisted") {
		set := drawIndexSet(t, "unlisted indexes")
		failed := drawCount(t, "unlisted failed")
		req.UnlistedPods = &jobpolicyv1.UnlistedPods{
			Succeeded: drawAtLeast(t, "unlisted succeeded", set), Failed: failed, SucceededIndexes: set,
			Terminating: rapid.Int32Range(0, failed).Draw(t, "unlisted terminating"),
		}
		if rapid.Bool().Draw(t, "unlisted failures have indexes") {
			set := drawIndexSet(t, "unlisted failed indexes")
			req.UnlistedPods.FailedIndexes = set
			req.UnlistedPods.Failed = max(failed, drawAtLeast(t, "unlisted failed by index", set))
		}
	}
	if rapid.Bool().Draw(t, "in flight") {
		set := drawIndexSet(t, "in flight indexes")
		req.InFlight = &jobpolicyv1.InFlight{Creates: drawAtLeast(t, "creates", set), CreateIndexes: set}
	}
	if rapid.IntRange(0, 5).Draw(t, "hold") == 0 {
		deferUntil(req, createPods, drawTime(t, "not before"))
	}
	if rapid.IntRange(0, 5).Draw(t, "hold deletions") == 0 {
		deferUntil(req, deletePods, drawTime(t, "no deletion before"))
	}
	if rapid.IntRange(0, 3).Draw(t, "quiet") == 0 {
		deferUntil(req, writeRoutineStatus, drawTime(t, "no status before"))
	}
	if rapid.IntRange(0, 3).Draw(t, "records sooner") == 0 {
		deferUntil(req, recordPods, drawTime(t, "no record before"))
	}
	req.NamespaceDeleting = rapid.IntRange(0, 19).Draw(t, "namespace deleting") == 0
	req.Retry = &jobpolicyv1.RetryFacts{}
	if rapid.Bool().Draw(t, "success") {
		req.Retry.LastSuccessTime = drawTime(t, "last success")
	}
	for range rapid.IntRange(0, 4).Draw(t, "failures") {
		req.Retry.RecentFailures = append(req.Retry.RecentFailures,
			&jobpolicyv1.PodFailureFact{FinishedTime: drawTime(t, "failure"), Failure: drawFailure(t)})
	}
	for range rapid.IntRange(0, 4).Draw(t, "tries") {
		why := drawFailure(t)
		req.Retry.FailedTries = append(req.Retry.FailedTries, &jobpolicyv1.FailedTry{
			Index: drawPodIndex(t), ResourceStep: rapid.SampledFrom([]int32{0, 0, 1, 2, 63, 64}).Draw(t, "step"), ContainerExits: why.GetContainerExits(),
		})
	}
	return req
}

// drawAnySpec is drawSpec with extreme values that no cluster would run.
func drawAnySpec(t *rapid.T) *jobpolicyv1.JobSpec {
	spec := drawSpec(t)
	spec.Deleting = rapid.IntRange(0, 7).Draw(t, "deleting") == 0
	if rapid.IntRange(0, 7).Draw(t, "problems") == 0 {
		spec.OptionProblems = []string{"job: it cannot be read", "cronJob: it cannot be read"}
	}
	if rapid.IntRange(0, 3).Draw(t, "corner") > 0 {
		return spec
	}
	spec.Parallelism = drawCount(t, "any parallelism")
	if spec.Completions != nil {
		spec.Completions = proto.Int32(drawCount(t, "any completions"))
	}
	if spec.ActiveDeadlineSeconds != nil {
		spec.ActiveDeadlineSeconds = proto.Int64(rapid.Int64Range(0, 1<<63-1).Draw(t, "any deadline"))
	}
	return spec
}

func drawStatus(t *rapid.T, names *uidNames) *jobpolicyv1.JobStatus {
	s := &jobpolicyv1.JobStatus{
		Active: drawCount(t, "active"), Succeeded: drawCount(t, "succeeded"), Failed: drawCount(t, "failed"),
		CompletedIndexes: drawIndexSet(t, "completed"), FailedIndexes: drawIndexSet(t, "failed indexes"),
		Uncounted: &jobpolicyv1.UncountedTerminatedPods{Succeeded: names.some("uncounted succeeded"), Failed: names.some("uncounted failed")},
	}
	if rapid.Bool().Draw(t, "ready") {
		s.Ready, s.Terminating = proto.Int32(drawCount(t, "ready")), proto.Int32(drawCount(t, "terminating"))
	}
	if rapid.IntRange(0, 3).Draw(t, "started") > 0 {
		s.StartTime = drawTime(t, "start")
	}
	for _, conditionType := range []string{suspended, criteriaMet, failureTarget, complete, failed, started, "Other"} {
		if rapid.IntRange(0, 5).Draw(t, conditionType) == 0 {
			s.Conditions = append(s.Conditions, &jobpolicyv1.JobCondition{
				Type: conditionType, Status: rapid.SampledFrom([]jobpolicyv1.ConditionStatus{1, 1, 2, 3}).Draw(t, "status"),
				Reason: rapid.SampledFrom([]string{"", "JobSuspended", "Other"}).Draw(t, "reason"),
			})
		}
	}
	return s
}

func drawPods(t *rapid.T, req *request, names *uidNames) {
	p := &jobpolicyv1.PodSummary{ActiveIndexes: drawIndexSet(t, "active indexes"), TerminatingIndexes: drawIndexSet(t, "terminating indexes")}
	p.Active = drawAtLeast(t, "pods active", p.ActiveIndexes)
	p.Restarts = int64(drawCount(t, "restarts"))
	recorded := append(append([][]byte(nil), req.GetStatus().GetUncounted().GetSucceeded()...), req.GetStatus().GetUncounted().GetFailed()...)
	uids := names.some("rows")
	for _, uid := range recorded {
		if rapid.Bool().Draw(t, "row of a recorded pod") {
			uids = append(uids, uid)
			continue
		}
		if rapid.Bool().Draw(t, "confirmed") {
			req.ConfirmedReleases = append(req.ConfirmedReleases, uid)
		}
	}
	unended := int32(0)
	for _, uid := range uids {
		row := &jobpolicyv1.UnaccountedPod{
			Uid: uid, Phase: rapid.SampledFrom([]jobpolicyv1.PodPhase{1, 2, 3, 3, 4, 4, 5}).Draw(t, "phase"), Deleting: true,
			Index: drawPodIndex(t), FinishedTime: drawTime(t, "finished"), Failure: drawFailure(t),
			IndexFailureCount: drawCount(t, "index failures"), IndexIgnoredFailureCount: drawCount(t, "ignored failures"),
		}
		if row.Phase != jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED && row.Phase != jobpolicyv1.PodPhase_POD_PHASE_FAILED {
			unended++
		}
		req.UnaccountedPods = append(req.UnaccountedPods, row)
	}
	p.Terminating = max(unended, drawAtLeast(t, "pods terminating", p.TerminatingIndexes))
	if rapid.IntRange(0, 2).Draw(t, "rows sent") > 0 {
		drawActiveRows(t, req, p, names)
	}
	p.Ready = rapid.Int32Range(0, p.Active).Draw(t, "pods ready")
	p.HasRun = rapid.Bool().Draw(t, "has run")
	p.TrackedActive = rapid.Int32Range(0, p.Active).Draw(t, "tracked")
	req.Pods = p
	if rapid.IntRange(0, 2).Draw(t, "never started") == 0 {
		drawUnstarted(t, req, names)
	}
}

// drawUnstarted draws pods that do not start, of a Job that asks what becomes of them.
func drawUnstarted(t *rapid.T, req *request, names *uidNames) {
	options := proto.CloneOf(cmp.Or(req.Spec.Options, &jobpolicyv1.JobOptions{}))
	problems := rapid.Permutation([]jobpolicyv1.PodStartProblem{1, 2, 3}).Draw(t, "problems")
	for _, problem := range problems[:rapid.IntRange(1, 3).Draw(t, "named problems")] {
		action := rapid.SampledFrom([]jobpolicyv1.NeverStartedAction{0, 1, 2, 3}).Draw(t, "action")
		if action == 2 && req.Spec.BackoffLimitPerIndex == nil {
			action = 1
		}
		options.NeverStarted = append(options.NeverStarted, &jobpolicyv1.NeverStarted{
			Problem: problem, AfterSeconds: proto.Int32(rapid.SampledFrom([]int32{1, 5, 1<<31 - 1}).Draw(t, "after")), Action: action,
		})
	}
	req.Spec.Options = options
	for _, uid := range names.some("unstarted") {
		if int(req.Pods.Active) <= len(req.UnstartedPods) {
			break
		}
		req.UnstartedPods = append(req.UnstartedPods, &jobpolicyv1.ActivePod{
			Uid: uid, Phase: 1, Index: drawPodIndex(t), Tracked: rapid.Bool().Draw(t, "tracked"),
			Start: &jobpolicyv1.PodStart{Problem: rapid.SampledFrom(problems).Draw(t, "problem"), Since: drawTime(t, "since")},
		})
	}
}

func drawActiveRows(t *rapid.T, req *request, p *jobpolicyv1.PodSummary, names *uidNames) {
	req.ActivePods = &jobpolicyv1.ActivePods{}
	for _, uid := range names.some("active rows") {
		req.ActivePods.Pods = append(req.ActivePods.Pods, &jobpolicyv1.ActivePod{
			Uid: uid, Phase: rapid.SampledFrom([]jobpolicyv1.PodPhase{1, 2, 5}).Draw(t, "active phase"), Index: drawPodIndex(t),
			Scheduled: rapid.Bool().Draw(t, "scheduled"), Ready: rapid.Bool().Draw(t, "ready"), Tracked: rapid.Bool().Draw(t, "tracked"),
			MaxRestarts: rapid.Int32Range(0, 2).Draw(t, "restarts"), CreatedTime: drawTime(t, "created"),
			ActiveDeadlineSeconds: rapid.SampledFrom([]*int64{nil, nil, proto.Int64(0), proto.Int64(1), proto.Int64(60), proto.Int64(1<<63 - 1)}).Draw(t, "pod's deadline"),
			GracePeriodSeconds:    rapid.SampledFrom([]int64{0, 30, 1<<63 - 1}).Draw(t, "grace period"),
		})
		if rapid.Bool().Draw(t, "taken by a node") {
			req.ActivePods.Pods[len(req.ActivePods.Pods)-1].StartTime = drawTime(t, "started")
		}
	}
	if n := int32(len(req.ActivePods.Pods)); n < p.Active {
		req.ActivePods.Truncated = true
	} else {
		p.Active = n
	}
}

func drawFailure(t *rapid.T) *jobpolicyv1.PodFailure {
	p := &modelPod{exitCode: rapid.SampledFrom([]int32{0, 1, 42, 43}).Draw(t, "exit"), disrupted: rapid.Bool().Draw(t, "disrupted")}
	failure := p.failure()
	failure.Reason = rapid.SampledFrom([]string{"", "", "Evicted", "DeadlineExceeded"}).Draw(t, "pod reason")
	failure.DeletedBeforeEnd = rapid.IntRange(0, 3).Draw(t, "deleted before end") == 0
	for _, exit := range failure.GetContainerExits() {
		exit.Reason = rapid.SampledFrom([]string{"", "Error", "OOMKilled", "StartError"}).Draw(t, "exit reason")
	}
	return failure
}

func drawPodIndex(t *rapid.T) *int32 {
	if rapid.IntRange(0, 9).Draw(t, "no index") == 0 {
		return nil
	}
	return proto.Int32(rapid.SampledFrom([]int32{0, 0, 1, 1, 2, 3, 4, 5, 6, indexset.Max}).Draw(t, "index"))
}

// drawTime draws times that are often equal, and sometimes absurd.
func drawTime(t *rapid.T, label string) *timestamppb.Timestamp {
	switch rapid.IntRange(0, 19).Draw(t, label+" kind") {
	case 0:
		return timestamppb.New(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
	case 1:
		return timestamppb.New(time.Date(9999, 12, 31, 23, 59, 58, 999_999_999, time.UTC))
	}
	return at(time.Duration(rapid.Int64Range(0, 40).Draw(t, label)) * 500 * time.Millisecond)
}

func drawCount(t *rapid.T, label string) int32 {
	return rapid.SampledFrom([]int32{0, 0, 0, 1, 1, 2, 3, 5, 8, 1000, 1<<31 - 2, 1<<31 - 1}).Draw(t, label)
}

// drawAtLeast draws a count that is not below the size of a set.
func drawAtLeast(t *rapid.T, label string, set *jobpolicyv1.IndexSet) int32 {
	return int32(max(int64(drawCount(t, label)), indexes(set).Len()))
}

func drawIndexSet(t *rapid.T, label string) *jobpolicyv1.IndexSet {
	if rapid.IntRange(0, 2).Draw(t, label+" set") == 0 {
		return nil
	}
	var list []int32
	for range rapid.IntRange(0, 4).Draw(t, label+" size") {
		list = append(list, rapid.SampledFrom([]int32{0, 1, 2, 3, 4, 5, 9, indexset.Max - 1, indexset.Max}).Draw(t, label))
	}
	return indexset.Of(list...).Message()
}

// uidNames hands out UIDs, each once.
type uidNames struct {
	t    *rapid.T
	left []int
}

func (n *uidNames) some(label string) [][]byte {
	var uids [][]byte
	for range rapid.IntRange(0, 4).Draw(n.t, label) {
		uids = append(uids, numberedUID(n.left[0]))
		n.left = n.left[1:]
	}
	return uids
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// drawFinished draws finished pods that are accounted for, or that the status lists, and how many the Job keeps.
func drawFinished(t *rapid.T, req *request) {
	if req.Spec.Options == nil {
		req.Spec.Options = &jobpolicyv1.JobOptions{}
	}
	keep := &jobpolicyv1.KeepFinishedPods{}
	few := func(name string) *int32 { return rapid.Ptr(rapid.Int32Range(0, 3), true).Draw(t, name) }
	keep.Succeeded, keep.Failed = few("keep succeeded"), few("keep failed")
	req.Spec.Options.KeepFinishedPods = keep
	f := &jobpolicyv1.FinishedPods{Succeeded: rapid.Int32Range(0, 2).Draw(t, "more"), Failed: rapid.Int32Range(0, 2).Draw(t, "more")}
	uids := req.GetConfirmedReleases()
	for n := range rapid.IntRange(0, 5).Draw(t, "finished") {
		uids = append(uids, numberedUID(100+n))
	}
	for _, uid := range uids {
		pod := &jobpolicyv1.FinishedPod{Uid: uid, Phase: rapid.SampledFrom([]jobpolicyv1.PodPhase{3, 4}).Draw(t, "phase"), FinishedTime: drawTime(t, "finished")}
		f.Succeeded += count(pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED)
		f.Failed += count(pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED)
		f.First = append(f.First, pod)
	}
	req.FinishedPods = f
	if rapid.IntRange(0, 3).Draw(t, "hold") == 0 {
		deferUntil(req, jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS, drawTime(t, "no deletion before"))
	}
}

// drawTerminating gives the Job a termination deadline, and rows to some of the pods that have not ended.
func drawTerminating(t *rapid.T, req *request) {
	if req.Spec.Options == nil {
		req.Spec.Options = &jobpolicyv1.JobOptions{}
	}
	req.Spec.Options.TerminationDeadlineSeconds = proto.Int64(rapid.SampledFrom([]int64{1, 60, 1<<31 - 1}).Draw(t, "deadline"))
	req.Spec.Options.TerminationDeadlineNode = rapid.SampledFrom([]jobpolicyv1.TerminationDeadlineNode{0, 1, 2}).Draw(t, "deadline's node")
	for _, row := range req.GetUnaccountedPods() {
		ended := row.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || row.Phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
		if !ended && rapid.Bool().Draw(t, "has a row") {
			req.TerminatingPods = append(req.TerminatingPods, &jobpolicyv1.TerminatingPod{
				Uid: row.Uid, Index: row.Index, DueTime: drawTime(t, "due"), Tracked: rapid.Bool().Draw(t, "tracked"),
				Node: rapid.SampledFrom([]jobpolicyv1.NodeState{0, 1, 2, 3}).Draw(t, "node"),
			})
		}
	}
}
