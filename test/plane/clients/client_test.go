package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
)

// A client is a program that creates Jobs.
type client struct {
	// name is that of its scenarios in testdata.
	name string
	// needs are the programs in bin/clients that it and its scenarios run.
	needs []string
	// objects are recorded besides Jobs, CronJobs, pods and events.
	objects []schema.GroupVersionResource
	// plays is another client, whose scenarios it plays; empty: it has its own.
	plays string
	// here says that it needs something of the test, which a cluster of one's own does not reach.
	here bool
	// install puts it on a control plane and starts it; nil: its scenarios start it. What it returns, if anything, is called
	// once a side has taken over, and starts what only runs while that side does.
	install func(t *testing.T, plane *cluster.Cluster) (begin func(*testing.T, side))
	// alone are scenarios that nothing else runs beside.
	alone []string
	// worker is a second control plane, which is recorded, too; nil: there is none. Scenarios have its kubeconfig in $WORKER.
	worker *cluster.Cluster
}

// programsDir is where build.sh puts programs.
func programsDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(executables.MustDir(t), "clients")
}

// missing returns those that are not built.
func (c client) missing(t *testing.T) []string {
	var names []string
	for _, name := range c.needs {
		if _, err := os.Stat(filepath.Join(programsDir(t), name)); errors.Is(err, os.ErrNotExist) {
			names = append(names, name)
		}
	}
	return names
}

// moduleDir is the folder in the module cache of the module that a program below programs is built from.
func moduleDir(t *testing.T, program, module string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Env = filepath.Join("programs", program), append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("find %s: %v", module, err)
	}
	return string(bytes.TrimSpace(out))
}

// A manager is the program of a client that runs beside the control plane.
type manager struct {
	name string
	// command is the program and its arguments; the folder of bin/clients is in PATH.
	command []string
	// readyURL answers with 200 when it is ready; empty: who starts it waits for something else.
	readyURL string
}

// start starts a manager as the administrator of a control plane, waits until it is ready, and stops it when the
// test ends. If the test has failed, its log is kept. It returns the file of the log.
func (m manager) start(t *testing.T, plane *cluster.Cluster) string {
	t.Helper()
	logFile, err := os.CreateTemp("", "client-"+m.name+"-*.log")
	must.Succeed(t, err)
	process := exec.CommandContext(context.WithoutCancel(t.Context()), "env", m.command...)
	process.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig(), "PATH="+programsDir(t)+":"+os.Getenv("PATH"))
	process.Stdout, process.Stderr = logFile, logFile
	must.Succeed(t, process.Start())
	t.Cleanup(func() { m.stop(t, process, logFile) })
	if m.readyURL == "" {
		return logFile.Name()
	}
	controlplane.Eventually(t, m.name+" is ready", func() (bool, string) {
		response, err := http.Get(m.readyURL)
		if err != nil {
			return false, fmt.Sprintf("%v; its log is %s", err, logFile.Name())
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
	return logFile.Name()
}

func (m manager) stop(t *testing.T, process *exec.Cmd, logFile *os.File) {
	_ = process.Process.Signal(syscall.SIGTERM) // it may have ended
	if err := process.Wait(); err != nil {
		t.Errorf("%s ended with: %v", m.name, err)
	}
	_ = logFile.Close()
	if t.Failed() {
		t.Logf("the log of %s is %s", m.name, logFile.Name())
		return
	}
	_ = os.Remove(logFile.Name())
}
