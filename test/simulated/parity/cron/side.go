package cron

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/test/simulated/parity/virtual"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

const (
	namespace = "case"
	byShadow  = "shadow"
)

// A player is one implementation, and how it plays.
type player struct {
	builtin bool
	late    virtual.Latenesses
	// seed decides how long messages take.
	seed uint64
	// shadow takes the reports of our controllers, which run in shadow mode beside it. nil: they
	// do not run.
	shadow *shadow.Report
}

// A side is an API server in memory with one pair of controllers, in a bubble, and
// what was seen on it.
type side struct {
	player
	client  kubernetes.Interface
	plane   *virtual.Plane
	engine  *virtual.Engine
	program virtual.Program
	process *virtual.Process
	beside  *virtual.Process // The shadow; nil if there is none.

	mu     sync.Mutex
	cron   *batchv1.CronJob
	runs   map[string]*batchv1.Job
	events map[string]*corev1.Event
}

// raise builds a side. It is called in the bubble, as is everything else.
func (p player) raise(ctx context.Context) (*side, error) {
	s := &side{player: p, engine: &virtual.Engine{}, runs: map[string]*batchv1.Job{}, events: map[string]*corev1.Event{}}
	s.plane = virtual.NewPlane(p.seed, s.observe)
	s.program = virtual.BuiltinCronJobs
	if !p.builtin {
		s.program = virtual.OurCronJobs(s.engine, slog.New(slog.DiscardHandler))
	}
	var err error
	if s.client, err = kubernetes.NewForConfig(virtual.Config(s.plane.Server.Transport("others"))); err != nil {
		return nil, err
	}
	_, err = s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	return s, err
}

// start starts the controllers, as they are after a restart.
func (s *side) start() {
	s.process = s.plane.Start("cronjob-controller", s.program, s.late)
	if s.shadow != nil {
		s.beside = s.plane.Start(byShadow, virtual.ShadowCronJobs(s.engine, s.shadow, slog.New(slog.DiscardHandler)), nil)
	}
}

// sleep ends them.
func (s *side) sleep() {
	s.process.Kill()
	if s.beside != nil {
		s.beside.Kill()
	}
}

func (s *side) observe(w apiserver.Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.By == byShadow {
		s.plane.Note("the shadow has written " + w.Key.String())
	}
	object, gone := w.New, w.New == nil
	if gone {
		object = w.Old
	}
	switch o := object.(type) {
	case *batchv1.CronJob:
		s.cron = o
		if gone {
			s.cron = nil
		}
	case *batchv1.Job:
		put(s.runs, o, o, gone)
	case *corev1.Event:
		put(s.events, o, o, gone)
	}
}

func put[T any](in map[string]T, m metav1.Object, object T, gone bool) {
	if gone {
		delete(in, m.GetName())
		return
	}
	in[m.GetName()] = object
}

// runsThat are the CronJob's Jobs of a kind, oldest name first.
func (s *side) runsThat(which func(*batchv1.Job) bool) []*batchv1.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*batchv1.Job
	for _, job := range s.runs {
		if metav1.GetControllerOf(job) != nil && which(job) {
			out = append(out, job)
		}
	}
	slices.SortFunc(out, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return out
}
