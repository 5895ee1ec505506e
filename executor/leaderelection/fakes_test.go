package leaderelection

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"jobpolicy.dev/executor/internal/fakes"
)

// leases is an API server that has one Lease.
type leases struct {
	typed.LeaseInterface

	mu      sync.Mutex
	stored  *coordinationv1.Lease
	version int
	away    bool         // refuses all
	down    string       // refuses the writes of this replica
	onWrite func()       // called before a write takes effect
	latency atomic.Int64 // of the answer to a write, in nanoseconds
}

func (l *leases) Leases(string) typed.LeaseInterface { return l }

func (l *leases) setAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

// setDown ends what the replica sends.
func (l *leases) setDown(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = identity
}

// remove deletes the Lease.
func (l *leases) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored = nil
}

func (l *leases) lease() *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored.DeepCopy()
}

func (l *leases) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away:
		return nil, errors.New("the API server is away")
	case l.stored == nil:
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	return l.stored.DeepCopy(), nil
}

func (l *leases) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.write(lease, "")
}

func (l *leases) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.write(lease, lease.ResourceVersion)
}

func (l *leases) write(lease *coordinationv1.Lease, version string) (*coordinationv1.Lease, error) {
	if l.onWrite != nil {
		l.onWrite()
	}
	defer func() { time.Sleep(time.Duration(l.latency.Load())) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away || (l.down != "" && l.down == *lease.Spec.HolderIdentity):
		return nil, errors.New("the API server is away")
	case l.stored == nil && version != "":
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), lease.Name)
	case l.stored != nil && version == "":
		return nil, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), lease.Name)
	case l.stored != nil && l.stored.ResourceVersion != version:
		return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, errors.New("it has changed"))
	}
	l.version++
	l.stored = lease.DeepCopy()
	l.stored.ResourceVersion = strconv.Itoa(l.version)
	return l.stored.DeepCopy(), nil
}

// take makes somebody else the holder.
func (l *leases) take(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.stored = l.stored.DeepCopy()
	l.stored.ResourceVersion = strconv.Itoa(l.version)
	l.stored.Spec.HolderIdentity = &holder
}

func (l *leases) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored == nil || l.stored.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.stored.Spec.HolderIdentity
}

// config has kube-controller-manager's durations.
func config(client typed.LeasesGetter, identity string) Config {
	return Config{
		Client: client, Namespace: "kube-system", Name: "jobpolicy-executor", Identity: identity,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// replica is an Election that runs. It leads until it is told to end.
type replica struct {
	*Election
	ask     func()        // as SIGTERM would
	began   chan struct{} // closed when it leads
	asked   chan struct{} // closed when its leading context is done
	end     chan error    // what leading is to return
	outcome chan error    // what Run returned
}

func build(t *testing.T, cfg Config) *Election {
	t.Helper()
	election, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return election
}

// startLeader starts a replica that leads, with a clock that can be set.
func startLeader(t *testing.T) (*leases, *fakes.Clock, *replica) {
	t.Helper()
	api, clock := &leases{}, &fakes.Clock{}
	cfg := config(api, "first")
	cfg.Now = clock.Now
	r := start(t, cfg)
	<-r.began
	return api, clock, r
}

func start(t *testing.T, cfg Config) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{
		Election: build(t, cfg), ask: cancel,
		began: make(chan struct{}), asked: make(chan struct{}), end: make(chan error, 1), outcome: make(chan error, 1),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.outcome <- r.Run(ctx, func(lease context.Context) error {
			close(r.began)
			<-lease.Done()
			close(r.asked)
			return <-r.end
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case r.end <- nil:
		default:
		}
		<-done
	})
	return r
}

func (r *replica) leads() bool {
	select {
	case <-r.began:
		return true
	default:
		return false
	}
}
