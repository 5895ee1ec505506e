package world

import (
	"net/http"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// A plan is what happens in a world, apart from what the executor does.
type plan struct {
	seed uint64
	// begins is when the world begins; virtual time starts there.
	begins time.Time
	// calm is the time from the begin until the plan's steps and faults end; settle is
	// how long the world continues after that.
	calm, settle time.Duration

	executor executorPlan
	network  networkPlan
	jobs     []*jobPlan
	crons    []*cronPlan
	steps    []*step
	faults   []*fault
	// unanswered: answers to statuses are lost, and the reads after them fail.
	unanswered bool
	// situations are the names of rare situations that were drawn.
	situations []string
}

// An executorPlan is how the executors are configured.
type executorPlan struct {
	podjob   bool // A controller made with package podjob stands in for the executor.
	upstream bool // Kubernetes' own controllers stand in for the executor.
	replace  bool
	// replicas is how many processes there are. If there are several they elect a
	// leader, unless all of them act at once, as if leader election had failed.
	replicas                 int
	together                 bool
	maxRows                  int // How many finished pods a request lists; 0: the default.
	leastRows                int // How many it lists at least; 0: the default.
	largeRequest             int // The size in bytes above which a request may be too large; 0: each may be.
	maxChanges, maxUncounted int
	maxUnseen                int     // How many pods of a Job may be created unseen; 0: the default.
	workers                  int     // How many Jobs are decided on at once; 0: the default.
	maxWrites                int     // How many writes are in flight at most; 0: the default.
	qps                      float32 // 0: no limit.
	zone                     string  // Of CronJobs that name none.
	keepStartTime            bool
	clusterRuns              int  // How many runs of CronJobs of all namespaces the group etl may have active; 0: it is one of a namespace.
	warmStandby              bool // The replicas that do not lead fill their pod caches.
	// noticing: they look for a second controller, and leave the Jobs alone on which one
	// works if they standDown.
	noticing, standDown bool
}

// elected reports whether leader election decides which executor is active.
func (e executorPlan) elected() bool { return e.replicas > 1 && !e.together }

// A networkPlan bounds how long requests and events take while nothing is wrong.
type networkPlan struct {
	request, event span
	// noWatchList: the API server does not serve initial lists as watches.
	noWatchList bool
	// longWatches makes watches last a day, for worlds that last days.
	longWatches bool
}

// calmLag is how old the data of executors' writes may be while nothing fails: a
// reconcile takes some seconds, and longer if requests are limited.
func (p *plan) calmLag() time.Duration {
	if p.executor.qps > 0 {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// relists is how long client-go waits at most before it lists again after a list that failed.
const relists = time.Minute

// lag is how old the data of executors' writes may be. Without leader election, an
// executor that stood still acts on what it knew before, until it reads again; so does any
// executor whose lists fail. It must still count and release each pod once.
func (p *plan) lag() time.Duration {
	lag := defaultLag
	for _, s := range p.steps {
		if (s.verb == "freeze" || s.verb == "hang for it") && !p.executor.elected() {
			lag = max(lag, defaultLag+s.d)
		}
	}
	for _, f := range p.faults {
		if d := f.to - f.from; f.hidesLists() && d > relists {
			lag = max(lag, defaultLag+d)
		}
	}
	return lag
}

// A span is a time between two bounds.
type span struct{ least, most time.Duration }

// A jobPlan is a Job that may be created once, or again under its name.
type jobPlan struct {
	namespace, name     string
	labels, annotations map[string]string
	finalizers          []string
	spec                batchv1.JobSpec
	// fates are those of its pods, in the order of their creation. Further pods succeed
	// soon.
	fates []fate
}

func (j *jobPlan) on() string { return j.namespace + "/" + j.name }

// A cronPlan is a CronJob.
type cronPlan struct {
	namespace, name string
	annotations     map[string]string
	spec            batchv1.CronJobSpec
	fates           []fate // Of all pods of all of its runs.
}

func (c *cronPlan) on() string { return c.namespace + "/" + c.name }

// A fate is what happens to a pod.
type fate struct {
	// start is the time until it is bound and runs, ready the time from then until it
	// is ready, and run the time from then until it ends.
	start, ready, run time.Duration
	end               ending
	exit              int32
	container         int   // Which of its containers ends with the exit code.
	restarts          int32 // How often its containers restart before.
	// linger is how long it takes to end after its deletion; obeys: it then ends with
	// exit code 0, as succeeded.
	linger time.Duration
	obeys  bool
	// deaf: its node does not hear that it is to end.
	deaf bool
	// patience is how long a lost node stays away if nobody collects its pods: then it is back, and they
	// end. 0: they are collected. forEver: neither.
	patience time.Duration
	// alone: its node has no other pod, and an object in the API server. unready is how long after the node is lost its
	// condition Ready is Unknown; forEver: it stays True, so the node is only slow to end the pod.
	alone   bool
	unready time.Duration
	// away is the time from its end until its node is back and reports that it runs.
	away time.Duration
	// problem keeps it from starting (PodStartProblem), from shows after its creation until start. Empty: nothing does.
	problem string
	shows   time.Duration
}

// forEver is a time that does not pass.
const forEver time.Duration = -1

// An ending is how a pod ends by itself.
type ending string

const (
	endsWell  ending = "succeeds"
	cleared   ending = "succeeds, and is deleted at once" // By somebody who clears up.
	endsBadly ending = "fails"
	evicted   ending = "is evicted by its kubelet" // Failed and DisruptionTarget at once.
	preempted ending = "is preempted"              // DisruptionTarget, deleted, then Failed.
	removed   ending = "is deleted"                // By somebody, gracefully.
	forced    ending = "is deleted with force"     // By somebody, without grace.
	nodeLost  ending = "loses its node"            // Deleted, hangs, is garbage-collected in the end.
	restless  ending = "runs on"                   // Never ends by itself.
	returns   ending = "is given up"               // Its node does not answer, and is back later.
)

// A step is something that an actor does once. It is due at a time after the begin, or
// some time after the executors' n-th write (before: n-th request).
type step struct {
	at     time.Duration
	write  int  // 0: at counts from the begin.
	before bool // After the n-th request is sent and before it is written.
	// expires: at counts from when an executor reads the Job because its time to live is
	// over.
	expires bool
	// ends: at counts from when an executor writes the Job's end.
	ends bool

	who  string
	verb string
	on   string // namespace/name of the object.
	text string
	n    int
	d    time.Duration
}

func (p *plan) dropSteps(on string) {
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return s.on == on })
}

func (p *plan) dropVerb(verb string) {
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return s.verb == verb })
}

