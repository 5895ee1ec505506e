package world

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// defaultLag is how old the data of an executor's write may be, unless judgeOptions set
// another limit: watches are late, decisions are slow, and a reconcile takes time.
const defaultLag = 2 * time.Minute

// A breach is one broken rule.
type breach struct {
	at time.Time
	// rule is an invariant, I1 to I12, or one of deletion, order, verdict, options, status,
	// liveness, rest, writes, metrics, cron, ttl, event, runaway, stray.
	rule string
	key  types.NamespacedName
	uid  types.UID
	text string
}

func (b breach) String() string {
	return fmt.Sprintf("%s %s %s (%s): %s", b.at.UTC().Format(time.RFC3339Nano), b.rule, b.key, b.uid, b.text)
}

type judgeOptions struct {
	// executors reports whether a writer is one of our executors. Each process has its
	// own name, because it forgets what the one before knew.
	executors func(by string) bool
	// managed reports whether our executors manage a Job.
	managed func(*batchv1.Job) bool
	// elected: leader election decides which executor is active.
	elected bool
	// second reports whether a writer is a second controller, which works on Jobs of our
	// executors. standDown: they leave such Jobs alone.
	second    func(by string) bool
	standDown bool
	// noticing: executors look for a second controller.
	noticing bool
	// zone is that of CronJobs that name none. Default: UTC.
	zone string
	// maxUnseen is how many pods of a Job executors may create unseen in an hour.
	maxUnseen int
	// clusterRuns is how many runs the group that is one of the cluster may have active; 0: there is none.
	clusterRuns int
	// podjob: the executor is a controller made with package podjob. It sends no events, does one Job
	// after the other, so that a slow one delays others, and removes the pods of Jobs that are gone.
	podjob bool
	// rivals: two executors are active at once.
	rivals bool
	// terse: statuses and pods are written by hand, without what judgeWords, judgeTimes and judgeNewPod read.
	terse bool
	// keepsStart: executors keep the start time of a Job that is suspended.
	keepsStart bool
	// busy: executors have few writes in flight.
	busy bool
	// limited: a status may record, or a request may list, only a few pods.
	limited bool
	// fewRows: a request may always list only a few of the failed pods that wait for the next pods
	// of their indexes.
	fewRows bool
	// lateJobs: the watch may show a Job later than an executor sends a request again.
	lateJobs bool
	// metersEvery is how often metrics are read.
	metersEvery time.Duration
	// lag is how old the data of an executor's write may be, except its own writes;
	// calmLag is the limit when nothing has failed for the time lag. Defaults:
	// defaultLag, and lag.
	lag, calmLag time.Duration
	// firstDelay and longestDelay are the retry delay after one failure, and the
	// longest. Default: upstream's.
	firstDelay, longestDelay time.Duration
}

// A judge checks all writes against the invariants. It sees only the stream of writes.
// The kubelets' writes show what really happened to pods; the judge trusts no executor.
type judge struct {
	judgeOptions

	mu    sync.Mutex // Held by the methods that the world calls.
	now   time.Time
	found []breach
	// said holds the rules that were reported for an object, so that a rule that every
	// write breaks is reported once.
	said map[said]bool

	jobs  map[types.UID]*jobRecord
	pods  map[types.UID]*podRecord
	book  *ledger.Book // What package ledger says of the writes.
	steps stepCounts   // How often executors took each of its steps.
	// compared are the metrics that were compared while they said something, and whether after a restart.
	compared   map[string]bool
	crons      map[types.UID]*cronRecord
	quotas     map[types.UID]*corev1.ResourceQuota
	namespaces map[string]*corev1.Namespace
	nodes      map[string]*nodeRecord
	// passings are the deletions of pods while others, which go first, were active.
	passings []passingOver
	// strays are the pods that a webhook has changed when they were created, and that executors have
	// to delete. alterations are when such pods were created, by Job.
	strays      map[types.UID]types.NamespacedName
	alterations map[types.UID][]time.Time
	writers     map[string]*writer
	leases      map[string]time.Time // The time until which each executor may write.
	// holder is the newest holder of the lease. sawHolder says, by executor, who held the lease
	// when the executor last read it, or was last too late to create it. leaseGone is when
	// somebody last deleted the lease. unaware holds the executors that created a new lease
	// without having seen, in one of these ways, that the last holder had one. They could not
	// know that there was such a holder.
	holder    string
	sawHolder map[string]string
	leaseGone time.Time
	unaware   map[string]bool
	// nonsense holds the questions whose answers broke the contract, and when.
	nonsense map[question]time.Time
	// hindrances holds, by namespace, until when something keeps executors from acting;
	// touched holds when a pod without owner was last written there.
	hindrances, touched map[string]time.Time
	// hinderedAt is when something last began to keep executors from acting.
	hinderedAt time.Time
	// whenHindered holds all hindrances, in order. Those that touch or overlap are merged.
	whenHindered []hindrance
	// calmSince is when the last fault ended; zero while faults may follow. troubledAt
	// is when something last failed.
	calmSince, troubledAt time.Time
	// fastest and slowest are how far executors' clocks were ahead and behind at most;
	// slowest is never above 0.
	fastest, slowest time.Duration
	// ahead is how far they are ahead now; below 0: behind.
	ahead time.Duration
	// rightSince is when the clocks were set right; zero if they are wrong or always were right.
	rightSince time.Time
	// sightings are the writes by which executors notice a second controller, in order.
	// secondAt is when it last wrote anything.
	sightings []sighting
	secondAt  time.Time
}

