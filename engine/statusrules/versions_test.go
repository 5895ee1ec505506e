package statusrules_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/engine/statusrules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func nanoseconds(n int32) fact {
	return func(s *jobpolicyv1.JobStatus) { s.StartTime.Nanos = n }
}

// The versions whose API server refuses an update, by the gate JobManagedBy.
func TestVersions(t *testing.T) {
	cases := map[string]struct {
		testCase
		// since and until bound the versions that refuse; 0 and 0 if none does.
		withGate, withoutGate [2]int32
	}{
		"a negative count":     {testCase{after: []fact{active(-1)}}, [2]int32{30, 37}, [2]int32{29, 34}},
		"failed decreases":     {testCase{before: []fact{failed(1)}}, [2]int32{30, 37}, [2]int32{}},
		"both interim at once": {testCase{after: []fact{yes(isCriteriaMet), yes(isFailureTarget)}}, [2]int32{30, 37}, [2]int32{30, 34}},
		"SuccessCriteriaMet for a Job that is not Indexed": {
			testCase{after: []fact{yes(isCriteriaMet)}}, [2]int32{30, 30}, [2]int32{30, 30},
		},
		"SuccessCriteriaMet for an Indexed Job without success policy": {
			testCase{spec: []tweak{indexedOf(1)}, after: []fact{yes(isCriteriaMet)}}, [2]int32{30, 30}, [2]int32{30, 30},
		},
		"SuccessCriteriaMet for a Job with success policy": {
			testCase{spec: []tweak{indexedOf(1), successPolicy}, after: []fact{yes(isCriteriaMet)}}, [2]int32{}, [2]int32{},
		},
		"Failed out of the blue":       {testCase{after: []fact{start(5), yes(isFailed)}}, [2]int32{31, 37}, [2]int32{}},
		"Complete out of the blue":     {testCase{after: []fact{start(5), completion(9), yes(isComplete)}}, [2]int32{31, 37}, [2]int32{}},
		"more ready than active":       {testCase{after: []fact{ready(1)}}, [2]int32{31, 37}, [2]int32{}},
		"Failed with terminating pods": {testCase{before: failing, after: plus(hasFailed, terminating(1))}, [2]int32{31, 37}, [2]int32{}},
		"start moves":                  {testCase{before: []fact{start(5)}, after: []fact{start(6)}}, [2]int32{30, 37}, [2]int32{}},
		"start moves by a resume":      {testCase{before: []fact{start(5), yes(isSuspended)}, after: []fact{start(6), no(isSuspended)}}, [2]int32{30, 31}, [2]int32{}},
		"suspended, and nothing to do, fails": {
			testCase{spec: []tweak{suspend, completions(0)}, after: []fact{yes(isFailureTarget), yes(isFailed)}}, [2]int32{30, 31}, [2]int32{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for gate, refused := range map[bool][2]int32{true: tc.withGate, false: tc.withoutGate} {
				want, got := "", ""
				for minor := int32(statusrules.OldestMinor); minor <= statusrules.NewestMinor; minor++ {
					if !statusrules.GateSettable(minor, gate) {
						continue
					}
					want += fmt.Sprintln(minor, refused[0] <= minor && minor <= refused[1])
					server := statusrules.APIServer{Minor: minor, JobManagedBy: gate}
					got += fmt.Sprintln(minor, len(server.Check(tc.transition())) > 0)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("with the gate %t, refused (-want +got):\n%s", gate, diff)
				}
			}
		})
	}
}

func TestDefaultGates(t *testing.T) {
	for minor := int32(statusrules.OldestMinor); minor <= statusrules.NewestMinor; minor++ {
		on := statusrules.Default(minor).JobManagedBy
		if on != (minor >= 32) || !statusrules.GateSettable(minor, on) {
			t.Errorf("v1.%d: gate %t", minor, on)
		}
	}
}
