package faults

import (
	"context"
	"io"
	"net/http"
	"slices"
)

// watches are those of one resource.
type watches struct {
	// held is closed when events may flow; nil while nothing holds them.
	held chan struct{}
	cuts []*context.CancelFunc
	urls []string
}

// of returns the watches of a resource; p.mu must be held.
func (p *Proxy) of(resource string) *watches {
	w, ok := p.watches[resource]
	if !ok {
		w = &watches{}
		p.watches[resource] = w
	}
	return w
}

// HoldWatch holds back all events of a resource (pods, jobs), in the watches
// that are open and in those to come, until release is called.
func (p *Proxy) HoldWatch(resource string) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.of(resource)
	if w.held == nil {
		w.held = make(chan struct{})
	}
	held := w.held
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.held == held {
			close(held)
			w.held = nil
		}
	}
}

// CutWatches ends the open watches of a resource, or of all if it is empty, as
// a lost connection does. The executor has to watch anew.
func (p *Proxy) CutWatches(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, w := range p.watches {
		if !fits(resource, name) {
			continue
		}
		for _, cut := range w.cuts {
			(*cut)()
		}
	}
}

// WatchQueries returns the queries of the watches of a resource, in order.
func (p *Proxy) WatchQueries(resource string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.of(resource).urls)
}

func (p *Proxy) serveWatch(w http.ResponseWriter, r *http.Request, c Call) {
	if fault := p.faultFor(c); fault != nil {
		fault(&Exchange{Call: c, w: w, r: r, closed: p.closed, forward: func(w http.ResponseWriter) { p.openWatch(w, r, c) }})
		return
	}
	p.openWatch(w, r, c)
}

func (p *Proxy) openWatch(w http.ResponseWriter, r *http.Request, c Call) {
	ctx, cut := context.WithCancel(context.WithValue(r.Context(), resourceKey{}, c.Resource))
	defer cut()
	p.mu.Lock()
	own := p.of(c.Resource)
	own.cuts = append(own.cuts, &cut)
	own.urls = append(own.urls, c.Query)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		own.cuts = slices.DeleteFunc(own.cuts, func(have *context.CancelFunc) bool { return have == &cut })
	}()
	p.upstream.ServeHTTP(w, r.WithContext(ctx))
}

// resourceKey is the context key of the resource that a request watches.
type resourceKey struct{}

// gateWatch puts a gate into the answer to a watch.
func (p *Proxy) gateWatch(response *http.Response) error {
	ctx := response.Request.Context()
	if resource, ok := ctx.Value(resourceKey{}).(string); ok {
		response.Body = &gatedBody{ReadCloser: response.Body, ctx: ctx, held: func() chan struct{} { return p.holding(resource) }}
	}
	return nil
}

func (p *Proxy) holding(resource string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(resource).held
}

// A gatedBody passes on what it has read when nothing holds it.
type gatedBody struct {
	io.ReadCloser
	ctx  context.Context
	held func() chan struct{}
}

// Read implements io.Reader.
func (b *gatedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	for held := b.held(); held != nil; held = b.held() {
		select {
		case <-held:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	return n, err
}
