package cronjob

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// etlCrons are n CronJobs of a group that bears two runs at once.
func etlCrons(n int) (objects []runtime.Object) {
	for i := range n {
		objects = append(objects, testCron(func(c *batchv1.CronJob) {
			c.Name, c.UID = fmt.Sprintf("cron-%03d", i), testUID(1000+i)
			c.Annotations = map[string]string{wire.Policy: `{cronJob: {group: {name: etl, maxActiveRuns: 2}}}`}
		}))
	}
	return objects
}

// oneEach starts one run of each CronJob, as soon as its group has room.
func oneEach(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	wait := &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if len(req.GetJobs()) > 0 {
		return wait, nil
	}
	own, before := &jobpolicyv1.GroupClaim{CronJob: req.GetCronJob().GetName(), Since: timestamppb.New(created), From: timestamppb.New(created)}, 0
	for _, other := range req.GetGroup().GetClaims() {
		if options.CompareClaims(other, own) < 0 {
			before++
		}
	}
	until := deferredUntil(req)
	switch {
	case until.AsTime().After(req.GetNow().AsTime()):
		own.From, wait.RequeueTime = until, until
	case req.GetGroup().GetUndecided() == 0 && int(req.GetGroup().GetActiveRuns())+before < 2:
		d, _ := starting(req.GetCronJob().GetName() + "-1")(req)
		d.GroupClaim = own
		return d, nil
	}
	wait.GroupClaim = own
	return wait, nil
}

// runsOf returns the names of the runs in the order of their creation, and how many are active.
func runsOf(t *testing.T, s *server) (names []string, active int) {
	t.Helper()
	for _, write := range s.Writes() {
		if job, ok := write.(interface{ GetObject() runtime.Object }); ok && write.Matches("create", "jobs") {
			names = append(names, job.GetObject().(*batchv1.Job).Name)
		}
	}
	list, err := s.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if wire.FinishedCondition(&list.Items[i]) == nil {
			active++
		}
	}
	return names, active
}

// complete completes a run, as somebody else does.
func complete(t *testing.T, s *server, name string) {
	t.Helper()
	completeIn(t, s, namespace+"/"+name)
}

// run runs a Controller until stop is called.
func run(t *testing.T, s *server, d controller.Decider, change ...func(*Config)) (stop func()) {
	t.Helper()
	jobs := batchinformers.NewJobInformer(s, metav1.NamespaceAll, 0, cache.Indexers{})
	cfg := Config{Config: fakes.Config(s, d), Jobs: controller.OneInformer(jobs)}
	cfg.ManagedBy, cfg.ReplaceBuiltin, cfg.Workers = us, true, 8
	cfg.APIBackoff, cfg.MaxAPIBackoff = 10*time.Second, 10*time.Second
	began := time.Now()
	cfg.Now = func() time.Time { return created.Add(time.Since(began)) }
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { jobs.RunWithContext(ctx) })
	running.Go(func() { _ = c.Run(ctx) })
	return func() {
		cancel()
		running.Wait() // A decision may take its time.
		synctest.Wait()
	}
}

// Eight workers decide about eight CronJobs at the same minute: two runs start at once, and each that ends makes room for the next by
// name. The Controller is replaced by another one in the middle.
func TestAGroupNeverHasMoreActiveRunsThanItBears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(etlCrons(8)...)
		slow := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
			time.Sleep(time.Millisecond) // So all workers have the facts of the same time.
			return oneEach(req)
		}
		stop := run(t, s, &script{Otherwise: slow})
		for n := range 8 {
			time.Sleep(time.Second)
			names, active := runsOf(t, s)
			want := []string{}
			for i := range min(8, n+2) {
				want = append(want, fmt.Sprintf("cron-%03d-1", i))
			}
			if !slices.Equal(slices.Sorted(slices.Values(names)), want) || active != min(2, 8-n) {
				t.Errorf("after %d ended: created %v, want %v; active %d", n, names, want, active)
			}
			if n == 3 {
				stop()
				stop = run(t, s, &script{Otherwise: slow})
				time.Sleep(time.Second)
			}
			complete(t, s, want[n])
		}
		stop()
	})
}

// Nobody has a place in the line when all of eight CronJobs are asked for a run at once, and eight workers decide on the facts of the same
// time.
func TestDecisionsOfTheSameTimeStartNoMoreRunsThanAGroupBears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(etlCrons(8)...)
		stop := run(t, s, &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
			if req.GetSpec().GetRunNow() == "" {
				return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
			}
			time.Sleep(time.Millisecond)
			return oneEach(req)
		}})
		time.Sleep(time.Second)
		for _, object := range etlCrons(8) {
			cron := object.(*batchv1.CronJob)
			cron.Annotations[wire.RunNow] = "please"
			s.Stamp(cron)
			if err := s.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("cronjobs"), cron, namespace); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if names, active := runsOf(t, s); active != 2 {
			t.Errorf("created %v, active %d, want 2", names, active)
		}
		stop()
	})
}

// A creation that was not answered may have taken effect, so it counts until that is known. The run is not tried again, because
// it is too late by then.
func TestARunWhoseCreationWasNotAnsweredCountsInItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(etlCrons(3)...)
		s.Failures["create jobs"] = func(n int) error {
			if n == 1 {
				return apierrors.NewTimeoutError("request did not complete", 0)
			}
			return nil
		}
		var lost atomic.Value // Of the CronJob whose run was lost, and is too late now.
		d := &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
			if deferredUntil(req) != nil {
				lost.Store(req.GetCronJob().GetName())
				return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
			}
			if req.GetCronJob().GetName() == lost.Load() {
				return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
			}
			return oneEach(req)
		}}
		stop := run(t, s, d)
		time.Sleep(2 * time.Second)
		if names, active := runsOf(t, s); len(names) != 2 || active != 1 {
			t.Errorf("tried %v, active %d: want 2, of which one is not known", names, active)
		}
		time.Sleep(20 * time.Second)
		if names, active := runsOf(t, s); len(names) != 3 || active != 2 {
			t.Errorf("tried %v, active %d: want that the lost one makes room when it is known that it does not exist", names, active)
		}
		stop()
	})
}

// BenchmarkGroupFacts measures what a decision on a CronJob costs in a group of a thousand.
func BenchmarkGroupFacts(b *testing.B) {
	s := newServer()
	jobs := batchinformers.NewJobInformer(s, metav1.NamespaceAll, 0, cache.Indexers{})
	cfg := Config{Config: fakes.Config(s, &script{}), Jobs: controller.OneInformer(jobs)}
	cfg.ManagedBy, cfg.ReplaceBuiltin = us, true
	c, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	for _, object := range etlCrons(1000) {
		c.cronSeen(nil, object.(*batchv1.CronJob))
	}
	any, _ := c.known(testUID(1000))
	for b.Loop() {
		c.groupFacts(any, groupKey{namespace, "etl"})
	}
}
