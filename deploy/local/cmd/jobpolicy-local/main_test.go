package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
)

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		args       []string
		wantCode   int
		wantStdout string // part of it
		wantStderr string
	}{
		"no command":                   {nil, exitUsage, "", "Usage:"},
		"help":                         {[]string{"help"}, exitOK, "jobpolicy-local up", ""},
		"-h":                           {[]string{"-h"}, exitOK, "jobpolicy-local up", ""},
		"an unknown command":           {[]string{"down"}, exitUsage, "", `no command "down"`},
		"up -h":                        {[]string{"up", "-h"}, exitOK, "", "-keep"},
		"node -h":                      {[]string{"node", "-h"}, exitOK, "", "-crash-backoff-base"},
		"up with an unknown flag":      {[]string{"up", "--x"}, exitUsage, "", "flag provided but not defined: -x"},
		"up with an argument":          {[]string{"up", "x"}, exitUsage, "", `up: unexpected argument "x"`},
		"up with half an argument":     {[]string{"up", "--arg", "node"}, exitUsage, "", "want component=--flag=value"},
		"up without its executables":   {[]string{"up", "--bin-dir", "/nonexistent"}, exitError, "", "/nonexistent/jobpolicy-engine"},
		"up with an unknown node":      {[]string{"up", "--node", "x"}, exitUsage, "", "want processes or containers"},
		"load without a file":          {[]string{"load"}, exitUsage, "", "want a FILE"},
		"load where nothing runs":      {[]string{"load", "--state-dir=/nonexistent", "x.tar"}, exitError, "", "no cluster with containers runs in /nonexistent"},
		"namespaces of the machine":    {[]string{"namespaces"}, exitError, "", "not the first of a process namespace"},
		"a node without a kubeconfig":  {[]string{"node"}, exitError, "", "Kubeconfig: must be set"},
		"a component that is not ours": {[]string{"up", "--arg", "x=--y"}, exitError, "", `no component is called "x"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			var stdout, stderr bytes.Buffer
			if code := run(tc.args, &stdout, &stderr); code != tc.wantCode {
				t.Errorf("exit code %d, want %d", code, tc.wantCode)
			}
			if !strings.Contains(stdout.String(), tc.wantStdout) || (tc.wantStdout == "") != (stdout.Len() == 0) {
				t.Errorf("standard output is %q, want a part %q", stdout.String(), tc.wantStdout)
			}
			if !strings.Contains(stderr.String(), tc.wantStderr) || (tc.wantStderr == "") != (stderr.Len() == 0) {
				t.Errorf("standard error is %q, want a part %q", stderr.String(), tc.wantStderr)
			}
		})
	}
}

func TestUpOptions(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	self, err := os.Executable()
	must.Succeed(t, err)
	cases := map[string]struct {
		args []string
		want cluster.Options
	}{
		"kept state has a fixed place": {
			args: []string{"--keep"},
			want: cluster.Options{
				StateDir: filepath.Join(state, "jobpolicy-local"), Keep: true,
				BinDir: filepath.Dir(self), LocalPath: self,
			},
		},
		"everything chosen": {
			args: []string{
				"--state-dir=/s", "--bin-dir=/b", "--without-engine", "--without-executor",
				"--arg=node=--a=1", "--arg", "node=--b=c=d",
				"--node=containers", "--node-bin-dir=/n", "--image=/i.tar", "--image=/j.tar",
			},
			want: cluster.Options{
				StateDir: "/s", BinDir: "/b", LocalPath: self,
				WithoutEngine: true, WithoutExecutor: true,
				Node: cluster.Containers, NodeBinDir: "/n", Images: []string{"/i.tar", "/j.tar"},
				ExtraArgs: map[string][]string{"node": {"--a=1", "--b=c=d"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseUpFlags(tc.args, os.Stderr)
			must.Succeed(t, err)
			if _, err := chooseStateDir(&got); err != nil {
				t.Fatal(err)
			}
			must.Equal(t, "options", tc.want, got)
		})
	}
}

func TestPrinter(t *testing.T) {
	steps := []cluster.Progress{
		{Component: "a", State: cluster.Starting},
		{Component: "b", State: cluster.Starting},
		{Component: "a", State: cluster.Ready, Elapsed: time.Second},
		{Component: "b", State: cluster.Waiting, Elapsed: 5 * time.Second, Detail: "why"},
		{Component: "b", State: cluster.Ready, Elapsed: 6 * time.Second},
	}
	cases := map[string]struct {
		terminal bool
		want     string
	}{
		"elsewhere than on a terminal, one line for what has changed": {
			want: "a                        ready after 1s\n" +
				"b                        not ready after 5s: why\n" +
				"b                        ready after 6s\n",
		},
		"on a terminal, the last line says what is under way": {
			terminal: true,
			want: eraseLine + "… a" +
				eraseLine + "… a, b" +
				eraseLine + "a                        ready after 1s\n" +
				eraseLine + "… b" +
				eraseLine + "b                        not ready after 5s: why\n" +
				eraseLine + "… b" +
				eraseLine + "b                        ready after 6s\n" +
				eraseLine,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := &printer{w: &out, terminal: tc.terminal}
			for _, s := range steps {
				p.step(s)
			}
			p.finish()
			must.Equal(t, "output", tc.want, out.String())
		})
	}
}
