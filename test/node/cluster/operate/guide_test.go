package operate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/documents/guide"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/node/cluster/shared"
)

// section is what the test does beside the commands of one section of the page.
type section struct {
	// before runs before each command; i counts the commands of the section from
	// 0 on. nil: nothing.
	before func(t *testing.T, i int)
	// after runs when the commands of the section have run.
	after func(t *testing.T)
}

// sections are those with something to do, by their heading: the Jobs under way,
// and what a person does that is no command.
func sections() map[string]section {
	var load func(*testing.T)
	beginWith := func(t *testing.T, i int, every time.Duration, unfinished int) {
		if i == 0 {
			load = startLoad(t, every, unfinished)
		}
	}
	begin := func(t *testing.T, i int) { beginWith(t, i, 2*time.Second, underWay/3) }
	finish := func(t *testing.T) { load(t) }
	return map[string]section{
		"Why does a Job stand still?": {after: openPage},
		"Rotate certificates": {before: begin, after: func(t *testing.T) {
			// The kubelet brings another certificate into the pods within a minute or so.
			sleep(t, 75*time.Second)
			finish(t)
		}},
		"Upgrade": {
			before: func(t *testing.T, i int) {
				begin(t, i)
				mixVersions(t)
			},
		},
		"Go back":         {after: finish},
		"A pod is killed": {before: begin, after: killAndFreeze(finish)},
		"The engine is away": {
			before: func(t *testing.T, i int) {
				// All these Jobs wait for the engine, and come the whole time.
				beginWith(t, i, max(2*time.Second, *away/underWay), underWay)
				if i == 1 {
					sleep(t, *away)
				}
			},
			after: finish,
		},
		"Migrate from the built-in controllers": {
			before: func(t *testing.T, i int) {
				if i == 0 {
					switchBuiltIn(t, false)
				}
			},
			after: migrate,
		},
		"And back":  {after: func(t *testing.T) { switchBuiltIn(t, true) }},
		"Uninstall": {after: nothingIsLeft},
	}
}

// The commands of docs/operate.md work, in their order, and no Job suffers.
func TestGuide(t *testing.T) {
	page := filepath.Join(top, "docs", "operate.md")
	steps, err := guide.Read(page)
	must.Succeed(t, err)
	do := sections()
	env, err := environment()
	must.Succeed(t, err)
	shell := guide.Shell{Dir: top, Env: env}
	for i, step := range steps {
		first := i
		for first > 0 && steps[first-1].Heading == step.Heading {
			first--
		}
		act := do[step.Heading]
		if act.before != nil {
			act.before(t, i-first)
		}
		run(t, shell, step)
		if last := i+1 == len(steps) || steps[i+1].Heading != step.Heading; last && act.after != nil {
			act.after(t)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for heading := range do {
		if !hasHeading(steps, heading) {
			t.Errorf("the test knows a section %q, which the page does not have", heading)
		}
	}
}

func run(t *testing.T, shell guide.Shell, step guide.Step) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	output, err := shell.Run(ctx, step)
	t.Logf("operate.md:%d, %s: %s\n%s", step.Line, step.Heading, time.Since(begin).Round(time.Second), output)
	if err != nil {
		t.Fatalf("operate.md:%d: %v\n%s", step.Line, err, step.Command)
	}
}

func hasHeading(steps []guide.Step, heading string) bool {
	return slices.ContainsFunc(steps, func(step guide.Step) bool { return step.Heading == heading })
}

// environment is that of a person with kubectl, its plugin, helm and the cluster's
// kubeconfig, and without settings of Helm's own.
func environment() ([]string, error) {
	binaries, err := executables.Dir()
	if err != nil {
		return nil, err
	}
	path := binaries + ":" + filepath.Join(binaries, "node") + ":" + filepath.Join(top, ".bin") + ":" + os.Getenv("PATH")
	home := filepath.Join(shared.Cluster().StateDir(), "home")
	return append(os.Environ(), "KUBECONFIG="+shared.Cluster().Kubeconfig(), "PATH="+path, "HOME="+home), nil
}
