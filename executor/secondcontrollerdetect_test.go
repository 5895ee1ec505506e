package executor

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/podcache"
)

const (
	ownManager   = "jobpolicy-executor"
	otherManager = "kube-controller-manager"
)

func newTestSecondController(t *testing.T, cfg secondControllerConfig) (*secondController, *record.FakeRecorder) {
	t.Helper()
	events := record.NewFakeRecorder(100)
	cfg.Recorder, cfg.Logger = events, slog.New(slog.DiscardHandler)
	d, err := newSecondController(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d, events
}

func wrote(manager, subresource, fields string, second int64) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
		Time: ptr.To(metav1.Unix(second, 0)), FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func seenJob(n int, entries ...metav1.ManagedFieldsEntry) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("job-", n), Namespace: "ns", UID: types.UID(fmt.Sprint(n)), ManagedFields: entries}}
}

const (
	countFields     = `{"f:status":{"f:active":{},"f:ready":{}}}`
	conditionFields = `{"f:status":{"f:conditions":{}}}`
	endFields       = `{"f:status":{"f:completionTime":{},"f:conditions":{}}}`
)

func TestStatusesOfAnotherWriter(t *testing.T) {
	cases := map[string]struct {
		old, now *batchv1.Job
		want     float64
	}{
		"our own":              {old: seenJob(1), now: seenJob(1, wrote(ownManager, "status", countFields, 1)), want: 0},
		"the first of another": {old: seenJob(1), now: seenJob(1, wrote(otherManager, "status", countFields, 1)), want: 1},
		"a further one": {
			old: seenJob(1, wrote(otherManager, "status", countFields, 1)), now: seenJob(1, wrote(otherManager, "status", countFields, 2)),
			want: 1,
		},
		"one of a third": {
			old:  seenJob(1, wrote(otherManager, "status", countFields, 1)),
			now:  seenJob(1, wrote(otherManager, "status", countFields, 1), wrote("third", "status", countFields, 2)),
			want: 1,
		},
		"one from before, and one of ours": {
			old:  seenJob(1, wrote(otherManager, "status", countFields, 1)),
			now:  seenJob(1, wrote(otherManager, "status", countFields, 1), wrote(ownManager, "status", countFields, 2)),
			want: 0,
		},
		"of a Job that a relist shows first": {now: seenJob(1, wrote(otherManager, "status", countFields, 1)), want: 1},
		"the end of the Job":                 {old: seenJob(1), now: seenJob(1, wrote(otherManager, "status", endFields, 1)), want: 1},
		"a condition that somebody adds":     {old: seenJob(1), now: seenJob(1, wrote(otherManager, "status", conditionFields, 1)), want: 0},
		"the Job's creation by another":      {now: seenJob(1, wrote("kubectl-create", "", countFields, 1)), want: 0},
		"an edit of the Job's specification": {old: seenJob(1), now: seenJob(1, wrote("kubectl-edit", "", `{"f:spec":{}}`, 1)), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := newTestSecondController(t, secondControllerConfig{FieldManager: ownManager})
			for _, j := range []*batchv1.Job{tc.old, tc.now} {
				if j != nil {
					d.Trim(j)
					d.Trim(j) // An informer may do it again.
				}
			}
			d.JobSeen(t.Context(), tc.old, tc.now)
			if got := testutil.ToFloat64(d.writes.WithLabelValues(wroteStatus)); got != tc.want {
				t.Errorf("%v writes of another controller, want %v", got, tc.want)
			}
		})
	}
}

func podSetBy(setBy string) *podcache.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "pod", Namespace: "ns", UID: "p",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job-1", UID: "1", Controller: ptr.To(true)}},
	}}
	if setBy != "" {
		p.ManagedFields = []metav1.ManagedFieldsEntry{wrote(setBy, "", `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{}}}}`, 1)}
	}
	return podcache.From(p)
}

func TestPodsOfAnotherMaker(t *testing.T) {
	for setBy, want := range map[string]float64{ownManager: 0, "": 0, otherManager: 1} {
		d, _ := newTestSecondController(t, secondControllerConfig{FieldManager: ownManager})
		d.PodSeen(t.Context(), seenJob(1), podSetBy(setBy))
		if got := testutil.ToFloat64(d.writes.WithLabelValues(tookPod)); got != want {
			t.Errorf("a pod made by %q: %v sightings, want %v", setBy, got, want)
		}
	}
}

// Without a name of its ownManager the executor cannot tell others, and says nothing.
func TestWithoutAFieldManagerNobodyIsSuspected(t *testing.T) {
	d, _ := newTestSecondController(t, secondControllerConfig{StandDown: true})
	now := seenJob(1, wrote(otherManager, "status", countFields, 1))
	d.Trim(now)
	d.JobSeen(t.Context(), seenJob(1), now)
	d.PodSeen(t.Context(), now, podSetBy(otherManager))
	if note := d.Note(); note != "none seen" || len(now.ManagedFields) > 0 {
		t.Errorf("note %q, managed fields %v; want none", note, now.ManagedFields)
	}
}

