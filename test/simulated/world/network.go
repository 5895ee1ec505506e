package world

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

var (
	errReset = errors.New("connection reset by peer")
	errCut   = errors.New("network is unreachable")
)

func itoa(n int) string { return strconv.Itoa(n) }

// A network carries requests of executors to the API server and back, or lets them
// fail, as the plan says.
type network struct {
	seed  uint64
	plan  *plan
	begun time.Time
	// sending is called with each request of an executor when it is sent; readLease when
	// it has read the lease, or was too late to create it.
	sending   func(*request)
	readLease func(by string)
	note      func(who, text string)
	refused   func(by, verb, resource, message string)
	untold    func(by string, now time.Time) // Called when a fault befalls an event.
	// unanswered is called when a fault hides from an executor whether a Job's status took effect.
	unanswered func(by string, job types.NamespacedName, now time.Time)
	runAway    func() // Called when executors send requests without end.
	// broken is called when an answer of the engine breaks a rule.
	broken  func(rule, text string)
	telling func() bool
	// disturbed is called for each fault.
	disturbed func(now time.Time)
	// hindered is called for each fault and each error, in a namespace or everywhere.
	hindered func(namespace string, now time.Time, lasts time.Duration)
	// quotaHinders is called when a quota refuses a pod, and podTried for each answer to the creation of a pod of a Job.
	quotaHinders func(namespace string, now time.Time)
	podTried     func(by string, job types.UID, quotaRefused bool, now time.Time)
	// guarded is called when a policy refuses to change a guarded object.
	guarded func(object types.NamespacedName, now time.Time)
	// asked is called for each question about a Job, and garbled for each answer to such a
	// question that breaks the contract.
	asked   func(by string, job types.UID, at time.Time)
	garbled func(by string, job types.UID, at time.Time)

	mu       sync.Mutex
	calm     bool
	sent     map[uint64]uint64
	requests uint64
	work     int
	lists    map[string]*list // The first answer to each list from the cache.
	lastDate struct {
		second int64
		text   string
	}
	happened map[faultKind]int
	reached  map[string]bool // The ways of the executor and the engine that were used.
}

// A list is an answer that may be given again.
type list struct {
	contentType string
	body        []byte
}

func newNetwork(p *plan, begun time.Time, note func(who, text string)) *network {
	return &network{
		seed: p.seed, plan: p, begun: begun, note: note, sending: func(*request) {}, readLease: func(string) {}, telling: func() bool { return false },
		refused: func(_, _, _, _ string) {}, disturbed: func(time.Time) {}, hindered: func(string, time.Time, time.Duration) {}, untold: func(string, time.Time) {},
		unanswered: func(string, types.NamespacedName, time.Time) {}, guarded: func(types.NamespacedName, time.Time) {},
		quotaHinders: func(string, time.Time) {}, podTried: func(string, types.UID, bool, time.Time) {},
		sent: map[uint64]uint64{}, lists: map[string]*list{}, happened: map[faultKind]int{}, reached: map[string]bool{},
	}
}

// end stops all faults.
func (n *network) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calm = true
}

// date is the time as it stands in the header of an answer.
func (n *network) date() string {
	now := time.Now().UTC()
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := &n.lastDate; last.second != now.Unix() {
		last.second, last.text = now.Unix(), now.Format(http.TimeFormat)
	}
	return n.lastDate.text
}

// isCalm reports whether all faults have stopped.
func (n *network) isCalm() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calm
}

// fault is the fault that applies to the request, or nil.
func (n *network) fault(r *request, fits func(faultKind) bool) *fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calm {
		return nil
	}
	now := time.Since(n.begun)
	for _, f := range n.plan.faults {
		if now < f.from || now >= f.to || !fits(f.kind) || !f.concerns(r) {
			continue
		}
		if f.kind == guarded && n.guards(f, r) {
			n.happened[f.kind]++
			n.guarded(keyOf(r.URL.Path), time.Now())
			return f
		}
		if f.kind == guarded || r.IntN(100) >= f.percent {
			continue
		}
		n.happened[f.kind]++
		n.disturbed(time.Now())
		lasts := recovers
		if f.unanswered {
			lasts += tracker.UnseenPeriod
		}
		n.hindered(f.namespace, time.Now(), lasts)
		if r.resource == "events" {
			n.untold(r.by, time.Now())
		}
		switch {
		case !f.kind.hidesOutcome():
		case r.resource == "jobs/status":
			n.unanswered(r.by, keyOf(r.URL.Path), time.Now())
		case r.resource == "jobs" && r.Method == http.MethodPost:
			n.unanswered(r.by, types.NamespacedName{Namespace: namespaceOf(r.URL.Path)}, time.Now())
		}
		return f
	}
	return nil
}

// guards reports whether the object of a write is one of those that a policy guards.
func (n *network) guards(f *fault, r *request) bool {
	key := keyOf(r.URL.Path)
	h := fnv.New64a()
	fmt.Fprint(h, n.seed, " ", key.Namespace, "/", key.Name)
	return h.Sum64()%100 < uint64(f.percent)
}

// concerns reports whether the fault applies to such a request.
func (f *fault) concerns(r *request) bool {
	if f.verb != "" && f.verb != r.Method {
		return false
	}
	if f.namespace != "" && !strings.Contains(r.URL.Path, "/namespaces/"+f.namespace+"/") {
		return false
	}
	if (f.kind == putBack || f.kind == guarded && r.Method == http.MethodPatch) && !bytes.Contains(r.body, []byte(releasing)) {
		return false
	}
	if f.kind == guarded && r.Method == http.MethodPost && !bytes.Contains(r.body, []byte(wire.RunNow)) {
		return false
	}
	base, _, _ := strings.Cut(r.resource, "/")
	return f.resource == "" || f.resource == base
}

// mostWork is the largest number of requests and questions in a world. A world of days
// may have some for each hour, because the executor also checks Jobs at rest.
func (p *plan) mostWork() int { return 20_000 + 100*int(p.calm/time.Hour) }

// strain counts requests and questions. It ends a world in which executors send requests
// without end.
func (l *link) strain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work++; l.work == l.plan.mostWork() {
		l.runAway()
	}
	if l.work >= l.plan.mostWork() {
		l.cut()
	}
}

// runaway reports whether executors sent requests without end.
func (n *network) runaway() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.work >= n.plan.mostWork()
}