type said struct {
	rule, what string
	uid        types.UID
}

// A writer is an executor. began is when it started to read the cluster, or, if that
// was not reported, to write. asked is when it first asked about a Job: its caches are
// filled by then. listed is when it last sent for a new list of all pods.
type writer struct {
	began, first, last, asked, listed time.Time
	// died: the process was killed, or has lost its lease.
	died bool
	// untold are the times at which an event of it failed at the API server or in the network.
	untold []time.Time
	// unanswered is when a status of a Job, by the Job's name, last failed so that the
	// executor cannot know whether it took effect.
	unanswered map[types.NamespacedName]time.Time
}

func newJudge(options judgeOptions) *judge {
	if options.second == nil {
		options.second = func(string) bool { return false }
	}
	options.lag = cmp.Or(options.lag, defaultLag)
	options.calmLag = cmp.Or(options.calmLag, options.lag)
	options.firstDelay = cmp.Or(options.firstDelay, firstDelay)
	options.longestDelay = cmp.Or(options.longestDelay, max(longestDelay, options.firstDelay))
	book := ledger.NewBook()
	if options.rivals {
		book.Rivals()
	}
	return &judge{
		judgeOptions: options,
		said:         map[said]bool{},
		book:         book,
		steps:        stepCounts{},
		compared:     map[string]bool{},
		jobs:         map[types.UID]*jobRecord{},
		pods:         map[types.UID]*podRecord{},
		crons:        map[types.UID]*cronRecord{},
		quotas:       map[types.UID]*corev1.ResourceQuota{},
		namespaces:   map[string]*corev1.Namespace{},
		nodes:        map[string]*nodeRecord{},
		strays:       map[types.UID]types.NamespacedName{},
		alterations:  map[types.UID][]time.Time{},
		writers:      map[string]*writer{},
		leases:       map[string]time.Time{},
		sawHolder:    map[string]string{},
		unaware:      map[string]bool{},
		nonsense:     map[question]time.Time{},
		hindrances:   map[string]time.Time{},
		touched:      map[string]time.Time{},
	}
}

// wrote handles a committed write. Writes must come in order.
func (j *judge) wrote(w apiserver.Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = w.Time
	j.forgetClocks()
	ours := j.executors(w.By)
	if ours {
		by := j.writer(w.By)
		by.last = w.Time
	} else {
		j.secondWrote(w)
	}
	j.passTime()
	switch w.Resource {
	case "jobs":
		j.jobWritten(w, ours)
	case "pods":
		j.podWritten(w, ours)
	case "leases":
		j.leaseWritten(w, ours)
	case "cronjobs":
		j.cronWritten(w, ours)
	case "resourcequotas":
		keep(j.quotas, w.UID, w)
	case "nodes":
		j.nodeWritten(w)
	case "namespaces":
		keep(j.namespaces, w.Key.Name, w)
	case "events":
		j.eventWritten(w, ours)
		j.judgeEvent(w, ours)
		j.endTold(w, ours)
		j.startTold(w, ours)
	}
}

// keep stores the newest version of an object, or removes it.
func keep[K comparable, T any](all map[K]T, key K, w apiserver.Write) {
	object, ok := w.New.(T)
	if !ok {
		delete(all, key)
		return
	}
	all[key] = object
}

