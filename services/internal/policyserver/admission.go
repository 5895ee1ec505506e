package policyserver

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
)

// A call is one call from its first header to its end.
type call struct {
	conn *connection
	// refused says why the call gets no answer; nil if it gets one.
	refused error
	// arrival cuts the call off if its message does not arrive in time.
	arrival *time.Timer
	// ended says that the transport has ended the call's context. trailed says that the
	// transport has taken the end of the answer.
	ended, trailed atomic.Bool
}

type callKey struct{}

// callFrom returns the call that admit has put into the context; nil if there is none.
func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

var errTooSlow = errors.New("the request did not arrive in time")

// An admission decides which calls are answered, before their messages are received.
type admission struct {
	authorizer *authorizer
	// receiveTimeout is how long a message may take to arrive.
	receiveTimeout time.Duration
}

// admit implements tap.ServerInHandle. It refuses nothing itself, because the
// transport would then forget to free the call's context: refused calls go on to
// their handlers, which end them at once, before a message arrives.
func (a *admission) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ctx, nil
	}
	conn, ok := p.AuthInfo.(*connection)
	if !ok {
		return ctx, nil
	}
	c := &call{conn: conn}
	ctx = context.WithValue(ctx, callKey{}, c)
	if c.refused = a.authorize(conn, info.FullMethodName); c.refused != nil {
		return ctx, nil
	}
	if err := conn.caller.calls.tryAcquireFair(1); err != nil {
		c.refused = conn.caller.noRoom(err, "open calls")
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.arrival = time.AfterFunc(a.receiveTimeout, func() { cancel(errTooSlow) })
	context.AfterFunc(ctx, c.end)
	return ctx, nil
}

// end frees the call's place among the open calls. The transport ends the context of
// every call.
func (c *call) end() {
	if c.ended.Swap(true) {
		return
	}
	c.conn.caller.calls.release(1)
	if c.arrival != nil {
		c.arrival.Stop()
	}
}

// arrived notes that the message has been received.
func (c *call) arrived() { c.arrival.Stop() }

// authorize lets everybody who may connect ask for the engine's health, because clients
// need it to balance their calls. For other methods it asks the authorizer.
func (a *admission) authorize(conn *connection, fullMethod string) error {
	if strings.HasPrefix(fullMethod, "/"+healthv1.Health_ServiceDesc.ServiceName+"/") {
		return nil
	}
	return a.authorizer.authorize(conn.ids, fullMethod)
}
