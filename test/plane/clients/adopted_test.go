package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
)

// asking is a client with a few files of ours, which ask the engine (docs/adopt.md). It plays beside our executor; beside the
// built-in controllers, the client as it is does.
func asking(asIs client, prepare func(*testing.T, *cluster.Cluster) manager) client {
	name := asIs.name + "-with-engine"
	return client{
		name:    name,
		plays:   asIs.name,
		needs:   append(slices.Clone(asIs.needs), name),
		objects: asIs.objects,
		alone:   asIs.alone,
		install: func(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
			t.Helper()
			asIs := prepare(t, plane)
			return func(t *testing.T, s side) {
				t.Helper()
				if s == builtin {
					asIs.start(t, plane)
					return
				}
				asIs.asking(startEngine(t, engineProgram(t))).startAndMeasure(t, plane)
			}
		},
	}
}

// asking is the manager of a client that asks an engine, in place of the client as it is.
func (m manager) asking(e *engine) manager {
	name := m.name + "-with-engine"
	command := slices.Clone(m.command)
	command[slices.Index(command, m.name)] = name
	return manager{name, slices.Concat(e.variables(), command, []string{"--zap-log-level=4"}), m.readyURL}
}

// startAndMeasure is start; when the test ends, it says how many questions were asked, and how long they took.
func (m manager) startAndMeasure(t *testing.T, plane *cluster.Cluster) {
	t.Helper()
	log := m.start(t, plane)
	t.Cleanup(func() {
		for method, took := range questions(t, log) {
			slices.Sort(took)
			t.Logf("%s: %d calls, median %s, p99 %s", method, len(took), took[len(took)/2], took[len(took)*99/100])
		}
	})
}

// question is the line of the log about an answered question.
var question = regexp.MustCompile(`asked the policy engine.*"method": ?"/jobpolicy.v1.PolicyService/(\w+)".*"microseconds": ?(\d+)`)

// questions reads how long each answered question of a manager took.
func questions(t *testing.T, log string) map[string][]time.Duration {
	t.Helper()
	text, err := os.ReadFile(log)
	must.Succeed(t, err)
	took := map[string][]time.Duration{}
	for _, m := range question.FindAllSubmatch(text, -1) {
		us, _ := strconv.Atoi(string(m[2])) // The pattern has digits only.
		took[string(m[1])] = append(took[string(m[1])], time.Duration(us)*time.Microsecond)
	}
	return took
}

// test runs tests of the client, and ours beside them.
func (c client) test(t *testing.T, e *engine, pkg string, flags ...string) (string, error) {
	t.Helper()
	source := filepath.Join(programsDir(t), "source", c.name)
	env := append(e.variables(), "GOWORK=off", "KUBEBUILDER_ASSETS="+servers(t))
	return tryGo(t, source, env, append([]string{"test", "-mod=mod", "-count=1", "-timeout=20m", pkg}, flags...)...)
}

// servers is a folder with the servers that tests of controllers start.
func servers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, server := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf("#!/bin/sh\nexec %s/jobpolicy-local %s \"$@\"\n", executables.MustDir(t), server)
		must.Succeed(t, os.WriteFile(filepath.Join(dir, server), []byte(script), 0o755))
	}
	return dir
}

// conformance runs the conformance kit.
func (e *engine) conformance(t *testing.T) (string, error) {
	t.Helper()
	root, err := executables.Repository()
	must.Succeed(t, err)
	file := func(name string) string { return filepath.Join(e.certificates, name) }
	return tryGo(t, root, nil, "run", "./services/cmd/jobpolicy-conformance", "--address", "dns:///"+e.address,
		"--engine-ca-file", file("ca.crt"), "--engine-cert-file", file("tls.crt"), "--engine-key-file", file("tls.key"))
}

// failed are the names of the tests and specs that failed.
func failed(out string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\w+)|^  \[FAIL\] (.*)`).FindAllStringSubmatch(out, -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}

// benchmarks are the lines about benchmarks.
func benchmarks(out string) string {
	return strings.Join(regexp.MustCompile("(?m)^Benchmark.*").FindAllString(out, -1), "\n")
}