func (j *judge) writer(by string) *writer {
	known, ok := j.writers[by]
	if !ok {
		known = &writer{began: j.now, first: j.now, last: j.now}
		j.writers[by] = known
	}
	return known
}

// began is called when an executor starts to read the cluster.
func (j *judge) began(by string, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = now
	j.writer(by).began = now
}

// wroteSince reports whether a process has written something since a time.
func (j *judge) wroteSince(by string, at time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.writer(by).last.Before(at)
}

// refused is called when the API server refused a request as invalid (422). Every
// status of ours must pass its validation.
func (j *judge) refused(by, verb, resource, message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.executors(by) || resource != "jobs/status" {
		return
	}
	j.breach("I5", types.NamespacedName{}, types.UID(message),
		"%s sent a status (%s) that the API server refuses, and every status must pass its validation: %s", by, verb, message)
}

// clocksSet is called when executors' clocks are set; ahead is how far they are ahead
// of the API server's (below 0: behind).
func (j *judge) clocksSet(now time.Time, ahead time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = now
	for _, uid := range sortedUIDs(j.crons) {
		j.judgeRunsDue(j.crons[uid]) // Those due until now were due by other clocks.
	}
	j.noteCrossings(ahead)
	j.fastest, j.slowest = max(j.fastest, ahead), min(j.slowest, ahead)
	j.ahead, j.rightSince = ahead, now
	if ahead != 0 {
		j.rightSince = time.Time{}
	}
}

// clockEffects is how long a clock that was wrong may have effects after it was set right:
// what executors wrote with it is over by then.
const clockEffects = 24 * time.Hour

// forgetClocks ends the effects of clocks that were wrong.
func (j *judge) forgetClocks() {
	if j.askew() == 0 || j.rightSince.IsZero() || j.now.Sub(j.rightSince) <= clockEffects {
		return
	}
	for _, c := range j.crons {
		c.checked, c.owed = latest(c.checked, j.rightSince.Add(clockEffects)), time.Time{}
	}
	j.fastest, j.slowest = 0, 0
}

// askew is how much too early an executor may act because it compares times of two
// clocks.
func (j *judge) askew() time.Duration { return j.fastest - j.slowest }

// faultsEnded is called when no more faults follow.
func (j *judge) faultsEnded(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now, j.calmSince = now, now
}

// breaches returns the broken rules, in order.
func (j *judge) breaches() []breach {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.found
}

// breachOf reports what package ledger found in a write, once for each kind.
func (j *judge) breachOf(problem ledger.Problem, r *jobRecord, by string) {
	j.report(said{problem.Rule(), string(problem.Kind), r.uid}, r.key, by+" wrote a status: "+problem.String())
}

func (j *judge) breach(rule string, key types.NamespacedName, uid types.UID, format string, args ...any) {
	j.report(said{rule, format, uid}, key, fmt.Sprintf(format, args...))
}

func (j *judge) report(once said, key types.NamespacedName, text string) {
	if j.said[once] || j.podjob && (once.rule == "event" || once.rule == "late") {
		return
	}
	j.said[once] = true
	j.found = append(j.found, breach{at: j.now, rule: once.rule, key: key, uid: once.uid, text: text})
}

// old reports whether every view includes this time: it was long ago, or a while ago
// and nothing has failed lately.
func (j *judge) old(at time.Time) bool { return at.Before(j.surely()) }

// surely is the time up to which every view is complete.
func (j *judge) surely() time.Time {
	if j.troubled() {
		return j.now.Add(-j.lag)
	}
	return j.now.Add(-j.calmLag)
}

// troubled reports whether a failure may still delay views.
func (j *judge) troubled() bool { return !j.troubledAt.IsZero() && j.now.Sub(j.troubledAt) <= j.lag }

// knows reports whether an executor must know what happened then: every view includes
// it, or the executor started later and so read it at the start.
func (j *judge) knows(by string, at time.Time) bool {
	return j.old(at) || (at.Before(j.writer(by).began) && !j.troubled())
}

// told reports whether an executor must know a mark: it wrote it itself, or every view
// includes it.
func (j *judge) told(m mark, by string) bool { return m.by == by || j.knows(by, m.at) }

// sortedUIDs returns a map's keys in order, so that breaches come in the same order in
// every run.
func sortedUIDs[T any](all map[types.UID]T) []types.UID {
	uids := make([]types.UID, 0, len(all))
	for uid := range all {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}
