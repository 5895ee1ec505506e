package policyserver

import (
	"errors"
	"slices"
	"sync"
)

// Names of callers that have none of their own in metrics.
const (
	// unnamed are all callers that the list of authorized callers does not name. They
	// are one caller: all that they may call is health.
	unnamed = "unnamed"
	// otherCallers are those beyond maxLabels. Each has a share of its own.
	otherCallers = "other"
)

// maxLabels bounds the names in metrics where no list names the callers.
const maxLabels = 100

// callers are those that are connected.
type callers struct {
	pools *pools
	// most connections of one caller, and of all together.
	perCaller, total int

	mu     sync.Mutex
	open   int
	by     map[string]*caller // by identity
	labels map[string]bool    // every one there ever was, up to maxLabels
}

func newCallers(p *pools, perCaller, total int) *callers {
	return &callers{pools: p, perCaller: perCaller, total: total, by: map[string]*caller{}, labels: map[string]bool{}}
}

// Why a connection is not let in.
var (
	errTooManyConnections = errors.New("the caller has as many connections as it may have")
	errFull               = errors.New("all callers together have as many connections as they may have")
)

// connect lets a connection of that identity in, until disconnect. When all callers
// together have as many connections as they may have, a caller takes the place of the oldest
// connection of the caller that has most, unless it would then have more itself.
// The connection in whose place it comes is returned, to be closed.
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

// busiest is a caller that has most connections. Some caller must be connected.
func (cs *callers) busiest() *caller {
	most := &caller{}
	for _, c := range cs.by {
		if len(c.connections) > len(most.connections) {
			most = c
		}
	}
	return most
}

// label is what a caller is called in metrics.
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

// remove forgets a connection; nothing, if it did so before.
func (cs *callers) remove(conn *connection) {
	c := conn.caller
	i := slices.Index(c.connections, conn)
	if i < 0 {
		return
	}
	c.connections = slices.Delete(c.connections, i, i+1)
	cs.open--
	if len(c.connections) == 0 {
		delete(cs.by, c.identity)
	}
}
