package cronjob

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// causeGroup: a group has room for the run of a CronJob that waits.
const causeGroup controller.Cause = "group.room"

// maxClaims is how many claims a request may have.
const maxClaims = 10_000

// groupKey names a group of CronJobs (CronJobOptions.group).
type groupKey struct{ namespace, name string }

// A place is what the last decision on a CronJob says about its group.
type place struct {
	group string // Empty: it has none.
	// known: there was a decision, or it failed for a reason that may last.
	known bool
	claim *jobpolicyv1.GroupClaim // nil: nobody has to wait for the CronJob.
	// hadRoom: as far as the caller knew when it asked, the group had room for its run.
	hadRoom bool
}

// needs reports whether the CronJob needs a place in its group now.
func (p place) needs(now time.Time) bool {
	return p.claim != nil && !p.claim.GetFrom().AsTime().After(now)
}

// starts count the runs of each group that were begun. A run begins only if none has begun since
// the facts that its decision was made from.
type starts struct {
	mu    sync.Mutex
	begun map[groupKey]uint64
}

func (s *starts) count(key groupKey) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[key]
}

// begin calls f, and counts the start, unless others were counted since there were so many.
func (s *starts) begin(key groupKey, known uint64, f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun[key] != known {
		return false
	}
	s.begun[key]++
	f()
	return true
}

// A member is a CronJob of a group.
type member struct {
	*cronState
	place
	active int   // Active runs.
	most   int32 // How many its options allow the group.
}

// A line is what is known of the CronJobs of a group, those that need a place now first, in the order of the line.
type line struct {
	members []member
	now     time.Time
}

// line looks at a group.
func (c *Controller) line(key groupKey) line {
	l := line{now: c.cfg.Now()}
	for _, s := range c.inNamespace(key.namespace) {
		if group := c.groupOf(s); group != nil && group.GetName() == key.name {
			l.members = append(l.members, member{s, s.placeNow(), c.activeRuns(s), group.GetMaxActiveRuns()})
		}
	}
	slices.SortFunc(l.members, func(a, b member) int {
		switch needsA, needsB := a.needs(l.now), b.needs(l.now); {
		case needsA && needsB:
			return options.CompareClaims(a.claim, b.claim)
		case needsA:
			return -1
		case needsB:
			return 1
		}
		return 0
	})
	return l
}

// inNamespace returns the CronJobs of a namespace, in no order.
func (c *Controller) inNamespace(namespace string) []*cronState {
	c.mu.Lock()
	defer c.mu.Unlock()
	var states []*cronState
	for _, s := range c.crons {
		if s.namespace == namespace {
			states = append(states, s)
		}
	}
	return states
}

// groupOf is the group of a CronJob by its options as they are now; nil if it has none or is not run here.
func (c *Controller) groupOf(s *cronState) *jobpolicyv1.RunGroup {
	cron := s.current()
	if cron == nil || !c.cfg.Policies.Asked(cron.Namespace, cron.Annotations) || !c.scope.Runs(cron) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.cron == cron {
		return s.held.group
	}
	spec, problems := c.cfg.Policies.Of(cron.Namespace, cron.Annotations)
	if len(problems) > 0 {
		return s.options.GetGroup()
	}
	group := spec.GetCronJob().GetGroup()
	if _, named := wire.PolicyName(cron.Annotations); !named && wire.HasPolicy(cron.Annotations) {
		s.held = heldGroup{cron, group}
	}
	return group
}

// A heldGroup is the group that a version of a CronJob asks for in its own annotation: reading that takes long.
type heldGroup struct {
	cron  *batchv1.CronJob
	group *jobpolicyv1.RunGroup
}

