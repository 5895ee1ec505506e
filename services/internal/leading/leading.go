// Package leading runs something in one replica at a time: the one that holds a
// Kubernetes Lease.
package leading

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ErrLost is returned when the lease could not be renewed. Another replica may be
// leading by now, so the process must end at once.
var ErrLost = errors.New("leader lease lost")

// Options say whether and how to elect. Names and defaults of the flags are those
// of kube-controller-manager.
type Options struct {
	Enabled       bool
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
	Namespace     string
	Name          string
}

// AddFlags defines the flags; name is the default of the Lease's name.
func (o *Options) AddFlags(fs *pflag.FlagSet, name string) {
	fs.BoolVar(&o.Enabled, "leader-elect", true, "Elect a leader among replicas by a Lease, and act only while leading. Turn off only where there is one replica.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "Time that another replica waits after the last renewal before it takes over.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "Time that the leader tries to renew before it gives up and exits. Less than --leader-elect-lease-duration.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "Time between two tries to acquire or renew.")
	fs.StringVar(&o.Namespace, "leader-elect-resource-namespace", "kube-system", "`Namespace` of the Lease.")
	fs.StringVar(&o.Name, "leader-elect-resource-name", name, "`Name` of the Lease.")
}

// Validate checks that the times go together. Errors name flags.
func (o *Options) Validate() error {
	if !o.Enabled {
		return nil
	}
	var errs []error
	if o.LeaseDuration < time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration must be at least 1s, is %s", o.LeaseDuration))
	}
	if o.LeaseDuration <= o.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration (%s) must be longer than --leader-elect-renew-deadline (%s)", o.LeaseDuration, o.RenewDeadline))
	}
	if o.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period must be longer than 0s, is %s", o.RetryPeriod))
	}
	if float64(o.RenewDeadline) <= leaderelection.JitterFactor*float64(o.RetryPeriod) {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline (%s) must be longer than %g times --leader-elect-retry-period (%s)", o.RenewDeadline, leaderelection.JitterFactor, o.RetryPeriod))
	}
	if o.Namespace == "" || o.Name == "" {
		errs = append(errs, errors.New("--leader-elect-resource-namespace and --leader-elect-resource-name must not be empty"))
	}
	return errors.Join(errs...)
}

// An Election is one replica's part in an election.
type Election struct {
	opts   Options
	lock   resourcelock.Interface
	log    *slog.Logger
	leader atomic.Pointer[string]
}

// New returns an Election. The client should have a rate limit of its own, lest a
// busy replica lose its lease to its own work.
func New(o Options, client kubernetes.Interface, log *slog.Logger) (*Election, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	// Two processes of one host must not be taken for one another.
	identity := host + "_" + string(uuid.NewUUID())
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, o.Namespace, o.Name,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, o.Name, err)
	}
	return &Election{opts: o, lock: lock, log: log}, nil
}

// Standby reports whether another replica leads, and which.
func (e *Election) Standby() (leader string, standby bool) {
	current := e.leader.Load()
	if current == nil || *current == "" || *current == e.lock.Identity() {
		return "", false
	}
	return *current, true
}

// Metric says by its value whether this replica leads, under the name that
// Kubernetes components use.
func (e *Election) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Subsystem: "leader_election", Name: "master_status",
		Help:        "1 in the replica that leads, 0 in the others.",
		ConstLabels: prometheus.Labels{"name": e.opts.Name},
	}, func() float64 {
		if leader := e.leader.Load(); leader != nil && *leader == e.lock.Identity() {
			return 1
		}
		return 0
	})
}

// Run waits for the lease and calls lead, at most once. It returns
//   - what lead returned, after giving the lease up, so that the next replica
//     need not wait for it to expire;
//   - nil when ctx is done before the lease is acquired;
//   - ErrLost as soon as the lease is lost, without waiting for lead.
//
// The context of lead is done when ctx is, or when the lease is lost.
func (e *Election) Run(ctx context.Context, lead func(context.Context) error) error {
	// The lease is renewed until lead has returned: ctx only asks lead to end.
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	t := &term{ctx: ctx, stop: stop, lead: lead, outcome: make(chan error, 1)}
	elector, err := leaderelection.NewLeaderElector(e.config(t.run))
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	defer context.AfterFunc(ctx, t.withdraw)()
	elector.Run(holding)
	err = t.result()
	if !errors.Is(err, ErrLost) {
		e.release()
	}
	return err
}

// A term is the time that a replica leads; there is at most one.
type term struct {
	ctx     context.Context // of the caller of Election.Run
	stop    func()          // ends the election
	lead    func(context.Context) error
	outcome chan error // what lead returned
	elected atomic.Bool
	started atomic.Bool
}

// run leads. The context is done when the lease is lost. Either run sees that
// the caller's context is done, or withdraw sees that a leader was elected.
func (t *term) run(held context.Context) {
	t.elected.Store(true)
	if t.ctx.Err() != nil {
		t.stop()
		return
	}
	t.started.Store(true)
	leading, cancel := context.WithCancel(held)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	err := t.lead(leading)
	// Only the loss of the lease ends the context before stop does.
	if held.Err() != nil {
		err = ErrLost
	}
	t.outcome <- err
	t.stop()
}

// result is how the term ended, once the election has. If leading has not ended
// by then, it is because the lease was lost.
func (t *term) result() error {
	select {
	case err := <-t.outcome:
		return err
	default:
	}
	if t.started.Load() {
		return ErrLost
	}
	return nil
}

// withdraw ends the candidacy of a replica that does not lead.
func (t *term) withdraw() {
	if !t.elected.Load() {
		t.stop()
	}
}

func (e *Election) config(lead func(context.Context)) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Name:          e.opts.Name,
		Lock:          e.lock,
		LeaseDuration: e.opts.LeaseDuration,
		RenewDeadline: e.opts.RenewDeadline,
		RetryPeriod:   e.opts.RetryPeriod,
		// client-go's own release also runs when the lease is lost, and keeps the
		// leader going meanwhile, for as long as another renewal might take.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				e.leader.Store(&identity)
				e.log.Info("leader elected", "leader", identity, "self", identity == e.lock.Identity())
			},
		},
	}
}

// release gives the lease up. When that does not succeed the next replica waits
// for it to expire, so it is no more than a warning.
func (e *Election) release() {
	ctx, cancel := context.WithTimeout(context.Background(), e.opts.RetryPeriod)
	defer cancel()
	record, _, err := e.lock.Get(ctx)
	if err == nil && record.HolderIdentity == e.lock.Identity() {
		record.HolderIdentity = ""
		record.LeaseDurationSeconds = 1
		err = e.lock.Update(ctx, *record)
	}
	if err != nil {
		e.log.Warn("leader lease not given up", "error", err)
	}
}
