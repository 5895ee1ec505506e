package specs

import (
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

func TestTable(t *testing.T) {
	deletes, gang := named("Job deletes"), named("Job has a gang")
	deletes.Conformance, gang.Gates = true, []string{"A", "B"}
	results := []Result{
		{Spec: named("TTL ends"), Failure: "no", Seconds: 900},
		{Spec: deletes, Passed: true, Seconds: 12.34},
		{Spec: named("CronJob counts"), Skipped: "needs two nodes", Seconds: 0.04},
	}
	left := []Left{{gang, reasonGate}, {named("CronJob waits"), reasonLong}}
	want := `RESULT   SECONDS  SPEC (c: Conformance)
skipped      0.0    CronJob counts (needs two nodes)
not run        -    CronJob waits (takes more than two minutes)
ok          12.3  c Job deletes
not run        -    Job has a gang (feature gate off: A, B)
FAILED     900.0    TTL ends
1 specs passed, 1 failed, 1 skipped; 2 not run
`
	must.Equal(t, "table", want, Table(results, left))
}