// activeRuns counts the active runs of a CronJob as the engine does, those that its status lists and the
// watch does not show, and one whose creation has begun and whose outcome is not known.
func (c *Controller) activeRuns(s *cronState) int {
	listed, n := map[types.UID]bool{}, 0
	if cron := s.current(); cron != nil {
		for _, ref := range cron.Status.Active {
			listed[ref.UID] = true
		}
	}
	pending := s.runs.unresolved("")
	for _, job := range s.runs.list(ownerKey(s.namespace, s.uid), c.cfg.Jobs.In(s.namespace)) {
		if wire.FinishedCondition(job) == nil && (wire.IsRun(job) || listed[job.UID]) {
			n++
		}
		if job.Name == pending {
			pending = ""
		}
		delete(listed, job.UID)
	}
	if pending != "" {
		n++
	}
	return n + len(listed)
}

// facts are what is known of the others in the group of a CronJob.
func (l line) facts(s *cronState) *jobpolicyv1.RunGroupFacts {
	facts := &jobpolicyv1.RunGroupFacts{}
	for _, m := range l.members {
		if m.cronState == s {
			continue
		}
		facts.ActiveRuns += int32(m.active)
		if facts.MaxActiveRuns == 0 || m.most < facts.GetMaxActiveRuns() {
			facts.MaxActiveRuns = m.most
		}
		switch {
		case !m.known:
			facts.Undecided++
		case m.needs(l.now) && len(facts.GetClaims()) < maxClaims:
			facts.Claims = append(facts.Claims, proto.CloneOf(m.claim))
		}
	}
	return facts
}

// first returns those that need a place now and for which there is room, as far as it is known.
func (l line) first() map[*cronState]bool {
	first, active, most, undecided := map[*cronState]bool{}, 0, 0, 0
	for i, m := range l.members {
		active += m.active
		if i == 0 || int(m.most) < most {
			most = int(m.most)
		}
		if !m.known {
			undecided++
		}
	}
	for _, m := range l.members[:min(len(l.members), max(0, most-active))] {
		if m.needs(l.now) && undecided == 0 {
			first[m.cronState] = true
		}
	}
	return first
}

// groupFacts looks at the group of a CronJob about which the engine is asked.
func (c *Controller) groupFacts(s *cronState, key groupKey) *jobpolicyv1.RunGroupFacts {
	l := c.line(key)
	s.setHadRoom(l.first()[s])
	return l.facts(s)
}

// wake enqueues the CronJobs that wait for room in a group and have it now. One that had room when the engine was last asked
// about it waits for something else.
func (c *Controller) wake(key groupKey) {
	if key.name == "" {
		return
	}
	l := c.line(key)
	first := l.first()
	for _, m := range l.members {
		if had := m.setHadRoom(first[m.cronState]); first[m.cronState] && !had {
			c.queue.Enqueue(m.cronKey, causeGroup, controller.PriorityNormal)
		}
	}
}

// keepPlace records what a decision says about the group of a CronJob, and wakes who has room after it.
func (c *Controller) keepPlace(s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) {
	before := s.changePlace(func(p *place) { p.group, p.known, p.claim = snap.group.name, true, d.GetGroupClaim() })
	if before.group != snap.group.name {
		c.wake(groupKey{s.namespace, before.group})
	}
	c.wake(snap.group)
}

// losePlace is for a CronJob that failed to be reconciled: nobody waits for it until there is a decision again.
func (c *Controller) losePlace(s *cronState) {
	before := s.changePlace(func(p *place) { p.known, p.claim = true, nil })
	c.wake(groupKey{s.namespace, before.group})
}

// leaveGroup forgets the place of a CronJob that is not run here any more.
func (c *Controller) leaveGroup(s *cronState) {
	before := s.changePlace(func(p *place) { *p = place{} })
	c.wake(groupKey{s.namespace, before.group})
}

func (s *cronState) placeNow() place { return s.changePlace(func(*place) {}) }

// changePlace changes the place, and returns what it was before.
func (s *cronState) changePlace(change func(*place)) (before place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.place
	change(&s.place)
	return before
}

func (s *cronState) setHadRoom(has bool) (had bool) {
	return s.changePlace(func(p *place) { p.hadRoom = has }).hadRoom
}
