package virtual

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/test/world/apiserver"
)

// A Program is what a controller's process runs, until ctx ends.
type Program func(ctx context.Context, cfg *rest.Config) error

// A Plane is one API server in memory with the controllers on it. It lives in one
// bubble; Stop it before the bubble ends.
type Plane struct {
	Server *apiserver.Server

	all sync.WaitGroup
	mu  sync.Mutex
	// up are the processes that run.
	up map[*Process]bool
	// wrong is what must not happen; refused are the statuses that the API server
	// refused because of what they say.
	wrong, refused []string
	count, seed    uint64

	// written has something in it when the garbage collector has something to look at.
	written chan struct{}
	over    chan struct{}
}

// NewPlane makes a plane, with a garbage collector. The seed decides how long
// messages take. observe is told what is written, and must not ask the server.
func NewPlane(seed uint64, observe func(apiserver.Write)) *Plane {
	p := &Plane{seed: seed, up: map[*Process]bool{}, written: make(chan struct{}, 1), over: make(chan struct{})}
	p.Server = apiserver.New(apiserver.Options{Observe: func(w apiserver.Write) {
		observe(w)
		if w.Resource == "events" {
			return
		}
		select {
		case p.written <- struct{}{}:
		default:
		}
	}})
	p.all.Go(p.collect)
	return p
}

// garbageAfter is how long the garbage collector takes at most.
const garbageAfter = 100 * time.Millisecond

// collect removes what has lost its owners, some time after it did.
func (p *Plane) collect() {
	random := rand.New(rand.NewPCG(p.seed, 0x6763))
	for {
		select {
		case <-p.over:
			return
		case <-p.written:
			time.Sleep(time.Duration(random.Int64N(int64(garbageAfter))))
			p.Server.CollectGarbage()
		}
	}
}

// A Process is a program that runs.
type Process struct {
	plane *Plane
	link  *link
	end   context.CancelFunc
}

// Start starts a program, whose writes are those of a name.
func (p *Plane) Start(by string, program Program, late Latenesses) *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	ctx, end := context.WithCancel(context.Background())
	process := &Process{plane: p, link: newLink(p.Server.Transport(by), late, p.seed+p.count<<32, p.hear), end: end}
	p.up[process] = true
	p.all.Go(func() {
		if err := program(ctx, Config(process.link)); err != nil {
			p.Note(fmt.Sprintf("%s ended: %v", by, err))
		}
	})
	return process
}

// Config is how a client reaches the API server: without limits of its own, and in
// protobuf.
func Config(transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host: "http://world", Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
}

// Kill ends a process as kill -9 does: from now on nothing of it gets through, and
// what was on its way is lost.
func (p *Process) Kill() {
	p.link.cut()
	p.end()
	p.plane.mu.Lock()
	defer p.plane.mu.Unlock()
	delete(p.plane.up, p)
}

// Stop kills what runs and waits until all of it has ended.
func (p *Plane) Stop() {
	close(p.over)
	p.mu.Lock()
	var up []*Process
	for process := range p.up {
		up = append(up, process)
	}
	p.mu.Unlock()
	for _, process := range up {
		process.Kill()
	}
	p.all.Wait()
}

// Wrong is what went wrong that must not.
func (p *Plane) Wrong() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

// Refused are the statuses that the API server refused because of what they say.
func (p *Plane) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Note adds to what went wrong.
func (p *Plane) Note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, what)
}

func (p *Plane) hear(r *http.Request, answer string) {
	if path.Base(r.URL.Path) != "status" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, answer)
}
