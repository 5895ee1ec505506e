package world

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	clientrand "math/rand"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A world is a plan being played.
type world struct {
	plan    *plan
	tells   bool
	begun   time.Time
	server  *apiserver.Server
	network *network
	fleet   *fleet
	second  *second
	nodes   *kubelets
	judge   *judge
	journal journal

	// acting is held during a step, because actors act one after the other.
	acting sync.Mutex
	calm   atomic.Bool    // No more steps.
	done   map[string]int // Steps done, by verb.
	over   atomic.Bool

	// seen is told each write, under the server's lock; nil: nobody.
	seen func(apiserver.Write)

	lastVersion atomic.Uint64

	agendaMu sync.Mutex
	agenda   map[int64][]func() // By the instant, in nanoseconds.

	mu         sync.Mutex
	actors     map[string]*client
	collecting bool
	own        []breach // Broken rules that the world itself found.
	writes     uint64   // Of executors.
	freezing   *step    // The next executor to renew the lease is frozen.
	outcomes   map[types.UID]*batchv1.Job
	due        map[*step]bool // Steps with expires or ends that were due.
}

// An aftermath is the result of a world.
type aftermath struct {
	plan     *plan
	breaches []breach
	journal  *journal
	faults   map[faultKind]int
	reached  map[string]bool
	steps    map[string]int
	taken    stepCounts
	compared []string // The metrics that were compared.
	outcomes map[string]int
	jobs     []crossedJob
	writes   int
	took     time.Duration // Real time.
}

// play plays a plan in a bubble. client-go draws random watch durations and retry
// delays, so it gets the same seed.
func play(t *testing.T, p *plan, tells bool) *aftermath {
	began := time.Now()
	clientrand.Seed(int64(p.seed)) //lint:ignore SA1019 client-go takes the source that all share
	var e *aftermath
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p, tells)
		w.run()
		e = w.aftermath()
	})
	e.took = time.Since(began)
	return e
}

func newWorld(p *plan, tells bool) *world {
	time.Sleep(time.Until(p.begins))
	w := &world{plan: p, tells: tells, begun: time.Now(), actors: map[string]*client{}, agenda: map[int64][]func(){}, done: map[string]int{}, outcomes: map[types.UID]*batchv1.Job{}, due: map[*step]bool{}}
	w.journal.begun = w.begun
	w.judge = newJudge(judgeOptions{
		executors: isExecutor, second: isSecond, standDown: p.executor.standDown, noticing: p.executor.noticing, managed: w.managed, podjob: p.executor.podjob, zone: p.executor.zone, elected: p.executor.elected(), rivals: p.executor.together, maxUnseen: p.executor.maxUnseen, clusterRuns: p.executor.clusterRuns, metersEvery: p.readsEvery(), lag: p.lag(), calmLag: p.calmLag(), busy: p.executor.maxWrites > 0, keepsStart: p.executor.keepStartTime,
		fewRows:  p.executor.maxRows > 0 && p.executor.leastRows > 0,
		limited:  p.executor.maxUncounted > 0 || p.executor.maxRows > 0 || p.executor.leastRows > 0,
		lateJobs: slices.ContainsFunc(p.faults, func(f *fault) bool { return f.kind == watchLag && (f.resource == "" || f.resource == "jobs") }),
	})
	w.network = newNetwork(p, w.begun, w.note)
	w.network.telling, w.network.refused, w.network.disturbed = w.telling, w.judge.refused, w.judge.disturbed
	w.network.hindered, w.network.untold = w.judge.hindered, w.judge.untold
	w.network.unanswered, w.network.guarded = w.judge.unanswered, w.judge.guarded
	w.network.asked, w.network.garbled = w.judge.asked, w.judge.garbled
	w.network.readLease, w.network.quotaHinders = w.judge.readLease, w.judge.quotaHinders
	if !p.executor.upstream && !p.executor.podjob { // Their delays are others.
		w.network.podTried = w.judge.podTried
	}
	w.network.sending = func(r *request) {
		w.judge.sends(r.by, r.Method, r.resource, time.Now())
		if r.listsPods() {
			w.judge.lists(r.by, time.Now())
		}
		w.reached(r.n, true)
		w.expiring(r)
	}
	w.network.broken = w.broken
	w.network.runAway = func() { w.broken("run", "there is no end to what executors send") }
	w.nodes = newKubelets(w)
	w.fleet = &fleet{w: w}
	w.second = &second{w: w}
	options := apiserver.Options{Observe: w.observe}
	if p.executor.noticing {
		options.FieldManager = fieldManager
	}
	w.server = apiserver.New(options)
	if p.readsNodes() {
		w.nodes.createNode(nodeName)
	}
	return w
}

// managed reports whether the executors manage the Job.
func (w *world) managed(job *batchv1.Job) bool {
	if w.plan.executor.upstream {
		return job.Spec.ManagedBy == nil || *job.Spec.ManagedBy == batchv1.JobControllerName
	}
	if job.Spec.ManagedBy == nil || *job.Spec.ManagedBy == batchv1.JobControllerName {
		return w.plan.executor.replace
	}
	return *job.Spec.ManagedBy == executor.ManagedBy
}

func (w *world) telling() bool      { return w.tells }
func (w *world) note(who, t string) { w.journal.note(who, t) }

// broken records a rule that the world itself found broken.
func (w *world) broken(rule, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own = append(w.own, breach{at: time.Now(), rule: rule, text: text})
}

