package api

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

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
			client := fake.NewClientset()
			if tc.stored != nil {
				client = fake.NewClientset(tc.stored)
			}
			refuse := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.refusal }
			client.PrependReactor("update", "cronjobs", refuse)
			client.PrependReactor("patch", "cronjobs", refuse)
			c := &Client{Kubernetes: client}
			updated, err := c.UpdateCronJobStatus(t.Context(), cron("1", "5"))
			check(t, "status", updated, err, tc.want, tc.wantVersion)
			edited, err := c.EditCronJob(t.Context(), cron("1", "5"), CronJobEdit{Suspend: true})
			check(t, "edit", edited, err, tc.want, tc.wantVersion)
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
