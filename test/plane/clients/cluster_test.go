package clients

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/must"
)

var (
	clusterFlag = flag.String("clients.cluster", "", "run the scenarios once, on the cluster of this kubeconfig `file`, with whoever runs Jobs there; the clients are installed")
	againstFlag = flag.String("clients.against", "", "with -clients.cluster: compare with what an earlier run wrote into this `folder`")
)

// own is the side of a cluster of one's own.
const own side = "own"

// TestOwnCluster runs scenarios on a cluster of one's own. Two such runs, one under each controller, can be compared.
func TestOwnCluster(t *testing.T) {
	if *clusterFlag == "" {
		t.Skip("-clients.cluster is not set")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *clusterFlag)
	must.Succeed(t, err)
	config.QPS = -1
	for _, c := range all {
		if c.here {
			continue
		}
		scenarios := c.scenarios(t)
		recordings := stage{*clusterFlag, config, own}.playAll(t, c, scenarios)
		for _, scenario := range scenarios {
			if *againstFlag == "" {
				continue
			}
			before := readLines(t, filepath.Join(*againstFlag, fileName(c, scenario, own)+".txt"))
			t.Run(scenario, func(t *testing.T) { compareLines(t, c.name+"/"+scenario, before, recordings[scenario].lines) })
		}
	}
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	must.Succeed(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
