package explain

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/cronruns"
)

// GroupOf is the group that a CronJob names (CronJobOptions.group); nil: none.
func GroupOf(cron *batchv1.CronJob) *jobpolicyv1.RunGroup {
	return wire.CronJobSpec(cron, false, "").GetOptions().GetGroup()
}

// groupFacts asks the engine about the others in the CronJob's group, and returns what it has to know of them. Others
// that it refuses are left out.
func (w *cronWork) groupFacts(decide DecideCronJob) *jobpolicyv1.RunGroupFacts {
	group := GroupOf(w.CronJob)
	if group == nil {
		return nil
	}
	facts := &jobpolicyv1.RunGroupFacts{}
	for i := range w.Others {
		cron := &w.Others[i]
		theirs := GroupOf(cron)
		if theirs == nil || theirs.GetName() != group.GetName() || cron.UID == w.CronJob.UID || cronruns.HandedOver(cron) != w.handedOver() {
			continue
		}
		other := &cronWork{CronFacts: CronFacts{CronJob: cron, Jobs: w.Jobs, Zone: w.Zone, Now: w.Now}, owned: ownedBy(cron, w.Jobs), plan: cronruns.PlanOf(cron, w.Zone)}
		resp, err := other.ask(decide)
		if err != nil {
			continue
		}
		other.runs()
		facts.ActiveRuns += int32(len(other.Active))
		if most := theirs.GetMaxActiveRuns(); facts.GetMaxActiveRuns() == 0 || most < facts.GetMaxActiveRuns() {
			facts.MaxActiveRuns = most
		}
		if claim := resp.GetGroupClaim(); claim != nil {
			facts.Claims = append(facts.Claims, claim)
		}
	}
	return facts
}

// groupFull: a run is due, and its group has no room.
func (w *cronWork) groupFull() {
	if w.waitsInCluster("The run of "+w.when(w.due()), false) {
		return
	}
	detail := afterWaits(decidedBecause(w.resp.GetExplanation()))
	w.advise("No action needed: the run starts by itself when others of the group have ended. See which are active: kubectl get cronjobs -n %s", w.Namespace)
	w.say(Waiting, "The run of %s waits for room in its group: %s.", w.when(w.due()), detail)
}

func afterWaits(text string) string {
	if _, why, ok := strings.Cut(text, " waits: "); ok {
		return why
	}
	return text // of another version
}

// waitingForGroup is the reason of the executor's event on a CronJob whose run waits in a group of the cluster, and
// staleGroupWait is when it is too old to count: the executor repeats it every 30 minutes.
const (
	waitingForGroup = "WaitingForGroup"
	staleGroupWait  = 40 * time.Minute
)

// waitsInCluster: a run waits in a group of the cluster, as the executor has told since the CronJob waits. Only the executor
// knows which groups these are, and who asks here may not be allowed to see the CronJobs of other namespaces.
func (w *cronWork) waitsInCluster(run string, byHand bool) bool {
	if GroupOf(w.CronJob) == nil {
		return false
	}
	since := latestOf(w.resp.GetGroupClaim().GetSince().AsTime(), w.Now.Add(-staleGroupWait))
	for _, job := range w.owned {
		if wire.IsRun(job) {
			since = latestOf(since, job.CreationTimestamp.Time)
		}
	}
	last := latest(w.Events, waitingForGroup)
	if last == nil || strings.Contains(last.Message, "manual run") != byHand || Seen(last).Before(since) {
		return false
	}
	w.advise("No action needed: the run starts by itself when others of the group have ended. The operator of the cluster says how many runs of all namespaces may be active (--cluster-group of the executor); who may list CronJobs of all namespaces sees them: kubectl get cronjobs -A")
	w.say(Waiting, "%s waits for room in its group, which is one of the cluster: %s. The executor said so %s.", run, afterWaits(last.Message), w.ago(Seen(last)))
	return true
}
