package parity

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// newSpec makes a spec. Every pair of fields occurs together in some case.
func (g *generator) newSpec() batchv1.JobSpec {
	source := jobspec.Source{Rand: g.Rand, Style: jobspec.Style{Most: 5, Together: 60, Retries: 2, IndexRetries: 1}}
	spec := source.Spec()
	g.addOrigin(&spec)
	switch {
	case !g.foreign && g.chance(8):
		g.expire = true
	case g.chance(8):
		spec.ActiveDeadlineSeconds = new(int64(90000))
	}
	g.containers = jobspec.ContainerNames(&spec)
	return spec
}

// addOrigin sets who manages the Job, and how it selects its pods.
func (g *generator) addOrigin(spec *batchv1.JobSpec) {
	switch k := g.IntN(100); {
	case k < 8:
		managedBy(ownManager)(spec)
	case k < 12:
		managedBy(batchv1.JobControllerName)(spec)
	case k < 16:
		managedBy(jobspec.AnotherManager)(spec)
		g.foreign = true
	}
	if g.chance(12) {
		ownSelector(spec)
	}
	if g.chance(5) {
		spec.TTLSecondsAfterFinished = new(int32(5000))
	}
}
