package job

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// completedIndexesCount is what Kueue's test of its function calls.
func completedIndexesCount(_ logr.Logger, completedIndexes string, completions int32) (count int32) {
	indexes := &jobpolicyv1.JobIndexes{Completions: completions, CompletedIndexes: readableIndexes(context.Background(), completedIndexes)}
	progress, err := askIndexes(context.Background(), indexes)
	if err != nil {
		panic(err)
	}
	for _, r := range progress.GetCompletedIndexes().GetRanges() {
		count += r.Last - r.First + 1
	}
	return count
}

// The engine answers as Kueue's own function does. That one does not know of indexes that failed for
// good, so it is told that they succeeded.
func TestReclaimablePodsAreThoseOfBefore(t *testing.T) {
	some, failed := 0, 0
	for seed := range uint64(2000) {
		job, done := drawJob(rand.New(rand.NewPCG(seed, 1)))
		told := *job
		told.Status.CompletedIndexes = done
		before, _ := told.reclaimablePodsBefore(t.Context(), nil)
		now, err := job.ReclaimablePods(t.Context(), nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(before, now); diff != "" {
			t.Fatalf("seed %d: Kueue (-), the engine (+)\n%s\nspec %+v\nstatus %+v", seed, diff, job.Spec, job.Status)
		}
		if len(now) > 0 {
			some++
		}
		if job.Status.FailedIndexes != nil {
			failed++
		}
	}
	if some < 300 || some > 1700 || failed < 300 {
		t.Errorf("%d of 2000 Jobs have reclaimable pods, %d failed indexes; want some of each", some, failed)
	}
}

// An index that failed for good needs no pod either (kueue#13482).
func TestFailedIndexesAreReclaimable(t *testing.T) {
	job := &Job{Spec: batchv1.JobSpec{Parallelism: new(int32(3)), Completions: new(int32(3)), CompletionMode: new(batchv1.IndexedCompletion)}}
	job.Status = batchv1.JobStatus{Active: 1, Succeeded: 1, Failed: 1, CompletedIndexes: "0", FailedIndexes: new("1")}
	got, err := job.ReclaimablePods(t.Context(), nil)
	want := []kueue.ReclaimablePod{{Name: kueue.DefaultPodSetName, Count: 2}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

// drawJob draws a Job with its status. done are its completed and failed indexes, as one set. Some of them are above
// its completions, as after an elastic Job has shrunk, and some texts have a part that cannot be read.
func drawJob(r *rand.Rand) (job *Job, done string) {
	job = &Job{Spec: batchv1.JobSpec{Parallelism: new(int32(r.IntN(8)))}}
	if r.IntN(4) > 0 {
		job.Spec.Completions = new(int32(1 + r.IntN(13)))
	}
	if r.IntN(4) == 0 {
		job.Status.Succeeded = int32(r.IntN(12))
		return job, ""
	}
	job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	var completed, failed, either []int
	fails := r.IntN(3) == 0
	for index := range 16 {
		switch n := r.IntN(4); {
		case n < 2:
			continue
		case n == 2 && fails:
			failed = append(failed, index)
		default:
			completed = append(completed, index)
		}
		either = append(either, index)
	}
	job.Status.CompletedIndexes, job.Status.Succeeded = indexText(r, completed), int32(len(completed))
	if fails {
		job.Status.FailedIndexes = new(indexText(r, failed))
	}
	return job, indexText(r, either)
}

// indexText is the text of ascending indexes. Some have a part that cannot be read.
func indexText(r *rand.Rand, indexes []int) string {
	var parts []string
	for i := 0; i < len(indexes); i++ {
		first := i
		for i+1 < len(indexes) && indexes[i+1] == indexes[i]+1 {
			i++
		}
		part := strconv.Itoa(indexes[first])
		if i > first {
			part += "-" + strconv.Itoa(indexes[i])
		}
		parts = append(parts, part)
	}
	if r.IntN(10) == 0 {
		parts = append(parts, []string{"x", "3-", "5-2", "99999999999"}[r.IntN(4)])
	}
	return strings.Join(parts, ",")
}

func BenchmarkReclaimablePods(b *testing.B) {
	job := &Job{Spec: batchv1.JobSpec{Parallelism: new(int32(8)), Completions: new(int32(20)), CompletionMode: new(batchv1.IndexedCompletion)}}
	job.Status = batchv1.JobStatus{Active: 6, Succeeded: 14, CompletedIndexes: "0-7,9-14"}
	measure(b, func() error { _, err := job.ReclaimablePods(b.Context(), nil); return err })
}

func BenchmarkMirroredStatus(b *testing.B) {
	local := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(8)), Completions: new(int32(20))}}
	remote := &batchv1.JobStatus{Active: 6, Ready: new(int32(5)), Succeeded: 3}
	measure(b, func() error { _, err := checkStatuses(b.Context(), local, remote, remote); return err })
}
