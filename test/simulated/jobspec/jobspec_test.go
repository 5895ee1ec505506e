package jobspec

import (
	"math/rand/v2"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

func source(seed uint64) Source {
	return Source{Rand: rand.New(rand.NewPCG(seed, 0)), Style: Style{Most: 5, Together: 20, Retries: 3, IndexRetries: 2}}
}

// Every field that is drawn occurs, and every value of it.
func TestEveryFieldIsDrawn(t *testing.T) {
	specs := make([]batchv1.JobSpec, 2000)
	for seed := range specs {
		specs[seed] = source(uint64(seed)).Spec()
	}
	occurs := func(has func(*batchv1.JobSpec) bool) bool {
		for i := range specs {
			if has(&specs[i]) {
				return true
			}
		}
		return false
	}
	for _, f := range Fields {
		if f.set == nil {
			continue
		}
		if f.Name != "many pods" && !occurs(f.Has) { // Only Widen draws them.
			t.Errorf("no spec has %s", f.Name)
		}
		for _, v := range f.Values {
			if !occurs(v.Has) {
				t.Errorf("no spec has %s: %s", f.Name, v.Name)
			}
		}
	}
}

// A shrinker that goes on with the first simpler spec comes to an end, and nothing that can be
// removed is left.
func TestSimplerComesToAnEnd(t *testing.T) {
	for seed := range uint64(200) {
		spec := source(seed).Spec()
		source(seed).Widen(&spec, 30)
		if !Fields[3].Has(&spec) {
			t.Fatalf("seed %d: %d pods at once are not many", seed, *spec.Parallelism)
		}
		steps := 0
		for simpler := Simpler(&spec); len(simpler) > 0; simpler = Simpler(&spec) {
			spec = simpler[0]
			if steps++; steps > 2*len(Fields) {
				t.Fatalf("seed %d: still simpler after %d steps", seed, steps)
			}
		}
		if CanEnd(&spec) || len(ContainerNames(&spec)) != 1 || *spec.Parallelism > 1 {
			t.Errorf("seed %d: the simplest spec has limits, policies, containers or pods left: %+v", seed, spec)
		}
	}
}
