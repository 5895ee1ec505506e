package cron

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	upstreamcronjob "k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	clocktesting "k8s.io/utils/clock/testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/executor/cronjobs"
	"jobpolicy.dev/executor/expiry"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A virtualClock is the time that both sides are told.
type virtualClock struct{ at atomic.Pointer[time.Time] }

func (c *virtualClock) Now() time.Time { return *c.at.Load() }

func (c *virtualClock) Set(t time.Time) { c.at.Store(&t) }

// A side is one API server and what was seen on it.
type side struct {
	name   string
	client kubernetes.Interface
	jobs   cache.SharedIndexInformer

	mu      sync.Mutex
	changed time.Time
	crons   map[string]*batchv1.CronJob         // by namespace
	runs    map[string]map[string]*batchv1.Job  // by namespace and name
	events  map[string]map[string]*corev1.Event // by namespace and name
}

func newSide(name string, plane *cluster.Cluster) (*side, error) {
	cfg := plane.RESTConfig()
	cfg.QPS, cfg.Burst = 2000, 2000
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &side{
		name: name, client: client,
		crons: map[string]*batchv1.CronJob{}, runs: map[string]map[string]*batchv1.Job{}, events: map[string]map[string]*corev1.Event{},
	}, nil
}

// runBuiltin starts Kubernetes' own controllers. They keep their clocks in
// unexported fields.
func (s *side) runBuiltin(ctx context.Context, clock *virtualClock, step *clocktesting.FakeClock) error {
	factory := informers.NewSharedInformerFactory(s.client, 0)
	s.jobs = factory.Batch().V1().Jobs().Informer()
	crons, err := upstreamcronjob.NewControllerV2(ctx, factory.Batch().V1().Jobs(), factory.Batch().V1().CronJobs(), s.client)
	if err != nil {
		return err
	}
	set(crons, "now", clock.Now)
	ttl := ttlafterfinished.New(ctx, factory.Batch().V1().Jobs(), s.client)
	set(ttl, "clock", step)
	factory.Start(ctx.Done())
	go crons.Run(ctx, 8)
	go ttl.Run(ctx, 8)
	return nil
}

// set sets an unexported field.
func set(object any, name string, value any) {
	field := reflect.ValueOf(object).Elem().FieldByName(name)
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}

// runOurs starts this project's.
func (s *side) runOurs(ctx context.Context, clock *virtualClock) error {
	factory := informers.NewSharedInformerFactory(s.client, 0)
	s.jobs = factory.Batch().V1().Jobs().Informer()
	crons, err := cronjobs.New(cronjobs.Config{
		Client: s.client, Decider: direct{}, Jobs: s.jobs, ManagedBy: "jobpolicy.dev/executor", ReplaceBuiltin: true, Workers: 8, Now: clock.Now,
		APIBackoff: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	ttl, err := expiry.New(expiry.Config{
		Client: s.client, Decider: direct{}, Jobs: s.jobs, ManagedBy: "jobpolicy.dev/executor", ReplaceBuiltin: true, Workers: 8, Now: clock.Now,
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	go func() { _ = crons.Run(ctx) }() // returns nil
	go func() { _ = ttl.Run(ctx) }()   // returns nil
	return nil
}

// direct asks the engine in this process.
type direct struct{}

func (direct) DecideCronJob(_ context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return cronjob.Decide(req)
}

func (direct) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return engine.DecideJob(req)
}

// watch follows CronJobs, Jobs and events until ctx ends.
func (s *side) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(s.client, 0)
	for _, informer := range []cache.SharedIndexInformer{
		factory.Batch().V1().CronJobs().Informer(), factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Events().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.see(obj, false) },
			UpdateFunc: func(_, obj any) { s.see(obj, false) },
			DeleteFunc: func(obj any) {
				if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = last.Obj
				}
				s.see(obj, true)
			},
		})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("%s: no view of %s", s.name, kind)
		}
	}
	return nil
}

func (s *side) see(obj any, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := obj.(type) {
	case *batchv1.CronJob:
		if before := s.crons[o.Namespace]; before != nil && before.UID == o.UID && before.Generation == o.Generation && sameStatus(before, o) && !gone {
			s.crons[o.Namespace] = o // A poke.
			return
		}
		s.crons[o.Namespace] = o
		if gone {
			delete(s.crons, o.Namespace)
		}
	case *batchv1.Job:
		put(s.runs, o, o, gone)
	case *corev1.Event:
		put(s.events, o, o, gone)
	}
	s.changed = time.Now()
}

func put[T any](in map[string]map[string]T, m metav1.Object, object T, gone bool) {
	if in[m.GetNamespace()] == nil {
		in[m.GetNamespace()] = map[string]T{}
	}
	if gone {
		delete(in[m.GetNamespace()], m.GetName())
		return
	}
	in[m.GetNamespace()][m.GetName()] = object
}

// quietFor is how long nothing has happened.
func (s *side) quietFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.changed)
}
