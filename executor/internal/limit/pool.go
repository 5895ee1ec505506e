package limit

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Config says how many writes may be in flight at the same time.
type Config struct {
	// Total is the limit for all Jobs together. One namespace gets at most three quarters of
	// it.
	Total int
	// PerJob is the limit for one Job. Alone is its limit while no other Job is active, if
	// that is higher.
	PerJob, Alone int
}

// Pool bounds the writes of all Jobs together, and knows which Jobs are active.
type Pool struct {
	*Semaphore
	cfg Config

	mu sync.Mutex
	// latest is the Job that was active last, and other the last different one before it.
	latest, other activity
}

type activity struct {
	job types.UID
	at  time.Time
}

// alonePeriod is how long all other Jobs must have been inactive for one to be alone.
const alonePeriod = 5 * time.Second

// NewPool returns a Pool.
func NewPool(cfg Config) *Pool {
	return &Pool{cfg: cfg, Semaphore: NewSemaphore(cfg.Total)}
}

// Active records that a Job is reconciled now.
func (p *Pool) Active(job types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest.job != job {
		p.other = p.latest
	}
	p.latest = activity{job: job, at: time.Now()}
}

// alone reports whether no other Job is active. Such a Job may have more writes in flight, for
// two reasons. Its writes delay no other Job's. And each write costs the API server less if many
// come at once, because the server reads, commits and announces several of them together.
func (p *Pool) alone(job types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	others := p.latest
	if others.job == job {
		others = p.other
	}
	return others.job == "" || time.Since(others.at) > alonePeriod
}
