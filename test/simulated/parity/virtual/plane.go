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

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A Program is the main function of a controller's process; it runs until ctx ends.
type Program func(ctx context.Context, cfg *rest.Config) error

// A Plane is one API server in memory with the controllers on it. It lives in one
// bubble; Stop it before the bubble ends.
type Plane struct {
	Server *apiserver.Server

	all sync.WaitGroup
	mu  sync.Mutex
	// up are the processes that run.
	up map[*Process]bool
	// wrong lists what happened and must not happen; refused are the statuses that the API
	// server refused because of their content.
	wrong, refused []string
	count, seed    uint64

	// written contains an element when the garbage collector may have work.
	written chan struct{}
	over    chan struct{}
}

// NewPlane makes a plane, with a garbage collector. The seed decides how long
// messages take. observe is called for each write, and must not call the server.
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

// collect removes objects some time after they have lost their owners.
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

// Start starts a program; by is the name of the writer of its writes.
func (p *Plane) Start(by string, program Program, late Latenesses) *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	ctx, end := context.WithCancel(context.Background())
	process := &Process{plane: p, link: newLink(p.Server.Transport(by), late, p.seed+p.count<<32, p.inspect), end: end}
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

// Kill ends a process as kill -9 does: from now on none of its requests arrives, and
// messages on their way are lost.
func (p *Process) Kill() {
	p.link.cut()
	p.end()
	p.plane.mu.Lock()
	defer p.plane.mu.Unlock()
	delete(p.plane.up, p)
}

// Stop kills all processes and waits until they have ended.
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

// Wrong lists what happened and must not happen.
func (p *Plane) Wrong() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

// Refused are the statuses that the API server refused because of their content.
func (p *Plane) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Note adds to Wrong.
func (p *Plane) Note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, what)
}

func (p *Plane) inspect(r *http.Request, answer string) {
	if path.Base(r.URL.Path) != "status" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, answer)
}
