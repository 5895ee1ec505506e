package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// roomWithin is how long a run may wait although its group has room, if nothing hinders the executors.
const roomWithin = 20 * time.Second

// groupOf is the group that a CronJob names, and how many active runs it allows; "": none.
func groupOf(cron *batchv1.CronJob) (name string, most int) {
	policy, _ := wire.PolicySpec(cron.Annotations)
	g := policy.GetCronJob().GetGroup()
	return g.GetName(), int(g.GetMaxActiveRuns())
}

func inGroup(cron *batchv1.CronJob) bool {
	name, _ := groupOf(cron)
	return name != ""
}

// members are the CronJobs of the group of one of them, itself among them, in order of UID, and the smallest number
// of active runs that one of them allows. Of a group of the cluster they are of all namespaces, and the number is the operator's.
func (j *judge) members(c *cronRecord) (members []*cronRecord, most int) {
	group, most := groupOf(c.cron)
	if group == "" {
		return nil, 0
	}
	ofCluster := group == cronGroup && j.clusterRuns > 0
	for _, uid := range sortedUIDs(j.crons) {
		other := j.crons[uid]
		if name, n := groupOf(other.cron); !other.gone && name == group && (ofCluster || other.key.Namespace == c.key.Namespace) && j.cronOurs(other) {
			members, most = append(members, other), min(most, n)
		}
	}
	if ofCluster {
		most = j.clusterRuns
	}
	return members, most
}

// ended is when a run was not active any more; zero if it still is. A run that was replaced may be kept
// by a finalizer while another one has its place.
func (r *jobRecord) ended(c *cronRecord) time.Time {
	switch {
	case !r.finishedAt.IsZero():
		return r.finishedAt
	case r.gone:
		return r.goneAt
	case r.job.DeletionTimestamp != nil && c.cron.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent:
		return r.job.DeletionTimestamp.Time
	}
	return time.Time{}
}

// eachRun calls f with the runs of the CronJobs, and with when each ended (zero: it has not).
func eachRun(crons []*cronRecord, f func(r *jobRecord, ended time.Time)) {
	for _, c := range crons {
		for _, uid := range sortedUIDs(c.jobs) {
			if r := c.jobs[uid]; isRun(r) && r.cron() == c.uid {
				f(r, r.ended(c))
			}
		}
	}
}

// groupFull reports whether a group had as many active runs as it may, or more, within the minute after a
// run was to start.
func (j *judge) groupFull(c *cronRecord, start time.Time) bool {
	members, most := j.members(c)
	n := 0
	eachRun(members, func(r *jobRecord, ended time.Time) {
		if r.created.Before(start.Add(startsWithin)) && (ended.IsZero() || !ended.Before(start)) {
			n++
		}
	})
	return len(members) > 0 && n >= most
}

// judgeGroup checks a run that starts in a group: there is room for it, it has not waited while there was, and
// nobody has waited longer.
func (j *judge) judgeGroup(w apiserver.Write, c *cronRecord, r *jobRecord) {
	members, most := j.members(c)
	if len(members) == 0 || j.rivals {
		return
	}
	active := 0
	eachRun(members, func(other *jobRecord, ended time.Time) {
		if ended.IsZero() && (isExecutor(other.createdBy) || j.old(other.created)) {
			active++
		}
	})
	if active >= most {
		j.breach("cron", r.key, r.uid, "%s started a run of CronJob %s while its group had %d of %d active runs", w.By, c.key.Name, active, most)
	}
	if at := scheduled(r.job); !at.IsZero() {
		j.judgeTurn(w, c, r, members, most)
	}
}

// judgeTurn checks that a run of the schedule starts when it is its turn.
func (j *judge) judgeTurn(w apiserver.Write, c *cronRecord, r *jobRecord, members []*cronRecord, most int) {
	since := j.waitsSince(c)
	if since.IsZero() {
		return
	}
	room := latest(since, j.roomSince(members, most))
	if late := j.now.Sub(room); late > roomWithin+j.askew() && j.hinderedUntil(since, j.now).IsZero() && c.lastStimulus.Before(since) && !c.forbids(since) {
		j.breach("cron", r.key, r.uid, "%s started a run of CronJob %s %s after its group had room", w.By, c.key.Name, late)
	}
	for _, other := range members {
		before := j.waitsSince(other)
		waits := !before.IsZero() && before.Before(j.now.Add(-roomWithin)) && (before.Before(since) || before.Equal(since) && other.key.String() < c.key.String())
		if other != c && waits && other.lastStimulus.Before(before) && !other.forbids(j.now) && j.hinderedUntil(before, j.now).IsZero() {
			j.breach("cron", r.key, r.uid, "%s started a run of CronJob %s, which waits since %s, before CronJob %s, which waits since %s",
				w.By, c.key.Name, since, other.key.Name, before)
		}
	}
}

// judgeGroupEnd: when all has been calm, no run waits for a group that has room.
func (j *judge) judgeGroupEnd(c *cronRecord) {
	members, most := j.members(c)
	since := j.waitsSince(c)
	if len(members) == 0 || since.IsZero() || maxMissedOf(c.cron) == 0 || j.passedOver(c, since, j.startOf(c.cron, since)) || c.forbids(j.now) {
		return
	}
	active := 0
	eachRun(members, func(_ *jobRecord, ended time.Time) {
		if ended.IsZero() {
			active++
		}
	})
	free := latest(latest(j.startOf(c.cron, since), j.roomSince(members, most)), latest(j.hinderedUntil(since, j.now), c.lastStimulus))
	if active < most && j.now.After(free.Add(startsWithin)) {
		j.breach("cron", c.key, c.uid, "a run waits since %s, and its group has %d of %d active runs since %s", since, active, most, free)
	}
}

// waitsSince is since when a run of a CronJob is due; zero if none is, or if the judge cannot tell.
func (j *judge) waitsSince(c *cronRecord) time.Time {
	t := j.timetable(c.cron)
	if t == nil || !j.mustRun(c) || c.cron.Spec.StartingDeadlineSeconds != nil || j.unsure(c) || c.cron.Annotations[wire.RunNow] != "" {
		return time.Time{}
	}
	since := t.after(c.base())
	if since.After(j.now) {
		return time.Time{}
	}
	return since
}

// roomSince is since when a group has had room: when it last had as many active runs as it may; zero if it always had.
func (j *judge) roomSince(members []*cronRecord, most int) (since time.Time) {
	eachRun(members, func(r *jobRecord, ended time.Time) {
		if ended.IsZero() || !ended.After(since) {
			return
		}
		active := 0 // just before this run ended
		eachRun(members, func(other *jobRecord, end time.Time) {
			if other.created.Before(ended) && (end.IsZero() || !end.Before(ended)) {
				active++
			}
		})
		if active >= most {
			since = ended
		}
	})
	return since
}
