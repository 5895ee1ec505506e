package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/services/internal/servicemain"
)

// Values of --mode.
const (
	manageMode = "manage"
	shadowMode = "shadow"
)

// modeOptions say whether to manage Jobs, or only to compare decisions (shadow mode).
type modeOptions struct {
	mode string
	rest time.Duration
}

func (o *modeOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.mode, "mode", manageMode, "manage: act on Jobs. shadow: write nothing, neither to Jobs nor events nor a lease; ask the engine about the Jobs, CronJobs and times to live of the built-in controllers whenever they are at rest, and report on /debug/differences, in metrics and in the log where it would act.")
	fs.DurationVar(&o.rest, "shadow-rest", shadow.DefaultRest, "With --mode=shadow: how long nothing must happen to an object before the engine is asked about it, and how long the engine must then say the same before a difference is reported.")
}

func (o *modeOptions) shadow() bool { return o.mode == shadowMode }

// validate checks the flags, and that the others go together with --mode=shadow.
func (o *modeOptions) validate(all *options) error {
	var errs servicemain.Problems
	errs.Require(o.mode == manageMode || o.mode == shadowMode, "--mode must be %s or %s, is %q", manageMode, shadowMode, o.mode)
	errs.Require(o.rest > 0, "--shadow-rest must be above 0s, is %s", o.rest)
	if !o.shadow() {
		return errors.Join(errs...)
	}
	errs.Require(!all.jobs.replaceBuiltin, "--mode=shadow excludes --replace-builtin: the built-in controllers must run to be compared with")
	errs.Require(!all.certs.enabled(), "--mode=shadow excludes --certificate-authority-secret: nothing is written")
	errs.Require(!all.jobs.gates.workloadWithJob, "--mode=shadow excludes the feature gate WorkloadWithJob: gangs are not compared")
	return errors.Join(errs...)
}

// newReport returns nil except in shadow mode. In shadow mode every client that is made
// from api from now on only reads.
func (o *modeOptions) newReport(api *rest.Config, t executor.Telemetry) (*shadow.Report, error) {
	if !o.shadow() {
		return nil, nil
	}
	api.Wrap(shadow.ReadOnly)
	return shadow.NewReport(shadow.Config{Rest: o.rest, Registerer: t.Registerer, Logger: t.Logger})
}