// run plays the plan from begin to end.
func (w *world) run() {
	w.actor("user").createNamespace(namespace)
	if slices.ContainsFunc(w.plan.jobs, func(j *jobPlan) bool { return j.namespace == hungNamespace }) {
		w.actor("user").createNamespace(hungNamespace)
	}
	if slices.ContainsFunc(w.plan.crons, func(c *cronPlan) bool { return c.namespace == neighbour }) {
		w.actor("user").createNamespace(neighbour)
	}
	if slices.ContainsFunc(w.plan.steps, func(s *step) bool { return strings.HasPrefix(s.verb, "forge") }) {
		w.actor("user").createNamespace(elsewhere)
	}
	for range w.plan.executor.replicas {
		if err := w.fleet.start(); err != nil {
			w.broken("run", err.Error())
			return
		}
	}
	w.readMetrics()
	w.playSteps()
	_ = w.second.switchOff(nil) // It may be off.
	w.network.end()
	w.setClocks(0)
	w.judge.faultsEnded(time.Now())
	w.rest()
	w.judge.judgeUnsaid(time.Now(), w.fleet.alive())
	w.over.Store(true)
	w.fleet.stop()
	w.second.ended.Wait()
	time.Sleep(drainTime)
}

// rest lets the world come to rest, and checks it from time to time, to find anything that
// stands still for a while.
func (w *world) rest() {
	for end := time.Now().Add(w.plan.settle); time.Now().Before(end); {
		time.Sleep(min(lookTime, time.Until(end)))
		w.judge.look(time.Now())
	}
}

// lookTime is the time between two checks at rest.
const lookTime = 5 * time.Minute

// drainTime is how long goroutines of stopped executors may take to end: an event
// recorder waits between tries.
const drainTime = 10 * time.Minute

// observe handles each write, under the server's lock.
func (w *world) observe(write apiserver.Write) {
	w.lastVersion.Store(write.ResourceVersion)
	w.journal.wrote(write)
	w.judge.wrote(write)
	if w.seen != nil {
		w.seen(write)
	}
	if w.over.Load() {
		return
	}
	switch write.Resource {
	case "leases":
		w.leaseWritten(write)
	case "pods":
		w.nodes.see(write)
	case "jobs":
		if job, ok := write.New.(*batchv1.Job); ok {
			w.mu.Lock()
			w.outcomes[job.UID] = job
			w.mu.Unlock()
			w.endWritten(write, job)
		} else if !w.plan.executor.replace {
			w.leave(write.UID)
		}
	}
	if leavesGarbage(write) {
		w.collectSoon(write)
	}
	if isExecutor(write.By) && write.Resource != "events" && write.Resource != "leases" {
		w.mu.Lock()
		w.writes++
		n := w.writes
		w.mu.Unlock()
		w.reached(n, false)
	}
}

// leavesGarbage reports whether the garbage collector may have something to do.
func leavesGarbage(write apiserver.Write) bool {
	if write.New == nil {
		return true
	}
	m, err := meta.Accessor(write.New)
	if err != nil {
		return false
	}
	return m.GetDeletionTimestamp() != nil || write.Old == nil && len(m.GetOwnerReferences()) > 0
}

// collectSoon runs the garbage collector a little later.
func (w *world) collectSoon(write apiserver.Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.collecting {
		return
	}
	w.collecting = true
	d := w.drawer(fmt.Sprint("gc", write.ResourceVersion))
	w.after(d.within(time.Millisecond, 3*time.Second), func() {
		w.mu.Lock()
		w.collecting = false
		w.mu.Unlock()
		for w.server.CollectGarbage() {
		}
	})
}

// drawer draws what a plan cannot contain, from the seed and from what the draw is about.
func (w *world) drawer(about string) *drawer {
	h := fnv.New64a()
	_, _ = h.Write([]byte(about)) // A hash takes everything.
	return &drawer{Rand: rand.New(rand.NewPCG(w.plan.seed, h.Sum64())), p: w.plan}
}

// after does something some time later, unless the world is over by then. What is due at the same instant happens in the
// order in which it was planned: of several timers, a bubble draws which one fires first.
func (w *world) after(d time.Duration, do func()) {
	at := time.Now().Add(d).UnixNano()
	w.agendaMu.Lock()
	defer w.agendaMu.Unlock()
	w.agenda[at] = append(w.agenda[at], do)
	if len(w.agenda[at]) == 1 {
		time.AfterFunc(d, func() { w.catchUp(at) })
	}
}

// catchUp does what is due at an instant.
func (w *world) catchUp(at int64) {
	w.agendaMu.Lock()
	due := w.agenda[at]
	delete(w.agenda, at)
	w.agendaMu.Unlock()
	for _, do := range due {
		if !w.over.Load() {
			do()
		}
	}
}

// actor is the client of an actor that is not an executor. Its requests never fail.
func (w *world) actor(by string) *client {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.actors[by]; c != nil {
		return c
	}
	c, err := newClient(w.server.Transport(by), clientOptions{})
	if err != nil {
		panic("the client's configuration is always the same: " + err.Error())
	}
	w.actors[by] = c
	return c
}

func (c *client) createNamespace(name string) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, _ = c.CoreV1().Namespaces().Create(context.Background(), ns, metav1.CreateOptions{}) // It may exist.
}

// aftermath is the result when all is over.
func (w *world) aftermath() *aftermath {
	e := &aftermath{
		plan: w.plan, journal: &w.journal, faults: w.network.happened, reached: w.network.reached, writes: len(w.journal.lines),
		steps: w.done, taken: w.judge.steps, compared: slices.Collect(maps.Keys(w.judge.compared)), outcomes: map[string]int{},
		breaches: w.own,
	}
	if !w.network.runaway() {
		e.breaches = append(e.breaches, w.judge.breaches()...)
	}
	for _, job := range w.outcomes {
		outcome := w.outcome(job)
		e.outcomes[outcome]++
		if features := w.plan.crossed(job); len(features) > 0 && w.managed(job) {
			e.jobs = append(e.jobs, crossedJob{features, outcome})
		}
	}
	return e
}