// That of shadow mode.
func TestANilDetectorLooksForNobody(t *testing.T) {
	var d *secondController
	now := seenJob(1, wrote(otherManager, "status", countFields, 1))
	d.JobSeen(t.Context(), nil, now)
	d.JobListed(now, time.Unix(1, 0))
	d.PodSeen(t.Context(), now, podSetBy(otherManager))
	d.Forget(now.UID)
	if wait, note := d.StandDown(now.UID), d.Note(); wait != 0 || note != "not looked for" {
		t.Errorf("Job left alone for %v, note %q; want no wait, and that nobody is looked for", wait, note)
	}
	if d.Trim(now); len(now.ManagedFields) > 0 {
		t.Errorf("managed fields %v are left, want none", now.ManagedFields)
	}
}

func TestOneEventForEachJobAndFewInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, events := newTestSecondController(t, secondControllerConfig{FieldManager: ownManager})
		for range 3 {
			d.PodSeen(t.Context(), seenJob(1), podSetBy(otherManager))
		}
		if n := len(events.Events); n != 1 {
			t.Fatalf("%d events about one Job, want 1", n)
		}
		want := "Warning SecondController kube-controller-manager works on this Job, too: it created or adopted pod pod of ns/job-1; both act on it, so pods may be created twice"
		if got := <-events.Events; got != want {
			t.Errorf("event %q, want %q", got, want)
		}
		for n := range 100 {
			d.PodSeen(t.Context(), seenJob(n+2), podSetBy(otherManager))
		}
		if n := len(events.Events); n != eventBurst-1 {
			t.Errorf("%d events about 100 Jobs at once, want %d", n, eventBurst-1)
		}
		for range eventBurst - 1 {
			<-events.Events
		}

		// A Job that the limit left out gets its event when the other controller touches it again.
		time.Sleep(eventPeriod)
		d.PodSeen(t.Context(), seenJob(2), podSetBy(otherManager)) // had its event
		d.PodSeen(t.Context(), seenJob(101), podSetBy(otherManager))
		if n := len(events.Events); n != 1 {
			t.Fatalf("%d events after %s, want one about the last of the 100 Jobs", n, eventPeriod)
		}
		if got, want := <-events.Events, "ns/job-101;"; !strings.Contains(got, want) {
			t.Errorf("event %q, want one about %s", got, want)
		}
	})
}

func TestStandsDownUntilItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := newTestSecondController(t, secondControllerConfig{FieldManager: ownManager, StandDown: true})
		d.PodSeen(t.Context(), seenJob(1), podSetBy(otherManager))
		time.Sleep(SecondControllerQuiet / 2)
		d.PodSeen(t.Context(), seenJob(2), podSetBy(otherManager))
		time.Sleep(SecondControllerQuiet * 3 / 4)
		// Job 1 was not touched for long, but another Job was: the other is still there.
		for uid, want := range map[types.UID]time.Duration{"1": SecondControllerQuiet / 4, "2": SecondControllerQuiet / 4, "3": 0} {
			if got := d.StandDown(uid); got != want {
				t.Errorf("Job %s: left alone for %v more, want %v", uid, got, want)
			}
		}
		if got := testutil.ToFloat64(d.stoodDown.WithLabelValues()); got != 2 {
			t.Errorf("%v Jobs stood down, want 2", got)
		}
		if note := d.Note(); !strings.HasPrefix(note, "WARNING: kube-controller-manager works on managed Jobs, too") {
			t.Errorf("note %q", note)
		}
		time.Sleep(SecondControllerQuiet / 2)
		if got := d.StandDown("1"); got != 0 {
			t.Errorf("the other is gone, and Job 1 is left alone for %v more", got)
		}
		if got := testutil.ToFloat64(d.stoodDown.WithLabelValues()); got != 0 {
			t.Errorf("%v Jobs stood down after the other is gone, want 0", got)
		}
		if note := d.Note(); !strings.HasPrefix(note, "none for 12m30s") {
			t.Errorf("note %q", note)
		}
	})
}

// A controller that was on a moment before may still be. It is noted, and counts as none.
func TestTheFirstListNamesWhoWroteAMomentBefore(t *testing.T) {
	now := time.Unix(1000, 0)
	cases := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"another, a moment before":    {[]metav1.ManagedFieldsEntry{wrote(otherManager, "status", countFields, 990)}, "none seen since the start; " + otherManager + " wrote the status of ns/job-1 less than a minute before: make sure that it is switched off"},
		"another, long before":        {[]metav1.ManagedFieldsEntry{wrote(otherManager, "status", countFields, 900)}, "none seen"},
		"our own":                     {[]metav1.ManagedFieldsEntry{wrote(ownManager, "status", countFields, 990)}, "none seen"},
		"another's condition":         {[]metav1.ManagedFieldsEntry{wrote(otherManager, "status", conditionFields, 990)}, "none seen"},
		"nobody has written a status": {nil, "none seen"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := newTestSecondController(t, secondControllerConfig{FieldManager: ownManager})
			listed := seenJob(1, tc.entries...)
			d.Trim(listed)
			d.JobListed(listed, now)
			if got := d.Note(); got != tc.want {
				t.Errorf("Note() = %q, want %q", got, tc.want)
			}
			if n := testutil.ToFloat64(d.writes.WithLabelValues(wroteStatus)); n != 0 {
				t.Errorf("%v writes of another controller were counted, want 0", n)
			}
		})
	}
}