// A fault is something that fails for a while, for some of the requests that it may
// concern.
type fault struct {
	kind     faultKind
	from, to time.Duration
	percent  int
	// verb and resource select the requests that fail; empty: all.
	verb, resource string
	namespace      string // Of the requests; empty: all.
	delay          span
	// alters is what the fault altering changes; unanswered: the answer is lost, too.
	alters     alteration
	unanswered bool
}

// hidesLists reports whether lists may fail again and again while the fault lasts. A watch
// that breaks meanwhile begins anew only after it.
func (f *fault) hidesLists() bool {
	if f.percent < 50 || (f.verb != "" && f.verb != http.MethodGet) {
		return false
	}
	switch f.kind {
	case lostRequest, lostAnswer, throttled, serverError, unavailable, timedOut, timedOutDone:
		return true
	}
	return false
}

// A faultKind is one way in which a request, a watch or the engine fails.
type faultKind string

const (
	lostRequest  faultKind = "lost request"
	lostAnswer   faultKind = "lost answer"
	lateRequest  faultKind = "late request"
	lateAnswer   faultKind = "late answer"
	lateEffect   faultKind = "no answer, and a late effect" // For podjob, which gives each pod a name.
	conflict     faultKind = "409"
	forbidden    faultKind = "403"
	invalid      faultKind = "422"
	throttled    faultKind = "429"
	serverError  faultKind = "500"
	unavailable  faultKind = "503"
	timedOut     faultKind = "504, not done"
	timedOutDone faultKind = "504, done"
	watchLag     faultKind = "watch lag"
	watchBreak   faultKind = "watch break"
	duplicate    faultKind = "duplicate event"
	staleList    faultKind = "stale list"
	putBack      faultKind = "finalizer put back by a webhook"
	hangs        faultKind = "webhook hangs in one namespace"
	expired      faultKind = "410"
	altering     faultKind = "webhook alters new pods"
	guarded      faultKind = "a policy guards some objects"

	engineAway   faultKind = "engine away"
	engineHangs  faultKind = "engine hangs"
	engineBusy   faultKind = "engine overloaded"
	engineSlow   faultKind = "engine slow"
	engineBroken faultKind = "engine internal error"
	engineNarrow faultKind = "engine refuses large requests"
	// These two change how the engine understands a question.
	engineGarbled faultKind = "engine breaks the contract"
	engineEarlier faultKind = "engine of an earlier contract"
)

// ofEngine reports whether the fault is one of the engine's.
func (k faultKind) ofEngine() bool {
	switch k {
	case engineAway, engineHangs, engineBusy, engineSlow, engineBroken, engineNarrow, engineGarbled, engineEarlier:
		return true
	}
	return false
}

// ofWatch reports whether the fault befalls events of watches.
func (k faultKind) ofWatch() bool { return k == watchLag || k == watchBreak || k == duplicate }
