package cronjob

import (
	"errors"
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

// groupKey names a group of CronJobs (CronJobOptions.group). Without a namespace it is one of the cluster.
type groupKey struct{ namespace, name string }

// groupKey is the group of that name for a CronJob.
func (c *Controller) groupKey(s *cronState, name string) groupKey {
	if c.cfg.Policies.OfCluster(name) {
		return groupKey{name: name}
	}
	return groupKey{s.namespace, name}
}

func (k groupKey) ofCluster() bool { return k.name != "" && k.namespace == "" }

// A place is what the last decision on a CronJob says about its group.
type place struct {
	group string // Empty: it has none.
	// known: there was a decision, or it failed for a reason that may last.
	known bool
	claim *jobpolicyv1.GroupClaim // nil: nobody has to wait for the CronJob.
	// hadRoom: as far as is known, the group has room for its run. So it does not wait for room.
	hadRoom bool
	// unanswered is since when the engine has not answered about the CronJob; zero: it has.
	unanswered time.Time
}

// enginePatience is how long a group waits for a CronJob about which the engine does not answer. Meanwhile the engine may be
// away for all of them, and they keep their order.
const enginePatience = time.Minute

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
	for _, s := range c.candidates(key) {
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

// candidates returns the CronJobs that may be in a group, by their namespace, in no order.
func (c *Controller) candidates(key groupKey) []*cronState {
	c.mu.Lock()
	defer c.mu.Unlock()
	var states []*cronState
	for _, s := range c.crons {
		if key.ofCluster() || s.namespace == key.namespace {
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

// room is how many runs may start now: none before there is a decision on each CronJob except the one that is asked about (nil: none is).
func (l line) room(asked *cronState) int {
	active, most := 0, 0
	for i, m := range l.members {
		if !m.known && m.cronState != asked {
			return 0
		}
		active += m.active
		if i == 0 || int(m.most) < most {
			most = int(m.most)
		}
	}
	return max(0, most-active)
}

// first returns those that need a place now and for which there is room.
func (l line) first() map[*cronState]bool {
	first := map[*cronState]bool{}
	for _, m := range l.members[:min(len(l.members), l.room(nil))] {
		if m.needs(l.now) {
			first[m.cronState] = true
		}
	}
	return first
}

// groupFacts looks at the group of a CronJob about which the engine is asked. room is how many runs may start.
func (c *Controller) groupFacts(s *cronState, key groupKey) (facts *jobpolicyv1.RunGroupFacts, room int) {
	l := c.line(key)
	s.setHadRoom(l.first()[s])
	facts = l.facts(s)
	facts.OfCluster = key.ofCluster()
	return facts, l.room(s)
}

// hasRoom reports whether the group had room for the run of a CronJob by what the engine was told, in the place that it decided on.
func (snap snapshot) hasRoom(d *jobpolicyv1.DecideCronJobResponse) bool {
	own, before := d.GetGroupClaim(), 0
	for _, other := range snap.req.GetGroup().GetClaims() {
		if own != nil && options.CompareClaims(other, own) < 0 {
			before++
		}
	}
	return own != nil && before < snap.room
}

// wake enqueues the CronJobs that wait for room in a group and have it now. One that had room before
// waits for something else, such as the end of its backoff.
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

// joinGroup records which group counts a CronJob, before the engine is asked: others may wait for its decision.
func (c *Controller) joinGroup(s *cronState, name string) {
	if before := s.changePlace(func(p *place) { p.group = name }); before.group != name {
		c.wake(c.groupKey(s, before.group))
	}
}

// keepPlace records what a decision says about the group of a CronJob, and wakes who has room after it.
func (c *Controller) keepPlace(s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) {
	s.changePlace(func(p *place) {
		*p = place{group: p.group, known: true, claim: d.GetGroupClaim(), hadRoom: snap.hasRoom(d)}
	})
	c.wake(snap.group)
}

// losePlace is for a CronJob that failed to be reconciled. If it is its turn, nobody waits for it until there is a
// decision again; else it keeps its place in the line.
func (c *Controller) losePlace(s *cronState, err error) {
	if errors.Is(err, controller.ErrEngine) && s.unansweredFor() < enginePatience {
		return
	}
	before := s.changePlace(func(p *place) {
		p.known = true
		if p.hadRoom {
			p.claim = nil
		}
	})
	c.wake(c.groupKey(s, before.group))
}

// unansweredFor is how long the engine has not answered about a CronJob, of which it does not answer now.
func (s *cronState) unansweredFor() time.Duration {
	now := time.Now()
	before := s.changePlace(func(p *place) {
		if p.unanswered.IsZero() {
			p.unanswered = now
		}
	})
	if before.unanswered.IsZero() {
		return 0
	}
	return now.Sub(before.unanswered)
}

// leaveGroup forgets the place of a CronJob that is not run here any more.
func (c *Controller) leaveGroup(s *cronState) {
	before := s.changePlace(func(p *place) { *p = place{} })
	c.wake(c.groupKey(s, before.group))
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
