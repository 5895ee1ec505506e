package cronjob

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/cache"
)

// A finalizer keeps a Job that was deleted, and a read shows the Job before the watch does.
func TestADeletedJobThatWasReadIsShownAsDeleting(t *testing.T) {
	version := func(version string) *batchv1.Job {
		job := testJob(7, "cron-1", testUID(1))
		job.ResourceVersion = version
		return job
	}
	store := batchinformers.NewJobInformer(newServer(), metav1.NamespaceAll, 0, cache.Indexers{ownerIndex: indexByOwner})
	if err := store.GetIndexer().Add(version("5")); err != nil {
		t.Fatal(err)
	}
	r := newRuns()
	r.deleted(testUID(7))
	if jobs := r.list(ownerKey(namespace, testUID(1)), store); len(jobs) > 0 {
		t.Errorf("after the deletion: %v, want no Job", jobs)
	}
	read, now := version("6"), metav1.NewTime(created)
	read.DeletionTimestamp = &now
	r.add(read)
	if jobs := r.list(ownerKey(namespace, testUID(1)), store); len(jobs) != 1 || jobs[0].DeletionTimestamp == nil {
		t.Errorf("after a read: %v, want the Job that is being deleted", jobs)
	}
	if err := store.GetIndexer().Add(version("7")); err != nil {
		t.Fatal(err)
	}
	if jobs := r.list(ownerKey(namespace, testUID(1)), store); len(jobs) != 1 || jobs[0].ResourceVersion != "7" {
		t.Errorf("after the watch: %v, want version 7 alone", jobs)
	}
}
