package clients

import (
	"os"
	"path/filepath"
	"testing"
)

// kueueOwnSpecs are those of Kueue's own end-to-end specs that create Jobs.
var kueueOwnSpecs = ownSpecs{
	client: client{name: "kueue-specs", needs: []string{"kueue", "kueue-specs-singlecluster", "kueue-specs-tas"}},
	suites: []suite{{"kueue-specs-singlecluster", false}, {"kueue-specs-tas", true}},
	runs:   kueueRuns,
	leaves: kueueLeaves,
}

// Reasons for which a spec of Kueue's does not run.
const (
	noJob        = "it creates no Job"
	byExec       = "it runs a command in a container (exec), which a node without containers does not"
	byService    = "the API server reaches what it asks by a Service only, and Kueue is a process here"
	byPrometheus = "it needs Prometheus"
)

// kueueRuns are how the texts of those specs begin that run, kueueLeaves those of the others. Each spec is in one of them.
var (
	kueueRuns = []string{
		"Kueue when Creating a",
		"Kueue v1beta1 ",
		"ConcurrentAdmission ",
		"Fair Sharing ",
		"TopologyAwareScheduling when Creating a Job ",
		"TopologyAwareScheduling when Scaling a Job ",
		"TopologyAwareScheduling for Job ",
		"Hotswap for Topology Aware Scheduling ",
	}
	kueueLeaves = []leftSpec{
		{"Kueue when Scaling down an elastic Indexed Job ", byExec},
		{"Metrics ", byExec},
		{"Kueue visibility server ", byService},
		{"Aggregated OpenAPI ", byService},
		{"Prometheus ", byPrometheus},
		{"Kueuectl ", noJob},
		{"Deployment ", noJob},
		{"StatefulSet integration ", noJob},
		{"Pod groups ", noJob},
		{"TopologyAwareScheduling when Creating a Pod ", noJob},
		{"TopologyAwareScheduling for StatefulSet ", noJob},
		{"TopologyAwareScheduling for Pod group ", noJob},
	}
)

// TestKueuesOwnSpecs needs the label filter, without which the program waits for Prometheus before anything runs. PROJECT_DIR is
// any folder in that of Kueue's module: the program looks for files beside it.
func TestKueuesOwnSpecs(t *testing.T) {
	kueueOwnSpecs.need(t, kueueOwnSpecs.asked())
	module := moduleDir(t, "kueue", "sigs.k8s.io/kueue")
	r := kueueOwnSpecs.prepare(t, specRun{
		env:   []string{"PROJECT_DIR=" + filepath.Join(module, "bin")},
		flags: []string{"-ginkgo.label-filter=!feature:prometheus"},
	})
	plane, programs := startKueueSpecsPlane(t, module)
	r.env = append(r.env, "PATH="+programs+":"+os.Getenv("PATH"))
	r.compare(t, plane)
}
