package api

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/wire"
)

// failingWrites is a Client that reads the stored CronJob, if there is one. Each write ends with the error.
func failingWrites(err error, stored *batchv1.CronJob) *Client {
	client := fake.NewClientset()
	if stored != nil {
		client = fake.NewClientset(stored)
	}
	fail := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	client.PrependReactor("update", "cronjobs", fail)
	client.PrependReactor("patch", "cronjobs", fail)
	return &Client{Kubernetes: client}
}

func TestARefusedWriteOfACronJobSaysWhatBecameOfIt(t *testing.T) {
	resource := schema.GroupResource{Group: "batch", Resource: "cronjobs"}
	conflict := apierrors.NewConflict(resource, "cron", errors.New("refused"))
	cron := func(uid types.UID, version string) *batchv1.CronJob {
		return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "cron", Namespace: "ns", UID: uid, ResourceVersion: version}}
	}
	cases := map[string]struct {
		refusal     error
		stored      *batchv1.CronJob
		want        error
		wantVersion string
	}{
		"it is gone":                       {refusal: apierrors.NewNotFound(resource, "cron"), want: ErrGone},
		"there is a newer version":         {refusal: conflict, stored: cron("1", "6"), want: ErrChanged, wantVersion: "6"},
		"a webhook refuses the newest one": {refusal: conflict, stored: cron("1", "5"), want: conflict},
		"it was made anew under the name":  {refusal: conflict, stored: cron("2", "7"), want: ErrGone},
		"it went meanwhile":                {refusal: conflict, want: ErrGone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := failingWrites(tc.refusal, tc.stored)
			updated, err := c.UpdateCronJobStatus(t.Context(), nil, cron("1", "5"))
			check(t, "status", updated, err, tc.want, tc.wantVersion)
			edited, err := c.EditCronJob(t.Context(), nil, cron("1", "5"), CronJobEdit{Suspend: true})
			check(t, "edit", edited, err, tc.want, tc.wantVersion)
		})
	}
}

// A write that got no answer has succeeded if the CronJob shows it in a newer version.
func TestAnUnansweredWriteOfACronJobIsLookedUp(t *testing.T) {
	lost := errors.New("connection reset by peer")
	const note = "jobpolicy.dev/note"
	cron := func(version string, change ...func(*batchv1.CronJob)) *batchv1.CronJob {
		c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{
			Name: "cron", Namespace: "ns", UID: "1", ResourceVersion: version, Annotations: map[string]string{"old": "x"},
		}}
		for _, f := range change {
			f(c)
		}
		return c
	}
	suspended := func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) }
	noted := func(c *batchv1.CronJob) { c.Annotations[note] = "text" }
	cleaned := func(c *batchv1.CronJob) { delete(c.Annotations, "old") }
	active := func(c *batchv1.CronJob) { c.Status.Active = []corev1.ObjectReference{{Name: "run"}} }
	cases := map[string]struct {
		stored       *batchv1.CronJob
		edit, status bool // succeeded
		published    bool // The status is written with the annotation.
	}{
		"both took effect":             {stored: cron("6", suspended, noted, cleaned, active), edit: true, status: true},
		"neither took effect":          {stored: cron("6")},
		"it has no newer version":      {stored: cron("5", suspended, noted, cleaned, active)},
		"the suspension is missing":    {stored: cron("6", noted, cleaned)},
		"an annotation is missing":     {stored: cron("6", suspended, cleaned)},
		"an annotation is there yet":   {stored: cron("6", suspended, noted)},
		"only the status took effect":  {stored: cron("6", active), status: true},
		"the published run is missing": {stored: cron("6", active), published: true},
		"it went meanwhile":            {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := failingWrites(lost, tc.stored)
			expect := func(write string, succeeded bool, got *batchv1.CronJob, err error) {
				t.Helper()
				if succeeded {
					check(t, write, got, err, nil, "5")
				} else {
					check(t, write, got, err, lost, "")
				}
			}
			edited, err := c.EditCronJob(t.Context(), nil, cron("5"), CronJobEdit{Suspend: true, Annotations: map[string]*string{note: new("text"), "old": nil}})
			expect("edit", tc.edit, edited, err)
			written := cron("5", active)
			if tc.published {
				written.Annotations[wire.NextScheduleTime] = "2026-01-01T00:00:00Z"
			}
			updated, err := c.UpdateCronJobStatus(t.Context(), nil, written)
			expect("status", tc.status, updated, err)
		})
	}
}

func check(t *testing.T, write string, cron *batchv1.CronJob, err, want error, wantVersion string) {
	t.Helper()
	version := ""
	if cron != nil {
		version = cron.ResourceVersion
	}
	if !errors.Is(err, want) || version != wantVersion {
		t.Errorf("%s: version %q, error %v; want version %q, error %v", write, version, err, wantVersion, want)
	}
}
