package leaderelection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"jobpolicy.dev/executor/internal/clock"
)

var (
	// ErrLost is returned by Election.Run when the lease could not be renewed, or
	// another replica was seen to hold it. The process must end at once.
	ErrLost = errors.New("leader lease lost")
	// ErrConfig says that a Config cannot be used.
	ErrConfig = errors.New("invalid configuration of leader election")
)

// JitterFactor is client-go's. Config.RenewDeadline must be longer than Config.RetryPeriod
// times this factor.
const JitterFactor = leaderelection.JitterFactor

// Config is what an Election is made of. Required are Client, Namespace, Name and
// the three durations.
type Config struct {
	// Client reads and writes the Lease. It must not be fenced. Give it a rate limit of
	// its own, so that a busy replica does not lose the lease because of its own requests.
	Client coordinationv1.LeasesGetter
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// Identity names this replica. It must be unique. Default: the host's name and a
	// random part.
	Identity string

	// LeaseDuration is how long another replica waits after the last renewal that it saw
	// before it takes over. It is rounded down to whole seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew the lease before it gives up.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two tries.
	RetryPeriod time.Duration
	// StandbyPeriod is how often a standby reads the lease. So it takes over at most one
	// StandbyPeriod after the lease became free. Default: an eighth of RetryPeriod.
	StandbyPeriod time.Duration

	// Now returns wall time. The clock may be set back and forward. Default time.Now.
	Now func() time.Time
	// Logger logs each new leader and refused writes. Default slog.Default().
	Logger *slog.Logger
}

func (c *Config) complete() error {
	if c.Client == nil || c.Namespace == "" || c.Name == "" {
		return fmt.Errorf("required are Client, Namespace and Name: %w", ErrConfig)
	}
	if c.LeaseDuration < time.Second {
		return fmt.Errorf("lease duration %s is below a second: %w", c.LeaseDuration, ErrConfig)
	}
	c.LeaseDuration = c.LeaseDuration.Truncate(time.Second) // as the lease holds it
	c.StandbyPeriod = cmp.Or(c.StandbyPeriod, c.RetryPeriod/8)
	c.Now = clock.New(c.Now)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Identity != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this replica: %w", err)
	}
	// Two processes on one host need different identities.
	c.Identity = host + "_" + string(uuid.NewUUID())
	return nil
}

// An Election is one replica's part in an election.
type Election struct {
	cfg    Config
	lock   *lock
	tenure *tenure
	leader atomic.Pointer[string]
}

// New checks the configuration (ErrConfig). Nothing is sent before Run.
func New(cfg Config) (*Election, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	tenure := newTenure(cfg.LeaseDuration, cfg.Now)
	e := &Election{cfg: cfg, tenure: tenure}
	e.lock = &lock{tenure: tenure, period: cfg.StandbyPeriod, leader: e.newLeader, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: cfg.Namespace, Name: cfg.Name},
		Client:     cfg.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: cfg.Identity},
	}}
	return e, nil
}

// newLeader records who leads.
func (e *Election) newLeader(identity string) {
	if before := e.leader.Swap(&identity); before == nil || *before != identity {
		e.cfg.Logger.Info("leader elected", "leader", identity, "self", identity == e.cfg.Identity)
	}
}

// Standby reports whether another replica leads, and which one.
func (e *Election) Standby() (leader string, standby bool) {
	current := e.leader.Load()
	if current == nil || *current == "" || *current == e.cfg.Identity {
		return "", false
	}
	return *current, true
}

// Metric is 1 while this replica leads. It has the name that Kubernetes components use.
func (e *Election) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Subsystem: "leader_election", Name: "master_status",
		Help:        "1 in the replica that leads, 0 in the others.",
		ConstLabels: prometheus.Labels{"name": e.cfg.Name},
	}, func() float64 {
		if leader := e.leader.Load(); leader != nil && *leader == e.cfg.Identity {
			return 1
		}
		return 0
	})
}

// Run waits for the lease and calls lead, at most once. It returns
//   - what lead returned. Run gives the lease up first, so that the next replica does
//     not wait until the lease expires;
//   - nil when ctx is done before the lease is acquired;
//   - ErrLost as soon as the lease is lost, without waiting for lead.
//
// The context of lead is done when ctx is, or when the lease is lost. Fenced
// clients write only while lead runs. Run can be called once.
func (e *Election) Run(ctx context.Context, lead func(context.Context) error) error {
	// When ctx ends, lead is asked to end. The lease is renewed until lead has returned.
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	t := &term{ctx: ctx, stop: stop, lead: lead, lost: e.tenure.lost, outcome: make(chan error, 1)}
	elector, err := leaderelection.NewLeaderElector(e.electorConfig(t.run))
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	defer context.AfterFunc(ctx, t.withdraw)()
	defer context.AfterFunc(e.tenure.lost, stop)()
	elector.Run(holding)
	err = t.result()
	e.tenure.end()
	if !errors.Is(err, ErrLost) {
		e.release()
	}
	return err
}

func (e *Election) electorConfig(lead func(context.Context)) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Name:          e.cfg.Name,
		Lock:          e.lock,
		LeaseDuration: e.cfg.LeaseDuration,
		RenewDeadline: e.cfg.RenewDeadline,
		RetryPeriod:   e.cfg.RetryPeriod,
		// client-go would also release a lost lease, and let the leader continue
		// meanwhile. So release does this instead.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
			OnNewLeader:      e.newLeader,
		},
	}
}

// release gives the lease up. If this fails, the next replica waits until the lease
// expires; so a failure is only a warning.
func (e *Election) release() {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.RetryPeriod)
	defer cancel()
	record, _, err := e.lock.LeaseLock.Get(ctx)
	if err == nil && record.HolderIdentity == e.cfg.Identity {
		record.HolderIdentity = ""
		record.LeaseDurationSeconds = 1
		err = e.lock.LeaseLock.Update(ctx, *record)
	}
	if err != nil {
		e.cfg.Logger.Warn("leader lease not given up", "error", err)
	}
}
