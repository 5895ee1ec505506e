package parity

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/test/simulated/parity/virtual"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// Names of the writers.
const (
	byController = "job-controller"
	byShadow     = "shadow"
	byOthers     = "others"
)

// A player is one implementation, and how to start it.
type player struct {
	builtin bool
	late    virtual.Latenesses
	// shadow starts our executor in shadow mode beside the controller. nil: it does not run.
	shadow func(*virtual.Engine) virtual.Program
	// seed decides how long messages take, when the node acts, and when controllers are
	// killed.
	seed uint64
	// pendingFrom is the number of the line, from 1, from which on the node starts no pods. 0: it starts all.
	pendingFrom int
}

// A stage is a side in a bubble: an API server in memory, one of the controllers, and a
// node.
type stage struct {
	*side
	player
	c       *Case
	plane   *virtual.Plane
	engine  *virtual.Engine
	program virtual.Program

	down  chance // when the controller is killed
	node  chance // when the node acts
	delay chance // how fast steps of one line follow each other

	process *virtual.Process
	holders int
	hold    bool
	pending bool // the node starts no pods

	running sync.WaitGroup
	ended   chan struct{}
}

// A chance draws times. Only one goroutine may use it.
type chance struct{ *rand.Rand }

func newChance(seed, what uint64) chance { return chance{rand.New(rand.NewPCG(seed, what))} }

// upTo waits a random time.
func (c chance) upTo(most time.Duration) { time.Sleep(time.Duration(c.Int64N(int64(most)))) }

const namespace = "case"

// eventsUnderway is about how many events a line of steps causes.
const eventsUnderway = 12

// raise builds the stage. Like everything else it is called in the bubble.
func (p player) raise(ctx context.Context, c *Case) (*stage, error) {
	st := &stage{
		side: &side{stirred: make(chan struct{}, 1), scene: newScene()}, player: p, c: c, engine: &virtual.Engine{}, ended: make(chan struct{}),
		down: newChance(p.seed, 1), node: newChance(p.seed, 2), delay: newChance(p.seed, 3),
	}
	st.outage = st
	for _, late := range p.late {
		st.slow += late.By + eventsUnderway*late.Apart
	}
	st.plane = virtual.NewPlane(p.seed, st.observe)
	st.server = st.plane.Server
	st.program = virtual.BuiltinJobs
	if !p.builtin {
		st.program = virtual.OurJobs(st.engine, slog.New(slog.DiscardHandler))
	}
	var err error
	if st.client, err = kubernetes.NewForConfig(virtual.Config(st.server.Transport(byOthers))); err != nil {
		return nil, err
	}
	_, err = st.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	st.start()
	if p.shadow != nil {
		st.plane.Start(byShadow, p.shadow(st.engine), nil)
	}
	st.running.Go(func() { st.live(ctx) })
	return st, nil
}

func (st *stage) observe(w apiserver.Write) {
	if w.By == byShadow {
		st.plane.Note("the executor in shadow mode has written " + w.Key.String())
	}
	switch {
	case w.Key.Namespace != namespace:
	case w.New == nil:
		st.see(w.Old, true)
	default:
		st.see(w.New, false)
	}
}

// live lets the node act on what it sees.
func (st *stage) live(ctx context.Context) {
	for {
		select {
		case <-st.ended:
			return
		case <-st.stirred:
		}
		st.node.upTo(40 * time.Millisecond)
		st.mu.Lock()
		hold, pending := st.hold, st.pending || st.c.Manual
		st.mu.Unlock()
		if err := st.kubelet(st.c).tend(ctx, pending, hold); err != nil {
			st.plane.Note("the node: " + err.Error())
		}
	}
}

// leave ends everything in the bubble.
func (st *stage) leave() {
	close(st.ended)
	st.plane.Stop()
	st.running.Wait()
}

func (st *stage) start() {
	st.process = st.plane.Start(byController, st.program, st.late)
}

// begin kills the controller, or makes the engine unavailable.
func (st *stage) begin(what string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.holders++
	switch {
	case what == "engine" && !st.builtin:
		st.engine.SetAway(true)
	case st.process != nil:
		st.process.Kill()
		st.process = nil
	}
}

// end starts what is down, unless another outage still lasts.
func (st *stage) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.holders--; st.holders > 0 {
		return
	}
	st.engine.SetAway(false)
	if st.process == nil {
		st.start()
	}
}

// disturb sometimes restarts the controller within the next seconds, and returns a
// function that waits until that is over.
func (st *stage) disturb() (await func()) {
	if !st.c.Restarts || st.down.IntN(2) == 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		what := []string{"", "engine"}[st.down.IntN(2)]
		st.down.upTo(3 * time.Second)
		st.begin(what)
		st.down.upTo(time.Second)
		st.end()
	}()
	return func() { <-done }
}
