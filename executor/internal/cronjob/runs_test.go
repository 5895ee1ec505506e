package cronjob

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/cache"
)

func TestARunWhoseOwnerReferenceHasARemovedVersionIsTheCronJobs(t *testing.T) {
	job := testJob(7, "manual", testUID(1))
	job.OwnerReferences[0].APIVersion = "batch/v1beta1"
	d := &script{}
	start(t, newServer(testCron(), job), d)
	if jobs := d.Await(t, 1).GetJobs(); len(jobs) != 1 || jobs[0].GetName() != "manual" {
		t.Errorf("the question has the Jobs %v, want manual", jobs)
	}
}

// kubernetes/kubernetes#120181: what has the CronJob's name and is not the CronJob, such as an earlier one or an
// object of another kind, has Jobs of its own, running and finished.
func TestJobsOfOthersWithTheCronJobsNameAreNoRuns(t *testing.T) {
	var objects []runtime.Object
	for n, owner := range []metav1.OwnerReference{
		{APIVersion: "batch/v1", Kind: "CronJob", Name: "cron", UID: testUID(2)},
		{APIVersion: "example.com/v1", Kind: "CronJob", Name: "cron", UID: testUID(1)},
		{APIVersion: "example.com/v1", Kind: "Widget", Name: "cron", UID: testUID(3)},
	} {
		running, ended := testJob(10+n, fmt.Sprint("running-", n), ""), testJob(20+n, fmt.Sprint("ended-", n), "")
		owner.Controller = running.OwnerReferences[0].Controller
		running.OwnerReferences, ended.OwnerReferences = []metav1.OwnerReference{owner}, []metav1.OwnerReference{owner}
		ended.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		objects = append(objects, running, ended)
	}
	d := &script{}
	start(t, newServer(append(objects, testCron())...), d)
	if jobs := d.Await(t, 1).GetJobs(); len(jobs) > 0 {
		t.Errorf("the question has the Jobs %v, want none", jobs)
	}
}

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

// A Job is created and deleted before the watch has shown either. It does not come back when the
// watch shows the creation.
func TestAJobThatIsDeletedBeforeItIsShownDoesNotComeBack(t *testing.T) {
	job := testJob(7, "cron-1", testUID(1))
	job.ResourceVersion = "5"
	store := &atVersion{SharedIndexInformer: batchinformers.NewJobInformer(newServer(), metav1.NamespaceAll, 0, cache.Indexers{ownerIndex: indexByOwner}), version: "4"}
	r := newRuns()
	r.add(job)
	r.deleted(job.UID)
	none := func(when string) {
		t.Helper()
		if jobs := r.list(ownerKey(namespace, testUID(1)), store); len(jobs) > 0 {
			t.Errorf("%s: %v, want no Job", when, jobs)
		}
	}
	none("before the watch has shown the Job")
	store.version = "5"
	if err := store.GetIndexer().Add(job); err != nil {
		t.Fatal(err)
	}
	none("after the creation")
	store.version = "6"
	if err := store.GetIndexer().Delete(job); err != nil {
		t.Fatal(err)
	}
	none("after the deletion")
	if len(r.removed) > 0 {
		t.Error("the deletion is remembered for ever")
	}
}

// atVersion is an informer whose store has a version.
type atVersion struct {
	cache.SharedIndexInformer
	version string
}

func (a *atVersion) GetStore() cache.Store {
	return versionedStore{a.SharedIndexInformer.GetStore(), a.version}
}

type versionedStore struct {
	cache.Store
	version string
}

func (v versionedStore) LastStoreSyncResourceVersion() string { return v.version }
