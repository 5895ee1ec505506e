package views

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/writes"
)

// A hub makes one snapshot after the other while somebody watches.
type hub struct {
	cfg     PageConfig
	lookout lookout

	mu       sync.Mutex
	watchers int
	stop     chan struct{} // ends the snapshots
	next     chan struct{} // closed by the next snapshot
	n        uint64        // numbers the snapshots, from 1 on
	now      time.Time
	jobs     *table
	crons    *table
	health   json.RawMessage // null before the first reading
}

func newHub(cfg PageConfig) *hub {
	return &hub{cfg: cfg, lookout: lookout{jobs: cfg.Jobs, seen: map[types.UID]looked{}}}
}

var errFull = errors.New("too many pages are open")

// join counts a watcher. The first one starts the snapshots.
func (h *hub) join() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == maxWatchers {
		return errFull
	}
	if h.watchers == 0 {
		h.jobs, h.crons = newTable(), newTable()
		h.stop, h.next = make(chan struct{}), make(chan struct{})
		h.snapshot(encoded(nil))
		go h.run(h.stop)
	}
	h.watchers++
	return nil
}

// leave ends the snapshots after the last watcher, and drops what was kept for them.
func (h *hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers--
	if h.watchers == 0 {
		close(h.stop)
		h.jobs, h.crons, h.health = nil, nil, nil
		time.AfterFunc(lookEvery, func() { h.lookout.forget(time.Now()) }) // By then, all that it holds is too old.
	}
}

func (h *hub) run(stop chan struct{}) {
	ticker := time.NewTicker(h.cfg.Interval)
	defer ticker.Stop()
	for m := newMeter(h.cfg.Gatherer); ; {
		health := encoded(m.read(time.Now(), h.cfg.Checks)) // without the lock: checks may take a moment
		h.mu.Lock()
		if h.stop == stop && h.watchers > 0 {
			h.snapshot(health)
		}
		h.mu.Unlock()
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

func (h *hub) snapshot(health json.RawMessage) {
	h.n++
	h.now = time.Now()
	h.cfg.Jobs.EachJob(h.putJob)
	h.lookout.forget(h.now)
	h.jobs.end(h.n)
	if h.cfg.CronJobs != nil {
		minute := h.now.Truncate(time.Minute)
		h.cfg.CronJobs.EachCronJob(func(o executor.CronJobObservation) {
			of := made{object: o.CronJob, decision: o.Explanation, minute: minute, refusals: refusalsText(o.Refusals)}
			h.crons.put(h.n, o.CronJob.UID, of, func() json.RawMessage { return cronRow(o, h.now) })
		})
		h.crons.end(h.n)
	}
	h.health = health
	close(h.next)
	h.next = make(chan struct{})
}

func (h *hub) putJob(o executor.Observation) {
	of := made{object: o.Job, decision: o.Decision, hindered: o.Hindered, refusals: refusalsText(o.Refusals)}
	late := h.lookout.late(o, h.now)
	if late.pods > 0 {
		of.late, of.minute = late.pods, h.now.Truncate(time.Minute)
	}
	h.jobs.put(h.n, o.Job.UID, of, func() json.RawMessage { return jobRow(o, late, h.now) })
}

// refusalsText is empty if there are none.
func refusalsText(refusals []writes.Refusal) string {
	if len(refusals) == 0 {
		return ""
	}
	return fmt.Sprint(refusals)
}

// A message holds what a snapshot has new for one reader.
type message struct {
	Now time.Time `json:"now"`
	// All: the message is complete, and the reader drops what it has.
	All       bool              `json:"all,omitempty"`
	Jobs      []json.RawMessage `json:"jobs,omitempty"`
	JobsGone  []types.UID       `json:"jobsGone,omitempty"`
	Crons     []json.RawMessage `json:"crons,omitempty"`
	CronsGone []types.UID       `json:"cronsGone,omitempty"`
	// Days are the columns of the calendar.
	Days   []string        `json:"days,omitempty"`
	Health json.RawMessage `json:"health"`
}

// since is what is new to a reader whose last snapshot has the number last; 0: it has
// none. next is closed when there is more.
func (h *hub) since(last uint64) (m message, n uint64, next chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last+removalsKept <= h.n {
		last = 0
	}
	m = message{Now: h.now, All: last == 0, Health: h.health, Days: daysFrom(h.now)}
	m.Jobs, m.JobsGone = h.jobs.since(last)
	m.Crons, m.CronsGone = h.crons.since(last)
	return m, h.n, h.next
}

// encoded is v as JSON; nil if JSON cannot hold it, as a time after the year 9999.
func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return text
}
