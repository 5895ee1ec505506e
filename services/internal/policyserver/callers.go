package policyserver

import (
	"errors"
	"slices"
	"sync"
)

// Labels of callers that have none of their own in metrics.
const (
	// unnamed are all callers that were not in the list of authorized callers when they
	// connected. They count as one caller. They may call only the health service, unless they
	// have been added to the list since.
	unnamed = "unnamed"
	// otherCallers are the callers beyond the first maxLabels. They share this label, but
	// each has a share of its own.
	otherCallers = "other"
)

// maxLabels is how many callers get a label of their own in metrics. Without a list of
// authorized callers, everybody who may connect would add one.
const maxLabels = 100

// callers are the callers that are connected, or whose requests are still handled.
type callers struct {
	pools *pools
	// perCaller is how many connections one caller may have, total how many all may have.
	perCaller, total int

	mu     sync.Mutex
	open   int
	by     map[string]*caller // by identity
	labels map[string]bool    // all labels given out so far, at most maxLabels
}

func newCallers(p *pools, perCaller, total int) *callers {
	return &callers{pools: p, perCaller: perCaller, total: total, by: map[string]*caller{}, labels: map[string]bool{}}
}

// Why a connection is not let in.
var (
	errTooManyConnections = errors.New("the caller has as many connections as it may have")
	errFull               = errors.New("all callers together have as many connections as they may have")
)

// connect admits a connection of the identity, until disconnect. If the total is reached,
// it replaces the oldest connection of the caller that has most connections, unless the
// new one's caller would then have more than that one. The caller of connect must close
// the replaced connection.
func (cs *callers) connect(conn *connection, identity string) (replaced *connection, err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.by[identity]
	if c == nil {
		c = newCaller(identity, cs.label(identity), cs.pools)
	}
	if len(c.connections) >= cs.perCaller {
		return nil, errTooManyConnections
	}
	if cs.open >= cs.total {
		most := cs.busiest()
		if len(most.connections) < len(c.connections)+2 {
			return nil, errFull
		}
		replaced = most.connections[0]
		cs.remove(replaced)
	}
	conn.caller = c
	c.connections = append(c.connections, conn)
	cs.by[identity] = c
	cs.open++
	return replaced, nil
}

// busiest is a caller with the most connections. At least one caller must be connected.
func (cs *callers) busiest() *caller {
	most := &caller{}
	for _, c := range cs.by {
		if len(c.connections) > len(most.connections) {
			most = c
		}
	}
	return most
}

// label is the name of a caller in metrics.
func (cs *callers) label(identity string) string {
	label := shown(identity)
	if cs.labels[label] {
		return label
	}
	if len(cs.labels) >= maxLabels {
		return otherCallers
	}
	cs.labels[label] = true
	return label
}

func (cs *callers) disconnect(conn *connection) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.remove(conn)
}

// remove forgets a connection. It does nothing if the connection is forgotten already.
func (cs *callers) remove(conn *connection) {
	c := conn.caller
	i := slices.Index(c.connections, conn)
	if i < 0 {
		return
	}
	c.connections = slices.Delete(c.connections, i, i+1)
	cs.open--
	cs.forgetIdle(c)
}

// begin notes that a request of the caller is handled, until end. A decision goes on when
// its connection is closed, so the caller is kept meanwhile: a new connection gets no
// second shares. begin returns false if the caller is forgotten already.
func (cs *callers) begin(c *caller) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.by[c.identity] != c {
		return false
	}
	c.handled++
	return true
}

func (cs *callers) end(c *caller) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.handled--
	cs.forgetIdle(c)
}

// forgetIdle forgets a caller that has no connection, and of which no request is handled.
func (cs *callers) forgetIdle(c *caller) {
	if len(c.connections) == 0 && c.handled == 0 {
		delete(cs.by, c.identity)
	}
}
