package world

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// readable reports whether the options that a CronJob asks for can be read. A CronJob of a world
// that has some which cannot be read has them from the beginning: nobody knows the last ones.
func readable(cron *batchv1.CronJob) bool {
	_, problems := wire.PolicySpec(cron.Annotations)
	return len(problems) == 0
}
