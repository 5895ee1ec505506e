package explain

import (
	"fmt"
	"strings"

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
	detail := decidedBecause(w.resp.GetExplanation())
	if _, why, ok := strings.Cut(detail, " waits: "); ok {
		detail = why
	}
	w.advise("No action needed: the run starts by itself when others of the group have ended. See which are active: kubectl get cronjobs -n %s", w.Namespace)
	w.say(Waiting, "The run of %s waits for room in its group: %s.", w.when(w.due()), detail)
}

// groupText is a group as a setting.
func groupText(group *jobpolicyv1.RunGroup) string {
	return fmt.Sprintf("%s, maxActiveRuns %d", group.GetName(), group.GetMaxActiveRuns())
}
