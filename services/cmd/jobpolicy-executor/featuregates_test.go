package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"jobpolicy.dev/services/internal/testenv"
)

func TestFeatureGates(t *testing.T) {
	cases := map[string]struct {
		args []string
		want featureGates
	}{
		"none": {nil, featureGates{}},
		"gangs on": {
			[]string{"--feature-gates=WorkloadWithJob=true"},
			featureGates{workloadWithJob: true},
		},
		"the start time stays": {
			[]string{"--feature-gates=MutableSchedulingDirectivesForSuspendedJobs=false"},
			featureGates{keepStartTimeOnSuspend: true},
		},
		"several, with spaces": {
			[]string{"--feature-gates", "WorkloadWithJob=true, MutableSchedulingDirectivesForSuspendedJobs=false,"},
			featureGates{workloadWithJob: true, keepStartTimeOnSuspend: true},
		},
		"several flags, of which the last one counts": {
			[]string{
				"--feature-gates=WorkloadWithJob=true", "--feature-gates=MutableSchedulingDirectivesForSuspendedJobs=false",
				"--feature-gates=WorkloadWithJob=false",
			},
			featureGates{keepStartTimeOnSuspend: true},
		},
		"what is always true": {
			[]string{"--feature-gates=JobBackoffLimitPerIndex=true,JobManagedBy=true,JobPodReplacementPolicy=true,JobSuccessPolicy=true," +
				"SidecarContainers=true,StaleControllerConsistencyJob=true"},
			featureGates{},
		},
		"the defaults by name": {
			[]string{"--feature-gates=WorkloadWithJob=false,MutableSchedulingDirectivesForSuspendedJobs=true"},
			featureGates{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got featureGates
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			fs.Var(&got, "feature-gates", "")
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			got.given = nil
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(featureGates{})); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFeatureGatesThatAreRefused(t *testing.T) {
	cases := map[string]struct{ value, want string }{
		"a name that is unknown":          {"WorkloadWithJobs=true", "unrecognized feature gate: WorkloadWithJobs; there are JobBackoffLimitPerIndex, JobManagedBy, "},
		"a gate of other components":      {"GenericWorkload=true", "unrecognized feature gate: GenericWorkload; there are "},
		"no value":                        {"WorkloadWithJob", "missing bool value for WorkloadWithJob"},
		"no truth value":                  {"WorkloadWithJob=yes", "WorkloadWithJob=yes: neither true nor false"},
		"a gate that is locked upstream":  {"JobManagedBy=false", "cannot set feature gate JobManagedBy to false: it is locked to true in Kubernetes"},
		"a gate that is gone upstream":    {"SidecarContainers=false", "cannot set feature gate SidecarContainers to false: Kubernetes v1.37 has no such gate any more"},
		"consistency is not given up":     {"StaleControllerConsistencyJob=false", "cannot set feature gate StaleControllerConsistencyJob to false: an executor never acts on a view"},
		"one bad gate behind a good one":  {"WorkloadWithJob=true,JobSuccessPolicy=false", "JobSuccessPolicy to false"},
		"a value that belongs to another": {"=true", "unrecognized feature gate: ; there are"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var g featureGates
			testenv.WantError(t, g.Set(tc.value), tc.want)
		})
	}
}
