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
	// install starts it on a control plane; nil: its scenarios start it.
	install func(t *testing.T, plane *cluster.Cluster)
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

// startManager starts a program of a client as the administrator of a control plane, waits until readyURL
// answers, and stops it when the test ends. If the test has failed, its log is kept.
func startManager(t *testing.T, plane *cluster.Cluster, name, readyURL string, args ...string) {
	t.Helper()
	logFile, err := os.CreateTemp("", "client-"+name+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	manager := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(programsDir(t), name), args...)
	manager.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
	manager.Stdout, manager.Stderr = logFile, logFile
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopManager(t, manager, logFile) })
	controlplane.Eventually(t, name+" is ready", func() (bool, string) {
		response, err := http.Get(readyURL)
		if err != nil {
			return false, fmt.Sprintf("%v; its log is %s", err, logFile.Name())
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}

func stopManager(t *testing.T, manager *exec.Cmd, logFile *os.File) {
	_ = manager.Process.Signal(syscall.SIGTERM) // it may have ended
	if err := manager.Wait(); err != nil {
		t.Errorf("%s ended with: %v", manager.Path, err)
	}
	_ = logFile.Close()
	if t.Failed() {
		t.Logf("the log of %s is %s", manager.Path, logFile.Name())
		return
	}
	_ = os.Remove(logFile.Name())
}
