package jobpolicyv1grpc

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
)

// lookupPeriod is the shortest time between two lookups of a name. In that time, gRPC's
// resolver can repeat a failed lookup once.
const lookupPeriod = 2 * time.Second

// WithLookups looks the name in a dns:/// target up again every two seconds while connections
// fail or DNS has no address. Dial uses it. Without it, gRPC looks the name up once in 30 s,
// and after failures only every two minutes.
func WithLookups() grpc.DialOption { return grpc.WithResolvers(lookups{resolver.Get("dns")}) }

// lookups builds resolvers that look a name up again when the connection asks for it or the
// last lookup found nothing, but not before lookupPeriod is over. gRPC's own resolver of DNS
// names waits 30 s after a success, and up to two minutes after failures. That is too long
// here: when the engine's pods are replaced, all its addresses change, and DNS may say so
// only a moment after the old connections have ended.
type lookups struct{ resolver.Builder }

// Build implements resolver.Builder.
func (b lookups) Build(target resolver.Target, conn resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	l := &lookup{ClientConn: conn, wanted: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{})}
	build := func() (resolver.Resolver, error) { return b.Builder.Build(target, l, opts) }
	first, err := build()
	if err != nil {
		return nil, err
	}
	go l.run(first, build)
	return l, nil
}

// A lookup repeats the lookup of one name, each time with a new resolver. It is the
// resolvers' connection, too: it passes on what they find.
type lookup struct {
	resolver.ClientConn
	wanted          chan struct{} // holds one value if another lookup is wanted
	closing, closed chan struct{}
}

// run waits until another lookup is wanted, and replaces the resolver, which begins with a
// lookup.
func (l *lookup) run(current resolver.Resolver, build func() (resolver.Resolver, error)) {
	defer close(l.closed)
	for {
		pause := time.NewTimer(lookupPeriod)
		select {
		case <-l.closing:
			pause.Stop()
			current.Close()
			return
		case <-pause.C:
		}
		select {
		case <-l.closing:
			current.Close()
			return
		case <-l.wanted:
		}
		next, err := build()
		if err != nil { // Not for a target that could be built before.
			l.want()
			continue
		}
		current.Close()
		current = next
	}
}

func (l *lookup) want() {
	select {
	case l.wanted <- struct{}{}:
	default:
	}
}

// UpdateState implements resolver.ClientConn. An error says that the state is of no use: it
// has no address.
func (l *lookup) UpdateState(s resolver.State) error {
	err := l.ClientConn.UpdateState(s)
	if err != nil {
		l.want()
	}
	return err
}

// ReportError implements resolver.ClientConn.
func (l *lookup) ReportError(err error) {
	l.ClientConn.ReportError(err)
	l.want()
}

// ResolveNow implements resolver.Resolver. gRPC calls it when a connection ends, and after
// each failed try to connect.
func (l *lookup) ResolveNow(resolver.ResolveNowOptions) { l.want() }

// Close implements resolver.Resolver.
func (l *lookup) Close() {
	close(l.closing)
	<-l.closed
}
